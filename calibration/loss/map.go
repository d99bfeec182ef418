package loss

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/ocslab/ocslab/ocs"
)

// State says what is known of a path. Its letter stands for it in stored maps.
type State byte

const (
	// Unmeasured: the path was not made; the measurement ended before.
	Unmeasured State = 'u'
	// Measured: the loss is a number.
	Measured State = 'm'
	// Dark: light went in, and none came out; the loss is a lower bound.
	Dark State = 'd'
	// NoReference: how much light goes in is not known, or there is none.
	NoReference State = 'r'
	// NoPath: a port of a single-sided switch and itself.
	NoPath State = '-'
)

// String returns the name of the state, as in CSV and JSON: "measured", "dark",
// "no-reference", "unmeasured", "no-path".
func (s State) String() string {
	switch s {
	case Measured:
		return "measured"
	case Dark:
		return "dark"
	case NoReference:
		return "no-reference"
	case NoPath:
		return "no-path"
	}
	return "unmeasured"
}

// Cell is what is known of one path.
type Cell struct {
	State State
	// Loss is that of a path that was measured, and of one that is dark the least that it
	// can be. It is 0 in all other states.
	Loss ocs.DB
}

// Source is the light at one ingress.
type Source struct {
	Port ocs.Port
	// Power is the mean of what its monitor said, or the reference that was given.
	// It is negative infinity when nothing is known.
	Power ocs.DBm
	// Drift is the largest less the smallest power in the maps; 0 when no monitor watches it.
	Drift ocs.DB
	// Watched: a monitor saw it in every map.
	Watched bool
	// Moved: Drift was more than the limit, so the losses of this row deserve less trust.
	Moved bool
}

// Map is the losses of all paths between chosen ports of a switch. It is stored as JSON in a
// compact form, whole thousandths of a dB; the zero Map is empty. A Map that nobody changes
// may be used by several goroutines.
type Map struct {
	Ingress, Egress []ocs.Port // in ascending order
	Sources         []Source   // one for each ingress
	// Leaks are egress ports that showed light before any circuit of theirs was made.
	Leaks []ocs.Port
	// Unsteady are paths whose light did not come to rest, or that were dark once and not the
	// other time.
	Unsteady []ocs.CrossConnect

	Began time.Time
	Took  time.Duration
	Maps  int // that were made, those made again not counted

	Readings      int    // of each path
	Noise         ocs.DB // standard deviation of one reading of a loss, pooled
	Repeatability ocs.DB // standard deviation of a loss when its path is made again
	Repeated      int    // paths made again; 0: Repeatability is not known
	Accuracy      ocs.DB // of one monitor, ±
	// ReferenceU is the expanded uncertainty of references that were given; 0 if all ingress
	// ports have monitors.
	ReferenceU ocs.DB
	// Floor is that of the [Limits] it was looked at with when it was kept; 0 is DefaultFloor.
	Floor ocs.DB

	cells []Cell // by row
}

// NewMap returns a map of unmeasured paths between ports, which are put in order.
func NewMap(ingress, egress []ocs.Port) *Map {
	m := &Map{
		Ingress: slices.Compact(slices.Sorted(slices.Values(ingress))),
		Egress:  slices.Compact(slices.Sorted(slices.Values(egress))),
	}
	m.cells = make([]Cell, len(m.Ingress)*len(m.Egress))
	for i := range m.cells {
		m.cells[i].State = Unmeasured
		if m.Ingress[i/len(m.Egress)] == m.Egress[i%len(m.Egress)] {
			m.cells[i].State = NoPath
		}
	}
	for _, p := range m.Ingress {
		m.Sources = append(m.Sources, Source{Port: p, Power: ocs.DBm(math.Inf(-1))})
	}
	return m
}

// At returns the cell of a row and a column, which count from 0.
func (m *Map) At(row, column int) Cell { return m.cells[row*len(m.Egress)+column] }

// Set sets a cell.
func (m *Map) Set(row, column int, c Cell) { m.cells[row*len(m.Egress)+column] = c }

// Path returns the path of a row and a column.
func (m *Map) Path(row, column int) ocs.CrossConnect {
	return ocs.CrossConnect{Ingress: m.Ingress[row], Egress: m.Egress[column]}
}

