// Package runs keeps runs of experiments: a directory for each, written so that a process
// killed at any moment loses no finished point, and an index that can be made anew.
//
//	store, err := runs.Open(stateDir)
//	w, err := store.Create(ctx, runs.Creation{Meta: meta, Experiment: text, Lab: lab, Plan: p})
//	session, err := w.Session(runs.Session{...})
//	err = w.BeginPoint(p.Points[0])
//	w.Reconfiguration(...); w.Mark(...); w.Sample(...) // in memory
//	err = w.FinishPoint()                              // on disk
//	err = w.Finish(runs.Summary{State: runs.Done})
//	err = w.Close()
//	run, err := store.Load(ctx, w.ID()) // at any time, by anybody
//
// # The directory
//
// A run is <state>/runs/<ID>, readable by the user alone. Its ID is the time it began (UTC),
// its name as far as that is letters and digits, and four random digits.
//
//	run.json         [Meta]; it appears together with the four that follow
//	experiment.yaml  as given
//	lab.yaml         as given
//	plan.json        [plan.Plan]
//	events.ndjson    what happened and what was measured; only ever grows
//	samples.ndjson   readings of power monitors, likewise
//	summary.json     [Summary], written last, by rename; absent while the run is not over
//	lock             held by the process that works on the run
//	control          what somebody wants of that process
//
// A resumed run may also have events.ndjson.torn-1, which is what a killed process had
// written of a point it did not finish, and summary-1.json, which was the summary before
// the run went on. Both are kept for people; nothing reads them.
//
// # Lines
//
// A line is one JSON object with the key "kind" first. Times that end in _ns are nanoseconds,
// those of marks and readings on the monotonic axis of the session. These lines belong to no
// point; each is durable when the call that wrote it returns:
//
//	{"kind":"session", ...}          [Session]
//	{"kind":"session-ended","session":1,"wall":"2026-11-22T10:15:00Z","why":"..."}
//	{"kind":"setup", ...}            [Setup]
//	{"kind":"event", ...}            [Event]
//	{"kind":"dropped","point":7,"session":1,"wall":"...","why":"..."}
//	{"kind":"point-abandoned", ...}  likewise
//
// A finished point is a block of lines, written at once when it is over:
//
//	{"kind":"point-begun","point":7,"condition":2,"repeat":1,"first_reconfiguration":13,"session":1}
//	{"kind":"reconfiguration", ...}  [Reconfiguration]
//	{"kind":"expected","reconfiguration":13,"stage":"light","subject":"rail0/33"}
//	{"kind":"mark","stage":"light","subject":"rail0/33","host":"gpu1","earliest_ns":1,"latest_ns":2,"source":"opm","reconfiguration":13}
//	{"kind":"truth", ...}            as mark, of an emulated lab
//	{"kind":"note","reconfiguration":13,"note":"gap", ...}  [watch.Note]
//	{"kind":"point-done","point":7,"lines":5,"crc":"bd25c25b","samples":40,"samples_crc":"1b464b25","finished":3}
//
// and in samples.ndjson, if there are any, of
//
//	{"kind":"point-begun", ...}      the same line
//	{"kind":"sample","reconfiguration":13,"subject":"rail0/33","earliest_ns":1,"latest_ns":2,"power_dbm":-3.5}
//	{"kind":"sample", ... ,"latest_ns":2,"dark":true}
//	{"kind":"point-done","point":7,"lines":40,"crc":"1b464b25"}
//
// lines counts those between the first and the last, crc is the CRC-32 (IEEE, as of zlib) in
// eight hexadecimal digits of all from the first up to the last, newlines included and the
// last left out. samples and samples_crc are those of the other file; finished is how many
// points the run has with this one.
//
// # What counts
//
// A point counts when its block is there with the right number of lines and the right
// checksum, and so are its samples. The samples are written and made durable first. A
// writer that cannot write a block (the disk is full) cuts off what it had written of it.
// Of two blocks of one point the first that is whole counts.
//
// What a reader finds behind the last line that counts is a block that is being written, or
// that a killed process did not finish: [Store.Load] leaves it out, and [Store.Resume] moves
// it away. Lines before that which do not count are damage: what was in them is lost, what
// comes after is not, and the [Run] has an [Event] of the kind "recovered" that says where
// it was. A line of a kind that is not known is skipped and told of by an Event "skipped". A
// summary that is damaged counts as none; without run.json, plan.json and the two files as
// given a run cannot be read.
//
// Points that were abandoned or dropped have no block. An abandoned one is told of by an
// Event of the kind "abandoned".
//
// # The index
//
// <state>/runs/index-v1.sqlite holds what [Store.List] shows, one row for each run. It is a
// cache. What it does not have, and runs that it calls running, are looked up in their
// directories; damaged or removed it is made anew, and it is removed when it cannot be told
// what a run has become; on network file systems, whose locks SQLite cannot trust, and where it
// cannot be written, there is none. A run that it calls done, stopped, failed or interrupted is
// believed: where other programs have changed such a directory, "ocslab runs reindex" helps.
//
// # What is not promised
//
// A disk that lies about fsync, or on which a write never returns. Locks on file systems that
// have none, as some network file systems. The order of events that are recorded while a point
// is open: they come after it.
package runs
