// Package loss measures what each path of an optical circuit switch takes from its light:
// the N x M map of insertion losses, from the power monitors of the switch itself.
//
//	maps, err := loss.Order(geometry, ingress, egress)      // every path once, in the fewest maps
//	m, err := loss.Measure(ctx, loss.Bench{...}, ingress, egress, loss.Options{})
//	flags := m.Analyze(loss.Limits{})                       // what is dirty, bad, dead
//
// # Order
//
// A map lights at most min(N, M) of the N*M paths, so max(N, M) maps are the fewest there can
// be. [Order] needs no more: with M >= N, map k of M joins ingress i to egress (i+k) mod M, a
// Latin square of which N rows are used; with N > M the sides change places. Each path is in
// one map only, as k = (j-i) mod M is one number, and each map is one-to-one, as i+k is.
//
// Ports of a single-sided switch play in rounds, all against all, as in a tournament: one
// stays, the others go around in a circle. A pair can hold the light of one direction at a
// time, so ports that all have light need 2(n-1) maps, or 2n when their number is odd; a map
// lights n/2 paths, rounded down, so that fewer cannot do. Of l ports with light among n,
// every one with light must be in n+l-2 maps; the order has at most two more.
//
// # Loss and its uncertainty
//
// The loss of a path is what the monitor at its ingress says, less what that at its egress
// says, both of the same reading, so that a source that drifts cancels out; that it has drifted is
// flagged all the same. Of four parts the uncertainty is made, added as squares:
//
//   - noise of the readings, pooled over the whole map, divided by the root of their number (type A);
//   - repeatability: how much the loss of a path differs when it is made again, from maps
//     that are made once more at the end (type A);
//   - drift of a reference that no monitor watches: the uncertainty it was given with (type B);
//   - accuracy of the two monitors, taken as limits of a rectangular distribution (type B).
//
// The expanded uncertainty is twice the root of the sum (k = 2). Accuracy is most of it with
// monitors of ±1 dB. It is a property of each monitor, so it is the same in all paths of a port,
// and cancels out when the same switch is compared over time: [Map.RelativeU] is without it.
// What a monitor reads wrong cannot be told from what its port loses: flags of ports say so.
//
// # What is dark
//
// A path that stays dark is no number: it has the state [Dark] and a lower bound of its loss,
// from what its monitor reads. An ingress without light has no reference, and its paths are
// [NoReference]. Neither is guessed from its neighbours.
//
// # What is wrong
//
// Losses are taken for m + r + c + e, an overall level, one number for each ingress, one for each
// egress, and what is left for the path; they are found by median polish (Tukey), which
// a bad port or path does not bend. A port whose number sticks out is dirty or bad; a path
// whose rest sticks out has a mirror or a beam in trouble. How far out is a matter
// of the robust spread (1.4826 times the median absolute deviation) of its peers and of
// how many there are: limits are quantiles of simulated maps of that size, such that no more than one
// sound switch in a hundred has a flag ([FalseAlarms]), if paths scatter no worse than normally, monitors err
// evenly within their accuracy, and connectors differ by 0.3 dB (k = 1) at most. Where so many
// ports are bad that nobody can tell which half is the sound one, that is what is said.
package loss