// Find returns the cell of a path; false if the map has none.
func (m *Map) Find(c ocs.CrossConnect) (Cell, bool) {
	i, ok := slices.BinarySearch(m.Ingress, c.Ingress)
	j, ok2 := slices.BinarySearch(m.Egress, c.Egress)
	if !ok || !ok2 || m.At(i, j).State == NoPath {
		return Cell{State: NoPath}, false
	}
	return m.At(i, j), true
}

// index returns row and column of a path that the map has.
func (m *Map) index(c ocs.CrossConnect) (row, column int) {
	row, _ = slices.BinarySearch(m.Ingress, c.Ingress)
	column, _ = slices.BinarySearch(m.Egress, c.Egress)
	return row, column
}

// Count returns how many paths are in a state.
func (m *Map) Count(s State) int {
	n := 0
	for _, c := range m.cells {
		if c.State == s {
			n++
		}
	}
	return n
}

// Complete reports whether every path was measured.
func (m *Map) Complete() bool {
	return len(m.cells) > 0 && m.Count(Measured)+m.Count(NoPath) == len(m.cells)
}

// losses returns all that were measured, sorted.
func (m *Map) losses() []float64 {
	var all []float64
	for _, c := range m.cells {
		if c.State == Measured {
			all = append(all, float64(c.Loss))
		}
	}
	slices.Sort(all)
	return all
}

// Median returns the median of the losses that were measured; false if none was.
func (m *Map) Median() (ocs.DB, bool) {
	all := m.losses()
	if len(all) == 0 {
		return 0, false
	}
	return ocs.DB(medianOf(all)), true
}

// RelativeU is the expanded uncertainty (k = 2) of a loss when it is compared with others of
// the same switch and the same monitors.
func (m *Map) RelativeU() ocs.DB {
	noise := float64(m.Noise) / math.Sqrt(float64(max(m.Readings, 1)))
	return ocs.DB(2 * math.Hypot(noise, float64(m.Repeatability)))
}

// U is the expanded uncertainty (k = 2) of a loss, with the accuracy of the monitors.
func (m *Map) U() ocs.DB {
	const rectangular = 1.7320508075688772 // √3
	monitors := 2.0
	if m.ReferenceU > 0 {
		monitors = 1
	}
	u := 2 * float64(m.Accuracy) / rectangular * math.Sqrt(monitors)
	return ocs.DB(math.Hypot(math.Hypot(float64(m.RelativeU()), u), float64(m.ReferenceU)))
}

// Errors of stored maps.
var errStored = errors.New("this is no stored map of losses")

type storedMap struct {
	Ingress       string         `json:"ingress"`
	Egress        string         `json:"egress"`
	Began         time.Time      `json:"began"`
	TookNS        int64          `json:"took_ns"`
	Maps          int            `json:"maps"`
	Readings      int            `json:"readings"`
	Noise         float64        `json:"noise_db"`
	Repeatability float64        `json:"repeatability_db"`
	Repeated      int            `json:"repeated"`
	Accuracy      float64        `json:"accuracy_db"`
	ReferenceU    float64        `json:"reference_u_db"`
	Floor         float64        `json:"floor_db,omitempty"`
	Leaks         string         `json:"leaks"`
	Unsteady      []string       `json:"unsteady"`
	Sources       []storedSource `json:"sources"`
	States        []string       `json:"states"`   // a letter for each egress
	Loss          [][]int32      `json:"loss_mdb"` // thousandths of a dB; of dark paths at least
}

type storedSource struct {
	Power   *float64 `json:"power_dbm"` // null: not known
	Drift   float64  `json:"drift_db"`
	Watched bool     `json:"watched"`
	Moved   bool     `json:"moved"`
}

