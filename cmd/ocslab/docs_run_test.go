package main

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

var updatePages = flag.Bool("update", false, "write what the sessions of pages print into the pages")

// pageSession is what a console block shows.
type pageSession []pageExchange

// pageExchange is one command and its output.
type pageExchange struct {
	command string // may have several lines
	output  string
}

// runs reports whether a block is a session to be run: "console shown" is one of another
// machine, or one that takes long, of which only the commands are checked.
func (b pageBlock) runs() bool { return b.lang == "console" && b.name != "shown" }

// session reads a console block: "$ " begins a command, "> " goes on with it.
func (b pageBlock) session() (s pageSession) {
	for line := range strings.Lines(b.text) {
		if command, ok := strings.CutPrefix(line, "$ "); ok {
			s = append(s, pageExchange{command: command})
		} else if len(s) == 0 {
			continue // TestPages_Run says so
		} else if more, ok := strings.CutPrefix(line, "> "); ok && s[len(s)-1].output == "" {
			s[len(s)-1].command += more
		} else {
			s[len(s)-1].output += line
		}
	}
	return s
}

// script returns the commands alone.
func (s pageSession) script() string {
	var b strings.Builder
	for _, x := range s {
		b.WriteString(x.command)
	}
	return b.String()
}

// String returns the block.
func (s pageSession) String() string {
	var b strings.Builder
	for _, x := range s {
		b.WriteString("$ " + strings.ReplaceAll(strings.TrimSuffix(x.command, "\n"), "\n", "\n> ") + "\n" + x.output)
	}
	return b.String()
}

// The sessions of each page, from the first to the last, are typed into one shell, in a
// directory that has the files that the page shows, the examples, and nothing else. What
// comes out is what the page shows, but for what differs from run to run: times, decimal
// numbers, addresses, identifiers of runs. With -update the pages get what comes out.
func TestPages_Run(t *testing.T) {
	sh, err := exec.LookPath("sh")
	if err != nil {
		t.Skip("no shell here")
	}
	ran := 0
	for _, p := range pages(t) {
		if !slices.ContainsFunc(p.blocks, pageBlock.runs) {
			continue
		}
		ran++
		t.Run(strings.TrimSuffix(p.name, ".md"), func(t *testing.T) {
			t.Parallel()
			p.run(t, sh)
		})
	}
	if ran < 5 {
		t.Errorf("%d pages have sessions", ran)
	}
}

// betweenOutputs stands alone in a line between the outputs of two commands.
const betweenOutputs = "--- 8< --- %d ---"

