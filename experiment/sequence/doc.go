// Package sequence moves a lab through a row of configurations, once or several times, and records that as
// a run.
//
//	r, err := sequence.Play(ctx, f, []sequence.Step{
//		{Name: "ring", Maps: ring},
//		{Name: "pairs", Maps: pairs},
//	}, sequence.Options{Options: execution, Name: "ring-to-pairs", After: after})
//	// "ocslab runs show" and "ocslab report" of r.ID
//
// It is for planners whose output is an order of maps: what an experiment file cannot say, as that goes to
// and fro. All of a run stays where it is: package execution begins it, package runner carries it
// out and puts the light back however it ends, and package runs keeps it. Changes are made by
// [experiment.Mover], so they are in the history, protected and leased ports are refused, and circuits
// that are in no step stay as they are.
package sequence
