package crosswiring

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/ocslab/ocslab/internal/natural"
)

// maxText is how many bytes of a file are read.
const maxText = 256 << 20

// WriteJSON writes the configuration: the fabric, and a line for each switch in order with the output of each input, -1
// for none. The same configuration is always the same text; ParseConfig reads it.
func (c *Config) WriteJSON(w io.Writer) error {
	b := bufio.NewWriter(w)
	f := c.fabric
	fmt.Fprintf(b, "{\"pods\":%d,\"spine_ports\":%d,\"groups\":%d,\"wiring\":%q,\"switches\":[\n",
		f.Pods, f.SpinePorts, f.Groups, f.Wiring)
	var line []byte
	for k, n := 0, f.Radix(); k < len(c.out); k += n {
		line = appendNumbers(line[:0], c.out[k:k+n])
		if k+n < len(c.out) {
			line = append(line, ',')
		}
		b.Write(append(line, '\n'))
	}
	fmt.Fprintln(b, "]}")
	return b.Flush()
}

// appendNumbers appends a list of numbers in JSON.
func appendNumbers(text []byte, numbers []int32) []byte {
	text = append(text, '[')
	for i, x := range numbers {
		if i > 0 {
			text = append(text, ',')
		}
		text = strconv.AppendInt(text, int64(x), 10)
	}
	return append(text, ']')
}

// configText is the text of a configuration.
type configText struct {
	Pods       int       `json:"pods"`
	SpinePorts int       `json:"spine_ports"`
	Groups     int       `json:"groups"`
	Wiring     string    `json:"wiring"`
	Switches   [][]int32 `json:"switches"`
}

// ParseConfig reads a configuration as Config.WriteJSON writes it; name is what errors call it. It says whether the
// circuits fit the switches, and Config.Check whether ports can use them. The error matches ErrConfig or ErrFabric.
func ParseConfig(r io.Reader, name string) (*Config, error) {
	var text configText
	data, err := readAll(r, name, ErrConfig)
	if err == nil {
		err = decode(data, &text, name, ErrConfig)
	}
	if err != nil {
		return nil, err
	}
	wiring, err := ParseWiring(text.Wiring)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	f := Fabric{text.Pods, text.SpinePorts, text.Groups, wiring}
	if err := f.Check(); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	if n, want := len(text.Switches), f.Groups*f.GroupSwitches(); n != want {
		return nil, fmt.Errorf("%s: %w: it lists %s: want %d", name, ErrConfig, natural.Count(n, "switch"), want)
	}
	circuits := make(map[Switch][]Circuit, len(text.Switches))
	for k, s := range f.Switches() {
		if n := len(text.Switches[k]); n != f.Radix() {
			return nil, fmt.Errorf("%s: %w: it lists %s of switch %v: want %d", name, ErrConfig, natural.Count(n, "input"), s, f.Radix())
		}
		for in, out := range text.Switches[k] {
			if out != Dark {
				circuits[s] = append(circuits[s], Circuit{in, int(out)})
			}
		}
	}
	c, err := FromCircuits(f, circuits)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return c, nil
}

// WriteJSON writes the demand, a line for each two pods of a group that have links; ParseDemand reads it. A demand that
// differs by direction or is within a pod cannot be written so; the error matches ErrDemand.
func (d *Demand) WriteJSON(w io.Writer) error {
	if err := d.check(MaxPorts); err != nil {
		return err
	}
	b := bufio.NewWriter(w)
	fmt.Fprintf(b, "{\"pods\":%d,", d.pods)
	if !d.podLevel {
		fmt.Fprintf(b, "\"groups\":%d,", d.groups)
	}
	fmt.Fprint(b, "\"links\":[")
	separator := "\n"
	for h := range d.groups {
		c := d.group(h)
		for i := range d.pods {
			for j := i + 1; j < d.pods; j++ {
				n := c[i*d.pods+j]
				if n == 0 {
					continue
				}
				entry := []int32{int32(h), int32(i), int32(j), n}
				if d.podLevel {
					entry = entry[1:]
				}
				fmt.Fprintf(b, "%s%s", separator, appendNumbers(nil, entry))
				separator = ",\n"
			}
		}
	}
	fmt.Fprint(b, "\n]}\n")
	return b.Flush()
}

// demandText is the text of a demand by links.
type demandText struct {
	Pods   *int    `json:"pods"`
	Groups *int    `json:"groups"`
	Links  [][]int `json:"links"`
}

