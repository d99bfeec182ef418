package export

import (
	"slices"
	"strings"
)

// depth is how far the first columns of a table tell what its rows are about.
type depth int

const (
	ofConditions depth = iota
	ofPoints
	ofMoves // reconfigurations
)

// keyColumns are the first columns of a table.
func (x *index) keyColumns(d depth) []string {
	columns := []string{"run", "condition", "label"}
	for _, name := range x.varied {
		columns = append(columns, parameterColumn(name, columns))
	}
	if d >= ofPoints {
		columns = append(columns, "point", "repeat", "null")
	}
	if d >= ofMoves {
		columns = append(columns, "session", "reconfiguration", "from", "to")
	}
	return columns
}

// parameterColumn returns the column of a parameter, which is none of those there are and
// not one that pandas takes for dates.
func parameterColumn(parameter string, columns []string) string {
	name := "param_" + parameter
	lower := strings.ToLower(name)
	if strings.HasSuffix(lower, "_at") || strings.HasSuffix(lower, "_time") {
		name += "_"
	}
	for slices.Contains(columns, name) {
		name += "_"
	}
	return name
}

func (o *rows) condition(x *index, number int) {
	o.text(x.run.Meta.ID)
	o.whole(int64(number))
	c := x.condition(number)
	o.text(c.Label)
	for _, name := range x.varied {
		o.text(c.Parameters[name])
	}
}

func (o *rows) point(id, repeat int, null bool) {
	o.whole(int64(id))
	o.whole(int64(repeat))
	o.yes(null)
}

// move writes the first cells of what belongs to a reconfiguration.
func (o *rows) move(x *index, number int) {
	m := x.run.Reconfiguration(number)
	if m == nil { // no run that was read has this: marks are of finished points
		o.text(x.run.Meta.ID)
		for range 2 + len(x.varied) + 4 {
			o.none()
		}
		o.whole(int64(number))
		o.none()
		o.none()
		return
	}
	o.condition(x, m.Condition)
	o.point(m.Point, m.Repeat, m.Null)
	o.whole(int64(m.Session))
	o.whole(int64(number))
	o.text(m.From)
	o.text(m.To)
}
