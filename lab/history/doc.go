// Package history is the write-ahead log of what was done to switches: every
// change ocslab makes is on disk, with what takes it back, before it is sent.
//
//	log, err := history.Open(dir)
//	...
//	sw := log.Wrap(device, history.Entry{Switch: "rail0", Device: "tl1://192.0.2.10:3082", Command: "connect rail0 1>33"})
//	report, err := ocs.Reconcile(ctx, sw, want, ocs.Safe)
//	err = errors.Join(err, sw.Confirm(report, err))
//
// A [Log] may be used by several goroutines and several processes at once, and
// each of them may be killed at any moment. What [Log.Begin] has returned for
// is on disk; a change whose outcome was never recorded stays [Pending], and
// can be taken back as far as the device still holds it.
//
// # Undo and redo
//
// An undo is an entry like any other, with [Entry.UndoOf] naming what it took
// back. It counts once it is [Done] and as long as it has not been taken back
// itself: then the other entry's [Entry.UndoneBy] names it. From this follows
//
//   - undo, undo: [Log.Last] passes over what is undone and over undos, so the
//     second goes back one change further;
//   - undo of an undo is a redo: the first change is in force again, and is
//     again what Last finds. Redo goes as far as one cares to name undos;
//   - an undo that was interrupted, refused, or reads back otherwise does not
//     count: the next undo tries the same change again, and [ocs.PlanUndo]
//     takes back what is left of it;
//   - a change that [Failed] is passed over by Last, as it did nothing;
//     Pending and [Unverified] ones are not, as they may have.
//
// When PlanUndo finds nothing left to take back (somebody else did it, or a
// Pending change never reached the device), record an undo with an empty
// Change by Begin and [Log.End]; otherwise Last would find the same entry for
// ever. Begin refuses, under the lock, to undo what is undone already. An undo
// still under way does not count yet, so a second one begun meanwhile is not
// refused; it too takes back only what PlanUndo finds.
//
// # The file
//
// history.ndjson in the directory holds one JSON object per line and only ever
// grows. A change is a line that begins it and, after it, lines that end it,
// of which the last counts:
//
//	{"v":1,"kind":"begin","id":1,"t_ns":1763654400123456789,"switch":"rail0","device":"tl1://192.0.2.10:3082","command":"connect rail0 1>33","remove":"1>36","add":"1>33","undo_of":0,"crc":"bd25c25b"}
//	{"v":1,"kind":"end","id":1,"t_ns":1763654400323456789,"state":"done","ack_ns":181000000,"error":"","crc":"1b464b25"}
//
// Lines of version 2 also have the keys group, set and until; see [Entry]. A line that version 1 can express is of
// version 1. who is missing in lines of older programs.
//
// t_ns is Unix time, ack_ns is 0 where unknown, undo_of is 0 for a change that
// is no undo. All keys are always there, in this order. crc is the CRC-32
// (IEEE, as of zlib) in eight hexadecimal digits of the line as it would be
// without it, that is with `,"crc":"…"` and the newline taken out.
//
// An append is one write of whole lines and an fsync, under the lock on
// history.lock, which readers share where they can. If either fails the line is cut off again and the caller told,
// so that the change is not sent. What a killed process or a lost power left
// at the end, which is no whole line with the right checksum, is moved by the
// next user to history.ndjson.torn-1, -2, and so on. Such a line with good
// ones after it is left alone and reported as a [Problem]. A line of a
// version above 2 makes every call fail with [ErrNewer]; nothing is touched.
//
// The file is not to be edited while ocslab runs. Moved or removed as a whole
// it starts anew, with IDs from 1.
//
// # What is not recorded
//
// What others do to a switch. A [Recorder] records Apply alone: the gate of package lab records settings of monitors,
// shutters, labels, attenuators and restarts as entries with Set.
package history
