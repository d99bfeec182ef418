// Package serialline is the serial port of an emulated switch: a
// pseudo-terminal with a link to it that stays where it is, opened by clients as
// they would open /dev/ttyUSB0.
//
//	line, err := serialline.Listen("/run/ocslab/rail0.tty")
//	...
//	defer line.Close()
//	err = line.Serve(ctx, &scpiserver.Server{Device: dev})
//
// A session begins when somebody opens the line and ends when the last one has
// closed it; there is one at a time. What was written for a client that is gone
// is thrown away. Linux only.
//
// # What is decided here because nobody has published it
//
//   - A serial line has no way to hang up. When the front end ends a session,
//     because the device restarts or a fault says so, while the line is still
//     open, what has been sent and not read is lost, and another session begins a
//     tenth of a second after the one before began.
//   - Several programs may have the line open at once; they share a session.
//   - Who opens the line when the last one has closed it gets a session of its
//     own, however soon that is: the kernel tells who has opened and closed it, and
//     bytes are not handed on before that was looked at. Only what the one before
//     has sent, closing the line before it was read, comes first, and it may find
//     what that one has not read, as on any serial line.
//   - The line passes all 256 bytes unchanged. Speed, parity and flow control
//     can be set and mean nothing.
package serialline
