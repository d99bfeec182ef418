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
