package mzi

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/ocslab/ocslab/internal/pause"
	"github.com/ocslab/ocslab/wire/cmis"
	"github.com/ocslab/ocslab/wire/cmis/ocst"
)

// TrimOptions say how phases are trimmed. The zero value is good for most.
type TrimOptions struct {
	Dither    float64       // rad to either side; 0: [TrimDither]
	Gain      float64       // share of the error taken away at once, 0 to 1; 0: [TrimGain]
	Rounds    int           // at most so many over all elements; 0: 5
	Threshold float64       // rad: an element whose error seems smaller is done; 0: 0.015
	Readings  int           // averaged on either side; 0: 32
	Settle    time.Duration // after each change of a phase; 0: 200 µs
}

// TrimReport says what was trimmed.
type TrimReport struct {
	Serial   string        `json:"serial"`
	Celsius  float64       `json:"celsius"` // of the case, at the end
	Rounds   int           `json:"rounds"`
	Readings int           `json:"readings"` // of the photodiodes
	Elements []TrimElement `json:"elements"` // in the order of trimming
	Skipped  []TrimSkip    `json:"skipped,omitempty"`
}

// TrimElement is what was done to an element.
type TrimElement struct {
	Element ocst.Element `json:"element"` // from 0
	Name    string       `json:"name"`
	Lane    int          `json:"lane"` // whose light it was seen by, from 1
	Rounds  int          `json:"rounds"`
	// Phase added before and afterwards, of page B6h.
	TrimBefore float64 `json:"trim_before_rad"`
	TrimAfter  float64 `json:"trim_after_rad"`
	// Light at the dark output of the element's path over that at the bright one; no less than
	// what averaging can tell from none.
	LeakBefore float64 `json:"leak_before_db"`
	LeakAfter  float64 `json:"leak_after_db"`
	// What the last dither said was left, before the last step.
	Error     float64 `json:"error_rad"`
	Converged bool    `json:"converged"` // the error came below the threshold
}

// TrimSkip is an element that carries light and could not be trimmed.
type TrimSkip struct {
	Name   string `json:"name"`
	Reason string `json:"reason"`
}

// trimUnit is the resolution of page B6h in rad, trimMost the most that fits it.
const (
	trimUnit = 1e-4
	trimMost = math.MaxInt16 * trimUnit
)

// leakFloor is the least share of light that is told from none: that of a converter's step.
const leakFloor = 1e-5

// Trim takes away what has become wrong with the phases since a module was calibrated, while
// it carries traffic: element by element the phase is dithered by a few hundredths of a
// radian, and the light at the output that should be dark tells by which side it is more how
// far the phase is off (lock-in on the dark tap; see [TrimStep]). It works through page B6h in
// state Ready or Locking, and costs the traffic a leak of dither²/4, -32 dB.
//
// Seen are S1 and S2 of lanes that are on a path, and elements of the loop network that one
// lit lane passes; where two lanes pass, what one loses at a receiver the other brings, and
// the element is skipped. What was added is lost when the module restarts. On an error the
// element at hand is put back to the last phase that was good; those before stay trimmed.
func Trim(ctx context.Context, cfg Config, opt TrimOptions) (TrimReport, error) {
	if cfg.Memory == nil {
		return TrimReport{}, errors.New("trim: no module is given")
	}
	if cfg.Sleep == nil {
		cfg.Sleep = pause.For
	}
	cfg.AllowDark = true                                         // nothing is darkened here
	t := trimmer{Session: &Session{cfg: cfg}, opt: opt.filled()} // its registers alone: no session begins
	report, err := t.run(ctx)
	if err != nil {
		return report, fmt.Errorf("trim: %w", err)
	}
	return report, nil
}

func (o TrimOptions) filled() TrimOptions {
	if o.Dither == 0 {
		o.Dither = TrimDither
	}
	if o.Gain == 0 {
		o.Gain = TrimGain
	}
	if o.Rounds == 0 {
		o.Rounds = 5
	}
	if o.Threshold == 0 {
		o.Threshold = 0.015
	}
	if o.Readings == 0 {
		o.Readings = 32
	}
	if o.Settle == 0 {
		o.Settle = 200 * time.Microsecond
	}
	return o
}

func (o TrimOptions) check() error {
	switch {
	case !(o.Dither > 0 && o.Dither <= 0.5):
		return fmt.Errorf("a dither of %g rad, want more than 0 and at most 0.5", o.Dither)
	case !(o.Gain > 0 && o.Gain <= 1):
		return fmt.Errorf("a gain of %g, want more than 0 and at most 1", o.Gain)
	case !(o.Threshold > 0):
		return fmt.Errorf("a threshold of %g rad, want more than 0", o.Threshold)
	case o.Rounds < 1 || o.Readings < 1 || o.Settle < 0:
		return fmt.Errorf("%d rounds of %d readings after %v, want at least one of either", o.Rounds, o.Readings, o.Settle)
	}
	return nil
}

// trimmer is a trim under way.
type trimmer struct {
	*Session
	opt    TrimOptions
	report TrimReport
	trims  [ocst.Elements]float64 // as page B6h has them
}

