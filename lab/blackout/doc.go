// Package blackout takes the light from the ports of a lab at once, for a reason, and gives
// it back: the panic button.
//
//	p := blackout.New(blackout.Options{File: f, Device: l.Device, Open: l.Emergency, History: log, StateDir: dir})
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
// shutter can darken is removed. All switches are darkened at the same time, by sessions of
// their own, past leases and the guard of the lab, and one that fails or hangs holds up no
// other. It needs no file and no lock for that. Afterwards each switch is read once more, when
// the change of another process that is in progress has ended or a few seconds have passed:
// what that has lit is darkened, too.
//
// # What is remembered
//
// That a panic is called is in panic.json of the state directory before anything is sent, and
// so is what is about to be closed and removed, where that can be written in a moment.
// Afterwards it says what became of each switch: dark, or failed and why. Until then the
// switch counts as asked. So a panic can be lifted by another process, and after kill -9. What
// was written and not sent does no harm: lifting opens shutters that are open already, and
// adds circuits that are there. Each panic is a [panics.Call] of its own, also one that finds
// all dark by another; lifting goes from the newest to the oldest, and opens no shutter that a
// panic which stays in force wants closed.
//
// Where panic.json cannot be locked, read or written, the panic has a file of its own, which
// needs no lock; see package panics. Where that fails, too, the light goes all the same, and
// [ByHand] are the commands that give it back. Circuits that a panic has removed are in the
// history, as far as it can be written; lifting writes ahead there, as every change does.
package blackout
