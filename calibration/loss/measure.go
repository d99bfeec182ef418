package loss

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/ocslab/ocslab/internal/pause"
	"github.com/ocslab/ocslab/ocs"
)

// Bench is what a map is measured with. Apply makes circuits as the caller wants them made:
// with leases, a history, and whatever else protects people.
type Bench struct {
	Geometry ocs.Geometry
	// Meter reads the monitors.
	Meter ocs.PowerMeter
	// Apply brings about that the ports of the measurement hold exactly the circuits of m, and
	// returns when the switch has acknowledged. The empty map leaves all of them dark.
	Apply func(ctx context.Context, m ocs.Map) error
}

// Reference is how much light enters where no monitor says so.
type Reference struct {
	Power ocs.DBm
	U     ocs.DB // expanded uncertainty (k = 2)
}

// Options say how a map is measured. The zero value is a good one.
type Options struct {
	// Readings of each path; 0 is DefaultReadings.
	Readings int
	// Repeat is how many maps are made once more at the end, for the repeatability; 0 is
	// DefaultRepeat, below 0 none. Seed chooses them.
	Repeat int
	Seed   uint64
	// Accuracy of one monitor, ±; 0 is DefaultAccuracy.
	Accuracy ocs.DB
	// Reference is the light at ingress ports without a monitor.
	// Launch, if it is not nil, is that of all that are not in Reference.
	Reference map[ocs.Port]Reference
	Launch    *Reference
	// Drift is how much a source may move meanwhile; 0 is DefaultDrift.
	Drift ocs.DB
	// Averaging is what monitors that do not say average over; 0 is DefaultAveraging.
	Averaging time.Duration
	// Settle is how close some readings in a row must be for the light to have settled; 0 is
	// DefaultSettle. Patience is how long that may take; 0 is DefaultPatience.
	Settle   ocs.DB
	Patience time.Duration
	// Progress, if it is not nil, is called before each map is made and after the last.
	Progress func(Progress)
}

// Defaults of [Options]. The accuracy is what data sheets of 6000 and 7000 series switches
// give for their monitors.
const (
	DefaultReadings        = 5
	DefaultRepeat          = 2
	DefaultAccuracy ocs.DB = 1.0
	DefaultDrift    ocs.DB = 0.3
	DefaultSettle   ocs.DB = 0.1
	DefaultPatience        = 5 * time.Second
	// DefaultAveraging is what most monitors come with.
	DefaultAveraging = 100 * time.Millisecond
)

// Progress is how far a measurement is.
type Progress struct {
	Step        string // "reference", "map", "repeat"
	Done, Total int    // maps, all steps together
}

// Estimate returns about how long a measurement of so many maps takes, those made again and
// the first one without circuits included, with monitors that average so long and a switch
// that takes so long for a map.
func Estimate(maps int, averaging, switching time.Duration, opt Options) time.Duration {
	opt = opt.filled()
	steps := 1 + maps + min(max(opt.Repeat, 0), maps)
	return time.Duration(steps) * (switching + averaging + time.Duration(opt.Readings-1)*opt.spacing(averaging))
}

// What is taken for rest: so many readings in a row that say the same, over no less time than that, so
// that light that creeps is not taken for it where monitors average over a short time.
const (
	restReadings = 5
	restTime     = 100 * time.Millisecond
)

// Spacing is how far apart readings are when monitors average over no more than that: there is nothing to gain
// from monitors that are quicker.
func (o Options) Spacing() time.Duration { return o.filled().spacing(0) }

// window is how many readings must agree.
func (o Options) window() int { return max(min(o.Readings, restReadings), 2) }

// spacing is the time between two readings.
func (o Options) spacing(averaging time.Duration) time.Duration {
	return max(averaging, restTime/time.Duration(o.window()-1))
}

func (o Options) filled() Options {
	def := func(x *ocs.DB, d ocs.DB) {
		if *x == 0 {
			*x = d
		}
	}
	def(&o.Accuracy, DefaultAccuracy)
	def(&o.Drift, DefaultDrift)
	def(&o.Settle, DefaultSettle)
	if o.Readings == 0 {
		o.Readings = DefaultReadings
	}
	if o.Averaging == 0 {
		o.Averaging = DefaultAveraging
	}
	if o.Repeat == 0 {
		o.Repeat = DefaultRepeat
	}
	if o.Patience == 0 {
		o.Patience = DefaultPatience
	}
	return o
}

