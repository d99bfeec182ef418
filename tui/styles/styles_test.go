package styles_test

import (
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/charmbracelet/x/ansi"
	"github.com/muesli/termenv"
	"pgregory.net/rapid"

	"github.com/ocslab/ocslab/tui/canvas"
	"github.com/ocslab/ocslab/tui/styles"
)

func theme(t testing.TB, name string) styles.Theme {
	th, ok := styles.ByName(name)
	if !ok {
		t.Fatalf("no theme %s", name)
	}
	return th
}

func drawn(styleds ...canvas.Style) *canvas.Canvas {
	c := canvas.New(3*len(styleds), 1)
	for i, s := range styleds {
		c.Area().Text(3*i, 0, "ab", s)
	}
	return c
}

func TestWriter_Profiles(t *testing.T) {
	c := drawn(canvas.S(canvas.Bad), canvas.S(canvas.Text), canvas.S(canvas.Text, canvas.Cursor))
	for _, test := range []struct {
		profile termenv.Profile
		want    string
	}{
		{termenv.TrueColor, "\x1b[1;38;2;255;107;107mab\x1b[0m ab \x1b[7;38;2;95;179;255mab\x1b[0m"},
		{termenv.ANSI256, "\x1b[1;38;5;203mab\x1b[0m ab \x1b[7;38;5;75mab\x1b[0m"},
		{termenv.ANSI, "\x1b[1;91mab\x1b[0m ab \x1b[7;94mab\x1b[0m"},
		{termenv.Ascii, "\x1b[1;4mab\x1b[0m ab \x1b[7mab\x1b[0m"},
	} {
		w := styles.Writer{Theme: theme(t, "dark"), Profile: test.profile}
		if got := w.Render(c); got != test.want {
			t.Errorf("%s: %q, want %q", test.profile.Name(), got, test.want)
		}
	}
}

func TestNewWriter(t *testing.T) {
	for _, test := range []struct {
		env   map[string]string
		ascii bool
	}{
		{map[string]string{}, false},
		{map[string]string{"LANG": "C"}, true},
		{map[string]string{"LANG": "de_DE.UTF-8"}, false},
		{map[string]string{"LANG": "de_DE.UTF-8", "LC_ALL": "POSIX"}, true},
		{map[string]string{"LC_CTYPE": "C.utf8", "LANG": "C"}, false},
	} {
		w := styles.NewWriter(theme(t, "dark"), func(name string) string { return test.env[name] })
		if w.ASCII != test.ascii {
			t.Errorf("%v: ASCII = %v", test.env, w.ASCII)
		}
	}
	w := styles.NewWriter(theme(t, "dark"), func(name string) string {
		if name == "NO_COLOR" {
			return "1"
		}
		return ""
	})
	if got := w.Render(drawn(canvas.S(canvas.Good))); strings.Contains(got, "38;") || strings.Contains(got, "\x1b[3") {
		t.Errorf("NO_COLOR: %q has a colour", got)
	}
}

// A change of theme or profile takes effect at once.
func TestWriter_Change(t *testing.T) {
	w := styles.Writer{Theme: theme(t, "dark"), Profile: termenv.TrueColor}
	c := drawn(canvas.S(canvas.Good))
	dark := w.Render(c)
	w.Theme = theme(t, "light")
	light := w.Render(c)
	w.Profile = termenv.Ascii
	if dark == light || w.Render(c) != "ab" {
		t.Errorf("dark %q, light %q, none %q", dark, light, w.Render(c))
	}
}

// Without colours, roles that must not be mistaken for each other differ in their attributes.
func TestThemes_Plain(t *testing.T) {
	w := styles.Writer{Theme: theme(t, "mono"), Profile: termenv.TrueColor}
	bad, text, cursor := w.Render(drawn(canvas.S(canvas.Bad))), w.Render(drawn(canvas.S(canvas.Text))), w.Render(drawn(canvas.S(canvas.Text, canvas.Cursor)))
	if bad == text || cursor == text || bad == cursor {
		t.Errorf("bad %q, text %q, cursor %q", bad, text, cursor)
	}
	for _, s := range []string{bad, text, cursor} {
		if strings.Contains(s, "38;") || strings.Contains(s, "48;") {
			t.Errorf("mono: %q has a colour", s)
		}
	}
}

