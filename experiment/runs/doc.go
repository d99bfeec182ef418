// Package runs keeps runs of experiments: a directory for each, written so that a process
// killed at any moment loses no finished point, and an index that can be made anew.
package runs
