// Package analysis says what the numbers of a run mean: statistics of each condition,
// outliers, differences between conditions and whether they can be resolved, what null
// toggles showed, and verdicts on limits. It is arithmetic on a [runs.Run] and does no I/O.
package analysis
