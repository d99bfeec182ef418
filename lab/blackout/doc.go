// Package blackout takes the light from the ports of a lab at once, for a reason, and gives
// it back: the panic button.
//
//	p := blackout.New(blackout.Options{File: f, Device: l.Device, Open: l.Switch, History: log, StateDir: dir})
//	results, err := p.Panic(ctx, panics.Call{Reason: "somebody looks into a fibre", Who: panics.Me()})
//	...
//	results, err = p.Lift(ctx)
//
// # Whose light
//
// The lab's light is that of its NICs, the ports they send into and receive from, and all
// of a board of transceivers that one of its cables is plugged into, without ports that the
// lab file protects. All other light is left alone, and a switch with neither is not touched:
// what goes through it is nobody's here.
//
// # How
//
// Where a port has a shutter, that is closed, and its circuits stay. A circuit that no
// shutter can darken is removed, which goes through the history and the interlock as every
// change does. All switches are darkened at the same time, and one that fails or hangs holds
// up no other.
//
// # What is remembered
//
// What is about to be closed and removed is in panic.json of the state directory before it is
// sent, and afterwards what became of it on each switch: dark, or failed and why. Until that is
// written the switch counts as asked, and nobody says that it is dark. So a panic can be lifted by another process, and after kill -9. What was written and
// not sent does no harm: lifting opens shutters that are open already, and puts back circuits
// that are there. Each panic is a [Call] of its own there, also one that finds all dark by
// another; lifting goes from the newest to the oldest, and opens no shutter that a panic
// which stays in force wants closed.
//
// If panic.json cannot be written, shutters are closed all the same, and the error names them:
// light that should be gone is worse than a shutter that has to be opened by hand. Circuits
// are then left alone, as the history holds that what cannot be recorded is not sent.
package blackout
