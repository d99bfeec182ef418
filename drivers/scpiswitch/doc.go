// Package scpiswitch drives optical circuit switches that speak SCPI as Polatis
// network interface cards do: TCP port 5025 or a serial line, no login,
// :OXC:SWITch:CONNect:ADD and its siblings.
//
// A [Switch] keeps one session and has one request under way at a time. It has
// no goroutine of its own: who asks writes and reads, and while nobody asks
// nobody reads. There are no labels, no monitor settings and no notifications
// over SCPI.
//
// # How a silent device is made to answer
//
// Set commands have no reply, and a query that fails has none either. So the
// lines of a request leave in one write:
//
//	:OXC:SWIT:CONN:ADD (@1),(@17)
//	*OPC?
//	:SYST:ERR?
//
// and the replies "1" and `0, "No error"` acknowledge it. *OPC? is answered when
// the operation is complete (IEEE 488.2, 10.19), also by a device that answers
// other queries while its mirrors move; the error query says whether it was
// refused, and ends the replies. A query is followed by the error query as well.
// Shutters and the boot mode are read back within the same round trip, since a
// command that was lost leaves no error. Circuits are not: [ocs.Reconcile] does
// that.
//
// Replies bear no tag. What does not fit the request that waits is not taken for
// its reply: a repetition is dropped, anything else ends the session. Only a
// whole set of replies that comes twice, the second time late, would be taken for
// those to the next change.
//
// A session begins with an empty line and drops replies until the error query is
// answered: closing a serial line and opening it again takes neither half a
// command nor a late reply away. The first query is repeated each quarter of
// Config.Timeout, as it may be lost while a line is opened.
//
// # The error queue
//
// It may be shared with other clients. It is read until it is empty when a
// session begins, before a change that comes 100 ms or more after it was last
// seen empty, and after each error, so that an old error is not taken for a new
// one. An error that another client causes just now cannot be told from one of
// ours: a read is repeated once when there may be such, a change is reported as
// refused, with every error in the text. The other way round, a client that
// reads the shared queue may take an error of ours away, and the refused change
// looks acknowledged: [ocs.Reconcile] notices.
//
// # What is repeated and what is not
//
//   - A request of which nothing was sent is sent on a new session.
//   - A request whose reply was lost with the session may have taken effect:
//     only reads are repeated, once and on a new session. All else is an error.
//   - A request whose reply did not come in time is never repeated. The session
//     is closed then, as a late reply would be taken for the next one.
//
// # Notes on the devices
//
//   - ADD is taken to drop what is in the way, as the same devices do over TL1,
//     so a move is one command. On a device that refuses instead (-221 Settings
//     conflict) the driver removes first, and remembers.
//   - SUB gets both lists, so that a circuit that somebody else has moved
//     meanwhile is not removed.
//   - ONLY is never used: it would darken circuits that others have made since
//     the map was read.
//   - *RST drops all circuits, whatever the boot mode says, so [Switch.Restart]
//     is refused unless that is dark.
//   - A power query fails as a whole when one port has no monitor. A side of the
//     switch whose first and last port have none is taken to have none at all;
//     of the rest the driver halves the query until it knows which ports these
//     are. It asks them no more.
//     -221, -222, -224 and -241 for a single port that the device has are taken
//     to mean that it has no monitor, other errors are errors.
//   - *IDN? is mandatory; SIZE? is not, and the product code does as well. Only
//     that tells whether a device is single-sided, unless SIZE? names no egress.
//   - A port whose hardware has failed has a shutter that is neither open nor
//     closed, and is left out.
//   - Old firmware loses commands that follow each other too fast: see
//     Config.Gap. A change that was lost is acknowledged all the same, as the
//     queries behind it are answered; what is read back shows it.
package scpiswitch
