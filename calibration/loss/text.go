package loss

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/ocslab/ocslab/internal/natural"
	"github.com/ocslab/ocslab/ocs"
)

// TextOptions say how a map is written for people.
type TextOptions struct {
	Width  int  // columns of the terminal; 0 is 80
	Colour bool // 256 colours may be used; otherwise characters stand for losses
	Flags  int  // how many flags are written out; 0 is 20
}

// Text writes a summary, what is wrong, and the map as a picture of blocks. More ports
// than fit are put together in blocks of the worst path of each, which is said. Errors are those of w.
func (m *Map) Text(w io.Writer, flags []Flag, opt TextOptions) error {
	if opt.Width <= 0 {
		opt.Width = 80
	}
	if opt.Flags <= 0 {
		opt.Flags = 20
	}
	out := bufio.NewWriter(w)
	m.summary(out, opt.Width)
	if len(m.cells) > 0 {
		fmt.Fprintln(out)
		m.picture(out, flags, opt)
	}
	if len(flags) > 0 {
		fmt.Fprintln(out)
	}
	for i, f := range flags {
		if i == opt.Flags {
			fmt.Fprintf(out, "! and %d more\n", len(flags)-i)
			break
		}
		fmt.Fprintf(out, "! %s\n", strings.TrimPrefix(natural.Wrap(f.Text, opt.Width-2, "  "), "  "))
		fmt.Fprintln(out, natural.Wrap(f.Do, opt.Width-4, "    "))
	}
	return out.Flush()
}

// Text writes a stored map as [Map.Text] does, with what [Map.Analyze] finds in it by the
// floor that it was kept with. An error says that
// data is no map, or is of w.
func Text(w io.Writer, data json.RawMessage, width int) error {
	var m Map
	if err := json.Unmarshal(data, &m); err != nil {
		return err
	}
	return m.Text(w, m.Analyze(Limits{Floor: m.Floor}), TextOptions{Width: width})
}

// summary writes what was measured, and how well.
func (m *Map) summary(out io.Writer, width int) {
	para := func(format string, args ...any) {
		fmt.Fprintln(out, natural.Wrap(fmt.Sprintf(format, args...), width, ""))
	}
	all := m.losses()
	n := len(all)
	para("%d x %d ports, %s in %s, %s each, in %v", len(m.Ingress), len(m.Egress), natural.Count(n, "path"),
		natural.Count(m.Maps, "map"), natural.Count(m.Readings, "reading"), m.Took.Round(100*time.Millisecond))
	if n > 0 {
		para("loss %.2f dB in the median, %.2f to %.2f; ±%.2f dB, and ±%.2f when compared over time",
			medianOf(all), all[0], all[len(all)-1], float64(m.U()), float64(m.RelativeU()))
		parts := []string{fmt.Sprintf("noise %.3f dB a reading", float64(m.Noise))}
		if m.Repeated > 0 {
			parts = append(parts, fmt.Sprintf("repeatability %.3f dB, of %s made again", float64(m.Repeatability), natural.Count(m.Repeated, "path")))
		} else {
			parts = append(parts, "repeatability not known, since no path was made again")
		}
		parts = append(parts, fmt.Sprintf("monitors ±%.2f dB", float64(m.Accuracy)))
		if m.ReferenceU > 0 {
			parts = append(parts, fmt.Sprintf("reference ±%.2f dB, which nothing watched meanwhile", float64(m.ReferenceU)))
		}
		para("that is (k = 2) of: %s", strings.Join(parts, "; "))
	}
	for _, s := range []State{Dark, NoReference, Unmeasured} {
		if k := m.Count(s); k > 0 {
			para("%s", map[State]string{
				Dark:        fmt.Sprintf("%s dark", are(k)),
				NoReference: fmt.Sprintf("%s without a reference", are(k)),
				Unmeasured:  fmt.Sprintf("%s not measured", are(k)),
			}[s])
		}
	}
}

func are(n int) string {
	if n == 1 {
		return "1 path is"
	}
	return fmt.Sprintf("%d paths are", n)
}

// ramp are characters for steps from good to bad, and heat are colours of a terminal with 256
// of them, from viridis, which those who see few colours read well.
var (
	ramp = []string{".", ":", "-", "=", "+", "*", "#", "%"}
	heat = []int{54, 61, 31, 30, 35, 71, 148, 226}
)

// Characters for paths that are no number. A block shows the worst of its paths, which are in
// this order.
const (
	charDark        = "X"
	charNoReference = "?"
	charUnmeasured  = " "
)

