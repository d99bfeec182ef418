package mzi

import (
	"context"
	"fmt"
	"math"
	"time"

	"github.com/ocslab/ocslab/wire/cmis"
	"github.com/ocslab/ocslab/wire/cmis/ocst"
)

// ChangeFigure is how fast a lane changed its path.
type ChangeFigure struct {
	Lane   int     `json:"lane"` // from 1
	From   string  `json:"from"`
	To     string  `json:"to"`
	Rise   float64 `json:"rise_us"`   // 10 to 90 % of the light, as far as the taps saw it
	Settle float64 `json:"settle_us"` // from the commit until 25 dB, or what the couplers allow, are kept
	Switch float64 `json:"switch_us"` // from the commit until the traffic went on, of the whole module
}

// tour visits the three paths so that each of the six changes between two of them is made
// once.
var tour = [...]ocst.Path{ocst.Path1, ocst.Path2, ocst.Path1, ocst.LoopPath, ocst.Path2, ocst.LoopPath, ocst.Path1}

const (
	// settledRatio is what light at the right output has over the others when it has settled,
	// dB, and settledMargin what is allowed where couplers do not reach that.
	settledRatio  = 25.0
	settledMargin = 1.0
	switchTimeout = 100 * time.Millisecond // for the whole of a switch, with all that goes with it
	readyTimeout  = 2 * time.Second
)

// changes has the module's own controller make every change of path, on all lanes, and
// measures them by what the taps saw (page B8h). No session may be open. Lanes are dark
// before and afterwards. isolation is what each path of each lane has when it has settled.
func (v *verifier) changes(ctx context.Context, isolation map[[2]int]float64) (list []ChangeFigure, err error) {
	if err := v.ready(ctx); err != nil {
		return nil, err
	}
	defer func() {
		// Whatever went wrong, the lanes do not stay lit.
		fresh, cancel := context.WithTimeout(context.WithoutCancel(ctx), endTimeout)
		defer cancel()
		if _, dark := v.switchTo(fresh, ocst.Dark); dark != nil && err == nil {
			err = dark
		}
	}()
	for i, to := range tour {
		status, err := v.switchTo(ctx, to)
		if err != nil {
			return list, err
		}
		if i == 0 {
			continue
		}
		from := tour[i-1]
		v.tell(Progress{Step: "switching", Done: i, Total: len(tour) - 1, Detail: fmt.Sprintf("%v to %v", from, to)})
		for lane := range ocst.Lanes {
			if v.lanes>>lane&1 == 0 {
				continue
			}
			transient, err := v.capture(ctx, lane)
			if err != nil {
				return list, err
			}
			wanted := min(settledRatio, isolation[[2]int{lane, int(to)}]-settledMargin)
			rise, settle := transient.times(int(to-ocst.Path1), wanted, status.Duration)
			f := ChangeFigure{lane + 1, from.String(), to.String(), us(rise), us(settle), us(status.Duration)}
			list = append(list, f)
			if settle > v.limits.Settle {
				v.fail("lane %d takes %.0f µs from %v to %v, and %v is the most", lane+1, f.Settle, from, to, v.limits.Settle)
			}
		}
	}
	return list, nil
}

func us(d time.Duration) float64 { return float64(d) / float64(time.Microsecond) }

// ready waits until a module that has left its calibration session can switch.
func (s *Session) ready(ctx context.Context) error {
	for waited := time.Duration(0); ; waited += pollInterval {
		lanes, err := s.laneStatus(ctx)
		switch {
		case err != nil:
			return err
		case lanes.State == ocst.StateReady || lanes.State == ocst.StateLocking:
			return nil
		case lanes.State == ocst.StateFault || lanes.State == ocst.StateCal || waited >= readyTimeout:
			return fmt.Errorf("module %s is in state %v (%v) after its calibration session, and not ready", s.serial, lanes.State, lanes.Fault)
		}
		if err := s.cfg.Sleep(ctx, pollInterval); err != nil {
			return err
		}
	}
}

