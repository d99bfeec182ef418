package mzi

import "math"

// Trim's defaults.
const (
	TrimDither = 0.05 // rad to either side
	TrimGain   = 0.8
)

// TrimStep is one step of trimming: what to add to the phase of an element whose dark output
// showed the share up of the light with the phase a dither above what it is, and the share
// down with it as much below. The difference is sin(dither) times the sine of the phase
// error, to first order of what the couplers leave; the gain says how much of the error to
// take away at once. With 0.8 an error of 0.5 rad leaks -24.7 dB after one step, then -38.6,
// -52.6 and -66.5 dB; lower gains are slower and gain little, for what averaging does not
// take away of the noise enters by gain/(2-gain) of its power.
func TrimStep(up, down, dither, gain float64) float64 {
	derivative := (up - down) / (2 * math.Sin(dither)) // of the share by phase, half the sine of the error
	return -gain * 2 * derivative
}