// picture draws the map in characters.
func (m *Map) picture(out io.Writer, flags []Flag, opt TextOptions) {
	label := len(fmt.Sprint(m.Ingress[len(m.Ingress)-1]))
	room := max(opt.Width-label-3, 8) // a blank on either side, and a mark
	wide := 2
	if wide*len(m.Egress) > room {
		wide = 1
	}
	block := 1
	for (len(m.Egress)+block-1)/block*wide > room {
		block++
	}
	sc := m.scale(len(ramp))
	marked := map[string]map[ocs.Port]bool{"ingress": {}, "egress": {}}
	spots := map[ocs.CrossConnect]bool{}
	for _, f := range flags {
		if f.Port != 0 {
			marked[f.Side][f.Port] = true
		}
		if f.Path != (ocs.CrossConnect{}) {
			spots[f.Path] = true
		}
	}
	columns := (len(m.Egress) + block - 1) / block
	fmt.Fprintf(out, "%*s %s\n", label, "", m.ruler(columns, block, wide))
	for i := 0; i < len(m.Ingress); i += block {
		var line strings.Builder
		fmt.Fprintf(&line, "%*d ", label, m.Ingress[i])
		for j := 0; j < len(m.Egress); j += block {
			line.WriteString(m.block(i, j, block, wide, sc, spots, opt.Colour))
		}
		if slices.ContainsFunc(m.Ingress[i:min(i+block, len(m.Ingress))], func(p ocs.Port) bool { return marked["ingress"][p] }) {
			line.WriteString(" <")
		}
		fmt.Fprintln(out, strings.TrimRight(line.String(), " "))
	}
	var below strings.Builder
	for j := 0; j < len(m.Egress); j += block {
		c := " "
		if slices.ContainsFunc(m.Egress[j:min(j+block, len(m.Egress))], func(p ocs.Port) bool { return marked["egress"][p] }) {
			c = "^"
		}
		below.WriteString(strings.Repeat(c, wide))
	}
	if text := strings.TrimRight(below.String(), " "); text != "" {
		fmt.Fprintf(out, "%*s %s\n", label, "", text)
	}
	m.legend(out, sc, block, opt)
}

// ruler is the line with the numbers of egress ports.
func (m *Map) ruler(columns, block, wide int) string {
	line := []byte(strings.Repeat(" ", columns*wide+8))
	end := 0
	for k := range columns {
		text := fmt.Sprint(m.Egress[k*block])
		if k*wide >= end && (k == 0 || k%4 == 0) {
			copy(line[k*wide:], text)
			end = k*wide + len(text) + 1
		}
	}
	return strings.TrimRight(string(line), " ")
}

// block draws the worst of the paths that are drawn as one.
func (m *Map) block(row, column, size, wide int, sc scale, spots map[ocs.CrossConnect]bool, colour bool) string {
	worst := ocs.DB(math.Inf(-1))
	text, spot := "", false
	for i := row; i < min(row+size, len(m.Ingress)); i++ {
		for j := column; j < min(column+size, len(m.Egress)); j++ {
			c := m.At(i, j)
			spot = spot || spots[m.Path(i, j)]
			switch {
			case c.State == Dark:
				text = charDark
			case c.State == NoReference && text != charDark:
				text = charNoReference
			case c.State == Measured:
				worst = max(worst, c.Loss)
			}
		}
	}
	k := 0
	switch {
	case text != "":
	case math.IsInf(float64(worst), -1):
		return strings.Repeat(charUnmeasured, wide)
	default:
		k = sc.of(worst)
		if text = ramp[k]; !colour {
			break
		}
		mark := " "
		if spot {
			mark = "!"
		}
		ink := 231 // white
		if k > 4 {
			ink = 16
		}
		return fmt.Sprintf("\x1b[38;5;%d;48;5;%dm%s\x1b[0m", ink, heat[k], mark+strings.Repeat(" ", wide-1))
	}
	if spot && wide > 1 {
		return text + "!"
	}
	return strings.Repeat(text, wide)
}

// legend says what the characters or colours stand for.
func (m *Map) legend(out io.Writer, sc scale, block int, opt TextOptions) {
	var line strings.Builder
	line.WriteString("dB:")
	for k, c := range ramp {
		if opt.Colour {
			c = fmt.Sprintf("\x1b[48;5;%dm  \x1b[0m", heat[k])
		}
		fmt.Fprintf(&line, " %s %.2f", c, sc.from(k))
	}
	fmt.Fprintln(out, line.String()+" or more")
	var words []string
	for _, s := range []struct {
		State
		text string
	}{{Dark, charDark + " dark"}, {NoReference, charNoReference + " no reference"}, {Unmeasured, "blank: not measured"}} {
		if m.Count(s.State) > 0 {
			words = append(words, s.text)
		}
	}
	words = append(words, "rows: ingress", "columns: egress")
	if block > 1 {
		words = append(words, fmt.Sprintf("each block is the worst of %d x %d paths", block, block))
	}
	fmt.Fprintln(out, natural.Wrap(strings.Join(words, "; "), opt.Width, ""))
}
