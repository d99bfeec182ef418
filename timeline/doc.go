// Package timeline is the vocabulary and the arithmetic of a reconfiguration
// timeline: after a switch was told to move light, when did each layer (light,
// firmware, carrier, traffic) come back, and how surely is that known?
//
// # Marks
//
// A [Mark] says that one [Stage] was reached by one subject, seen by one source.
// It is never a bare number: its [Interval] holds every instant at which the
// thing may have happened. What is polled every 10 ms is known to 10 ms and says
// so. All arithmetic here keeps that promise: when each operand holds its true
// value, so does the result.
//
// From observation to statement the steps are
//
//	dark, light := timeline.Edges(before, samples, rule) // optical power to stages
//	marks, conflicts := timeline.Merge(a, b)             // several sources, one list
//	violations := timeline.Check(marks)                  // orders that cannot be
//	report := timeline.Summarize(marks, timeline.Options{Expected: expected})
//	durations := timeline.Durations(marks)          // what the report stands on
//	distribution := timeline.Turnbull(intervals)    // of intervals, also of what never came
//	lines := timeline.Waterfall{}.Lines(report)
//	accuracy := timeline.Compare(marks, truth)           // where the truth is known
//
// # Time
//
// Times are nanoseconds on one monotonic axis. [HostAxis] gives that of this host;
// marks from another host are brought over with [Interval.Shift], which widens
// them by the bound of the clock offset. Fields and JSON keys that hold raw
// nanoseconds end in NS and _ns. Arithmetic saturates at the ends of int64
// (292 years) and does not wrap.
//
// # Concurrency
//
// The package has no mutable state. Every function may be called from several
// goroutines at once, leaves its arguments as they were, and keeps no reference to
// them.
//
// # What is not promised
//
// Nothing here orders marks by assumption: stages come in any order the intervals
// allow, and an acknowledgement is never taken for light. Nor are stages invented:
// what no source saw is missing from the statistics and counted as missing.
package timeline
