package canvas_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"

	"github.com/ocslab/ocslab/tui/canvas"
)

func TestArea_Text(t *testing.T) {
	for _, test := range []struct {
		x          int
		text, want string
		next       int
	}{
		{0, "abc", "abc", 3},
		{3, "abc", "   ab", 6},           // cut off at the right
		{-1, "abc", "bc", 2},             // and at the left
		{0, "日本語", "日本", 6},              // half a character is none
		{1, "日本語", " 日本", 7},             // two columns each
		{0, "a\x1b[1m\n", "a·[1m", 6},    // nothing of a device reaches the terminal as a sequence
		{0, "e\u0301x", "ex", 2},         // no column of its own
		{0, "a\u0085\u009bb", "a··b", 4}, // C1 controls, too
	} {
		c := canvas.New(5, 1)
		next := c.Area().Text(test.x, 0, test.text, canvas.Style{})
		if got := strings.TrimSuffix(c.String(), "\n"); got != test.want || next != test.next {
			t.Errorf("Text(%d, %q) drew %q and returned %d, want %q and %d", test.x, test.text, got, next, test.want, test.next)
		}
	}
}

func TestArea_Text_OverWide(t *testing.T) {
	c := canvas.New(4, 1)
	c.Area().Text(0, 0, "日本", canvas.Style{})
	c.Area().Text(1, 0, "x", canvas.Style{}) // the second half of the first
	if got, want := c.String(), " x本\n"; got != want {
		t.Errorf("drew %q, want %q", got, want)
	}
	c.Area().Text(2, 0, "y", canvas.Style{}) // the first half of the second
	if got, want := c.String(), " xy\n"; got != want {
		t.Errorf("drew %q, want %q", got, want)
	}
}

func TestCanvas_Hit(t *testing.T) {
	c := canvas.New(20, 10)
	a := c.Area()
	a.Sub(0, 0, 20, 10).Zone("all")
	a.Sub(5, 2, 4, 3).Zone("part")
	a.Sub(18, 0, 9, 1).Zone("cut off")
	for _, test := range []struct {
		x, y int
		want any
		dx   int
	}{{0, 0, "all", 0}, {6, 3, "part", 1}, {9, 3, "all", 9}, {19, 0, "cut off", 1}, {20, 0, nil, 0}, {-1, 0, nil, 0}} {
		z, dx, _, ok := c.Hit(test.x, test.y)
		if ok != (test.want != nil) || z.ID != test.want || dx != test.dx {
			t.Errorf("Hit(%d, %d) = %v at %d", test.x, test.y, z.ID, dx)
		}
	}
	a.Modal()
	if _, _, _, ok := c.Hit(6, 3); ok {
		t.Error("a zone behind a window is hit")
	}
}

func TestWrap(t *testing.T) {
	for _, test := range []struct {
		text string
		w    int
		want string
	}{
		{"one two three", 7, "one two|three"},
		{"one\n\ntwo", 7, "one||two"},
		{"abcdefghij k", 4, "abcd|efgh|ij k"},
		{"日本語", 3, "日|本|語"},
		{"日本語", 1, "日|本|語"}, // better too wide than for ever
	} {
		if got := strings.Join(canvas.Wrap(test.text, test.w), "|"); got != test.want {
			t.Errorf("Wrap(%q, %d) = %q, want %q", test.text, test.w, got, test.want)
		}
	}
	if canvas.Wrap("text", 0) != nil {
		t.Error("lines of no width")
	}
}

// Whatever is drawn in an area changes nothing outside of it, and every line stays as wide
// as the canvas.
func TestArea_Inside(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w, h := rapid.IntRange(0, 30).Draw(t, "w"), rapid.IntRange(0, 10).Draw(t, "h")
		c := canvas.New(w, h)
		c.Area().Fill('.', canvas.Style{})
		n := func(name string) int { return rapid.IntRange(-3, 33).Draw(t, name) }
		x, y, aw, ah := n("x"), n("y"), n("aw"), n("ah")
		a := c.Area().Sub(x, y, aw, ah)
		text := rapid.StringOf(rapid.RuneFrom([]rune("ab 日\x1b\u0301é─█"))).Draw(t, "text")
		a.Text(n("tx"), n("ty"), text, canvas.S(canvas.Bad))
		a.TextRight(n("rx"), n("ry"), text, canvas.S(canvas.Bad))
		a.Fit(n("fx"), n("fy"), n("fw"), text, canvas.S(canvas.Bad))
		a.Box(text, canvas.S(canvas.Frame)).Rule(n("rule"), text, canvas.S(canvas.Frame))
		a.Add(canvas.Bold)
		a.Zone("zone")
		for cy := range h {
			columns := 0
			for cx, cell := range c.Row(cy) {
				inside := cx >= x && cy >= y && cx < x+aw && cy < y+ah
				if !inside && cell != (canvas.Cell{Rune: '.'}) {
					t.Fatalf("%d,%d was changed to %q", cx, cy, cell.Rune)
				}
				if _, _, _, hit := c.Hit(cx, cy); hit && !inside {
					t.Fatalf("%d,%d is in the zone", cx, cy)
				}
				if cell.Rune != 0 {
					columns += canvas.Width(string(cell.Rune))
				}
			}
			if columns != w {
				t.Fatalf("line %d is %d columns wide, want %d", cy, columns, w)
			}
		}
	})
}

func TestCut(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text, w := rapid.String().Draw(t, "text"), rapid.IntRange(-1, 20).Draw(t, "w")
		got := canvas.Cut(text, w)
		if canvas.Width(got) > max(w, 0) {
			t.Fatalf("Cut(%q, %d) = %q is %d wide", text, w, got, canvas.Width(got))
		}
		if utf8.ValidString(text) && !strings.HasPrefix(text, strings.TrimSuffix(got, "…")) {
			t.Fatalf("Cut(%q, %d) = %q", text, w, got)
		}
	})
}

// The title of a box is easier to read than its frame; what a box says by its role, its title
// says, too.
func TestArea_Box_Title(t *testing.T) {
	for role, want := range map[canvas.Role]canvas.Role{canvas.Frame: canvas.Title, canvas.Bad: canvas.Bad, canvas.FrameRO: canvas.FrameRO} {
		c := canvas.New(12, 3)
		c.Area().Box("title", canvas.S(role))
		if got := c.At(4, 0).Style.Role; got != want {
			t.Errorf("box in role %d: title in role %d, want %d", role, got, want)
		}
		if got := c.At(0, 0).Style.Role; got != role {
			t.Errorf("box in role %d: frame in role %d", role, got)
		}
	}
}
