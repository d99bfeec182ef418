// Package tl1switch drives optical circuit switches that speak TL1: as Polatis network
// interface cards do (port 3082, ACT-USER, ENT-PATCH and its siblings), or in the
// dialects of Calient S-series and Glimmerglass units, which Config.Dialect names.
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
// # Notes on Polatis units
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
//
// # What Calient and Glimmerglass units have in common
//
// How they treat a busy port is not published, and they have no request that
// moves. So Apply reads their table of connections first, and
//
//   - refuses a busy port that the change does not free ([ocs.ErrConflict]), before
//     anything is sent, and what would darken light that the change does not
//     name: one direction of a two-way connection (ErrConflict; such a connection can
//     only be removed as a whole), a connection that somebody else has locked
//     ([ocs.ErrInterlock]);
//   - removes what is to go, by the names that the device uses, then makes what is new.
//     What is there already is left alone, what is not there is not removed.
//
// A connection that the device lists as failed (OC other than OK, CONNSTATE fault) carries no
// light and is not in the map: reading back never takes it for success. Nobody can
// ask for its removal, so Apply removes one that is in the way of what it makes, if
// it is our own, of Config.Group or Config.User; that of others is an ErrConflict.
//
// A refusal after requests of the same change that were carried out says so,
// and does not match the errors that promise that nothing was changed. A
// [ocs.Receipt] counts the requests that change something, not those that look.
//
// Power and Labels work; shutters, notifications, boot modes and the settings of
// monitors and labels have no known commands, and return [ocs.ErrNotSupported].
//
// # Calient
//
//   - Each port has an input and an output: input k of n is ocs port k, its output port
//     n+k, also in "a-b", which is a>n+b and b>n+a. Ports are numbered in the order of
//     RTRV-PORT, whatever they are called (7, 1.2.3), which is read once.
//   - A long reply comes as several messages, each complete, with no sign of which
//     is the last. The driver asks RTRV-HDR behind it: the device answers in
//     order, so with that reply all have come. That is one more round trip for
//     each reading of the map, ports or power.
//   - Connections are made one by one (ENT-CRS, always 1WAY), as the syntax of the
//     bulk commands is not known. Whether ACT-CRS is needed, the driver learns
//     from RTRV-PORT-SUM after the first, or Config.TwoStep says. CANC-CRS comes
//     before DLT-CRS unless it is known not to be needed; its refusal does not matter.
//   - A request that changes something and is answered with COMPLD but says "failed" or
//     "invalid" is an error.
//   - An idle session sends RTRV-HDR each 60 s.
//
// # Glimmerglass
//
//   - Input k is 10000+k on the wire and ocs port k, output k is 20000+k and port N+k of
//     an N x M switch. Outputs beyond the licensed matrix are in no reading.
//   - All of a change is one DLT-CRS-FIBER and one ENT-CRS-FIBER with OPMODE=sync, which
//     is acknowledged when the light has settled, or OPMODE=async with Config.Async.
//   - Power is what RTRV-CRS-FIBER shows; NA is no reading, and neither is what old units
//     show for an end that is not there.
package tl1switch