// What is written is the text, as many lines as the canvas has, each as wide at most, and
// nothing stays switched on at the end of a line.
func TestWriter_Render(t *testing.T) {
	runes := rapid.RuneFrom([]rune("ab ─│╭█░⣿日…±µ°●◌→"))
	rapid.Check(t, func(t *rapid.T) {
		w, h := rapid.IntRange(0, 40).Draw(t, "w"), rapid.IntRange(1, 8).Draw(t, "h")
		c := canvas.New(w, h)
		for range rapid.IntRange(0, 12).Draw(t, "texts") {
			s := canvas.Style{Role: canvas.Role(rapid.IntRange(0, int(canvas.Roles)-1).Draw(t, "role")), Attr: canvas.Attr(rapid.IntRange(0, 63).Draw(t, "attr"))}
			c.Area().Text(rapid.IntRange(0, 40).Draw(t, "x"), rapid.IntRange(0, 8).Draw(t, "y"), rapid.StringOfN(runes, 0, 9, -1).Draw(t, "text"), s)
		}
		wr := styles.Writer{
			Theme:   rapid.SampledFrom(styles.Themes()).Draw(t, "theme"),
			Profile: rapid.SampledFrom([]termenv.Profile{termenv.TrueColor, termenv.ANSI256, termenv.ANSI, termenv.Ascii}).Draw(t, "profile"),
			ASCII:   rapid.Bool().Draw(t, "ascii"),
		}
		got := wr.Render(c)
		lines := strings.Split(got, "\n")
		if len(lines) != h {
			t.Fatalf("%d lines, want %d", len(lines), h)
		}
		for y, l := range lines {
			if ansi.StringWidth(l) > w && !wr.ASCII { // a wide character becomes a "?" of one column
				t.Fatalf("line %d is %d wide, want at most %d: %q", y, ansi.StringWidth(l), w, l)
			}
			if i := strings.LastIndex(l, "\x1b["); i >= 0 && !strings.HasPrefix(l[i:], "\x1b[0m") {
				t.Fatalf("line %d ends switched on: %q", y, l)
			}
			if wr.ASCII {
				for _, r := range l {
					if r >= 0x80 {
						t.Fatalf("%q in ASCII", r)
					}
				}
				continue
			}
			want := strings.Split(c.String(), "\n")[y]
			if strings.TrimRight(ansi.Strip(l), " ") != want {
				t.Fatalf("line %d: %q, want %q", y, ansi.Strip(l), want)
			}
		}
	})
}

// Every character that the UI draws has one of ASCII that is not "?".
func TestASCII(t *testing.T) {
	for _, r := range "─│╭╮╰╯├┤┬┴┼█▀▄▌▐░▒▓▁▂▃▅▆▇▏▎▍▉⣿⡇·•…●○◌◆◇▲▼▶▸▹◀→←↑↓⇄×±µ°✓✗⚠≤≥≈−–" {
		if styles.ASCII(r) == '?' {
			t.Errorf("%q has no character of ASCII", r)
		}
	}
	for r := rune(0); r < 0x80; r++ {
		if styles.ASCII(r) != r {
			t.Errorf("%q became %q", r, styles.ASCII(r))
		}
	}
}

func BenchmarkRender(b *testing.B) {
	c := canvas.New(200, 60)
	for y := range 60 {
		for x := range 200 {
			c.Area().Set(x, y, '█', canvas.Style{Role: canvas.Role((x/5 + y) % int(canvas.Roles))})
		}
	}
	w := styles.Writer{Theme: theme(b, "dark"), Profile: termenv.TrueColor}
	b.ReportAllocs()
	for b.Loop() {
		w.Render(c)
	}
}

// luminance is how bright a colour "#rrggbb" is, by the definition of WCAG 2.
func luminance(t *testing.T, colour string) float64 {
	t.Helper()
	var rgb [3]float64
	for i := range rgb {
		n, err := strconv.ParseUint(colour[1+2*i:3+2*i], 16, 8)
		if err != nil {
			t.Fatal(err)
		}
		if rgb[i] = float64(n) / 255; rgb[i] <= 0.03928 {
			rgb[i] /= 12.92
		} else {
			rgb[i] = math.Pow((rgb[i]+0.055)/1.055, 2.4)
		}
	}
	return 0.2126*rgb[0] + 0.7152*rgb[1] + 0.0722*rgb[2]
}

// What is written can be read: text has a contrast of 4.5:1 to a black or white background, and
// to one that is nearly so, as most terminals have, and frames have 3:1.
func TestThemes_Contrast(t *testing.T) {
	colour := regexp.MustCompile("([34])8;2;([0-9]+);([0-9]+);([0-9]+)")
	for name, backgrounds := range map[string][]string{
		"dark": {"#000000", "#11151c"}, "light": {"#ffffff", "#fafafa"}, "contrast": {"#000000", "#11151c"},
	} {
		w := styles.Writer{Theme: theme(t, name), Profile: termenv.TrueColor}
		for role := range canvas.Roles {
			fg, bg := "", ""
			for _, m := range colour.FindAllStringSubmatch(w.Render(drawn(canvas.S(role))), -1) {
				var hex strings.Builder
				hex.WriteString("#")
				for _, x := range m[2:] {
					n, _ := strconv.Atoi(x)
					fmt.Fprintf(&hex, "%02x", n)
				}
				if m[1] == "3" {
					fg = hex.String()
				} else {
					bg = hex.String()
				}
			}
			if fg == "" { // the terminal's own
				continue
			}
			least := 4.5
			if role == canvas.Frame {
				least = 3
			}
			for _, behind := range backgrounds {
				if bg != "" {
					behind = bg
				}
				a, b := luminance(t, fg), luminance(t, behind)
				if got := (max(a, b) + 0.05) / (min(a, b) + 0.05); got < least {
					t.Errorf("%s: role %d: %s on %s has a contrast of %.2f, less than %.1f", name, role, fg, behind, got, least)
				}
			}
		}
	}
}

// What stands for different things in one picture is different in ASCII, too: the legends of
// the patch field and of the waterfall.
func TestASCII_Apart(t *testing.T) {
	for _, legend := range []string{"●○◆×!+▪▫·─│", "█░▒━─◆│"} {
		of := map[rune]rune{}
		for _, r := range legend {
			a := styles.ASCII(r)
			if was, ok := of[a]; ok {
				t.Errorf("%q and %q are both %q", was, r, a)
			}
			of[a] = r
		}
	}
}