// switchTo has the module take all lanes to a path, now, and waits until it has.
func (s *Session) switchTo(ctx context.Context, path ocst.Path) (ocst.Status, error) {
	before, err := s.status(ctx)
	if err != nil {
		return before, err
	}
	// Path, lanes and the command stand one behind the other.
	if err := s.write(ctx, ocst.At(ocst.RegStaged), []byte{byte(path), 0xff, byte(ocst.CommitNow)}); err != nil {
		return before, err
	}
	for waited := time.Duration(0); ; waited += pollInterval {
		if err := s.cfg.Sleep(ctx, pollInterval); err != nil {
			return before, err
		}
		now, err := s.status(ctx)
		switch {
		case err != nil:
			return now, err
		case now.State.Busy() && waited < switchTimeout:
			continue
		case now.Result != ocst.NoFault:
			return now, fmt.Errorf("%w: module %s could not switch to %v: %v%s", ErrVerification, s.serial, path, now.Result, s.faultPlace(ctx, now))
		case now.Sequence != before.Sequence+1:
			return now, fmt.Errorf("%w: module %s did not switch to %v, and gives no reason", ErrVerification, s.serial, path)
		}
		return now, nil
	}
}

func (s *Session) status(ctx context.Context) (ocst.Status, error) {
	buf := make([]byte, ocst.StatusSpan.Length)
	if err := s.read(ctx, ocst.StatusSpan.Address, buf); err != nil {
		return ocst.Status{}, fmt.Errorf("status of module %s: %w", s.serial, err)
	}
	return ocst.DecodeStatus(buf)
}

// faultPlace names the element or lane of a fault, if the module knows.
func (s *Session) faultPlace(ctx context.Context, status ocst.Status) string {
	lanes, err := s.laneStatus(ctx)
	if err != nil || lanes.State != ocst.StateFault || lanes.FaultAt == 0xff {
		return ""
	}
	if f := lanes.Fault; (f == ocst.FaultOpen || f == ocst.FaultShort) && lanes.FaultAt < ocst.Elements {
		return fmt.Sprintf(", at %v", ocst.Element(lanes.FaultAt))
	}
	return fmt.Sprintf(", at lane %d", lanes.FaultAt+1)
}

// transient is what the taps of a lane saw of a switch: dB below the launched power, towards
// fibre 1, fibre 2 and the loop.
type transient struct {
	step  time.Duration // between samples, the first at the commit
	power [3][]float64
}

// unseen is a sample without light, or without a look: the least that page B8h tells, dB.
const unseen = -255 * 0.25

// capture reads what the taps of a lane saw of the last switch.
func (s *Session) capture(ctx context.Context, lane int) (transient, error) {
	var t transient
	fail := func(err error) (transient, error) {
		return t, fmt.Errorf("transient of lane %d of module %s: %w", lane+1, s.serial, err)
	}
	if err := s.write(ctx, cmis.Address{Page: ocst.PageScope, Offset: 128}, []byte{byte(lane)}); err != nil {
		return fail(err)
	}
	for bank := range t.power {
		var page [128]byte
		if err := s.read(ctx, cmis.Address{Bank: uint8(bank), Page: ocst.PageScope, Offset: 128}, page[:]); err != nil {
			return fail(err)
		}
		c, err := ocst.DecodeCapture(page[:])
		if err != nil {
			return fail(err)
		}
		t.step = c.Step
		for _, below := range c.Below {
			t.power[bank] = append(t.power[bank], -below)
		}
	}
	if t.step == 0 || len(t.power[0]) == 0 {
		return fail(fmt.Errorf("%w: nothing was captured", ErrVerification))
	}
	return t, nil
}

// times returns how long the light at an output took from a tenth to nine tenths of what it
// came to, and when after the commit the others had fallen below it by so many dB for good.
// What the capture does not show took as long as the whole switch.
func (t transient) times(output int, wanted float64, whole time.Duration) (rise, settle time.Duration) {
	// Samples that were taken: there is none while the modulators are blanked.
	var seen []int
	for i := range t.power[output] {
		for _, p := range t.power {
			if i < len(p) && p[i] > unseen {
				seen = append(seen, i)
				break
			}
		}
	}
	at := func(output, i int) float64 {
		if i < len(t.power[output]) {
			return t.power[output][i]
		}
		return unseen
	}
	if len(seen) == 0 {
		return whole, whole
	}
	final := at(output, seen[len(seen)-1])
	tenth, most := -1, -1
	settle = whole
	unsettled := true
	for _, i := range seen {
		y := at(output, i)
		if tenth < 0 && y >= final-10 {
			tenth = i
		}
		if most < 0 && y >= final+10*math.Log10(0.9) {
			most = i
		}
		bad := false
		for other := range t.power {
			bad = bad || other != output && y-at(other, i) < wanted
		}
		switch {
		case bad:
			settle, unsettled = whole, true
		case unsettled:
			settle, unsettled = time.Duration(i)*t.step, false
		}
	}
	return time.Duration(max(most-tenth, 0)) * t.step, settle
}