func (t *trimmer) run(ctx context.Context) (TrimReport, error) {
	if err := t.opt.check(); err != nil {
		return t.report, err
	}
	lanes, err := t.begin(ctx)
	if err != nil {
		return t.report, err
	}
	seen, skipped := observers(lanes)
	if len(seen) == 0 {
		return t.report, errors.New("no lane carries light, switch one to a path first")
	}
	t.report.Skipped = skipped
	t.report.Elements = make([]TrimElement, len(seen))
	for i, o := range seen {
		t.report.Elements[i] = TrimElement{Element: o.element, Name: o.element.String(), Lane: o.lane + 1,
			TrimBefore: t.trims[o.element], TrimAfter: t.trims[o.element]}
	}
	for round := range t.opt.Rounds {
		left := 0
		for i, o := range seen {
			done := &t.report.Elements[i]
			if done.Converged {
				continue
			}
			if err := t.step(ctx, o, done); err != nil {
				return t.report, fmt.Errorf("%v: %w", o.element, err)
			}
			if !done.Converged {
				left++
			}
		}
		t.report.Rounds = round + 1
		t.tell(Progress{Step: "trim", Done: len(seen) - left, Total: len(seen), Detail: fmt.Sprintf("round %d", round+1)})
		if left == 0 {
			break
		}
	}
	for i, o := range seen {
		leak, err := t.leak(ctx, o)
		if err != nil {
			return t.report, fmt.Errorf("%v: %w", o.element, err)
		}
		t.report.Elements[i].LeakAfter = decibels(leak)
	}
	t.report.Celsius, err = t.Temperature(ctx)
	return t.report, err
}

// begin reads what lanes do and what is trimmed already.
func (t *trimmer) begin(ctx context.Context) (ocst.LaneStatus, error) {
	if err := t.identify(ctx); err != nil {
		return ocst.LaneStatus{}, err
	}
	t.report.Serial = t.Serial()
	s, err := t.laneStatus(ctx)
	if err != nil {
		return s, err
	}
	if s.State != ocst.StateReady && s.State != ocst.StateLocking {
		return s, fmt.Errorf("the module is in state %v, and phases are trimmed in state %v", s.State, ocst.StateReady)
	}
	trims := make([]byte, 2*ocst.Elements)
	if err := t.read(ctx, cmis.Address{Page: ocst.PageTrim, Offset: 128}, trims); err != nil {
		return s, err
	}
	for e := range t.trims {
		t.trims[e] = float64(int16(binary.BigEndian.Uint16(trims[2*e:]))) * trimUnit
	}
	return s, nil
}

// laneStatus reads what the lanes of the module do.
func (s *Session) laneStatus(ctx context.Context) (ocst.LaneStatus, error) {
	buf := make([]byte, ocst.LanesSpan.Length)
	if err := s.read(ctx, ocst.LanesSpan.Address, buf); err != nil {
		return ocst.LaneStatus{}, fmt.Errorf("lanes of module %s: %w", s.serial, err)
	}
	return ocst.DecodeLanes(buf)
}

// step dithers an element and takes away the error that it shows. When anything goes wrong
// it puts the phase back, with a context of its own.
func (t *trimmer) step(ctx context.Context, o observer, done *TrimElement) (err error) {
	defer func() {
		if err != nil {
			fresh, cancel := context.WithTimeout(context.WithoutCancel(ctx), endTimeout)
			defer cancel()
			err = errors.Join(err, t.put(fresh, o.element, t.trims[o.element]))
		}
	}()
	if done.Rounds == 0 {
		leak, err := t.leak(ctx, o)
		if err != nil {
			return err
		}
		done.LeakBefore = decibels(leak)
	}
	phase := t.trims[o.element]
	var share [2]float64
	for side, dither := range []float64{t.opt.Dither, -t.opt.Dither} {
		if err := t.put(ctx, o.element, phase+dither); err != nil {
			return err
		}
		if share[side], err = t.leak(ctx, o); err != nil {
			return err
		}
	}
	change := TrimStep(share[0], share[1], t.opt.Dither, t.opt.Gain)
	done.Error = -change / t.opt.Gain
	done.Rounds++
	next := math.Round((phase+change)/trimUnit) * trimUnit
	if math.Abs(next) > trimMost-t.opt.Dither {
		return fmt.Errorf("it would need %.2f rad more than its calibration says: calibrate it anew", next)
	}
	if err := t.put(ctx, o.element, next); err != nil {
		return err
	}
	t.trims[o.element], done.TrimAfter = next, next
	done.Converged = math.Abs(done.Error) < t.opt.Threshold
	return nil
}

// put sets the trim of an element and waits for its heater.
func (t *trimmer) put(ctx context.Context, e ocst.Element, phase float64) error {
	steps := int16(math.Round(min(max(phase/trimUnit, math.MinInt16), math.MaxInt16)))
	a := cmis.Address{Page: ocst.PageTrim, Offset: uint8(128 + 2*int(e))}
	if err := t.write(ctx, a, binary.BigEndian.AppendUint16(nil, uint16(steps))); err != nil {
		return err
	}
	return t.cfg.Sleep(ctx, t.opt.Settle)
}

// leak is the light at the dark output of an element over that at both outputs.
func (t *trimmer) leak(ctx context.Context, o observer) (float64, error) {
	var bright, dark float64
	p, err := t.readings(ctx, t.opt.Readings, allArrays)
	if err != nil {
		return 0, err
	}
	for _, pd := range o.bright {
		bright += p[pd.array][pd.lane]
	}
	for _, pd := range o.dark {
		dark += p[pd.array][pd.lane]
	}
	t.report.Readings += t.opt.Readings
	if !(bright > dark) || bright <= 0 {
		return 0, errors.New("there is more light at the output that should be dark: it is not in its state, or the taps are not where they should be")
	}
	return dark / (bright + dark), nil
}

// decibels of a share of light, no less than what readings can tell from none.
func decibels(share float64) float64 { return 10 * math.Log10(max(share, leakFloor)) }
