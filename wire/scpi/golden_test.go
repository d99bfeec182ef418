package scpi_test

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ocslab/ocslab/wire/scpi"
)

var update = flag.Bool("update", false, "rewrite the golden file")

const goldenFile = "testdata/polatis.golden"

// polatis has the commands that clients of Polatis units use.
func polatis() *scpi.Tree[string] {
	t := new(scpi.Tree[string])
	for _, p := range []string{
		"*IDN?", "*CLS", "*RST", "*STB?", "*OPC", "*OPC?", "OXC:SWITch:SIZE?", "OXC:SWITch:CONNect:ADD", "OXC:SWITch:CONNect:ONLY",
		"OXC:SWITch:CONNect:SUB", "OXC:SWITch:CONNect:STATe?", "OXC:SWITch:CONNect:PORT?", "OXC:SWITch:DISConnect:ALL",
		"OXC:SWITch:PORT:DISable", "OXC:SWITch:PORT:STATe?", "PMON:POWer?", "OXC:BOOT:MODE", "OXC:BOOT:MODE?",
		"SYSTem:ERRor[:NEXT]?", "SYSTem:ERRor:COUNt?", "SYSTem:COMMunicate:NETWork:ADDRess", "SYSTem:COMMunicate:NETWork2:ADDRess?",
	} {
		t.Add(p, p)
	}
	return t
}

func TestGolden(t *testing.T) {
	file, err := os.ReadFile(goldenFile)
	if err != nil {
		t.Fatal(err)
	}
	var got strings.Builder
	for _, line := range strings.Split(strings.TrimSuffix(string(file), "\n"), "\n") {
		if strings.HasPrefix(line, "  ") {
			continue
		}
		fmt.Fprintln(&got, line)
		kind, rest, _ := strings.Cut(line, " ")
		if kind == "#" {
			continue
		}
		text := unescape(t, rest)
		switch kind {
		case "C>":
			var d scpi.Decoder
			d.Feed([]byte(text))
			raw, ok, err := d.Next()
			if !ok || err != nil {
				t.Fatalf("%s: %v, %v", line, ok, err)
			}
			describeMessage(&got, raw)
		case "S>":
			var d scpi.ReplyDecoder
			d.Feed([]byte(text))
			raw, ok, err := d.Next()
			if !ok || err != nil {
				t.Fatalf("%s: %v, %v", line, ok, err)
			}
			describeReply(&got, string(raw))
		default:
			t.Fatalf("line %q", line)
		}
	}
	if *update {
		if err := os.WriteFile(goldenFile, []byte(got.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff(string(file), got.String()); diff != "" && !*update {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func unescape(t *testing.T, s string) string {
	t.Helper()
	text, err := strconv.Unquote(`"` + strings.ReplaceAll(s, `"`, `\x22`) + `"`)
	if err != nil {
		t.Fatalf("%q: %v", s, err)
	}
	return text
}

func describeMessage(w *strings.Builder, raw []byte) {
	m, _ := scpi.ParseMessage(raw)
	tree := polatis()
	var path scpi.Path
	for _, u := range m.Units {
		pattern, canonical, next, err := tree.Find(path, u)
		path = next
		fmt.Fprintf(w, "   %s = %s %s", u.Raw, canonical, pattern)
		for _, p := range u.Params {
			fmt.Fprintf(w, " | %s: %s", p.Kind, p.Text())
		}
		if u.Err != nil {
			err = u.Err
		}
		if err != nil {
			var s *scpi.SyntaxError
			errors.As(err, &s)
			fmt.Fprintf(w, " | %d %s", s.Code, err)
		}
		fmt.Fprintln(w)
	}
	if errs := scpi.CheckStrict(bytes.TrimSuffix(raw, []byte(";"))); errs != nil {
		fmt.Fprintf(w, "   not of the standard: %v\n", errs[0])
	}
}

func describeReply(w *strings.Builder, raw string) {
	values, err := scpi.ParseValues(raw)
	fmt.Fprintf(w, "   %d values %q %v\n", len(values), values, err)
	if lists, err := scpi.ParseLists(raw); err == nil {
		fmt.Fprintf(w, "   lists %v\n", lists)
	}
	if s, err := scpi.Unquote(raw); err == nil {
		fmt.Fprintf(w, "   string %s\n", s)
	}
	if e, err := scpi.ParseError(raw); err == nil {
		fmt.Fprintf(w, "   errors %v\n", e)
	}
	if errs := scpi.CheckStrictReply([]byte(raw)); errs != nil {
		fmt.Fprintf(w, "   not of the standard: %v\n", errs[0])
	}
}
