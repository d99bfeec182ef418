// Command termsvg draws the text of a terminal as an SVG picture. It is run by
// hand to make the pictures of the documentation from real output:
//
//	ocslab demo | go run ./docs/termsvg -prompt 'go run ./cmd/ocslab demo' > docs/demo.svg
package main

import (
	"bufio"
	"encoding/xml"
	"flag"
	"fmt"
	"io"
	"os"
	"strings"
	"unicode/utf8"
)

const (
	charWidth  = 8.4 // of a 14 px monospace font
	lineHeight = 19
	margin     = 16
)

func main() {
	prompt := flag.String("prompt", "", "command line to show above the text")
	flag.Parse()
	if err := draw(os.Stdout, os.Stdin, *prompt); err != nil {
		fmt.Fprintln(os.Stderr, "termsvg:", err)
		os.Exit(1)
	}
}

func draw(w io.Writer, r io.Reader, prompt string) error {
	var lines []string
	in := bufio.NewScanner(r)
	for in.Scan() {
		lines = append(lines, strings.ReplaceAll(in.Text(), "\t", "    "))
	}
	if err := in.Err(); err != nil {
		return err
	}
	columns := utf8.RuneCountInString(prompt) + 2
	for _, l := range lines {
		columns = max(columns, utf8.RuneCountInString(l))
	}
	rows := len(lines)
	if prompt != "" {
		rows++
	}
	width, height := float64(columns)*charWidth+2*margin, rows*lineHeight+2*margin
	out := bufio.NewWriter(w)
	fmt.Fprintf(out, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %.0f %d" font-family="ui-monospace,Menlo,Consolas,'DejaVu Sans Mono',monospace" font-size="14">`+"\n", width, height)
	fmt.Fprintf(out, `<rect width="100%%" height="100%%" rx="8" fill="#11151c"/>`+"\n")
	y := margin + 14
	line := func(color, text string) {
		// textLength keeps the columns in line whatever font there is.
		if n := utf8.RuneCountInString(text); n > 0 {
			fmt.Fprintf(out, `<text x="%d" y="%d" fill="%s" xml:space="preserve" textLength="%.1f" lengthAdjust="spacingAndGlyphs">`, margin, y, color, float64(n)*charWidth)
			xml.EscapeText(out, []byte(text))
			fmt.Fprint(out, "</text>\n")
		}
		y += lineHeight
	}
	if prompt != "" {
		line("#7ee787", "$ "+prompt)
	}
	for _, l := range lines {
		line("#d7dde6", l)
	}
	fmt.Fprintln(out, "</svg>")
	return out.Flush()
}
