package mzi

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/ocslab/ocslab/wire/cmis"
	"github.com/ocslab/ocslab/wire/cmis/ocst"
)

// SweepScope is what to sweep. The zero value is all.
type SweepScope struct {
	Lanes  uint8 // whose elements S1 and S2 are swept, bit 0 is lane 1; 0: all
	NoLoop bool  // leave the loop network out
	// Soak is the longest wait for the case to come to a steady temperature with the
	// heaters at their mean power. 0: 20 s; negative: none.
	Soak time.Duration
}

// Calibrated is what the sweeps of a module gave.
type Calibrated struct {
	Fits [ocst.Elements]SweepFit // of elements that were not swept the zero value, without Points
	// Bias is how much phase each other element (second index) had from its own heaters
	// when an element (first index) was swept, without sign, in radians. Phase0 in Fits has
	// what their heat adds.
	Bias    [ocst.Elements][ocst.Elements]float64
	Dark    [ocst.Photodiodes][ocst.Lanes]uint16 // counts of 0.1 µW
	Celsius float64                              // mean temperature of the case over the sweeps
}

// Err says of each element that cannot be used why, and how many others could not be swept
// because of that; nil if all can.
func (c *Calibrated) Err() error {
	var list []string
	behind := 0
	for _, f := range c.Fits {
		switch {
		case f.Problem == "":
		case strings.HasPrefix(f.Problem, notSwept):
			behind++
		default:
			list = append(list, fmt.Sprintf("%v: %s", f.Element, f.Problem))
		}
	}
	switch {
	case behind > 0 && len(list) > 0:
		list = append(list, fmt.Sprintf("%d others behind could not be swept", behind))
	case behind > 0:
		for _, f := range c.Fits {
			if f.Problem != "" {
				return fmt.Errorf("%d elements were %s", behind, f.Problem)
			}
		}
	case len(list) == 0:
		return nil
	}
	return errors.New(strings.Join(list, "; "))
}

// notSwept begins the Problem of an element that another has kept from being swept.
const notSwept = "not swept: "

// biasVolts2 is V² at arm A of all elements that have nothing else to do in a sweep: about
// what elements take on the mean in operation. So the case is about as warm as it will be,
// and what neighbours add differs less.
const biasVolts2 = 4.4

// swept is a calibration under way.
type swept struct {
	*Session
	out    *Calibrated
	drives [ocst.Elements][ocst.Elements]ocst.Drive // that all had when an element was swept
	base   [ocst.Elements]ocst.Drive
	total  int
	done   int
}

// Sweep sweeps the elements of a module, first those of the lanes, then those of the loop
// network, and fits them. A problem with an element is in its SweepFit, and in
// [Calibrated.Err]; the error is that of the module or ctx. The heaters are left on, the
// light off.
func (s *Session) Sweep(ctx context.Context, scope SweepScope) (*Calibrated, error) {
	if scope.Lanes == 0 {
		scope.Lanes = 0xff
	}
	w := &swept{Session: s, out: &Calibrated{}}
	for e := range w.base {
		w.base[e] = ocst.DriveOf(math.Sqrt(biasVolts2), false)
		w.out.Fits[e].Element = ocst.Element(e)
	}
	for lane := range ocst.Lanes {
		w.total += 2 * int(scope.Lanes>>lane&1)
	}
	if !scope.NoLoop {
		w.total += ocst.Columns * ocst.Rows
	}
	if err := w.heaters(ctx); err != nil {
		return nil, err
	}
	if err := s.HeatAll(ctx, w.base); err != nil {
		return nil, err
	}
	if err := s.soak(ctx, scope.Soak, calm); err != nil {
		return nil, err
	}
	var err error
	s.tell(Progress{Step: "dark"})
	if w.out.Dark, err = s.DarkReadings(ctx); err != nil {
		return nil, err
	}
	for lane := range ocst.Lanes {
		// The loop is lit through S1 of four lanes, which its sweeps need.
		if scope.Lanes>>lane&1 == 0 && (scope.NoLoop || lane%2 == 1) {
			continue
		}
		if err := w.lane(ctx, lane, scope.Lanes>>lane&1 != 0); err != nil {
			return nil, err
		}
	}
	if !scope.NoLoop {
		if err := w.network(ctx); err != nil {
			return nil, err
		}
	}
	if err := s.HeatAll(ctx, w.base); err != nil {
		return nil, err
	}
	if err := s.Light(ctx, 0); err != nil {
		return nil, err
	}
	w.finish()
	return w.out, nil
}

