package mzi

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/ocslab/ocslab/wire/cmis/ocst"
)

// ErrVerification is a module that is not as good as it should be with a table. The error
// names the figures that fail.
var ErrVerification = errors.New("verification failed")

// Limits are what a module must keep to pass. A field that is 0 is the default.
type Limits struct {
	Isolation float64       // least, dB, of each path towards the lane's other outputs; 20
	Crosstalk float64       // least, dB, of the loop network towards other lanes' receivers; 15
	ER        float64       // least extinction ratio of an element in either state, dB; 15
	Loss      float64       // most, dB, from the modulator to the tap or loop receiver; 8
	Settle    time.Duration // most, of a change of path; 200 µs
}

func (l Limits) filled() Limits {
	or := func(v *float64, d float64) {
		if *v == 0 {
			*v = d
		}
	}
	or(&l.Isolation, 20)
	or(&l.Crosstalk, 15)
	or(&l.ER, 15)
	or(&l.Loss, 8)
	if l.Settle == 0 {
		l.Settle = 200 * time.Microsecond
	}
	return l
}

// PathFigure is how good a path of a lane is.
type PathFigure struct {
	Lane      int     `json:"lane"` // from 1
	Path      string  `json:"path"` // path1, path2 or loop
	Loss      float64 `json:"loss_db"`
	Isolation float64 `json:"isolation_db"` // towards the brighter of the lane's other outputs
	// Bound says that there is less light at the other outputs than can be measured: the
	// isolation is at least that.
	Bound bool `json:"isolation_is_bound"`
}

// LoopFigure is how good the loop network is for a lane in one of its settings.
type LoopFigure struct {
	States    string  `json:"states"`   // default, bar or cross: of all elements
	Lane      int     `json:"lane"`     // lit, from 1
	Receiver  int     `json:"receiver"` // where it should arrive, from 1
	Loss      float64 `json:"loss_db"`
	Isolation float64 `json:"isolation_db"` // towards the brightest of the other receivers
	Bound     bool    `json:"isolation_is_bound"`
}

const (
	verifyReads = 64
	// surely is how many standard deviations light must have to be told from none.
	surely = 3
	// mostDecibels stands for what cannot be measured, so that figures stay finite.
	mostDecibels = 99.99
)

// verifier measures how good a module is with a table.
type verifier struct {
	*Session
	table  *ocst.Table
	limits Limits
	lanes  uint8
	paths  []PathFigure
	loop   []LoopFigure
	failed []string
}

func (v *verifier) fail(format string, args ...any) {
	v.failed = append(v.failed, fmt.Sprintf(format, args...))
}

// err returns what has failed, if anything has.
func (v *verifier) err() error {
	if len(v.failed) == 0 {
		return nil
	}
	return fmt.Errorf("%w: %s", ErrVerification, strings.Join(v.failed, "; "))
}

// static measures losses and isolations of all paths, with the heaters driven by the table
// in the calibration session: nothing is loaded. What fails is kept in failed; the error is
// one of the measurement.
func (v *verifier) static(ctx context.Context) error {
	defaults, err := ocst.Route(ocst.DefaultPermutation())
	if err != nil {
		return err
	}
	for step, path := range []ocst.Path{ocst.Path1, ocst.Path2, ocst.LoopPath} {
		v.tell(Progress{Step: "verification", Done: step, Total: 6, Detail: path.String()})
		if err := v.set(ctx, path, defaults); err != nil {
			return err
		}
		if err := v.Light(ctx, 0xff); err != nil {
			return err
		}
		p, err := v.Powers(ctx, verifyReads)
		if err != nil {
			return err
		}
		for lane := range ocst.Lanes {
			if v.lanes>>lane&1 != 0 {
				v.path(&p, path, lane)
			}
		}
	}
	var bar, cross ocst.States
	for column := range cross {
		for row := range cross[column] {
			cross[column][row] = true
		}
	}
	// All bar and all cross are two permutations that have every element in both states.
	for step, setting := range []struct {
		name   string
		states ocst.States
	}{{"default", defaults}, {"bar", bar}, {"cross", cross}} {
		v.tell(Progress{Step: "verification", Done: 3 + step, Total: 6, Detail: "loop network, " + setting.name})
		if err := v.set(ctx, ocst.LoopPath, setting.states); err != nil {
			return err
		}
		for lane := range ocst.Lanes {
			if v.lanes>>lane&1 == 0 {
				continue
			}
			if err := v.Light(ctx, 1<<lane); err != nil {
				return err
			}
			p, err := v.powers(ctx, verifyReads, loopOnly)
			if err != nil {
				return err
			}
			receiver, _ := setting.states.Follow(lane)
			v.network(&p, setting.name, lane, receiver)
		}
	}
	v.elements()
	return v.Light(ctx, 0)
}

// set drives all elements by the table: lanes on a path, the loop network as said.
func (v *verifier) set(ctx context.Context, path ocst.Path, states ocst.States) error {
	var want [ocst.Elements]bool
	for lane := range ocst.Lanes {
		want[ocst.S1(lane)] = path == ocst.LoopPath
		want[ocst.S2(lane)] = path == ocst.Path2
	}
	for column := range ocst.Columns {
		for row := range ocst.Rows {
			want[ocst.Loop(column, row)] = states[column][row]
		}
	}
	celsius, err := v.Temperature(ctx)
	if err != nil {
		return err
	}
	drives, err := Drives(v.table, celsius, want)
	if err != nil {
		return err
	}
	if err := v.HeatAll(ctx, drives); err != nil {
		return err
	}
	return v.Wait(ctx, slowSettle)
}