// ParseDemand reads a demand; name is what errors call it. It is JSON if it begins with { or [, or else CSV:
//
//	[[0,1],[1,0]]                                a matrix, pod-level; a list of matrices has one for each group
//	{"pods":4,"groups":2,"links":[[0,1,3,2]]}    in group 0 pods 1 and 3 have 2 links
//	{"pods":4,"links":[[1,3,2]]}                 pod-level: pods 1 and 3 have 2 links
//	group,pod,pod,links                          CSV, with or without this header
//	pod,pod,links                                CSV, pod-level
//
// Listed links are in both directions and between two pods; those that are listed several times add up. CSV is for as
// many pods and groups as it names, which Demand.Fit extends; lines that begin with # are comments. Matrices are taken as
// they are, and Demand.Check says what is wrong with them. The error matches ErrDemand and says in which line.
func ParseDemand(r io.Reader, name string) (*Demand, error) {
	data, err := readAll(r, name, ErrDemand)
	if err != nil {
		return nil, err
	}
	switch text := bytes.TrimSpace(data); {
	case len(text) == 0:
		return nil, fmt.Errorf("%s: %w: there is nothing in it", name, ErrDemand)
	case text[0] == '{':
		return parseLinks(data, name)
	case text[0] == '[':
		return parseMatrices(data, name)
	}
	return parseCSV(data, name)
}

// readAll reads a file of a size that can be.
func readAll(r io.Reader, name string, kind error) ([]byte, error) {
	data, err := io.ReadAll(io.LimitReader(r, maxText+1))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	if len(data) > maxText {
		return nil, fmt.Errorf("%s: %w: it is longer than %d bytes", name, kind, maxText)
	}
	return data, nil
}

// decode reads one JSON value and nothing more. The error matches kind and names the line.
func decode(data []byte, into any, name string, kind error) error {
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	err := d.Decode(into)
	if err == nil {
		if null := bytes.Index(data, []byte("null")); null >= 0 { // which would leave out what belongs there
			return fmt.Errorf("%s:%d: %w: null where a value belongs", name, line(data, int64(null)), kind)
		}
		at := d.InputOffset()
		if rest := bytes.TrimSpace(data[at:]); len(rest) > 0 {
			return fmt.Errorf("%s:%d: %w: there is more behind the end: %.20q", name, line(data, at), kind, rest)
		}
		return nil
	}
	var syntax *json.SyntaxError
	var value *json.UnmarshalTypeError
	switch {
	case errors.As(err, &syntax):
		return fmt.Errorf("%s:%d: %w: %v", name, line(data, syntax.Offset), kind, err)
	case errors.As(err, &value):
		return fmt.Errorf("%s:%d: %w: %s where %s belongs",
			name, line(data, value.Offset), kind, value.Value, wanted(value.Type.String()))
	case errors.Is(err, io.EOF):
		return fmt.Errorf("%s: %w: there is nothing in it", name, kind)
	case errors.Is(err, io.ErrUnexpectedEOF):
		return fmt.Errorf("%s:%d: %w: it ends too early", name, line(data, int64(len(data))), kind)
	}
	return fmt.Errorf("%s: %w: %s", name, kind, strings.TrimPrefix(err.Error(), "json: "))
}

// wanted says what a Go type takes.
func wanted(goType string) string {
	switch goType {
	case "int", "int32":
		return "a whole number"
	case "string":
		return "a text"
	}
	return "a list or object of another depth"
}

// line returns the line, from 1, of an offset.
func line(data []byte, offset int64) int {
	return 1 + bytes.Count(data[:min(max(offset, 0), int64(len(data)))], []byte("\n"))
}

// parseLinks reads the pods, the groups and a list of links.
func parseLinks(data []byte, name string) (*Demand, error) {
	var text demandText
	if err := decode(data, &text, name, ErrDemand); err != nil {
		return nil, err
	}
	if text.Pods == nil {
		return nil, fmt.Errorf("%s: %w: it does not say how many pods there are: want pods", name, ErrDemand)
	}
	groups := 1
	if text.Groups != nil {
		groups = *text.Groups
	}
	d, err := NewDemand(*text.Pods, groups)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	d.podLevel = text.Groups == nil
	for k, entry := range text.Links {
		if err := d.enter(entry); err != nil {
			return nil, fmt.Errorf("%s: entry %d of links, %v: %w", name, k, entry, err)
		}
	}
	return d, nil
}

