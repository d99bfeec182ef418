// Package fit makes an emulator of a lab out of what its runs measured: how long its
// switches take, as a personality, and how long the firmware of its NICs takes, as a
// firmware note. Tests can then be made against that lab without it, and what the lab does
// later can be held against what it did then.
//
//	fitted, err := fit.Runs([]*runs.Run{r}, fit.Options{})
//	files, err := fitted.Write(dir)        // personalities, a note, a lab file, fit.json, fit.html
//	again, err := fit.Load(dir)
//	report, err := again.Drift(later, fit.DriftOptions{})
//
// Only what was seen is used, never the truth log of an emulated lab. What runs cannot tell
// is taken from a base, and each file says of each value which of the two it is.
package fit
