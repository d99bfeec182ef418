package live

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/ocslab/ocslab/drivers/ocstrx"
	"github.com/ocslab/ocslab/ocs"
	"github.com/ocslab/ocslab/wire/cmis"
	"github.com/ocslab/ocslab/wire/cmis/ocst"
)

// readModule makes a Module of what one has said of itself, and reads what it says of its
// heaters and its calibration. A module that is being calibrated is not asked for these:
// reading would keep a session open that its host has left.
func readModule(ctx context.Context, trx *ocstrx.Switch, t ocstrx.Telemetry, now time.Time) (Module, error) {
	m := Module{Name: t.Name, Status: moduleStatus(t)}
	add := func(name, format string, args ...any) {
		m.Facts = append(m.Facts, Fact{name, fmt.Sprintf(format, args...)})
	}
	add("serial", "%s", t.Serial)
	add("firmware", "%s", t.Firmware)
	add("case", "%.1f °C", t.Celsius)
	add("supply", "%.2f V, %.1f W", t.Volts, t.Watts)
	switch {
	case t.LastDuration > 0:
		add("switches", "%d in its life, the last took %.2f µs", t.Switches, float64(t.LastDuration)/1e3)
	default:
		add("switches", "%d in its life", t.Switches)
	}
	if t.LastResult != ocst.NoFault {
		add("last command", "%s", t.LastResult)
	}
	m.Tap = taps(t)
	if t.State == ocst.StateCal {
		add("calibration", "is being calibrated, or waits for a table")
		return m, nil
	}
	mem := ocstrx.MemoryOf(trx.Bus(), t.Slot)
	table, expires, err := readTable(ctx, mem, now)
	if table != "" {
		add("calibration", "%s", table)
		m.Expires = expires
	}
	heaters, herr := readHeaters(ctx, mem)
	m.Heater = heaters
	return m, errors.Join(supported(err), supported(herr))
}

// supported drops an error of what the device does not support.
func supported(err error) error {
	if errors.Is(err, ocs.ErrNotSupported) || errors.Is(err, cmis.ErrNoPage) {
		return nil
	}
	return err
}

// moduleStatus says what a module does: "ready, path1", or what is wrong with it.
func moduleStatus(t ocstrx.Telemetry) string {
	if t.Fault != ocst.NoFault {
		text := t.State.String() + ": " + t.Fault.String()
		if t.FaultAt != "" {
			text += " at " + t.FaultAt
		}
		return text
	}
	path := t.Lanes[0].Path
	for _, l := range t.Lanes {
		if l.Path != path {
			path = ocst.Mixed
		}
	}
	return t.State.String() + ", " + path.String()
}

// Powers at taps are drawn from tapLeast to tapMost, in dBm.
const tapLeast, tapMost = -40.0, 5.0

// taps are what the photodiodes of each lane read, where it sends and where it listens.
func taps(t ocstrx.Telemetry) []Reading {
	var list []Reading
	for i, l := range t.Lanes {
		add := func(what string, p cmis.Power) {
			x := ocs.Milliwatts(p.Microwatts() / 1e3)
			r := Reading{Name: fmt.Sprintf("%d %s", i+1, what), Text: "no light"}
			if !math.IsInf(float64(x), 0) {
				r.Text = x.String()
				r.Part = min(max((float64(x)-tapLeast)/(tapMost-tapLeast), 0), 1)
			}
			list = append(list, r)
		}
		switch l.Path {
		case ocst.Path1:
			add("to fibre 1", l.Fibre1)
			add("from fibre 1", l.Rx1)
		case ocst.Path2:
			add("to fibre 2", l.Fibre2)
			add("from fibre 2", l.Rx2)
		case ocst.LoopPath:
			add("to loop", l.Loop)
			add("from loop", l.RxLoop)
		default:
			add("launched", l.Launched)
		}
	}
	return list
}

// tableHead is how much of the first page of a calibration table is read here: what stands
// in front of the dark readings, see [ocst.Table.Pages].
const tableHead = 46

