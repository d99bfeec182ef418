// Package baseline observes what a testbed cannot resolve, for a timing calibration, and finds the
// calibrations that bear on a set-up.
//
//	o, err := baseline.Observe(ctx, testbed, baseline.Options{Toggles: 20})
//	b := timing.Of(o)
//	record, err := store.Open(stateDir).Put(...)
//	found, remarks := baseline.Find(store.Open(stateDir), labFile, emulated, setup, session, time.Now())
//
// Observing needs a testbed whose changes somebody records and takes back: see
// [experiment.Mover].
package baseline
