package termdoc_test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode"

	"github.com/google/go-cmp/cmp"
	"github.com/mattn/go-runewidth"
	"pgregory.net/rapid"

	"github.com/ocslab/ocslab/internal/termdoc"
)

var update = flag.Bool("update", false, "write the golden files")

func TestRender_Golden(t *testing.T) {
	md, err := os.ReadFile("testdata/all.md")
	if err != nil {
		t.Fatal(err)
	}
	for name, opt := range map[string]termdoc.Options{
		"60": {Width: 60}, "80": {}, "120": {Width: 120}, "80-color": {Color: true},
	} {
		got := termdoc.Render(md, opt)
		golden := filepath.Join("testdata", name+".golden")
		if *update {
			if err := os.WriteFile(golden, []byte(got), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(golden)
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(string(want), got); d != "" {
			t.Errorf("%s (-want +got):\n%s", golden, d)
		}
	}
}

var escapes = regexp.MustCompile("\x1b\\[[0-9;]*m")

// Colour changes nothing but marks: the same words are there, and every sequence is closed.
func TestRender_Color(t *testing.T) {
	md, err := os.ReadFile("testdata/all.md")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(termdoc.Render(md, termdoc.Options{Color: true})) {
		if n, ends := len(escapes.FindAllString(line, -1)), strings.Count(line, "\x1b[0m"); n != 2*ends {
			t.Errorf("%d sequences and %d ends: %q", n, ends, line)
		}
	}
}

// What controls a terminal does not come through, wherever it stands.
func TestRender_Controls(t *testing.T) {
	const evil = "a\x1b[31mred\x07 \u202egnp.exe\u202c \u009b2J \u200e \u200f \u2066 \u2069 \u061c \u2028 \u200b \ufeff \U000e0041 \x7f \x80 \u009f"
	for _, form := range []string{"# %s", "%s", "- %s", "`%s`", "```\n%s\n```", "    %s", "> %s", "| a |\n| - |\n| %s |", "[%s](%[1]s)", "<!-- %s -->", "<b>%s</b>"} {
		got := termdoc.Render(fmt.Appendf(nil, form, evil), termdoc.Options{})
		for _, c := range got {
			if c != '\n' && (unicode.In(c, unicode.Cc, unicode.Cf, unicode.Zl, unicode.Zp) || c == unicode.ReplacementChar) {
				t.Errorf("%q: %U comes through: %q", form, c, got)
			}
		}
		if !strings.Contains(got, "red") {
			t.Errorf("%q: the text is gone: %q", form, got)
		}
	}
}

// What is seen stays, right beside what is not.
func TestRender_Kept(t *testing.T) {
	const seen = "\u00a1 \u00ac\u00ae \u0430 ~ \u2030 \u2010 \u200d \ufffc"
	want := strings.TrimSuffix(seen, " \ufffc") + "\n"
	if got := termdoc.Render([]byte(seen), termdoc.Options{}); got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// Quotations and lists may be deeper than the page is wide.
func TestRender_Deep(t *testing.T) {
	for _, in := range []string{"> ", "- ", "1. ", "> - "} {
		for _, text := range []string{"---", "***", "# heading", "heading\n===", "two words", "`code`", "| a | b |\n| - | - |\n| 1 | 2 |", "```\ncode\n```"} {
			deep := strings.ReplaceAll(text, "\n", "\n"+strings.Repeat(in, 60))
			if got := termdoc.Render([]byte(strings.Repeat(in, 60)+deep), termdoc.Options{}); got == "" {
				t.Errorf("%q within 60 of %q: nothing", text, in)
			}
		}
	}
}

func TestRender_Empty(t *testing.T) {
	for _, md := range []string{"", "\n\n", "[a]: b"} {
		if got := termdoc.Render([]byte(md), termdoc.Options{}); got != "" {
			t.Errorf("%q: %q", md, got)
		}
	}
}

// Tables never exceed the width, and no cell of them is lost.
func TestRender_TableProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		columns := rapid.IntRange(1, 6).Draw(t, "columns")
		width := rapid.IntRange(20, 150).Draw(t, "width")
		cell := rapid.StringMatching(`[a-zµ]{1,30}( [a-z0-9]{1,12}){0,12}`)
		var b strings.Builder
		var all []string
		for i := range rapid.IntRange(1, 5).Draw(t, "rows") + 1 {
			for range columns {
				c := cell.Draw(t, "cell")
				b.WriteString("| " + c + " ")
				if i > 0 { // column names are repeated, or not
					all = append(all, c)
				}
			}
			b.WriteString("|\n")
			if i == 0 {
				b.WriteString(strings.Repeat("| --- ", columns) + "|\n")
			}
		}
		got := termdoc.Render([]byte(b.String()), termdoc.Options{Width: width})
		for line := range strings.Lines(got) {
			if n := runewidth.StringWidth(strings.TrimSuffix(line, "\n")); n > width {
				t.Fatalf("%d columns of %d: %q\n%s", n, width, line, got)
			}
		}
		letters := func(s string) map[rune]int {
			m := map[rune]int{}
			for _, c := range s {
				if unicode.IsLetter(c) || unicode.IsDigit(c) {
					m[c]++
				}
			}
			return m
		}
		have := letters(got)
		for c, n := range letters(strings.Join(all, "")) {
			if have[c] < n {
				t.Fatalf("%q is there %d times, want %d at least:\n%s", c, have[c], n, got)
			}
		}
	})
}

func TestHanging(t *testing.T) {
	for _, c := range []struct {
		lead, text string
		width      int
		want       string
	}{
		{"- ", "one two three", 20, "- one two three\n"},
		{"- ", "one two three four five six", 22, "- one two three four\n  five six\n"},
		{"  setting PHY_AUTO_NEG: ", "one two three four", 30, "  setting PHY_AUTO_NEG: one\n    two three four\n"},
	} {
		if got := termdoc.Hanging(c.lead, c.text, c.width); got != c.want {
			t.Errorf("Hanging(%q, %q, %d):\n%q, want\n%q", c.lead, c.text, c.width, got, c.want)
		}
	}
}

// Whatever the document, Render returns, and controls nothing.
func FuzzRender(f *testing.F) {
	md, err := os.ReadFile("testdata/all.md")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(md, 60, false)
	f.Add([]byte("| a |\n|:-:|\n| \\| |\n\n1. - > x\n"), 20, true)
	f.Fuzz(func(t *testing.T, md []byte, width int, color bool) {
		got := termdoc.Render(md, termdoc.Options{Width: width % 200, Color: color})
		for _, c := range escapes.ReplaceAllString(got, "") {
			if c != '\n' && unicode.IsControl(c) {
				t.Fatalf("%U in %q", c, got)
			}
		}
	})
}