// Measure measures the paths from ingress to egress ports. Ingress ports without light are in
// the map, and their paths have no reference. With an error, and when ctx ends, the map holds
// what was measured until then, the rest unmeasured; it is nil when nothing was measured. To
// put circuits back is the caller's. It sends nothing but through b.
//
// An error matches [ocs.ErrPort] or [ocs.ErrNotSupported] as those of [Order] do, the latter
// also when an egress has no power monitor; others are of the switch.
func Measure(ctx context.Context, b Bench, ingress, egress []ocs.Port, opt Options) (*Map, error) {
	ingress, egress, err := portsOf(b.Geometry, ingress, egress)
	if err != nil {
		return nil, err
	}
	s := &survey{Bench: b, opt: opt.filled(), m: NewMap(ingress, egress), began: time.Now()}
	s.darkIn, s.darkOut, s.litIn, s.litOut = map[ocs.Port]int{}, map[ocs.Port]int{}, map[ocs.Port]int{}, map[ocs.Port]int{}
	s.hasty = map[ocs.CrossConnect]bool{}
	s.m.Readings, s.m.Accuracy, s.m.Began = s.opt.Readings, s.opt.Accuracy, s.began.UTC().Truncate(time.Second)
	lit, err := s.reference(ctx)
	if err != nil {
		return nil, err
	}
	maps, err := Order(b.Geometry, lit, egress)
	if err != nil {
		return nil, err
	}
	err = s.all(ctx, maps)
	s.finish()
	return s.m, err
}

// survey is a measurement under way.
type survey struct {
	Bench
	opt   Options
	m     *Map
	began time.Time

	averaging   time.Duration
	dark        map[ocs.Port]ocs.DBm // what egress ports say without light
	given       map[ocs.Port]bool    // ingress ports whose light no monitor sees
	noise       pooled               // of readings of a loss
	inNoise     pooled               // of readings of a port
	again       pooled               // of losses of paths made again
	least, most map[ocs.Port]ocs.DBm // of sources, of all maps
	sum         map[ocs.Port]ocs.DBm
	count       map[ocs.Port]int
	done, total int

	// How often the paths of a port were dark for all the patience, and how often they had light.
	darkIn, darkOut, litIn, litOut map[ocs.Port]int
	hasty                          map[ocs.CrossConnect]bool // dark, without all the patience
}

// pooled is a variance from many small samples.
type pooled struct {
	sum float64
	n   int // degrees of freedom
}

func (p *pooled) add(x []float64) {
	mean := 0.0
	for _, v := range x {
		mean += v / float64(len(x))
	}
	for _, v := range x {
		p.sum += (v - mean) * (v - mean)
	}
	p.n += max(len(x)-1, 0)
}

func (p pooled) variance() float64 { return p.sum / float64(max(p.n, 1)) }

func (s *survey) tell(step string) {
	if s.opt.Progress != nil {
		s.opt.Progress(Progress{Step: step, Done: s.done, Total: s.total})
	}
}