// enter adds the links of an entry: the group unless it is pod-level, two pods and how many.
func (d *Demand) enter(entry []int) error {
	want := 4
	if d.podLevel {
		entry, want = append([]int{0}, entry...), 3
	}
	if len(entry) != 4 {
		return fmt.Errorf("%w: want %d numbers", ErrDemand, want)
	}
	h, i, j, n := entry[0], entry[1], entry[2], entry[3]
	switch {
	case h < 0 || h >= d.groups:
		return fmt.Errorf("%w: there is no group %d: want 0 to %d", ErrDemand, h, d.groups-1)
	case min(i, j) < 0 || max(i, j) >= d.pods:
		return fmt.Errorf("%w: there are no pods %d and %d: want 0 to %d", ErrDemand, i, j, d.pods-1)
	case i == j:
		return fmt.Errorf("%w: it is within pod %d: want two pods", ErrDemand, i)
	case n < 0 || n > MaxPorts-d.At(h, i, j):
		return fmt.Errorf("%w: pods %d and %d have %d links: want 0 to %d together", ErrDemand, i, j, n, MaxPorts)
	}
	d.group(h)[i*d.pods+j] += int32(n)
	d.group(h)[j*d.pods+i] += int32(n)
	return nil
}

// parseMatrices reads a matrix, or a list of them.
func parseMatrices(data []byte, name string) (*Demand, error) {
	brackets := bytes.Map(func(r rune) rune {
		if bytes.ContainsRune([]byte(" \t\r\n"), r) {
			return -1
		}
		return r
	}, data[:min(len(data), 4096)])
	var matrices [][][]int
	var err error
	if bytes.HasPrefix(brackets, []byte("[[[")) {
		err = decode(data, &matrices, name, ErrDemand)
	} else {
		matrices = make([][][]int, 1)
		err = decode(data, &matrices[0], name, ErrDemand)
	}
	if err != nil {
		return nil, err
	}
	d, err := DemandOf(matrices...)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	d.podLevel = !bytes.HasPrefix(brackets, []byte("[[["))
	return d, nil
}

// csvLine is what a line of CSV says.
type csvLine struct {
	number int
	values []int
}

// parseCSV reads lines of three or four numbers.
func parseCSV(data []byte, name string) (*Demand, error) {
	lines, columns, err := csvLines(data, name)
	if err != nil {
		return nil, err
	}
	pods, groups := 0, 1
	for _, l := range lines {
		k := columns - 3
		pods = max(pods, l.values[k]+1, l.values[k+1]+1)
		if k == 1 {
			groups = max(groups, l.values[0]+1)
		}
	}
	if len(lines) == 0 {
		return nil, fmt.Errorf("%s: %w: there is no line of links", name, ErrDemand)
	}
	d, err := NewDemand(pods, groups)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	d.podLevel = columns == 3
	for _, l := range lines {
		if err := d.enter(l.values); err != nil {
			return nil, fmt.Errorf("%s:%d: %w", name, l.number, err)
		}
	}
	return d, nil
}

// csvLines reads the numbers of all lines, as many on each.
func csvLines(data []byte, name string) (lines []csvLine, columns int, err error) {
	number := 0
	for text := range bytes.Lines(data) {
		number++
		text = bytes.TrimSpace(text)
		if len(text) == 0 || text[0] == '#' {
			continue
		}
		values, bad := csvValues(text)
		if header := csvHeader(text); header > 0 && columns == 0 {
			columns = header
			continue
		}
		switch {
		case bad != nil:
			return nil, 0, fmt.Errorf("%s:%d: %w: %.40q: want whole numbers from 0 on: group,pod,pod,links or pod,pod,links",
				name, number, ErrDemand, bad)
		case columns == 0 && (len(values) == 3 || len(values) == 4):
			columns = len(values)
		case len(values) != columns:
			return nil, 0, fmt.Errorf("%s:%d: %w: %s: want group,pod,pod,links or pod,pod,links, and as many on every line",
				name, number, ErrDemand, natural.Count(len(values), "number"))
		}
		lines = append(lines, csvLine{number, values})
	}
	return lines, columns, nil
}

// csvHeader returns how many columns a header has, or 0 if it is none.
func csvHeader(text []byte) int {
	switch strings.ReplaceAll(strings.ToLower(string(text)), " ", "") {
	case "group,pod,pod,links":
		return 4
	case "pod,pod,links":
		return 3
	}
	return 0
}

// csvValues reads the numbers of a line, or returns what is no number.
func csvValues(text []byte) (values []int, bad []byte) {
	for field := range bytes.SplitSeq(text, []byte(",")) {
		field = bytes.TrimSpace(field)
		n, err := strconv.ParseUint(string(field), 10, 31)
		if err != nil {
			return nil, append([]byte{}, field...)
		}
		values = append(values, int(n))
	}
	return values, nil
}
