package main

import (
	"strings"
	"testing"
)

func TestDraw(t *testing.T) {
	var b strings.Builder
	in := "a\x1b[1;38;5;196mred\x1b[0m b\n\x1b[7mrev\x1b[27m \x1b[38;2;1;2;3mx\x1b[m│█⣿<&\n\x1b[?25hq\x1b["
	if err := draw(&b, strings.NewReader(in), "go run x"); err != nil {
		t.Fatal(err)
	}
	svg := b.String()
	for _, want := range []string{
		`fill="#7ee787"`, "$ go run x",
		`fill="#ff0000" font-weight="bold"`, ">red</text>",
		`fill="` + background + `"`, // of what is reversed
		`fill="#010203"`, "&lt;&amp;", "<circle", "M", ">q</text>",
	} {
		if !strings.Contains(svg, want) {
			t.Errorf("no %s in\n%s", want, svg)
		}
	}
	if strings.Contains(svg, "\x1b") {
		t.Error("an escape sequence is left")
	}
}

// Lines join at the sides of their characters, and blocks and dots are drawn as shapes: a font would
// leave gaps.
func TestShape(t *testing.T) {
	for _, r := range "─│┼┬┴├┤┌┐└┘╴╵╶╷━┄┊╭╮╰╯█▀▄▌▐▁▇▏░▒▓⣿⠁" {
		var b strings.Builder
		if err := draw(&b, strings.NewReader("a"+string(r)+"b\n"), ""); err != nil {
			t.Fatal(err)
		}
		if strings.ContainsRune(b.String(), r) {
			t.Errorf("%q is drawn by a font", r)
		}
	}
	for r, want := range map[rune]string{
		'┬': `d="M20.2 24.5L24.4 24.5M20.2 24.5L20.2 33.0M20.2 24.5L16.0 24.5"`,
		'▄': `<rect x="16.0" y="24.5" width="8.4" height="8.5"`,
		'▌': `<rect x="16.0" y="16.0" width="4.2" height="17.0"`,
	} {
		var b strings.Builder
		if err := draw(&b, strings.NewReader("\x1b[m"+string(r)+"\n"), ""); err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(b.String(), want) {
			t.Errorf("%q: no %s in\n%s", r, want, b.String())
		}
	}
}

func TestOnWhite(t *testing.T) {
	b, f, c := background, foreground, base
	t.Cleanup(func() { background, foreground, base = b, f, c })
	onWhite()
	var out strings.Builder
	if err := draw(&out, strings.NewReader("a\x1b[33mb\n"), ""); err != nil {
		t.Fatal(err)
	}
	if svg := out.String(); !strings.Contains(svg, `rx="8" fill="#ffffff"`) || strings.Contains(svg, `fill="`+f+`"`) || strings.Contains(svg, c[3]) {
		t.Errorf("not on white:\n%s", svg)
	}
}