// reference leaves all ports dark, and finds out where light enters and what the monitors at the
// other side say without any. It returns the ingress ports with light.
func (s *survey) reference(ctx context.Context) (lit []ocs.Port, err error) {
	s.tell("reference")
	ports := slices.Concat(s.m.Ingress, s.m.Egress)
	slices.Sort(ports)
	ports = slices.Compact(ports)
	settings, err := s.Meter.Monitors(ctx, ports...)
	switch {
	case errors.Is(err, ocs.ErrNotSupported):
		s.averaging = s.opt.Averaging
	case err != nil:
		return nil, fmt.Errorf("how the power monitors are set: %w", err)
	}
	for _, m := range settings {
		s.averaging = max(s.averaging, m.Averaging)
	}
	if s.averaging <= 0 {
		s.averaging = s.opt.Averaging
	}
	if err := s.Apply(ctx, ocs.Map{}); err != nil {
		return nil, err
	}
	if err := pause.For(ctx, 2*s.averaging); err != nil {
		return nil, err
	}
	seen, err := s.readings(ctx, ports)
	if err != nil {
		return nil, err
	}
	var blind []ocs.Port
	s.dark = map[ocs.Port]ocs.DBm{}
	for _, p := range s.m.Egress {
		x := seen[p]
		switch {
		case len(x) == 0:
			blind = append(blind, p)
		case s.Geometry.SingleSided:
			s.dark[p] = ocs.NoLight // what it says now is of light that enters
		default:
			s.dark[p] = ocs.DBm(slices.Max(x))
			if s.dark[p] > ocs.NoLight {
				s.m.Leaks = append(s.m.Leaks, p)
			}
		}
	}
	if len(blind) > 0 {
		return nil, fmt.Errorf("egress %s: no power monitor, so losses cannot be measured there: leave them out: %w", ocs.FormatPorts(blind), ocs.ErrNotSupported)
	}
	s.given = map[ocs.Port]bool{}
	s.least, s.most, s.sum, s.count = map[ocs.Port]ocs.DBm{}, map[ocs.Port]ocs.DBm{}, map[ocs.Port]ocs.DBm{}, map[ocs.Port]int{}
	for i, p := range s.m.Ingress {
		src := &s.m.Sources[i]
		switch x := seen[p]; {
		case len(x) > 0:
			src.Power = ocs.DBm(mean(x))
			src.Watched = true
			if src.Power > ocs.NoLight {
				s.inNoise.add(x)
			}
		default:
			r, ok := s.opt.Reference[p]
			if !ok && s.opt.Launch != nil {
				r, ok = *s.opt.Launch, true
			}
			if ok {
				src.Power, s.given[p] = r.Power, true
				s.m.ReferenceU = max(s.m.ReferenceU, r.U)
			}
		}
		if src.Power > ocs.NoLight {
			lit = append(lit, p)
			continue
		}
		for j := range s.m.Egress {
			if s.m.At(i, j).State != NoPath {
				s.m.Set(i, j, Cell{State: NoReference})
			}
		}
	}
	return lit, nil
}

// all makes every map, and some again.
func (s *survey) all(ctx context.Context, maps []ocs.Map) error {
	var again []ocs.Map
	// Not the last, which is there already when its turn comes again.
	rng := rand.New(rand.NewPCG(s.opt.Seed, 0))
	for _, k := range rng.Perm(max(len(maps)-1, 0)) {
		if len(again) < s.opt.Repeat {
			again = append(again, maps[k])
		}
	}
	s.total, s.done = 1+len(maps)+len(again), 1
	for _, one := range maps {
		s.tell("map")
		if err := s.take(ctx, one); err != nil {
			return err
		}
		s.m.Maps++
	}
	late := s.doubtful()
	s.total += len(late)
	for _, one := range late {
		s.tell("map")
		if err := s.take(ctx, one); err != nil {
			return err
		}
	}
	for _, one := range again {
		s.tell("repeat")
		cells, _, err := s.one(ctx, one)
		if err != nil {
			return err
		}
		s.done++
		for c, now := range cells {
			then, _ := s.m.Find(c)
			switch {
			case then.State != now.State:
				s.m.Unsteady = append(s.m.Unsteady, c)
			case now.State == Measured:
				s.again.add([]float64{float64(then.Loss), float64(now.Loss)})
				s.m.Repeated++
			}
		}
	}
	s.tell("done")
	return nil
}

// take makes a map and notes what its paths lose.
func (s *survey) take(ctx context.Context, one ocs.Map) error {
	cells, steady, err := s.one(ctx, one)
	if err != nil {
		return err
	}
	s.done++
	for c, cell := range cells {
		i, j := s.m.index(c)
		s.m.Set(i, j, cell)
		if !steady[c] {
			s.m.Unsteady = append(s.m.Unsteady, c)
		}
	}
	return nil
}