// path judges a path of a lane.
func (v *verifier) path(p *Powers, path ocst.Path, lane int) {
	at := [...]int{ocst.PDOut1, ocst.PDOut2, ocst.PDLoopTap}
	right := int(path - ocst.Path1)
	f := PathFigure{Lane: lane + 1, Path: path.String(), Isolation: mostDecibels}
	bright := p[at[right]][lane]
	arrived := bright
	if path == ocst.LoopPath {
		arrived = p[ocst.PDRxLoop][ocst.DefaultPermutation()[lane]]
	}
	f.Loss = lossOf(p[ocst.PDLaunched][lane], arrived)
	for i, array := range at {
		if i != right {
			iso, bound := v.isolation(bright, p[array][lane], array, lane)
			if iso < f.Isolation {
				f.Isolation, f.Bound = iso, bound
			}
		}
	}
	v.paths = append(v.paths, f)
	what := fmt.Sprintf("%v of lane %d", path, lane+1)
	if f.Loss > v.limits.Loss {
		v.fail("%s loses %.1f dB, and %.1f is the most", what, f.Loss, v.limits.Loss)
	}
	if f.Isolation < v.limits.Isolation {
		v.fail("%s has an isolation of %.1f dB%s, and %.1f is the least", what, f.Isolation, boundText(f.Bound), v.limits.Isolation)
	}
}

func boundText(bound bool) string {
	if bound {
		return " or more, which is all that could be measured"
	}
	return ""
}

// network judges a lane's way through the loop network.
func (v *verifier) network(p *Powers, states string, lane, receiver int) {
	f := LoopFigure{States: states, Lane: lane + 1, Receiver: receiver + 1, Isolation: mostDecibels}
	bright := p[ocst.PDRxLoop][receiver]
	f.Loss = lossOf(p[ocst.PDLaunched][lane], bright)
	for other := range ocst.Lanes {
		if other != receiver {
			iso, bound := v.isolation(bright, p[ocst.PDRxLoop][other], ocst.PDRxLoop, other)
			if iso < f.Isolation {
				f.Isolation, f.Bound = iso, bound
			}
		}
	}
	v.loop = append(v.loop, f)
	what := fmt.Sprintf("the loop from lane %d to lane %d (%s states)", lane+1, receiver+1, states)
	if f.Loss > v.limits.Loss {
		v.fail("%s loses %.1f dB, and %.1f is the most", what, f.Loss, v.limits.Loss)
	}
	if f.Isolation < v.limits.Crosstalk {
		v.fail("%s has %.1f dB%s towards another receiver, and %.1f is the least", what, f.Isolation, boundText(f.Bound), v.limits.Crosstalk)
	}
}

// elements judges the extinction ratios in the table, at the point that is nearest.
func (v *verifier) elements() {
	for _, p := range v.table.Points {
		for e, f := range p.Elements {
			if lane := e % ocst.Lanes; e < 2*ocst.Lanes && v.lanes>>lane&1 == 0 {
				continue
			}
			if er := min(f.BarER, f.CrossER); er < v.limits.ER {
				v.fail("%v has an extinction ratio of %.1f dB at %.0f °C, and %.1f is the least", ocst.Element(e), er, p.Celsius, v.limits.ER)
			}
		}
	}
}

// isolation is the ratio of two powers in dB. What is below the noise of the photodiode at
// the dark output is a bound.
func (v *verifier) isolation(bright, stray float64, array, lane int) (db float64, bound bool) {
	// Of the mean of the readings, and of the dark reading that was taken off.
	floor := surely * v.floor[array][lane] * math.Sqrt(1.0/verifyReads+1.0/darkReads)
	if stray < floor {
		stray, bound = floor, true
	}
	return decibelsOf(bright, stray), bound
}

// darkReads is how many readings the dark reading is the mean of.
const darkReads = 32

func lossOf(in, out float64) float64 { return decibelsOf(in, out) }

// decibelsOf is the ratio of two powers in dB, within what figures can show.
func decibelsOf(a, b float64) float64 {
	switch {
	case !(a > 0):
		return -mostDecibels
	case !(b > 0):
		return mostDecibels
	}
	return min(max(10*math.Log10(a/b), -mostDecibels), mostDecibels)
}

// summary is the verification as the table keeps it: the worst of all lanes.
func summary(paths []PathFigure, changes []ChangeFigure, pass bool) ocst.Verification {
	v := ocst.Verification{Pass: pass}
	for i := range v.Paths {
		v.Paths[i].Isolation = mostDecibels
		for _, f := range paths {
			if f.Path == (ocst.Path1 + ocst.Path(i)).String() {
				v.Paths[i].Loss = max(v.Paths[i].Loss, f.Loss)
				v.Paths[i].Isolation = min(v.Paths[i].Isolation, f.Isolation)
			}
		}
	}
	for i, change := range ocst.Transitions {
		for _, f := range changes {
			if f.From == change[0].String() && f.To == change[1].String() {
				v.Changes[i].Rise = max(v.Changes[i].Rise, micros(f.Rise))
				v.Changes[i].Settle = max(v.Changes[i].Settle, micros(f.Settle))
			}
		}
	}
	return v
}

func micros(us float64) time.Duration { return time.Duration(us * float64(time.Microsecond)) }
