package svg_test

import (
	"encoding/xml"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/ocslab/ocslab/internal/svg"
)

// drawn returns a drawing of everything there is, with a text of others.
func drawn(w io.Writer, text string) error {
	d := svg.New(w, 200, 100.25, text)
	d.Text(1, 2, `font-size="10"`, text)
	d.Markup(1, 2, "", `<tspan font-weight="bold">b</tspan>`)
	d.Turned(3, 4, text)
	d.Line(0, 0, 10, 10, svg.Faint, 1, "")
	d.Line(0, 0, 10, 10, svg.Bad, 1, "4 2")
	d.Dot(5, 5, 2, svg.Ink)
	return d.End()
}

// elements fails when s is no XML, and counts elements by name.
func elements(t *testing.T, s string) map[string]int {
	t.Helper()
	count := map[string]int{}
	for in := xml.NewDecoder(strings.NewReader(s)); ; {
		token, err := in.Token()
		if errors.Is(err, io.EOF) {
			return count
		}
		if err != nil {
			t.Fatalf("%v in %s", err, s)
		}
		if e, ok := token.(xml.StartElement); ok {
			count[e.Name.Local]++
		}
	}
}

// Names and texts of others stay text, whatever is in them.
func FuzzDrawing(f *testing.F) {
	for _, s := range []string{"", "rail0", `<script>"&'`, "]]>", "\x00\xff", "← ingress"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		var b strings.Builder
		if err := drawn(&b, text); err != nil {
			t.Fatal(err)
		}
		count := elements(t, b.String())
		for name, want := range map[string]int{"svg": 1, "title": 1, "text": 3, "tspan": 1, "line": 2, "circle": 1, "rect": 1} {
			if count[name] != want {
				t.Errorf("%d elements %s, want %d: %s", count[name], name, want, b.String())
			}
		}
		if len(count) != 7 {
			t.Errorf("elements %v", count)
		}
	})
}

func TestDrawing(t *testing.T) {
	var b strings.Builder
	if err := drawn(&b, "a"); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`viewBox="0 0 200 100.2"`, `<title>a</title>`, `stroke-dasharray="4 2"`, `rotate(-90)`} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("no %s in %s", want, b.String())
		}
	}
	if n := strings.Count(b.String(), "stroke-dasharray"); n != 1 {
		t.Errorf("%d lines are dashed, want 1", n)
	}
}

// full takes no more.
type full struct{}

var errFull = errors.New("no space left on device")

func (full) Write([]byte) (int, error) { return 0, errFull }

func TestDrawing_Full(t *testing.T) {
	if err := drawn(full{}, "a"); !errors.Is(err, errFull) {
		t.Errorf("error %v, want %v", err, errFull)
	}
}

func TestPx(t *testing.T) {
	for x, want := range map[float64]string{0: "0", 1: "1", 1.04: "1", 1.25: "1.2", -3.5: "-3.5", 100: "100"} {
		if got := svg.Px(x); got != want {
			t.Errorf("Px(%v) = %q, want %q", x, got, want)
		}
	}
}
