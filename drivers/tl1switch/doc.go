// Package tl1switch drives optical circuit switches that speak TL1 as Polatis
// network interface cards do: port 3082, ACT-USER, ENT-PATCH and its siblings.
//
// A [Switch] keeps one session. Requests carry a rolling CTAG and are sent one
// at a time, since no known client of these devices pipelines; a reply is
// taken only for the CTAG it names, stale ones are dropped, and autonomous
// messages are handed to [Switch.Notify]. The session is opened again when it
// breaks or when the device has logged it out.
//
// # What is repeated and what is not
//
// A request that the device refused with "Not logged in" had no effect; it is
// repeated once after a new login if doing it twice is the same as doing it
// once. A request whose reply was lost may have taken effect: only reads are
// repeated then, all else is an error, and [ocs.Reconcile] looks at what the
// device holds.
//
// # Notes on the devices
//
//   - ENT-PATCH takes over busy ports without a word and drops what was there,
//     so a move is one request. On a device that refuses instead (DENY with
//     "in use") the driver deletes first, and remembers.
//   - DLT-PATCH wants ingress ports only. "a,b" is answered with COMPLD by some
//     firmware and does nothing.
//   - COMPLD says nothing about light.
//   - No limit of pairs in one ENT-PATCH is known; Config.MaxPairs sets one.
package tl1switch
