package loss

import (
	"cmp"
	"encoding/csv"
	"io"
	"math"
	"slices"
	"strconv"

	"github.com/ocslab/ocslab/ocs"
)

// Table is losses that somebody else has measured, such as the maker of the switch.
type Table map[ocs.CrossConnect]ocs.DB

// ReadTable reads a table of losses as CSV with the heading ingress,egress,loss_db. Columns after
// these are allowed if they are those of [Map.CSV], of which only measured paths
// count. Everything else is an error that names its line: a path that comes twice, a loss that
// is no number or out of -3 to 100 dB. The name is that of the file, for errors.
func ReadTable(name string, r io.Reader) (Table, error) {
	f := table{name: name, columns: columns[:3], more: columns[3:]}
	t, where := Table{}, map[ocs.CrossConnect]int{}
	err := f.read(r, func(line int, row []string) (err error) {
		var c ocs.CrossConnect
		if c.Ingress, err = f.port(line, 0, row); err != nil {
			return err
		}
		if c.Egress, err = f.port(line, 1, row); err != nil {
			return err
		}
		if had, ok := where[c]; ok {
			return f.bad(line, "path %v is in line %d, too", c, had)
		}
		where[c] = line
		if len(row) > 3 && row[3] != Measured.String() {
			return nil
		}
		loss, err := strconv.ParseFloat(row[2], 64)
		if err != nil || !(loss >= -3 && loss <= 100) { // NaN is neither
			return f.bad(line, "loss_db %q of path %v: want a loss of -3 to 100 dB, without its unit", row[2], c)
		}
		t[c] = ocs.DB(loss)
		return nil
	})
	if err == nil && len(t) == 0 {
		err = f.bad(1, "it has no path")
	}
	if err != nil {
		return nil, err
	}
	return t, nil
}

// columns are those of [Map.CSV]; the first three are those of a table.
var columns = []string{"ingress", "egress", "loss_db", "state", "u_db"}

// CSV writes a line for each path: ingress, egress, loss_db, state and u_db. The loss of a dark path
// is the least it can be; that of a path of which nothing is known is empty. Errors are those of w.
func (m *Map) CSV(w io.Writer) error {
	out := csv.NewWriter(w)
	_ = out.Write(columns) // errors come with Flush
	u := strconv.FormatFloat(float64(m.U()), 'f', 3, 64)
	for i := range m.Ingress {
		for j := range m.Egress {
			c := m.At(i, j)
			if c.State == NoPath {
				continue
			}
			row := []string{m.Ingress[i].String(), m.Egress[j].String(), "", c.State.String(), ""}
			if c.State == Measured || c.State == Dark {
				row[2] = strconv.FormatFloat(float64(c.Loss), 'f', 3, 64)
			}
			if c.State == Measured {
				row[4] = u
			}
			_ = out.Write(row)
		}
	}
	out.Flush()
	return out.Error()
}

// Table returns the losses that were measured.
func (m *Map) Table() Table {
	t := Table{}
	for i := range m.Ingress {
		for j := range m.Egress {
			if c := m.At(i, j); c.State == Measured {
				t[m.Path(i, j)] = c.Loss
			}
		}
	}
	return t
}

// Difference is by how much a path loses more than before.
type Difference struct {
	Path ocs.CrossConnect
	Was  ocs.DB // its loss before
	More ocs.DB
}

// Comparison is how a map differs from losses of before.
type Comparison struct {
	Paths  int    // measured in both
	Offset ocs.DB // median of the differences: what all paths have in common
	Spread ocs.DB // robust standard deviation of the differences around it
	U      ocs.DB // expanded uncertainty of a difference
	Alarm  ocs.DB // the limit
	// Over are paths that differ by more than the limit and more than U, the largest
	// difference first.
	Over []Difference
	// Missing were measured before and are not now; New the other way round.
	Missing, New []ocs.CrossConnect
	// Outside is how many paths were measured before at ports that are not in the map.
	Outside int
}

// Against compares with losses of before; a difference above alarm is one too many. The
// uncertainty u is that of a difference: for the same switch and monitors, √2 times
// [Map.RelativeU]; for a table by others, [Map.U].
func (m *Map) Against(t Table, alarm, u ocs.DB) Comparison {
	c := Comparison{Alarm: alarm, U: u}
	var all []float64
	var list []Difference
	for i := range m.Ingress {
		for j := range m.Egress {
			path, cell := m.Path(i, j), m.At(i, j)
			was, ok := t[path]
			switch {
			case cell.State == NoPath:
			case ok && cell.State == Measured:
				list = append(list, Difference{Path: path, Was: was, More: cell.Loss - was})
				all = append(all, float64(cell.Loss-was))
			case ok:
				c.Missing = append(c.Missing, path)
			case cell.State == Measured:
				c.New = append(c.New, path)
			}
		}
	}
	for path := range t {
		if _, ok := m.Find(path); !ok {
			c.Outside++
		}
	}
	if c.Paths = len(list); c.Paths == 0 {
		return c
	}
	c.Spread, c.Offset = spread(all), ocs.DB(medianOf(all))
	for _, d := range list {
		if size := ocs.DB(math.Abs(float64(d.More))); size > alarm && size > u {
			c.Over = append(c.Over, d)
		}
	}
	slices.SortStableFunc(c.Over, func(a, b Difference) int {
		return cmp.Compare(math.Abs(float64(b.More)), math.Abs(float64(a.More)))
	})
	return c
}

// byPorts compares paths by ingress, then egress.
func byPorts(a, b ocs.CrossConnect) int {
	return cmp.Or(cmp.Compare(a.Ingress, b.Ingress), cmp.Compare(a.Egress, b.Egress))
}
