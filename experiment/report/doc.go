// Package report writes what a run found as one HTML file that can be shown as it is, and
// its figures as SVG files.
//
// The file needs nothing else: no script, no font, no picture from anywhere. It is light or
// dark as its reader likes, light on paper, and can be read on a telephone. What is drawn
// and what is in tables is bounded, so that a run of any length gives a file that opens; the
// rest is in the CSV export, and the report says where it left something out. What most readers
// can do without is folded away; paper shows what is unfolded when it is printed.
//
// Numbers have as many digits as they are known to. Names are shown as they are written, and
// may hold anything.
package report
