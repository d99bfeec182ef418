// Package mzi calibrates the Mach-Zehnder elements of an OCSTrx through the registers of the
// module: it drives heaters (page B4h), reads photodiodes (B0h, B1h) and currents (B5h), and
// loads a table (B7h). It knows nothing else of the module.
//
// # Sweeps
//
// An element is swept in 64 steps of V² from full range of arm B over none to full range of
// arm A, without jumps, so that the slow response of the substrate lags by less than a
// milliradian. What counts is the share of light at the output of its bar state, in which
// the power of the laser cancels; the losses behind both outputs are compared by what one
// gains while the other loses. Fitted are offset, amplitude and phase of the fringe, and
// slope and curve of phase against V² of either arm: on a grid of slopes first, where the
// rest is linear, then by golden section, then all together by package lm. How resistance
// bends with power is taken from the currents.
//
// All elements that have nothing to do are at a mean power meanwhile. So the case is as
// warm as in operation, and [Calibrated.Bias] says what phase neighbours had.
//
// # Order
//
// Dark readings; then, with one lane lit at a time, S1 of that lane (its loop tap against
// both fibre taps) and, with S1 at bar, S2. Then the loop network, which has photodiodes
// behind its outputs only and joins light again that took different ways: an element that
// gets light at both inputs has its fringe shifted. What helps is that elements lose no
// light, so that the sum behind the two outputs of an element is what has entered it,
// whatever its state, and without interference; the sums of four receivers in the same way
// are what has entered the elements of column 3. In these sums the fringes of column 2 are
// clean before anything else is known; with them those of column 1, then of column 0; then
// light can be led to one input of each element of columns 3 and 4. At last every element
// is swept once more with all the light led to it.
//
// # Coupling and operating point
//
// What is measured of the loop network afterwards is measured by ways on which light does not
// meet itself again before the sums that it is seen in, see [Session.Couple] and
// [Session.Operate]. Elements around the one that is watched are heated in the patterns of a
// two-level design. Where they are on its way, its states are looked for instead, as they are
// in [Session.Operate]: the share of light is as much on either side of a state, whatever
// comes to the receivers by other ways. What is known of a pair is weighed against what pairs
// as far apart have.
//
// # What cannot be seen
//
// If the taps of fibres 1 and 2 of one lane are swapped, or two receivers behind one
// element, all looks like an element whose states are the other way round. Lanes whose taps
// are swapped are found.
package mzi
