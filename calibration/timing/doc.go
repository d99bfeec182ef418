// Package timing says what a set-up cannot resolve: of each stage of a reconfiguration, how
// much later it has to come in one condition than in another before that means anything.
//
// It is arithmetic on what was observed while a lab was toggled between the same two
// configurations, and while nothing was done; package experiment/baseline makes the
// observations. Three things make a floor:
//
//   - Resolution: how wide the intervals are that the sources give (95 % are not wider), how
//     far apart the readings of power monitors are and over what they average, and how much the
//     time of an exchange with a switch varies. More repeats do not help.
//   - Equals: what the medians of two halves of the same toggles, taken at random, differ by
//     in 95 % of splits. It shrinks with the square root of the number of repeats.
//   - Spurious events, which are no time but a rate: how many marks a minute each source gives
//     while nothing moves.
//
// The floor is the larger of the first two. What equals differ by is also a property of what is
// measured: firmware that trains in one of two times makes it large. So a run takes the first
// from its calibration, and the second from itself if it has enough repeats: [Floor.At].
//
// Everything here is safe for concurrent use and leaves its arguments as they were.
package timing