// readTable reads the first page of the calibration table and says which it is, how old, and
// how long it may be used. A table that does not expire has no time; a module without one
// says so in words.
func readTable(ctx context.Context, mem cmis.Memory, now time.Time) (text string, expires time.Time, err error) {
	page := make([]byte, ocst.PageData+2)
	if err := mem.Read(ctx, cmis.Address{Page: ocst.PageTable, Offset: 128}, page); err != nil {
		return "", time.Time{}, err
	}
	if _, err := ocst.TablePages(page); err != nil {
		return "none that can be used", time.Time{}, nil
	}
	head := page[:tableHead]
	version := binary.BigEndian.Uint32(head[26:])
	made := time.Unix(int64(binary.BigEndian.Uint64(head[30:])), 0)
	text = fmt.Sprintf("table %d, %s old", version, days(now.Sub(made)))
	if made.Unix() == 0 {
		text = fmt.Sprintf("table %d, of an age that is not told", version)
	}
	end := int64(binary.BigEndian.Uint64(head[38:]))
	if end == 0 {
		return text + ", does not expire", time.Time{}, nil
	}
	expires = time.Unix(end, 0)
	if !now.Before(expires) {
		return text + ", expired " + expires.Format(time.DateOnly), expires, nil
	}
	return text + ", good until " + expires.Format(time.DateOnly), expires, nil
}

// readHeaters tells the current in the heater of each element that is on.
func readHeaters(ctx context.Context, mem cmis.Memory) ([]Reading, error) {
	read := func(page, bank uint8, n int) ([]byte, error) {
		p := make([]byte, n)
		return p, mem.Read(ctx, cmis.Address{Bank: bank, Page: page, Offset: 128}, p)
	}
	var amps [2][ocst.Elements]float64
	for arm := range amps {
		p, err := read(ocst.PageCurrents, uint8(arm), 2*ocst.Elements)
		if err != nil {
			return nil, err
		}
		for e := range amps[arm] {
			amps[arm][e] = float64(binary.BigEndian.Uint16(p[2*e:])) * 1e-6
		}
	}
	var banks [ocst.SettingBanks][]byte
	for b := range banks {
		var err error
		if banks[b], err = read(ocst.PageElements, uint8(b), 128); err != nil {
			return nil, err
		}
	}
	settings, err := ocst.DecodeSettings(banks)
	if err != nil {
		return nil, err
	}
	return heaters(amps, settings), nil
}

// off is the current below which a heater is off, in A: some steps of the converter.
const off = 0.1e-3

// heaters makes readings of currents, in A, of the arms A and B of all elements, of which one
// at a time is heated. Part is the share of the current at the full voltage of the converter.
// A module tells neither voltages nor resistances. It sets elements near the voltages of its
// settings, off by what the heat of others makes up for; so the median of what these and the
// currents come to is taken as the resistance of all.
func heaters(amps [2][ocst.Elements]float64, settings [ocst.Elements]ocst.Setting) []Reading {
	var arm [ocst.Elements]int
	var ohms []float64
	most := 0.0
	for e, s := range settings {
		if amps[1][e] > amps[0][e] {
			arm[e] = 1
		}
		i := amps[arm[e]][e]
		if most = max(most, i); i <= off {
			continue
		}
		if v := heated(s, arm[e] == 1); v > 0 {
			ohms = append(ohms, v/i)
		}
	}
	if r := median(ohms); r > 0 {
		most = ocst.DACFull / r
	}
	list := make([]Reading, ocst.Elements)
	for e := range list {
		r := Reading{Name: ocst.Element(e).String(), Text: "off"}
		if i := amps[arm[e]][e]; i > off {
			r.Name += " " + [...]string{"A", "B"}[arm[e]]
			r.Text = fmt.Sprintf("%.2f mA", i*1e3)
			r.Part = min(i/most, 1)
		}
		list[e] = r
	}
	return list
}

// heated is the voltage that a setting has for one arm of an element, 0 if both states heat the
// same arm, as it may be either then.
func heated(s ocst.Setting, armB bool) float64 {
	_, bar := s.Bar.Code()
	_, cross := s.Cross.Code()
	switch {
	case bar == cross:
		return 0
	case bar == armB:
		return s.Bar.Volts()
	}
	return s.Cross.Volts()
}
