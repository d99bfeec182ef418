// Package store keeps what calibrations of a lab have found: one file for each, numbered, never
// overwritten, and good for a limited time.
//
//	s := store.Open(stateDir)
//	r, err := s.Put(store.Record{Kind: store.Loss, Lab: "opus-testbed", Subject: "rail0", Complete: true, Data: data})
//	r, err = s.Latest(store.Loss, "opus-testbed", "rail0") // errors match ErrNone when there is none
//	if why, stale := r.Stale(time.Now()); stale { ... }
//	for _, c := range r.Changed(store.OfSwitch("rail0", identity)) { ... } // "rail0 firmware was 6.7.3.9, is 6.8.0.1"
//
// # The files
//
// A record is <state>/calibrations/<kind>/<lab>/<subject>/0001.json, readable by the user
// alone. Letters, digits, "-", "_" and dots that are neither first nor last stand for themselves
// in the names of directories, all other bytes as %41; an empty name is "%". A file appears by
// rename when all of it is on disk, so it is whole or not there.
//
// Versions count from 1 for each kind, lab and subject, and none is given twice, also when its
// record has been removed: what a run says it has used is that and nothing else. The file
// "last" remembers the highest, "lock" is held while a version is given.
//
// A file that cannot be read, or is of another subject than its place says, is damaged:
// [Store.List] tells of it and goes on, [Store.Latest] and [Store.Get] fail when it is the one
// that is asked for. Nothing is ever put in its place.
//
// # The set-up
//
// A calibration holds for the things it was made with. [Record.Setup] names those whose change
// ends that, as the firmware of a switch or the kernel of a host; [OfSwitch] and [OfHost] write
// them in the one way that can be compared.
//
// All methods may be called by several goroutines and processes at once.
package store