func (p *page) run(t *testing.T, sh string) {
	dir := t.TempDir()
	examples, err := filepath.Abs(examplesDir)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(examples, filepath.Join(dir, "examples")); err != nil {
		t.Fatal(err)
	}
	var script strings.Builder
	var sessions []pageBlock
	n := 0
	for _, b := range p.blocks {
		if b.name != "" && !strings.Contains(b.name, "/") && b.lang != "console" {
			if err := os.WriteFile(filepath.Join(dir, b.name), []byte(b.text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if !b.runs() {
			continue
		}
		if !strings.HasPrefix(b.text, "$ ") {
			t.Errorf("%s:%d: a session begins with a command: $ …", p.name, b.line)
			continue
		}
		sessions = append(sessions, b)
		for _, x := range b.session() {
			fmt.Fprintf(&script, "printf '\\n"+betweenOutputs+"\\n'; (exit ${code:-0})\n%s\ncode=$?\n", n, strings.TrimSuffix(x.command, "\n"))
			n++
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, sh)
	cmd.Dir = dir
	cmd.Stdin = strings.NewReader(script.String())
	for _, v := range os.Environ() {
		if name, _, _ := strings.Cut(v, "="); !strings.HasPrefix(name, "OCSLAB_") && name != "HOME" && name != "XDG_STATE_HOME" && name != "XDG_CONFIG_HOME" {
			cmd.Env = append(cmd.Env, v)
		}
	}
	cmd.Env = append(cmd.Env, "HOME="+dir, "OCSLAB_STATE_DIR="+filepath.Join(dir, "state"), "XDG_CONFIG_HOME="+filepath.Join(dir, "config"), "LC_ALL=C.UTF-8", "OCSLAB_RECHECK=0s", "OCSLAB_BUSY_LIMIT=0s")
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	cmd.WaitDelay = time.Second
	if err := cmd.Run(); err != nil && ctx.Err() != nil {
		t.Fatalf("%s: %v\n%s", p.name, err, out.String())
	}
	rest := strings.ReplaceAll(out.String(), dir+"/", "")
	outputs := make([]string, n)
	for i := range n {
		_, after, found := strings.Cut(rest, "\n"+fmt.Sprintf(betweenOutputs, i)+"\n")
		if !found {
			t.Fatalf("%s: the shell ended before command %d:\n%s", p.name, i+1, out.String())
		}
		rest = after
		outputs[i], _, _ = strings.Cut(rest, "\n"+fmt.Sprintf(betweenOutputs, i+1)+"\n")
	}
	if *updatePages {
		p.update(t, sessions, outputs)
		return
	}
	i := 0
	for _, b := range sessions {
		for _, x := range b.session() {
			if why := comparePage(x.output, outputs[i]); why != "" {
				t.Errorf("%s:%d: $ %s%s\nit printed\n%s", p.name, b.line, x.command, why, outputs[i])
			}
			i++
		}
	}
}

// update writes the outputs into the page, where the page does not leave out lines.
func (p *page) update(t *testing.T, sessions []pageBlock, outputs []string) {
	t.Helper()
	source, i := slices.Clone(p.source), 0
	type edit struct {
		pageBlock
		text string
	}
	var edits []edit
	for _, b := range sessions {
		s := b.session()
		for k := range s {
			if !strings.Contains(s[k].output, "…") {
				s[k].output = strings.TrimLeft(outputs[i], "\n")
				if s[k].output != "" && !strings.HasSuffix(s[k].output, "\n") {
					s[k].output += "\n"
				}
			}
			i++
		}
		edits = append(edits, edit{b, s.String()})
	}
	for _, e := range slices.Backward(edits) {
		source = slices.Replace(source, e.start, e.end, []byte(e.text)...)
	}
	if err := os.WriteFile(filepath.Join(repositoryRoot, p.name), source, 0o600); err != nil {
		t.Fatal(err)
	}
}

// varying is what differs from run to run, and what stands for it.
var varying = []struct {
	at *regexp.Regexp
	to string
}{
	{regexp.MustCompile(`\d{8}T\d{6}-([\w-]+)-[0-9a-f]{4}`), "RUN-$1"},
	{regexp.MustCompile(`\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(\.\d+)?Z?`), "TIME"},
	{regexp.MustCompile(`127\.0\.0\.1:\d+`), "ADDRESS"},
	{regexp.MustCompile(`_ns":-?\d+`), `_ns":N`},
	{regexp.MustCompile(`-?(\d+h)?(\d+m)?\d+(\.\d+)? ?(ns|µs|ms|s|m)\b`), "DURATION"},
	{regexp.MustCompile(`-?\d+\.\d+`), "N"},
	{regexp.MustCompile(`±(DURATION|N|\d+)`), "±N"},
	{regexp.MustCompile(`[━█░·]+( *[━█░·]+)*`), "BAR"},
	{regexp.MustCompile(`[ \t]+`), " "},
}

func maskVarying(line string) string {
	for _, v := range varying {
		line = v.at.ReplaceAllString(line, v.to)
	}
	return strings.TrimSpace(line)
}

// comparePage returns in what an output is not what a page shows.
func comparePage(shown, printed string) string {
	lines := func(s string) []string {
		s = strings.Trim(s, "\n")
		if s == "" {
			return nil
		}
		return strings.Split(s, "\n")
	}
	want, got := lines(shown), lines(printed)
	for i := 0; i < len(want); i++ {
		if strings.TrimSpace(want[i]) == "…" {
			if i+1 == len(want) {
				return ""
			}
			next := slices.IndexFunc(got, func(g string) bool { return lineMatches(want[i+1], g) })
			if next < 0 {
				return "there is no line after … like\n" + want[i+1]
			}
			got = got[next:]
			continue
		}
		if len(got) == 0 {
			return "there is no line like\n" + want[i]
		}
		if !lineMatches(want[i], got[0]) {
			return fmt.Sprintf("the page has\n%s\nwhere it printed\n%s", want[i], got[0])
		}
		got = got[1:]
	}
	if len(got) > 0 {
		return "the page does not have the line\n" + got[0]
	}
	return ""
}

// lineMatches reports whether a line is as a page shows it; … in it is any text.
func lineMatches(shown, printed string) bool {
	pattern := strings.ReplaceAll(regexp.QuoteMeta(maskVarying(shown)), "…", ".*")
	return regexp.MustCompile("^" + pattern + "$").MatchString(maskVarying(printed))
}

func TestCompare(t *testing.T) {
	for _, x := range []struct {
		shown, printed string
		same           bool
	}{
		{"a 1.5 ms\n", "a 7 ms\n", true},
		{"a  1.5  b\n", "a 10.25 b\n", true},
		{"3 marks\n", "4 marks\n", false},
		{"done in 200ms\n", "done in 1.5s\n", true},
		{"done in 200ms\n", "done in 1m2.5s\n", true},
		{"a\n…\nd\n", "a\nb\nc\nd\n", true},
		{"a\n…\nd\n", "a\nb\nc\n", false},
		{"a\n…\n", "a\nb\n", true},
		{"a\n…\n", "a\n", true},
		{"a … c\n", "a b b c\n", true},
		{"a\n", "a\nb\n", false},
		{"a\nb\n", "a\n", false},
		{"", "x\n", false},
		{"", "", true},
		{"run 20261122T154245-desk-0fd4", "run 20270101T000000-desk-ffff", true},
		{"run 20261122T154245-desk-0fd4", "run 20270101T000000-ci-ffff", false},
		{"light ━━██░ 1.0 ms ±2", "light ━━━━━ ██ 2.0 ms ±0.3", true},
	} {
		if why := comparePage(x.shown, x.printed); (why == "") != x.same {
			t.Errorf("%q and %q: %q, want same=%v", x.shown, x.printed, why, x.same)
		}
	}
}

func TestSession(t *testing.T) {
	text := "$ a \\\n> b\nout\n> not a command\n$ c\n"
	s := pageBlock{text: text}.session()
	if len(s) != 2 || s[0].command != "a \\\nb\n" || s[0].output != "out\n> not a command\n" || s[1].output != "" || s.String() != text {
		t.Errorf("%q", s)
	}
}
