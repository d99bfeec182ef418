// Package pods runs Cross Wiring on a lab: the optical switches between the pods of a cluster (package
// topology/crosswiring) are brought to a configuration pair by pair, read back, and checked by following the light.
//
//	text, err := pods.LabFile(f, pods.LabOptions{Switching: 25 * time.Millisecond}) // an emulated lab for the fabric
//	cables, err := pods.FindCables(ctx, file, f, size)
//	report, err := pods.Apply(ctx, file, cables, running, planned, pods.Options{...})
//
// # Where the fibres are
//
// Switch k of group h is a switch of the lab, and each spine port has a fibre that it sends into and one that it
// receives from; under [crosswiring.Cross] these are on the two switches of a pair. A lab can say where they are in two ways:
//
//   - by NICs: host p2 is pod 2, and its NIC h0k3 is port 3 of its spine of group 0;
//   - by names alone, where it has no host p0: switch g0-k3 is switch 3 of group 0, and its input and output n are its
//     ingress n+1 and the egress of the same place.
//
// # The paired commit
//
// A link is a circuit on one switch of a pair and the opposite one on the other, so the two change together (ours; the paper
// leaves the order open): what goes is disconnected on the even switch and then on the odd one, and only
// then what comes is connected, even and then odd, each as it was acknowledged and read back. So no port hears a pod that it
// does not send to, unless something fails and all is put back, which is not done in turns. Pairs
// change at the same time; no round begins before every pair of the one before has been read back and its light has settled, as
// far as there are power monitors.
//
// # What is checked
//
// After each round the two switches of each of its pairs are compared as they were read back. When all has moved, every
// switch is read once more, by its driver and not from what the plan says, and the light of every port is followed by package
// topology/crosswiring/walk, which knows nothing of how the circuits were planned.
package pods
