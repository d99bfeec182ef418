// Package ocst is the management interface of an optical circuit-switching transceiver
// (OCSTrx): vendor pages B0h to B8h of a CMIS module, its calibration table, and how its
// switch elements are joined. It does no I/O.
//
// The transceiver has eight lanes. Two thermo-optic Mach-Zehnder elements in each send its
// light into fibre 1, fibre 2, or a loop network of twenty more, which takes it to the
// receiver of another lane (InfiniteHBD, SIGCOMM 2025, section 4.1). No register map of
// such a module is public: this one is ours, in the style of CMIS. Its pages are in the
// range that is left to vendors; numbers of more than one byte are big-endian.
//
// Page B0h, control and status:
//
//	byte     access  what
//	128-131  R       "OCST"
//	132      R       version of this map, 1
//	133      R       Capabilities
//	134      R       State
//	135      R       Path of all lanes, or Mixed
//	136      RW      path to switch to
//	137      RW      lanes to switch, bit 0 is lane 1
//	138      W       Commit
//	139      R       Fault: result of the last command or switch
//	140-143  R       number of switches completed since the module started
//	144-147  R       duration of the last one from commit or trigger to unmute, 10 ns
//	148-149  RW      settle timeout, µs
//	150-153  R       switches in the life of the module (wear)
//	154      R, COR  Flags
//	155      RW      mask of flags: a set bit keeps that flag from raising the interrupt
//	156-163  R       each lane: bits 1-0 Path, bits 5-4 Lock
//	164-171  RW      each lane: bits 7-4 where the loop takes it, bits 3-0 where the next
//	                 switch is to take it (writable)
//	172      R       Fault that the module is in
//	173      R       element or lane of that fault, FFh none
//	174      RW      Control
//	175      R       State once more, so that one read from 156 on gives all of the lanes
//	176-191  R       power towards fibre 1, each lane
//
// Page B1h, powers (U16, 0.1 µW, each lane): 128 towards fibre 2, 144 into the loop
// network, 160 received from fibre 1, 176 received from fibre 2, 192 received from the
// loop, 208 launched by the modulator. Powers towards somewhere are those in the
// waveguide, from the tap and its nominal ratio. In State Cal they are raw: with what the
// photodiodes give in the dark.
//
// Page B2h, banks 0 to 2, twelve elements each: ten bytes an element with the DAC codes of
// bar and cross (bit 15: of arm B), the phase without power (0.1 mrad, signed), the power
// for π (1 µW) and the extinction ratio (0.01 dB, the worse of both states), CRC at 254.
// It is taken from the table at the temperature next to the present one.
//
// Page B3h, banks 0 and 1, eight switches each, the newest first: [LogEntry].
//
// Page B4h, in State Cal only: bank 0 the DAC codes of the heaters at arms A of all
// elements (36 x U16, 12 bits), bank 1 of arms B; bank 0 also 200 lanes lit, 201 laser on,
// 202-203 (R) power in all heaters, 0.1 mW. A write is done at once for all it covers.
// What would take the module beyond 12 W is not done, and gives FaultPower.
//
// Page B5h, banks 0 and 1: currents of the heaters (36 x U16, µA).
//
// Page B6h, bank 0: trim of each element, 0.1 mrad signed, added to its phase whatever its
// state; in State Ready. It is lost with the power.
//
// Page B7h, banks 0 on: the calibration table, [Table.Pages]. In State Cal what is written
// waits for CDB command 8007h; what is read is the table in use.
//
// Page B8h: the transient of the last switch as the taps saw it: 128 (RW) lane, from 0;
// 129 (R) sample time, 1 µs; 130 (R) samples; 136-255 one byte each, 0.25 dB below the
// launched power. Banks 0 to 2 are fibre 1, fibre 2, loop. Sample 0 is at the commit.
//
// Of what CMIS leaves to vendors there is one more: the custom monitor at 00h:24-25 is the
// electrical power that the module takes, U16, 1 mW.
//
// CDB commands (page 9Fh, status at 00h:37): see [CDBSwitch] and those that follow. Those
// marked * want the host password, written to 00h:122-125 before.
//
// The page is that of CMIS, without extended payload: 128-129 the command, 130-131 0, 132 the
// length of the payload, 133 the check code (complement of the sum of 128 to 132 and of the
// payload, modulo 256), 134 the length of the reply, 135 its check code (of the reply alone),
// 136-255 the payload, then the reply. A write that includes byte 129 begins the command, with
// all that has been written by then.
package ocst
