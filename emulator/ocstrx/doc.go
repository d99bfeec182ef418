// Package ocstrx emulates optical circuit-switching transceivers and the board that they
// sit on: modules of eight lanes, each of which sends its light into fibre 1, fibre 2 or a
// loop network to another lane of the same module, by thermo-optic Mach-Zehnder elements.
//
//	p, err := ocstrx.LoadPersonality("ocstrx-8x112g-x8")
//	board, err := ocstrx.NewBoard(p, ocstrx.Options{Seed: 1})
//	line, err := serialline.Listen("/run/ocslab/bundle0.tty")
//	err = line.Serve(ctx, board)
//
// A [Module] is a physical model below and a controller above, which knows of the former
// only what its photodiodes, current meters and calibration table tell. The register map is
// that of package wire/cmis/ocst, the controller link that of package wire/trxlink.
//
// # Time
//
// Nothing runs in the background, and an idle module costs nothing. A module that is asked
// something first catches up with its [Clock], event by event: the steps of a switch, the
// end of the warm-up, an arm timeout. So what happens is the same whoever looks when, and
// what is read belongs to the time of the reading. With a [VirtualClock] a switch takes place
// when the clock is advanced over it.
//
// # States
//
//	            1 ms        no LowPwrRequestSW       10 slow time constants
//	RESET ------------> LOWPWR ------------> WARMUP ------------------------> READY
//	  ^ software reset,   ^                    | no valid table      ^   |
//	  | brown-out         | LowPwrRequestSW    v                     |   | CDB 8002h, 1
//	  | from anywhere     | from most       CAL <--------------------|---+
//	                                           |  CDB 8002h, 0; or   |
//	                                           |  nobody at B4h-B7h  |
//	                                           +----- WARMUP --------+
//
//	READY --arm--> ARMED --trigger--> BREAK --> SETTLE --> LOCKING --> READY
//	  |              | ArmTimeout: READY, FaultHalfOpen                  ^
//	  +--commit------|----------------^                                  |
//	                 +--disarm-------------------------------------------+
//
//	any of WARMUP, CAL, READY, ARMED, BREAK, SETTLE, LOCKING --> FAULT --reset--> RESET
//
// In FAULT the module is dark and cold: laser and heaters are off.
//
// # A switch
//
// From commit or trigger on:
//
//	BREAK      2 µs   the modulators of the lanes pass nothing, their receivers are muted
//	DRIVE     10 µs   heaters are set; with pre-emphasis as long as the slowest is overdriven
//	SETTLE            light is back, without data; taps are compared every microsecond, until
//	                  each output is 25 dB above the others of its lane, or 1 dB less than the
//	                  table says its elements can do; at most the settle timeout
//	SELECT_RX  5 µs   receivers are joined to the path
//	UNMUTE     3 µs   and heard
//
// The duration register and the log count to here. Then the host's clock recovery takes 0.1 to
// 1 ms (LOCKING) where there is light; commands are taken meanwhile. The state register says
// BREAK in BREAK and DRIVE, SETTLE in the three that follow, and lanes that are being
// switched are reported dark.
//
// If the loop network moves, lanes on it are switched with the others, even where the order
// does not name them, and SETTLE lasts at least four time constants, because no tap sees its
// elements one by one; then there must be light at the receivers. A switch to dark moves no
// heater, and takes 10 µs.
//
// A switch that fails leaves no lane lit: the module goes to FAULT, with the fault and its
// place in the registers, the result in the log, and the sequence number as it was.
//
// # Cables and power
//
// [Join] connects a fibre of one module to a fibre of another: what one sends the other hears,
// lane by lane, at the time at which it is sent, less what both facets and the cable lose. While
// taps settle there is light without data: it ends the loss of signal, and clock recovery
// begins with the data, or with what the receiver listens to if that comes later. LOCKING is the
// time in which a receiver of the last switch has light and has not locked; so a module whose
// far end is dark is READY, and LOCKING when light comes. Light that goes away and comes back
// between two looks is in the latched flags of lanes.
//
// Each module keeps what it has sent for the other end to hear, so neither has to wait for the
// other, and what happens is the same whoever is asked when. The power that a receiver reads is
// that of the moment; where heat drifts slowly, or photodiodes are wired wrongly, what depends
// on a threshold is noticed when somebody asks, as in a module alone.
//
// [Board.SetPower] takes the power from a board and gives it back.
//
// # What is decided here because nobody has published it
//
//   - Elements are set anew for the temperature when it has moved by 0.5 K, as a controller
//     would do that has nothing else to do.
//   - A controller also looks for light on two outputs while it does not switch, whenever it
//     is asked something.
//   - A commit while the module is armed is refused: disarm or trigger it first.
//   - A failed or interrupted switch does not count as wear.
//   - The vendor's monitor at 00h:24 is the power that the module takes, in mW.
//   - With nobody on the loop, CDB 8006h is a switch of no lane, and so it is in the log.
//   - The taps that are compared while light settles are read without noise: comparators
//     average little, and what they add to a duration is below the microsecond of its steps.
//     Nothing else that the controller measures is free of it.
//   - The lead network of the heaters counts V², and not phase. Where the arms of an element
//     differ much, some hundredths of a radian take a millisecond to go.
//   - An element whose arm comes to its end, because the temperature or what its neighbours
//     give off has changed, goes on with the other arm, and its light would go the wrong way
//     for some ten microseconds. So lanes that have light there are switched with the others
//     or, when nothing is being switched, by the module itself, to where they are: that counts
//     and is logged as a switch, from a path to the same one.
//   - Interrupts are raised by flags of lanes too; a host that does not want those masks them
//     on page 10h.
package ocstrx
