// Package tl1switch drives optical circuit switches that speak TL1 as Polatis
// network interface cards do: port 3082, ACT-USER, ENT-PATCH and its siblings.
//
// A [Switch] keeps one session. Requests carry a rolling CTAG and are sent one
// at a time, since no known client of these devices pipelines; a reply is
// taken only for the CTAG it names, stale ones are dropped, and autonomous
// messages are handed to [Switch.Notify]. The session is opened again when it
// breaks, when the device has stopped in the middle of a reply, or when only
// part of a request could be sent. The password is masked in errors, events
// and traces, also where the device gives it back.
//
// # What is repeated and what is not
//
//   - A request that the device refused with "Not logged in" had no effect; it
//     is repeated once after a new login if doing it twice is the same as doing
//     it once. Only [Switch.Restart] is not.
//   - A request of which nothing was sent is sent on a new session.
//   - A request whose reply was lost with the session may have taken effect:
//     only reads are repeated, once and on a new session. All else is an error,
//     and [ocs.Reconcile] looks at what the device holds.
//   - A request whose reply did not come in time is never repeated.
//
// # Notes on the devices
//
//   - ENT-PATCH takes over busy ports without a word and drops what was there,
//     so a move is one request. On a device that refuses instead (DENY with
//     "in use", or IDNC) the driver deletes first, and remembers.
//   - DLT-PATCH wants ingress ports only. "a,b" is answered with COMPLD by some
//     firmware and does nothing.
//   - COMPLD says nothing about light. DELAY is an error here, as nobody knows
//     when the command will be carried out, and so is PRTL.
//   - A device that could not read a CTAG answers with CTAG 0. Such a refusal is
//     taken for the request that waits, unless one was given up before in the
//     same session.
//   - No limit of pairs in one ENT-PATCH is known; Config.MaxPairs sets one.
package tl1switch
