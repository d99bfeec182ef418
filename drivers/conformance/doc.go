// Package conformance is the one suite that every driver and every device must
// pass:
//
//	report, err := conformance.Run(ctx, conformance.Config{
//		Name: "rail0",
//		Open: func(ctx context.Context) (ocs.Switch, error) {
//			return drivers.Open(ctx, "tl1://admin@192.0.2.10:3082", opt)
//		},
//	})
//	report.WriteText(os.Stdout)
//
// It is run by the tests against emulated devices and by people against real
// ones, on which other people's light is. So the first rule is that it never
// darkens a port that it did not light itself, unless [Config.AllPorts] says
// that the whole device is its own.
//
// # How other people's light is kept
//
//   - The suite works on ports that are in no cross-connect and behind no closed
//     shutter when it starts, the highest-numbered first, and on no others.
//   - Before each change it reads the map again. A port that somebody else has
//     taken meanwhile is given up for good; the check is skipped.
//   - A ledger holds the cross-connects that the suite has asked for and that may
//     be there. Only these are ever removed, and only while they read back.
//   - After each change it reads the map again. When a cross-connect of others
//     has vanished across one of its own requests, or one has come that it did
//     not ask for, it changes nothing any more and says so. It does not put
//     that right: it cannot know that nobody disconnected at that moment in order
//     to open a fibre.
//   - What a check changed is put back after that check, whether it passed,
//     failed, panicked or was cancelled, with a context of its own and over a
//     new session when the old one has died. When that fails no further check
//     changes anything.
//   - What could not be put back is in the report, and fails the check
//     "restored".
//
// Devices offer no lock. Between the reading of the map and the change that
// follows it, some milliseconds, another client may take the same port; then
// the device decides who gets it. A process that is killed puts nothing back.
//
// # What is judged and what is noted
//
// A check that cannot be tried here and now is skipped: no light, no free ports, no
// second session. One of what the device, its driver, or devices of its kind cannot do
// is not supported. Neither fails, and the reason is in the report.
//
// On transceivers, which reach a few egress ports from each ingress, pairs are such as
// can be reached and as nothing that is there excludes.
//
// A check fails when the contract of package ocs is broken: a change that does
// not read back, a refusal that is not an error, a reply taken for another. In
// what devices may differ, such as whether a busy port is taken over, is a
// [Quirk] and fails nothing.
package conformance