// heaters has the module test them, with all of them off and no light, and names those that
// are broken.
func (w *swept) heaters(ctx context.Context) error {
	if err := w.Light(ctx, 0); err != nil {
		return err
	}
	if err := w.HeatAll(ctx, [ocst.Elements]ocst.Drive{}); err != nil {
		return err
	}
	reply, err := cmis.DoCDB(ctx, w.cfg.Memory, ocst.CDBHeaterTest, nil, w.poll)
	if refused := (*cmis.CDBError)(nil); errors.As(err, &refused) {
		return nil // what is broken shows in the sweeps too
	}
	if err != nil {
		return fmt.Errorf("heater test of module %s: %w", w.serial, err)
	}
	const size = 2 * ocst.Elements / 8
	for i, what := range [...]string{"open", "short"} {
		for n := 0; n < 2*ocst.Elements && len(reply) == 2*size; n++ {
			if reply[i*size+n/8]>>(n%8)&1 != 0 {
				w.out.Fits[n/2].problem("the heater of arm %c is %s", 'A'+n%2, what)
			}
		}
	}
	return nil
}

// finish tells the bias of each sweep, now that slopes are known.
func (w *swept) finish() {
	n := 0.0
	for e := range w.out.Fits {
		if len(w.out.Fits[e].Points) == 0 {
			continue
		}
		w.out.Celsius += w.out.Fits[e].Celsius
		n++
		for j := range w.out.Fits {
			if j != e {
				w.out.Bias[e][j] = math.Abs(w.out.Fits[j].Fit.Own(w.drives[e][j]))
			}
		}
	}
	w.out.Celsius /= max(n, 1)
}

// How much the temperature of the case may change in a second, K: for sweeps, each of which
// takes a fraction of one, and for what must be right in the end.
const (
	calm  = 0.02
	still = 1.5 / 256
)

// soak waits until the temperature of the case changes by no more than so much in a second.
func (s *Session) soak(ctx context.Context, most time.Duration, rate float64) error {
	if most == 0 {
		most = 20 * time.Second
	}
	interval := time.Second
	if rate > still {
		interval /= 2 // its unit is small enough to see it
	}
	for last := math.NaN(); most >= interval; most -= interval {
		detail := ""
		if last == last {
			detail = fmt.Sprintf("%.2f °C", last)
		}
		s.tell(Progress{Step: "soak", Detail: detail})
		now, err := s.Temperature(ctx)
		if err != nil {
			return err
		}
		if math.Abs(now-last) <= rate*interval.Seconds() {
			return nil
		}
		last = now
		if err := s.Wait(ctx, interval); err != nil {
			return err
		}
	}
	return nil
}

// tell says how far the calibration is to who wants to know.
func (s *Session) tell(p Progress) {
	if s.cfg.Progress != nil {
		s.cfg.Progress(p)
	}
}

// keep takes over the fine sweep of an element.
func (w *swept) keep(f SweepFit) {
	w.out.Fits[f.Element] = f
	w.drives[f.Element] = w.Drives()
	w.done++
	w.tell(Progress{Step: "sweep", Done: w.done, Total: w.total, Detail: f.Element.String(), Fit: &f})
}

// lane sweeps S1 and, if asked, S2 of a lane, with that lane lit alone.
func (w *swept) lane(ctx context.Context, lane int, both bool) error {
	if err := w.HeatAll(ctx, w.base); err != nil {
		return err
	}
	if err := w.Light(ctx, 1<<lane); err != nil {
		return err
	}
	tap := func(array int) group { return group{{array, lane, 1}} }
	out := group{{ocst.PDOut1, lane, 1}, {ocst.PDOut2, lane, 1}}
	s1 := ocst.S1(lane)
	if err := w.element(ctx, s1, view{lane: lane, bar: out, cross: tap(ocst.PDLoopTap)}); err != nil || !both {
		return err
	}
	if w.out.Fits[s1].Problem != "" {
		w.out.Fits[ocst.S2(lane)].problem(notSwept+"%v cannot be used", s1)
		return nil
	}
	if err := w.Heat(ctx, s1, w.out.Fits[s1].Fit.Bar); err != nil {
		return err
	}
	return w.element(ctx, ocst.S2(lane), view{lane: lane, bar: tap(ocst.PDOut1), cross: tap(ocst.PDOut2)})
}

// element sweeps one, and measures its extinction ratios.
func (w *swept) element(ctx context.Context, e ocst.Element, v view) error {
	if w.out.Fits[e].Problem != "" {
		return nil
	}
	f, err := w.sweep(ctx, e, v, true)
	if err != nil {
		return err
	}
	if f.Problem == "" {
		if f.Fit.BarER, err = w.ratioAt(ctx, e, f.Fit.Bar, v.bar, v.cross, v.which); err != nil {
			return err
		}
		if f.Fit.CrossER, err = w.ratioAt(ctx, e, f.Fit.Cross, v.cross, v.bar, v.which); err != nil {
			return err
		}
	}
	if err := w.Heat(ctx, e, w.base[e]); err != nil {
		return err
	}
	w.keep(f)
	return nil
}

// ratioAt drives an element and measures an extinction ratio there.
func (w *swept) ratioAt(ctx context.Context, e ocst.Element, d ocst.Drive, bright, dark group, which arrays) (float64, error) {
	if err := w.Heat(ctx, e, d); err != nil {
		return 0, err
	}
	if err := w.Wait(ctx, 2*settle); err != nil {
		return 0, err
	}
	return w.extinction(ctx, bright, dark, which)
}
