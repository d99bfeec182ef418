// Package figures repeats figures of papers: each preset is an experiment, on the emulated
// testbed or on hardware, and a comparison of what was found with what was published.
//
//	figure, err := figures.Find("opus-9c")
//	file, err := figure.File(figures.Options{Emulated: true})
//	... resolve, run, analyse as any experiment ...
//	paper := figure.Compare(run, analysis)
//	err = report.HTML(w, run, analysis, report.Options{Paper: paper})
//
// # Set, not found
//
// An emulated testbed can only say what its model was told. Where the value that is
// compared is a parameter of the emulator (the switching time, the firmware's seconds),
// the note of the row begins with "set, not found": agreement then shows that the tool
// measures what is there, and nothing about hardware. On hardware the same row is a finding.
//
// # Modelled, not measured
//
// No training runs here. Step times are computed from measured delays by two small models,
// [Windows] for the Opus paper and [Stall] for that of Cross Wiring. The rows say so.
package figures
