// Package sshserver is the SSH server of an emulated switch: it logs users of
// the device in and hands their sessions to the front ends of other protocols,
// as shell (TL1) or as subsystem (NETCONF).
//
//	srv := &sshserver.Server{
//		Device: dev, HostKey: sshserver.HostKey("rail0", 1), Shell: &tl1server.Server{Device: dev},
//	}
//	l, err := net.Listen("tcp", "127.0.0.1:6252")
//	...
//	err = srv.Serve(ctx, l)
//
// Users, passwords and groups are those of the device. The front end gets the
// user, the client's address and the port in its [emulator.SessionInfo]. A
// connection may have several sessions. When the device restarts, or ctx ends,
// all connections are closed.
//
// # What is decided here because nobody has published it
//
//   - Users log in by password, by keyboard-interactive with the one question
//     "Password: ", and with a key if the Server has any (AuthorizedKeys). Who
//     has no password logs in with an empty one.
//   - A session with a terminal turns carriage returns into line feeds and
//     echoes what is typed, unless the client turns ECHO off (NoEcho: never).
//     Nothing that is written is changed: front ends write CR LF themselves.
//   - Programs (exec), environment variables, X11, agents and forwarded ports
//     are refused. A session ends with exit status 0.
//   - What the server calls itself (Version), a banner (Banner), the number of
//     sessions (MaxSessions), the time for a login (Handshake).
//   - Old algorithms only (Legacy). By default those of golang.org/x/crypto/ssh.
package sshserver
