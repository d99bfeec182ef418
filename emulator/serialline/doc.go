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
//     open, another session begins a tenth of a second later; what was sent
//     meanwhile is lost.
//   - Who opens the line in the moment in which the last one closes it may get
//     that one's session: the line was never without somebody.
//   - The line passes all 256 bytes unchanged. Speed, parity and flow control
//     can be set and mean nothing.
package serialline
