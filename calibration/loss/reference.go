package loss

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/ocslab/ocslab/internal/natural"
	"github.com/ocslab/ocslab/ocs"
)

// DefaultReferenceU is the expanded uncertainty of a reference that does not say how good it is:
// that of a power meter of the bench, with its connector.
const DefaultReferenceU ocs.DB = 0.3

// ParseReference reads a power in dBm, with its expanded uncertainty behind ± or +- if it has one:
// "-1.2", "-1.2±0.5". Powers are -60 to 30 dBm, uncertainties above 0 to 10 dB.
func ParseReference(text string) (Reference, error) {
	power, u, has := strings.Cut(strings.ReplaceAll(text, "+-", "±"), "±")
	r := Reference{U: DefaultReferenceU}
	x, err := strconv.ParseFloat(strings.TrimSpace(power), 64)
	if err != nil || !(x >= -60 && x <= 30) { // NaN is neither
		return Reference{}, fmt.Errorf("%q: want a power of -60 to 30 dBm, as -1.2 or -1.2±0.5", text)
	}
	r.Power = ocs.DBm(x)
	if has {
		y, err := strconv.ParseFloat(strings.TrimSpace(u), 64)
		if err != nil || !(y > 0 && y <= 10) {
			return Reference{}, fmt.Errorf("%q: want an uncertainty above 0 and up to 10 dB behind ±", text)
		}
		r.U = ocs.DB(y)
	}
	return r, nil
}

// ReadReference reads the light at ingress ports as CSV with the heading port,dbm. Errors name their
// line; the name is that of the file, for errors.
func ReadReference(name string, r io.Reader) (map[ocs.Port]Reference, error) {
	t := table{name: name, columns: []string{"port", "dbm"}}
	refs := map[ocs.Port]Reference{}
	err := t.read(r, func(line int, row []string) error {
		p, err := t.port(line, 0, row)
		if err != nil {
			return err
		}
		if _, ok := refs[p]; ok {
			return t.bad(line, "port %d is there twice", p)
		}
		ref, err := ParseReference(row[1])
		if err != nil {
			return t.bad(line, "dbm %v", err)
		}
		refs[p] = ref
		return nil
	})
	if err == nil && len(refs) == 0 {
		err = t.bad(1, "it has no port")
	}
	return refs, err
}

// table is a CSV file that is read strictly.
type table struct {
	name    string
	columns []string
	more    []string // that may follow, all or none of them
}

func (t *table) bad(line int, format string, args ...any) error {
	return fmt.Errorf("%s:%d: %s", t.name, line, fmt.Sprintf(format, args...))
}

// read checks the heading and hands each row to f, with its line; all rows have as many fields.
func (t *table) read(r io.Reader, f func(line int, row []string) error) error {
	in := csv.NewReader(r)
	in.FieldsPerRecord = -1 // says less than we do
	in.TrimLeadingSpace = true
	next := func() ([]string, error) {
		row, err := in.Read()
		var parse *csv.ParseError
		switch {
		case errors.As(err, &parse):
			return nil, t.bad(parse.Line, "%v", parse.Err)
		case err != nil && !errors.Is(err, io.EOF):
			return nil, fmt.Errorf("%s: %w", t.name, err)
		}
		for i := range row {
			row[i] = strings.TrimSpace(row[i])
		}
		return row, err
	}
	want := strings.Join(t.columns, ",")
	head, err := next()
	if errors.Is(err, io.EOF) {
		return t.bad(1, "it is empty: want the heading %s", want)
	}
	if err != nil {
		return err
	}
	head[0] = strings.TrimPrefix(head[0], "\ufeff") // of a spreadsheet
	if !slices.Equal(head, t.columns) && !slices.Equal(head, slices.Concat(t.columns, t.more)) {
		return t.bad(1, "the heading is %q: want %s", strings.Join(head, ","), want)
	}
	for {
		row, err := next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		line, _ := in.FieldPos(0)
		if len(row) != len(head) {
			return t.bad(line, "it has %s: want %d", natural.Count(len(row), "field"), len(head))
		}
		if err := f(line, row); err != nil {
			return err
		}
	}
}

// port reads a port.
func (t *table) port(line, field int, row []string) (ocs.Port, error) {
	n, err := strconv.ParseUint(row[field], 10, 32)
	if err != nil || !ocs.Port(n).Valid() {
		return 0, t.bad(line, "%s %q is no port: want 1 to %d", t.columns[field], row[field], ocs.MaxPort)
	}
	return ocs.Port(n), nil
}