// doubtful returns maps of the paths that were given up early for the sake of a port that seemed dead,
// and had light after all.
func (s *survey) doubtful() (maps []ocs.Map) {
	left := slices.SortedFunc(func(yield func(ocs.CrossConnect) bool) {
		for c := range s.hasty {
			if !s.dead(c) && !yield(c) {
				return
			}
		}
	}, byPorts)
	for len(left) > 0 {
		var some, later []ocs.CrossConnect
		used := map[ocs.Port]bool{}
		for _, c := range left {
			if used[c.Ingress] || used[c.Egress] {
				later = append(later, c)
				continue
			}
			used[c.Ingress], used[c.Egress] = true, true
			some = append(some, c)
			delete(s.hasty, c)
		}
		maps, left = append(maps, ocs.MustMap(some...)), later
	}
	return maps
}

// dead reports whether a port of a path has been dark with all the patience before, on
// several paths, and never had light.
func (s *survey) dead(c ocs.CrossConnect) bool {
	const enough = 2
	return s.darkIn[c.Ingress] >= enough && s.litIn[c.Ingress] == 0 || s.darkOut[c.Egress] >= enough && s.litOut[c.Egress] == 0
}

// one makes a map and measures its paths; steady are those whose light came to rest.
func (s *survey) one(ctx context.Context, one ocs.Map) (cells map[ocs.CrossConnect]Cell, steady map[ocs.CrossConnect]bool, err error) {
	if err := s.Apply(ctx, one); err != nil {
		return nil, nil, err
	}
	seen, steady, patient, err := s.settle(ctx, one)
	if err != nil {
		return nil, nil, err
	}
	cells = map[ocs.CrossConnect]Cell{}
	for c := range one.All() {
		in, out := seen[c.Ingress], seen[c.Egress]
		if s.given[c.Ingress] {
			i, _ := s.m.index(c)
			in = slices.Repeat([]float64{float64(s.m.Sources[i].Power)}, len(out))
		}
		if len(in) != s.opt.Readings || len(out) != s.opt.Readings {
			return nil, nil, fmt.Errorf("%v: the switch has left out the power of a port that it has a monitor for", c)
		}
		loss := make([]float64, len(out))
		for k := range out {
			loss[k] = in[k] - out[k]
		}
		source := ocs.DBm(mean(in))
		switch {
		case source <= ocs.NoLight: // it had some in the beginning
			cells[c] = Cell{State: NoReference}
		case s.isDark(c.Egress, ocs.DBm(mean(out))):
			// The monitor says no less than its floor, so the loss is this or more.
			cells[c] = Cell{State: Dark, Loss: source.Sub(max(ocs.DBm(slices.Max(out)), s.dark[c.Egress]))}
			if patient {
				s.darkIn[c.Ingress]++
				s.darkOut[c.Egress]++
			} else {
				s.hasty[c] = true
			}
		default:
			cells[c] = Cell{State: Measured, Loss: ocs.DB(mean(loss))}
			s.litIn[c.Ingress]++
			s.litOut[c.Egress]++
			if steady[c] {
				s.noise.add(loss)
			}
		}
		s.watch(c.Ingress, source)
	}
	return cells, steady, nil
}

// watch notes how much light a source had in a map.
func (s *survey) watch(p ocs.Port, power ocs.DBm) {
	if s.count[p] == 0 {
		s.least[p], s.most[p] = power, power
	}
	s.least[p], s.most[p] = min(s.least[p], power), max(s.most[p], power)
	s.sum[p] += power
	s.count[p]++
}

// isDark reports whether a power at an egress is none: below what any receiver works with,
// or hardly above what its monitor says without a circuit.
func (s *survey) isDark(p ocs.Port, power ocs.DBm) bool {
	const clear ocs.DB = 3
	return power < ocs.NoLight || power < s.dark[p].Add(clear) && !s.Geometry.SingleSided
}

