// Package experiment moves circuits and measures what happens: for each
// reconfiguration the marks of package timeline, from the receipt of the switch
// and from what its power monitors saw.
package experiment
