// Package scpiserver is the SCPI front end of an emulated switch: the commands
// that Polatis units are publicly known to have, and what IEEE 488.2 and SCPI-99
// ask of every device.
//
//	srv := &scpiserver.Server{Device: dev}
//	l, err := net.Listen("tcp", "127.0.0.1:5025")
//	...
//	err = srv.Serve(ctx, l)
//
// SCPI knows no login: whoever connects has all rights, those of the group ADMIN.
// Nothing is said before the first query, and set commands are never answered;
// what goes wrong is kept in the error queue until it is asked for. A client that
// does not read delays nobody but itself.
//
// # Commands are sequential
//
// Every command is sequential in the sense of IEEE 488.2 (12.2): the units of a
// session are carried out one after another, and none is looked at before the
// matrix has acknowledged what the session asked of it before. With switching.ack
// "after" that is when the light has settled, so every query behind a set command
// waits for that, and *OPC? and *WAI have nothing to add. With "before" nothing
// waits. Other sessions do not wait.
//
// In the truth log the command is there when its line has been read, and its
// acknowledgement when the first reply behind it has been written, as that is
// what confirms it.
//
// # What is decided here because nobody has published it
//
// Lines and replies:
//
//   - A unit that cannot be read or carried out does not stop those behind it, so
//     that "<command>;:SYSTem:ERRor?" is answered whatever the command is.
//   - Several replies to one line are joined by ";" (personality: scpi.apart), also
//     behind *IDN?, where the standard has error -440.
//   - Replies end with CR LF (scpi.cr_only).
//   - Words in replies are in the short form (scpi.long_form).
//   - A line of more than 64 KiB is dropped with error -363.
//   - A line that comes less than scpi.gap after the one before is lost; one that
//     was lost does not count as one before.
//   - A session too many, or during a reboot, is accepted and closed.
//
// Errors and status:
//
//   - An error has the standard's text, then ";" and a detail (scpi.terse_errors),
//     with a blank after the comma (scpi.no_blank).
//   - Each session has an error queue of its own (scpi.shared_errors) of 20 entries
//     (scpi.error_queue), and always registers of its own. Power-on is not among
//     the events of a new session.
//   - Numbers: -222 for a port that does not exist or is on the other side, -224
//     for one named twice and for a bad word or address, -226 for lists that
//     differ in length, -221 for a busy port on a unit that does not take over,
//     -223 for more pairs or power readings than the device takes, -240 for a port
//     that has failed, -241 for one without a monitor and for the second network
//     interface, -203 for setting an address.
//
// Matrix and ports:
//
//   - ADD and ONLY take over busy ports as the personality says, and are all or
//     nothing. The third parameter of ADD may be anything and means nothing.
//   - SUB with one empty list drops whatever is at the ports of the other, free
//     ports included. With two it drops pairs: one whose ports are both free is
//     gone already, but one of which a port is connected elsewhere is refused with
//     -221, and nothing changes.
//   - *RST drops all cross-connects and opens all shutters. The boot mode stays.
//   - PORT? answers for egress ports, too: with their ingress. A free port gives ""
//     (scpi.empty_nothing).
//   - SIZE? of a single-sided unit of n ports is "n,0".
//   - A failed port shows F, be its shutter open or not.
//   - CONNect:STATe? is in the order of ingress.
//
// System:
//
//   - The address is always 127.0.0.1, and setting it is refused.
//   - *TST? finds no fault. SYSTem:VERSion? is 1999.0.
package scpiserver