// settle reads the ports of a map until the light of its paths has come to rest, and as often as is wanted:
// some readings in a row that say the same, apart by no less than the time that the monitors average over, so that
// none has light of the one before. Light that has not come yet would pass for rest, so what is dark is given longer
// than all others have taken, by far; but not if a port of the path is known to be dead, and then patient
// is false. Steady are the paths whose light did come to rest, or never came.
func (s *survey) settle(ctx context.Context, one ocs.Map) (seen map[ocs.Port][]float64, steady map[ocs.CrossConnect]bool, patient bool, err error) {
	const (
		longer = 4
		least  = 500 * time.Millisecond
	)
	within := max(float64(s.opt.Settle), 6*math.Sqrt(s.inNoise.variance()))
	ports, window, spacing := one.Ports(), s.opt.window(), s.opt.spacing(s.averaging)
	began := time.Now()
	steady = map[ocs.CrossConnect]bool{}
	seen = map[ocs.Port][]float64{}
	var took time.Duration // until the last that has come to rest had
	wait := s.averaging
	for n := 1; ; n++ {
		if err := pause.For(ctx, wait); err != nil {
			return nil, nil, false, err
		}
		wait = spacing
		if err := s.read(ctx, ports, seen); err != nil {
			return nil, nil, false, err
		}
		waited := time.Since(began)
		rest, dark, open := 0, 0, 0 // open: dark, and perhaps not for ever
		for c := range one.All() {
			x := seen[c.Egress]
			x = x[max(len(x)-window, 0):]
			none := 0
			for _, power := range x {
				if s.isDark(c.Egress, ocs.DBm(power)) {
					none++
				}
			}
			had := steady[c]
			switch {
			case len(x) < window:
				steady[c] = false
			case none == len(x):
				steady[c] = true
				dark++
				if !s.dead(c) {
					open++
				}
			case none == 0 && slices.Max(x)-slices.Min(x) <= within:
				steady[c] = true
				rest++
				if !had {
					took = waited
				}
			default:
				steady[c] = false
			}
		}
		moving := one.Len() - rest - dark
		full := rest > 0 && waited >= max(longer*took, least)
		switch {
		case n < s.opt.Readings:
			continue
		case waited >= s.opt.Patience, moving == 0 && full:
			patient = true
		case moving == 0 && open == 0:
		default:
			continue
		}
		for p, x := range seen {
			seen[p] = x[max(len(x)-s.opt.Readings, 0):]
		}
		return seen, steady, patient, nil
	}
}

// readings reads ports as often as is wanted.
func (s *survey) readings(ctx context.Context, ports []ocs.Port) (map[ocs.Port][]float64, error) {
	seen := map[ocs.Port][]float64{}
	for k := range s.opt.Readings {
		if k > 0 {
			if err := pause.For(ctx, s.opt.spacing(s.averaging)); err != nil {
				return nil, err
			}
		}
		if err := s.read(ctx, ports, seen); err != nil {
			return nil, err
		}
	}
	return seen, nil
}

// read adds a reading of ports to what was seen.
func (s *survey) read(ctx context.Context, ports []ocs.Port, seen map[ocs.Port][]float64) error {
	r, err := s.Meter.Power(ctx, ports...)
	if err != nil {
		return err
	}
	for p, power := range r.Ports {
		// Minus infinity is no number to count with; no monitor sees that little.
		seen[p] = append(seen[p], math.Max(float64(power), lowest))
	}
	return nil
}

// lowest is below what any monitor can see, dBm.
const lowest = -100

// finish works out what the readings say of themselves.
func (s *survey) finish() {
	m := s.m
	m.Noise = ocs.DB(math.Sqrt(s.noise.variance()))
	// Made again, a path differs by its repeatability and the noise of both.
	again := s.again.variance() - s.noise.variance()/float64(s.opt.Readings)
	m.Repeatability = ocs.DB(math.Sqrt(max(again, 0)))
	m.Took = time.Since(s.began)
	slices.SortFunc(m.Unsteady, byPorts)
	m.Unsteady = slices.Compact(m.Unsteady)
	for i := range m.Sources {
		src := &m.Sources[i]
		n := s.count[src.Port]
		if n == 0 || s.given[src.Port] {
			continue
		}
		src.Power = s.sum[src.Port] / ocs.DBm(n)
		src.Drift = s.most[src.Port].Sub(s.least[src.Port])
		src.Moved = src.Drift > max(s.opt.Drift, ocs.DB(6*math.Sqrt(s.inNoise.variance())))
	}
}

func mean(x []float64) float64 {
	sum := 0.0
	for _, v := range x {
		sum += v
	}
	return sum / float64(max(len(x), 1))
}