// MarshalJSON returns the compact form: a line of letters and one of numbers for each
// ingress.
func (m *Map) MarshalJSON() ([]byte, error) {
	s := storedMap{
		Ingress: ocs.FormatPorts(m.Ingress), Egress: ocs.FormatPorts(m.Egress), Leaks: ocs.FormatPorts(m.Leaks),
		Began: m.Began, TookNS: int64(m.Took), Maps: m.Maps, Readings: m.Readings,
		Noise: rounded(m.Noise), Repeatability: rounded(m.Repeatability), Repeated: m.Repeated,
		Accuracy: rounded(m.Accuracy), ReferenceU: rounded(m.ReferenceU), Floor: rounded(m.Floor),
		Unsteady: []string{}, Sources: []storedSource{}, States: []string{}, Loss: [][]int32{},
	}
	for _, c := range m.Unsteady {
		s.Unsteady = append(s.Unsteady, c.String())
	}
	for i, src := range m.Sources {
		o := storedSource{Drift: rounded(src.Drift), Watched: src.Watched, Moved: src.Moved}
		if !math.IsInf(float64(src.Power), 0) {
			p := math.Round(float64(src.Power)*1000) / 1000
			o.Power = &p
		}
		s.Sources = append(s.Sources, o)
		var letters strings.Builder
		numbers := make([]int32, len(m.Egress))
		for j := range m.Egress {
			c := m.At(i, j)
			letters.WriteByte(byte(c.State))
			numbers[j] = int32(math.Round(float64(c.Loss) * 1000))
		}
		s.States = append(s.States, letters.String())
		s.Loss = append(s.Loss, numbers)
	}
	return json.Marshal(s)
}

// UnmarshalJSON reads the form that MarshalJSON writes, and nothing else.
func (m *Map) UnmarshalJSON(data []byte) error {
	var s storedMap
	if err := json.Unmarshal(data, &s); err != nil {
		return fmt.Errorf("%w: %w", errStored, err)
	}
	in, err := ocs.ParsePorts(s.Ingress)
	out, err2 := ocs.ParsePorts(s.Egress)
	leaks, err3 := ocs.ParsePorts(s.Leaks)
	if err := errors.Join(err, err2, err3); err != nil {
		return fmt.Errorf("%w: %w", errStored, err)
	}
	n := NewMap(in, out)
	if len(s.Sources) != len(in) || len(s.States) != len(in) || len(s.Loss) != len(in) {
		return fmt.Errorf("%w: %d ingress ports, and rows for %d", errStored, len(in), len(s.Loss))
	}
	for _, x := range []float64{s.Noise, s.Repeatability, s.Accuracy, s.ReferenceU, s.Floor} {
		if x < 0 {
			return fmt.Errorf("%w: an uncertainty or floor of %g dB", errStored, x)
		}
	}
	n.Began, n.Took, n.Maps, n.Readings, n.Repeated, n.Leaks = s.Began, time.Duration(s.TookNS), s.Maps, s.Readings, s.Repeated, leaks
	n.Noise, n.Repeatability, n.Accuracy, n.ReferenceU = ocs.DB(s.Noise), ocs.DB(s.Repeatability), ocs.DB(s.Accuracy), ocs.DB(s.ReferenceU)
	n.Floor = ocs.DB(s.Floor)
	for _, text := range s.Unsteady {
		one, err := ocs.ParseMap(text)
		if err != nil {
			return fmt.Errorf("%w: %w", errStored, err)
		}
		n.Unsteady = append(n.Unsteady, one.Slice()...)
	}
	for i, src := range s.Sources {
		n.Sources[i].Drift, n.Sources[i].Watched, n.Sources[i].Moved = ocs.DB(src.Drift), src.Watched, src.Moved
		if src.Power != nil {
			n.Sources[i].Power = ocs.DBm(*src.Power)
		}
		if len(s.States[i]) != len(out) || len(s.Loss[i]) != len(out) {
			return fmt.Errorf("%w: the row of ingress %d has %d paths, not %d", errStored, n.Ingress[i], len(s.Loss[i]), len(out))
		}
		for j := range out {
			c := Cell{State: State(s.States[i][j]), Loss: ocs.DB(s.Loss[i][j]) / 1000}
			if !strings.ContainsRune("umdr-", rune(c.State)) || (c.State == NoPath) != (n.At(i, j).State == NoPath) {
				return fmt.Errorf("%w: path %v has the state %q", errStored, n.Path(i, j), s.States[i][j])
			}
			if c.State != Measured && c.State != Dark {
				c.Loss = 0
			}
			n.Set(i, j, c)
		}
	}
	*m = *n
	return nil
}

func rounded(x ocs.DB) float64 { return math.Round(float64(x)*10000) / 10000 }
