// Package experiment moves circuits and measures what happens.
//
// A [Bench] measures reconfigurations: it brings maps about on its switches, derives
// from the circuits what has to follow (light at which ports and NICs, traffic between
// which pairs), waits until all that is watched has come back, and returns the marks of
// package timeline.
//
// A [Testbed] is a lab with a bench: switches opened, hosts watched, and all of that
// emulated when the lab is. Whether hosts are real, emulated here, emulated by another
// program, or other machines with agents makes no difference to the bench.
package experiment
