package ocstrx

import (
	"context"
	"encoding/binary"
	"fmt"
	"time"

	"github.com/ocslab/ocslab/wire/cmis"
	"github.com/ocslab/ocslab/wire/cmis/ocst"
)

// Telemetry is what a module says of itself. Reading it clears no flags.
type Telemetry struct {
	Slot int    // from 0
	Name string // "module 1"

	Vendor, PartNumber, Serial, Firmware string

	State   ocst.State
	Fault   ocst.Fault // that it is in
	FaultAt string     // "S1 of lane 3" or "lane 3"; "" where that is not told

	Celsius float64 // of the case
	Volts   float64 // of the supply
	Watts   float64 // that the module draws

	Sequence     uint32        // switches completed since it started
	Switches     uint32        // in its life: wear
	LastResult   ocst.Fault    // of the last command or switch
	LastDuration time.Duration // of the last switch, from commit or trigger to light

	SettleTimeout time.Duration
	PreEmphasis   bool
	Loop          ocst.Permutation // where the loop takes the lanes
	Lanes         [ocst.Lanes]LaneTelemetry
}

// LaneTelemetry is what a module says of one lane. Powers are those in the waveguide and
// as the photodiodes read them: noise included, and in State Cal also what they give in
// the dark.
type LaneTelemetry struct {
	Path ocst.Path
	Lock ocst.Lock

	Launched             cmis.Power // by the modulator
	Fibre1, Fibre2, Loop cmis.Power // at the taps, towards those
	Rx1, Rx2, RxLoop     cmis.Power // received from those
}

// spanMonitors are the monitors of the whole module: temperature, supply, three that are not
// used here, and the vendor's own, which in an OCSTrx is the power that it draws, in mW.
// They are behind flags, which are not read.
var spanMonitors = cmis.Span{Address: cmis.Address{Offset: cmis.RegTemperature}, Length: cmis.RegCustomMonitor + 2 - cmis.RegTemperature}

var spanFlags = cmis.Span{Address: ocst.At(ocst.RegFlags), Length: 1}

// Telemetry reads all modules, in the order of their slots; empty slots are left out.
func (sw *Switch) Telemetry(ctx context.Context) ([]Telemetry, error) {
	type raw struct {
		look     gaze
		powers   powers
		monitors []byte
	}
	slots := sw.present()
	var b batch
	all := make([]raw, len(slots))
	for i, slot := range slots {
		all[i] = raw{
			look: b.look(slot), powers: powers{b.read(slot, spanOut1), b.read(slot, spanPowers)},
			monitors: b.read(slot, spanMonitors),
		}
	}
	if _, err := sw.do(ctx, "read telemetry", b...); err != nil {
		return nil, err
	}
	list := make([]Telemetry, len(slots))
	for i, slot := range slots {
		p, s, r := sw.in[slot], all[i].look.decode(), all[i]
		monitor := func(reg int) float64 {
			return float64(binary.BigEndian.Uint16(r.monitors[reg-cmis.RegTemperature:]))
		}
		t := Telemetry{
			Slot: slot, Name: moduleName(slot), Vendor: p.vendor, PartNumber: p.part, Serial: p.serial, Firmware: p.firmware,
			State: s.state(), Fault: s.lanes.Fault, FaultAt: where(s.lanes),
			Volts: monitor(cmis.RegVcc) / 1e4, Watts: monitor(cmis.RegCustomMonitor) / 1e3,
			Sequence: s.status.Sequence, Switches: s.status.Switches, LastResult: s.status.Result, LastDuration: s.status.Duration,
			SettleTimeout: s.status.SettleTimeout, PreEmphasis: s.lanes.Control&ocst.PreEmphasis != 0, Loop: s.lanes.Loop,
		}
		t.Celsius, _ = cmis.DecodeTemperature(r.monitors[:cmis.TemperatureSpan.Length]) // its length is right
		for lane := range t.Lanes {
			at := func(array int) cmis.Power { return r.powers.at(array, lane) }
			t.Lanes[lane] = LaneTelemetry{
				Path: s.lanes.Path[lane], Lock: s.lanes.Lock[lane], Launched: at(ocst.PDLaunched),
				Fibre1: at(ocst.PDOut1), Fibre2: at(ocst.PDOut2), Loop: at(ocst.PDLoopTap),
				Rx1: at(ocst.PDRx1), Rx2: at(ocst.PDRx2), RxLoop: at(ocst.PDRxLoop),
			}
		}
		list[i] = t
	}
	return list, nil
}

// Log returns the last switches of each slot, the newest first, at most [ocst.LogSize] of
// each; nil of empty slots.
func (sw *Switch) Log(ctx context.Context) ([][]ocst.LogEntry, error) {
	const op = "read log"
	var b batch
	slots := sw.present()
	banks := make([][2][]byte, len(slots))
	for i, slot := range slots {
		for bank := range banks[i] {
			banks[i][bank] = b.read(slot, cmis.Span{Address: cmis.Address{Bank: uint8(bank), Page: ocst.PageLog, Offset: 128}, Length: 128})
		}
	}
	if _, err := sw.do(ctx, op, b...); err != nil {
		return nil, err
	}
	logs := make([][]ocst.LogEntry, len(sw.in))
	for i, slot := range slots {
		var err error
		if logs[slot], err = ocst.DecodeLog(banks[i]); err != nil {
			return nil, sw.fail(op, fmt.Errorf("%s: %w", moduleName(slot), err))
		}
	}
	return logs, nil
}

// Flags returns what has happened to the module of each slot since they were last read, by
// anybody: reading clears them. Those of empty slots are 0. With an error, flags of some
// modules may be lost.
func (sw *Switch) Flags(ctx context.Context) ([]ocst.Flags, error) {
	var b batch
	slots := sw.present()
	raw := make([][]byte, len(slots))
	for i, slot := range slots {
		raw[i] = b.read(slot, spanFlags)
	}
	if _, err := sw.do(ctx, "read flags", b...); err != nil {
		return nil, err
	}
	flags := make([]ocst.Flags, len(sw.in))
	for i, slot := range slots {
		flags[slot] = ocst.Flags(raw[i][0])
	}
	return flags, nil
}
