package firmwarenotes_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	yaml "go.yaml.in/yaml/v3"
	"pgregory.net/rapid"

	firmwarenotes "github.com/ocslab/ocslab/firmware-notes"
	"github.com/ocslab/ocslab/internal/strictyaml"
	"github.com/ocslab/ocslab/timeline/dist"
)

const full = `---
title: A card
summary: Slow.
kind: nic
vendor: Somebody
model: C1
module: unstated
speed: 100 Gbit/s
firmware: "20.1"
sources:
  paper: {title: A paper, where: section 2, url: "https://example.org"}
profiles:
  only:
    source: paper
    confidence: high
    debounce: 10ms
    detect: 50ms
    train: {modes: [{share: 3, median: 3s, spread: 50ms}, {share: 1, median: 9s}], min: 1s, max: 10s}
    carrier: 75us
    refresh: 100ms
facts:
  carrier:
    what: query to carrier
    value: 75us
    range: {low: 0.07ms, high: 80 us}
    source: "paper: the unit is read"
    confidence: medium
    check: timers
settings:
  SPEED:
    tool: tool
    values: [A, B]
    default: A
    effect: Something.
    source: paper
    confidence: high
    show: tool -d {pci} show
    apply: tool -d {pci} set {value}
    undo: tool -d {pci} set {previous}
rdma:
  measured-on: C1
  firmware: unstated
  adaptive: [20ms, 40ms]
  interval: {factor: 2, least-timeout: 16, early-at-least: 96ms, early-above: 364ms}
  retry: 7
  errors: {16: 3.66s}
  source: paper
  confidence: high
checks:
  timers: {what: the split, run: tool -d {pci} timers, expect: milliseconds}
unknown:
  - the rest
---
Text.
`

// wholeHeader is full with what cannot stand in braces written out.
var wholeHeader = strings.Replace(full, "timers: {what: the split, run: tool -d {pci} timers, expect: milliseconds}",
	"timers:\n    what: the split\n    run: tool -d {pci} timers\n    expect: milliseconds", 1)

func TestParse_Whole(t *testing.T) {
	n, err := firmwarenotes.Parse("card.md", []byte(wholeHeader))
	if err != nil {
		t.Fatal(err)
	}
	if n.Kind != firmwarenotes.NIC || n.Module != "" || n.Firmware.Known != "20.1" || n.Firmware.String() != "20.1" || n.RDMA.Firmware != "" {
		t.Errorf("%+v", n)
	}
	train := n.Profiles[0].Train
	if want := (dist.Mixture{{Share: 3, Median: 3 * time.Second, Spread: 50 * time.Millisecond}, {Share: 1, Median: 9 * time.Second}}); !cmp.Equal(train.Modes, want) ||
		train.Median != want.Quantile(0.5) {
		t.Errorf("%+v", train)
	}
	f := n.Facts[0]
	if got, want := f.Amount()+"; "+n.Cite(f.Source), "75us (0.07ms to 80 us); A paper, section 2 (the unit is read)"; got != want {
		t.Errorf("got %s\nwant %s", got, want)
	}
	if d, ok := f.Low.Duration(); !ok || d != 70*time.Microsecond {
		t.Errorf("low is %v, %v", d, ok)
	}
	if n.Weakest() != firmwarenotes.Medium {
		t.Errorf("weakest: %s", n.Weakest())
	}
}

// Each case changes one thing of the whole header.
func TestParse_HeaderErrors(t *testing.T) {
	for _, c := range []struct{ old, new, want string }{
		{"kind: nic\n", "", "card.md:4:9: vendor: the note does not say what this is the vendor of: add kind: nic, module or switch"},
		{"kind: nic", "kind: nik", `card.md:4:7: kind: want nic, module or switch, found "nik" (did you mean "nic"?)`},
		{"vendor: Somebody\n", "", "card.md:4:7: kind: the note is of a nic and does not say which vendor: add vendor: unstated if the sources do not state it"},
		{"module: unstated\n", "", "card.md:4:7: kind: the note is of a nic and does not say which module: add module: unstated if the sources do not state it"},
		{"speed: 100 Gbit/s", "speed: 100", `card.md:8:8: speed: "100" has no unit: write what it measures or counts, such as 100 ms, 100 dB or 100 retries`},
		{"speed: 100 Gbit/s", "speed: 100 ms", `card.md:8:8: speed: "100 ms" is no speed: want one such as 100 Gbit/s, or unstated`},
		{"model: C1", `model: ""`, "card.md:6:8: model: is empty: write unstated if the sources do not state it"},
		{`firmware: "20.1"`, "firmware: {range: up to 20}", `card.md:9:11: firmware: the key "known" is missing`},
		{"  paper: {", "  assumed: {title: T}\n  paper: {", "card.md:11:12: sources.assumed: assumed says that there is no source: call the source something else"},
		{"    source: paper\n    confidence: high\n    debounce", "    source: papr\n    confidence: high\n    debounce",
			`card.md:16:15: profiles.only.debounce: "papr" is not among the sources (did you mean "paper"?)`},
		{`"paper: the unit is read"`, `"papr: the unit is read"`, `card.md:26:13: facts.carrier.source: "papr" is not among the sources (did you mean "paper"?): want one of them, assumed, inferred, invented, measured, or a text of several words`},
		{`"paper: the unit is read"`, `"assumed: the unit is read"`, `card.md:26:13: facts.carrier.source: what is assumed cannot be of medium confidence`},
		{"    confidence: medium\n", "", "card.md:23:5: facts.carrier: does not say where it comes from and how sure that is: give it a source and a confidence"},
		{"value: 75us", "value: 75", `card.md:24:12: facts.carrier.value: "75" has no unit: write what it measures or counts, such as 75 ms, 75 dB or 75 retries`},
		{"value: 75us", "value: 75 usec", `card.md:24:12: facts.carrier.value: "75 usec": the unit is written us: 75 us`},
		{"value: 75us", "value: 69us", "card.md:24:12: facts.carrier.value: 69us is below the range, which begins at 0.07ms"},
		{"value: 75us", "value: 75 dB", "card.md:24:12: facts.carrier.value: 0.07ms and 75 dB cannot be compared: write both in units of the same kind"},
		{"low: 0.07ms, high: 80 us", "low: 75us, high: 74999 ns", "card.md:24:12: facts.carrier.value: the range ends at 74999 ns, below the value of 75us\n" +
			"card.md:25:30: facts.carrier.range.high: the high end, 74999 ns, is below the low end, 75us"},
		{"low: 0.07ms", "low: short", `card.md:25:18: facts.carrier.range.low: "short" is no amount: want a number with its unit`},
		{"check: timers", "check: timer", `card.md:28:12: facts.carrier.check: there is no check "timer" in this note: add one, or say in a few words how to check it`},
		{"modes: [{share: 3", "modes: [{share: 0", "card.md:18:29: profiles.only.train.modes[0].share: want more than nothing, found 0"},
		{"modes: [{share: 3", "modes: [{share: 1e308, median: 1s}, {share: 1e308", "card.md:18:20: profiles.only.train.modes: the shares of the modes are too large to be added up"},
		{"modes: [{share: 3", "modes: [{share: 1, median: 1s, spread: 2000000h}, {share: 3", "card.md:18:52: profiles.only.train.modes[0].spread: is longer than an hour"},
		{"{modes: [", "{median: 3s, modes: [", "card.md:18:32: profiles.only.train.modes: stand in place of a median and a spread: remove these"},
		{"default: A", "default: C", `card.md:33:14: settings.SPEED.default: "C" is not among the values (did you mean "A"?): write one of them, or unstated`},
		{"values: [A, B]", "values: [A, B;]", `card.md:32:17: settings.SPEED.values[1]: "B;" cannot stand in a command as it is`},
		{"set {value}", "set A", "card.md:38:12: settings.SPEED.apply: does not hold {value}: what would it set?"},
		{"set {previous}", "set {value}", "card.md:39:11: settings.SPEED.undo: only apply can hold {value}"},
		{"-d {pci} show", "-d {pcie} show", "card.md:37:11: settings.SPEED.show: unknown placeholder {pcie}: want {pci}, {dev}, {port}, {value}, {previous}"},
		{"    undo: tool -d {pci} set {previous}\n", "", "card.md:38:12: settings.SPEED.apply: there is no undo: say how to take it back"},
		{"[20ms, 40ms]", "[20ms, 10ms]", "card.md:43:20: rdma.adaptive[1]: 10ms is not after 20ms"},
		{"{16: 3.66s}", "{16: 4s}", "card.md:46:16: rdma.errors.16: measured 4s, but by the interval it would be 3.662s: one of them is wrong"},
		{"{16: 3.66s}", "{32: 3.66s}", `card.md:46:16: rdma.errors.32: "32" is no timeout: want 1 to 31`},
	} {
		if strings.Count(wholeHeader, c.old) == 0 {
			t.Fatalf("%q is not in the header", c.old)
		}
		_, err := firmwarenotes.Parse("card.md", []byte(strings.Replace(wholeHeader, c.old, c.new, 1)))
		if err == nil || !strings.HasPrefix(err.Error(), c.want) {
			t.Errorf("%s instead of %s:\n got %v\nwant %s", c.new, c.old, err, c.want)
		}
	}
}

// Each thing that no note can say is refused, where it stands.
func TestParse_Refused(t *testing.T) {
	const burst = "carrier: 75us\n    burst: {window: 1m, free: 2, step: 1s, most: 5s}"
	for _, c := range []struct{ old, new, want string }{
		{"  paper: {title", "  Paper: {title", "sources.Paper: not the name of a source"},
		{"  timers:\n", "  Timers:\n", "checks.Timers: not the name of a check"},
		{"facts:\n  carrier:", "facts:\n  Carrier:", "facts.Carrier: not the name of a fact"},
		{"  SPEED:", "  9SPEED:", "settings.9SPEED: not the name of a setting"},
		{"- the rest", `- " "`, "unknown[0]: is empty"},
		{"carrier: 75us", strings.Replace(burst, "step: 1s", "step: 0s", 1), "burst.step: want more than nothing"},
		{"carrier: 75us", strings.Replace(burst, "most: 5s", "most: 61m", 1), "burst.most: want more than nothing and an hour at most"},
		{"carrier: 75us", strings.Replace(burst, "window: 1m", "window: -1m", 1), "burst.window: want more than nothing"},
		{"carrier: 75us", strings.Replace(burst, "free: 2", "free: -1", 1), "burst.free: is negative"},
		{"refresh: 100ms", "refresh: 61m", "refresh.period: want more than nothing and an hour at most"},
		{"min: 1s", "min: -1s", "train.min: is negative"},
		{"min: 1s", "min: 9s", "train.min: is above the median of 3.0"},
		{"max: 10s", "max: 61m", "train.max: is longer than an hour"},
		{"max: 10s", "max: 1s", "train.max: is below the median of 3.0"},
		{"median: 9s}]", "median: 61m}]", "train.modes[1].median: is longer than an hour"},
		{"median: 9s}]", "median: 9s, spread: -1s}]", "train.modes[1].spread: is negative"},
		{"median: 9s}]", "median: 9s}], spread: 1s", "train.spread: each of the modes has its own"},
		{"modes: [{share: 3, median: 3s, spread: 50ms}, {share: 1, median: 9s}], ", "modes: [], ", "train.modes: there are none"},
		{"modes: [{share: 3, median: 3s, spread: 50ms}, {share: 1, median: 9s}], ", "", `train: the key "median" is missing, or modes in its place`},
		{"what: query to carrier", `what: " "`, "facts.carrier.what: is empty"},
		{"    value: 75us\n    range: {low: 0.07ms, high: 80 us}\n", "", "facts.carrier: has no value"},
		{"values: [A, B]", "values: [A, B, A]", `settings.SPEED.values[2]: "A" is there twice`},
		{"    values: [A, B]\n", "", "settings.SPEED.apply: which values there are is not said"},
		{"    show: tool -d {pci} show\n", "", "settings.SPEED.apply: there is no show"},
		{"-d {pci} show", "-d {pci} show {previous}", "settings.SPEED.show: only undo can hold {previous}"},
		{"least-timeout: 16", "least-timeout: 32", "rdma.interval.least-timeout: want 1 to 31, found 32"},
		{"factor: 2", "factor: 17", "rdma.interval.factor: want 1 to 16, found 17"},
		{"early-at-least: 96ms", "early-at-least: -96ms", "rdma.interval.early-at-least: is negative"},
		{"early-above: 364ms", "early-above: -1ms", "rdma.interval.early-above: is negative"},
		{"early-above: 364ms", "early-above: 600ms", "rdma.interval.early-above: is not shorter than the interval"},
		{"[20ms, 40ms]", "[0s, 40ms]", "rdma.adaptive[0]: want more than nothing"},
		{"[20ms, 40ms]", "[20ms, 20ms]", "rdma.adaptive[1]: 20ms is not after 20ms"},
		{"{16: 3.66s}", "{}", "rdma.errors: there are none"},
	} {
		md := strings.Replace(wholeHeader, c.old, c.new, 1)
		if md == wholeHeader {
			t.Fatalf("%q is not in the header", c.old)
		}
		if _, err := firmwarenotes.Parse("card.md", []byte(md)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s instead of %s:\n got %v\nwant %s", c.new, c.old, err, c.want)
		}
	}
	// The ends of what is allowed are allowed.
	for old, new := range map[string]string{
		"carrier: 75us": strings.NewReplacer("free: 2", "free: 0", "window: 1m", "window: 1h").Replace(burst), "refresh: 100ms": "refresh: 1h",
		"detect: 50ms": "detect: 0s", "debounce: 10ms": "debounce: {median: 1h, min: 1h, max: 1h}", "low: 0.07ms, high: 80 us": "low: 75 us, high: 75us",
	} {
		if _, err := firmwarenotes.Parse("card.md", []byte(strings.Replace(wholeHeader, old, new, 1))); err != nil {
			t.Errorf("%s instead of %s: %v", new, old, err)
		}
	}
}

// A mistake is told once, and not what only follows from it.
func TestParse_Once(t *testing.T) {
	for old, new := range map[string]string{
		"kind: nic": "kind: nik", "value: 75us": "value: 75", `source: "paper: the unit is read"`: `sorce: "paper: the unit is read"`,
		"confidence: medium": "confidence: middling", "low: 0.07ms": "low: 0.07", "speed: 100 Gbit/s": "speed: 100", "retry: 7": "retry: 8",
	} {
		_, err := firmwarenotes.Parse("card.md", []byte(strings.Replace(wholeHeader, old, new, 1)))
		var errs strictyaml.Errors
		if !errors.As(err, &errs) || len(errs) != 1 {
			t.Errorf("%s: want one problem: %v", new, err)
		}
	}
	// But a source that is missing beside it is another.
	_, err := firmwarenotes.Parse("rig.md", []byte("---\ntitle: t\nsummary: s\nfacts:\n  loss: {what: w, value: 3}\n---\n"))
	if err == nil || !strings.Contains(err.Error(), "has no unit") || !strings.Contains(err.Error(), "does not say where it comes from") {
		t.Errorf("without unit and source: %v", err)
	}
}

// What a terminal does not show, or obeys, is in no command that people copy.
func TestParse_Unseen(t *testing.T) {
	for _, unseen := range []string{`\e[2J`, `\r`, `\u202e`, `\u200b`, `\u00a0`, `\x7f`, `\t`} {
		for _, key := range []string{"show", "apply", "undo"} {
			md := regexp.MustCompile(`(?m)^    `+key+`: (tool .*)$`).ReplaceAllStringFunc(wholeHeader, func(line string) string {
				return "    " + key + `: "tool` + unseen + line[len("    "+key+": tool"):] + `"`
			})
			if md == wholeHeader {
				t.Fatalf("no %s in the header", key)
			}
			if _, err := firmwarenotes.Parse("card.md", []byte(md)); err == nil || !strings.Contains(err.Error(), "SPEED."+key) || !strings.Contains(err.Error(), "is not seen") {
				t.Errorf("%s in %s: %v", unseen, key, err)
			}
		}
	}
}

// A header on a single line is read as one on many, and so are the places in it.
func TestParse_OneLine(t *testing.T) {
	var b strings.Builder
	b.WriteString("---\ntitle: t\nsummary: s\nprofiles: {")
	const n = 500
	for i := range n {
		fmt.Fprintf(&b, `p%d: {debounce: 'é', detect: "1s", train: 3s, carrier: 4, refresh: 2s, source: assumed, confidence: low}, `, i)
	}
	b.WriteString("}\n---\n")
	_, err := firmwarenotes.Parse("rig.md", []byte(b.String()))
	var errs strictyaml.Errors
	if !errors.As(err, &errs) || len(errs) != 2*n {
		t.Fatalf("%d problems, want %d: %v", len(errs), 2*n, err)
	}
	line := []rune(strings.Split(b.String(), "\n")[3])
	for i, e := range errs {
		want := []string{"'é'", "4, "}[i%2]
		if got := string(line[e.Column-1 : e.Column+2]); e.Line != 4 || got != want {
			t.Fatalf("problem %d, %v, is at %q, want %q", i, e, got, want)
		}
	}
}

// Whatever the units, the same amounts are the same.
func TestParse_RangeOfOneAmount(t *testing.T) {
	for _, q := range [][2]string{{"7 ms", "7000 us"}, {"5 %", "50000 ppm"}, {"0.3 ms", "300 us"}, {"-7 ms", "-7000 us"}, {"0 s", "0 ms"}} {
		for _, low := range []int{0, 1} {
			md := fmt.Sprintf("---\ntitle: t\nsummary: s\nfacts:\n  f: {what: w, range: {low: %s, high: %s}, source: assumed, confidence: low}\n---\n", q[low], q[1-low])
			if _, err := firmwarenotes.Parse("rig.md", []byte(md)); err != nil {
				t.Errorf("%v: %v", q, err)
			}
		}
	}
	if _, err := firmwarenotes.Parse("rig.md", []byte("---\ntitle: t\nsummary: s\nfacts:\n  f: {what: w, range: {low: 7000001 ns, high: 7 ms}, source: assumed, confidence: low}\n---\n")); err == nil {
		t.Error("a nanosecond too much was taken")
	}
}

// All that is wrong is told at once: what cannot be read, and what makes no sense.
func TestParse_AllAtOnce(t *testing.T) {
	md := wholeHeader
	for old, new := range map[string]string{
		"kind: nic": "kind: nik", "low: 0.07ms": "low: 1ms", "value: 75us": "value: 75", "retry: 7": "retry: 8", "set {value}": "set A", "default: A": "default: C",
	} {
		md = strings.Replace(md, old, new, 1)
	}
	_, err := firmwarenotes.Parse("card.md", []byte(md))
	for _, want := range []string{"kind: want nic", "facts.carrier.range.high: the high end", `"75" has no unit`, "rdma.retry: want 1 to 7, found 8", "does not hold {value}", `"C" is not among`} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("no %q in\n%v", want, err)
		}
	}
}

// A real note that loses any one source, confidence or unit is refused.
func TestNotes_NothingUnsourced(t *testing.T) {
	files, err := filepath.Glob("*.md")
	if err != nil || len(files) < 8 {
		t.Fatal(files, err)
	}
	unit := regexp.MustCompile(`((?:value|low|high|median|spread|min|max|window|step|most|period|speed): "?[0-9.]+) ?[a-zµ%A-Z][A-Za-z/]*`)
	for _, file := range files {
		md, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		head, text, _ := strings.Cut(strings.TrimPrefix(string(md), "---\n"), "\n---\n")
		mutants := 0
		refused := func(what string, mutant []byte) {
			t.Helper()
			mutants++
			if _, err := firmwarenotes.Parse(file, mutant); err == nil {
				t.Errorf("%s: accepted without %s", file, what)
			}
		}
		lines := strings.Split(head, "\n")
		for i, line := range lines {
			without := func(line string) []byte {
				return []byte("---\n" + strings.Join(slices.Concat(lines[:i], []string{line}, lines[i+1:]), "\n") + "\n---\n" + text)
			}
			for _, at := range unit.FindAllStringSubmatchIndex(line, -1) {
				refused("the unit in "+line, without(line[:at[3]]+line[at[1]:]))
			}
		}
		var doc yaml.Node
		if err := yaml.Unmarshal([]byte(head), &doc); err != nil {
			t.Fatal(err)
		}
		each(&doc, func(m *yaml.Node) {
			all := m.Content
			for i := 0; m.Kind == yaml.MappingNode && i < len(all); i += 2 {
				if key := all[i].Value; key != "source" && key != "confidence" {
					continue
				}
				m.Content = slices.Concat(all[:i], all[i+2:])
				refused(fmt.Sprintf("the %s of line %d", all[i].Value, all[i].Line+1), marshalled(t, &doc, text))
				m.Content = all
			}
		})
		if _, err := firmwarenotes.Parse(file, marshalled(t, &doc, text)); err != nil {
			t.Errorf("%s, written anew with all that it has: %v", file, err)
		}
		t.Logf("%s: %d mutants", file, mutants)
		if mutants == 0 {
			t.Errorf("%s: nothing to leave out", file)
		}
	}
}

// each calls f for a node and all nodes in it.
func each(n *yaml.Node, f func(*yaml.Node)) {
	f(n)
	for _, c := range n.Content {
		each(c, f)
	}
}

// marshalled is a note with that header.
func marshalled(t *testing.T, header *yaml.Node, text string) []byte {
	t.Helper()
	head, err := yaml.Marshal(header)
	if err != nil {
		t.Fatal(err)
	}
	return []byte("---\n" + string(head) + "---\n" + text)
}

// A source that is named and used by nothing was forgotten, or its fact was.
func TestNotes_SourcesUsed(t *testing.T) {
	for _, n := range firmwarenotes.All() {
		md := string(n.Markdown())
		for _, s := range n.Sources {
			if c := regexp.MustCompile(`source: ['"]?` + regexp.QuoteMeta(s.Key) + `[:'",}\n]`).FindString(md); c == "" && s.Key != "adaptive" && s.Key != "mstflint-man" && s.Key != "linux" {
				t.Errorf("%s: nothing is from %s", n.Name, s.Key)
			}
		}
		for _, f := range n.Facts {
			if regexp.MustCompile(`^-?[0-9.]+$`).MatchString(f.Value.Text) || f.What == "" {
				t.Errorf("%s: %+v", n.Name, f)
			}
		}
	}
}

func TestParseQuantity(t *testing.T) {
	for text, want := range map[string]firmwarenotes.Quantity{
		"6s": {Number: 6, Unit: "s"}, "70 µs": {Number: 70, Unit: "µs"}, "1m30s": {Number: 90, Unit: "s"}, ".5s": {Number: 0.5, Unit: "s"},
		"-3 dBm": {Number: -3, Unit: "dBm"}, "+0.5 dB": {Number: 0.5, Unit: "dB"}, "2 %": {Number: 2, Unit: "%"}, "400 Gbit/s": {Number: 400, Unit: "Gbit/s"},
		"7 retries": {Number: 7, Unit: "retries"}, "1e3 cross-connects": {Number: 1000, Unit: "cross-connects"}, "0x9F is the page": {}, "advertised by the module": {},
		"firmware 20.43.4100": {},
	} {
		want.Text = text
		got, err := firmwarenotes.ParseQuantity(text)
		if err != nil || got != want {
			t.Errorf("%q: %+v, %v, want %+v", text, got, err, want)
		}
	}
	for _, text := range []string{"", " 6s", "6", "-6", "6.5", "0", "6 sec", "6 #", "6 x", "3x5", "100G", "100Gbps", "about 10", "x=10", "1e999 ms", "5 ms or 6"} {
		if q, err := firmwarenotes.ParseQuantity(text); err == nil {
			t.Errorf("%q: %+v", text, q)
		}
	}
}

// The notes that come with ocslab survive being written.
func TestMarkdown_Notes(t *testing.T) {
	for _, n := range firmwarenotes.All() {
		got, err := firmwarenotes.Parse(n.Name+".md", n.Markdown())
		if d := cmp.Diff(n, got); err != nil || d != "" {
			t.Errorf("%s: %v (-written +read):\n%s\n%s", n.Name, err, d, n.Markdown())
		}
	}
}

// What is written reads back equal, whatever the texts are.
func TestMarkdown_RoundTrip(t *testing.T) {
	word := rapid.OneOf(rapid.StringMatching(`[a-z]{1,8}( [A-Za-z0-9:#'"{}\[\],|>%&*!?~-]{1,6}){1,4}`),
		rapid.SampledFrom([]string{"yes", "null", "1.5", "~", "true", "a: b", "# c", "two\nlines", "trailing ", "'", `"`, "---", "- x", "é µ 光", "0x10", "a\tb"}))
	name := rapid.StringMatching(`[a-z][a-z0-9]{0,5}(-[a-z0-9]{1,4})?`)
	duration := rapid.Map(rapid.Int64Range(0, int64(time.Hour)/2), func(ns int64) time.Duration { return time.Duration(ns) })
	confidence := rapid.SampledFrom([]firmwarenotes.Confidence{firmwarenotes.High, firmwarenotes.Medium, firmwarenotes.Low})
	rapid.Check(t, func(t *rapid.T) {
		text := func(what string) string { return "of " + word.Draw(t, what) + "." }
		n := firmwarenotes.Note{Name: "rig", Title: text("title"), Summary: text("summary"), Text: "# " + text("text") + "\n"}
		if rapid.Bool().Draw(t, "kind") {
			n.Kind = rapid.SampledFrom([]firmwarenotes.Kind{firmwarenotes.NIC, firmwarenotes.Module, firmwarenotes.Switch}).Draw(t, "of")
			n.Vendor = rapid.SampledFrom([]string{"", "ACME", "17"}).Draw(t, "vendor")
			n.Firmware.Known = rapid.SampledFrom([]string{"", "20.1", "1, 2"}).Draw(t, "firmware")
		}
		n.Sources = []firmwarenotes.Source{{Key: "key", Title: text("source"), Where: text("where")}}
		source := func() string {
			return rapid.SampledFrom([]string{"key", "key: " + text("remark"), "measured", "inferred: " + text("why"), text("inline")}).Draw(t, "cited")
		}
		span := func(what string) firmwarenotes.Span {
			if rapid.Bool().Draw(t, what+" modes") {
				var m dist.Mixture
				for range rapid.IntRange(1, 3).Draw(t, "modes") {
					m = append(m, dist.Mode{Share: rapid.Float64Range(1e-3, 1e3).Draw(t, "share"), Median: duration.Draw(t, "mode"), Spread: duration.Draw(t, "spread") / 1000})
				}
				return firmwarenotes.Mixed(m)
			}
			s := firmwarenotes.Span{Median: duration.Draw(t, what), Spread: duration.Draw(t, "spread")}
			s.Min, s.Max = s.Median/2, s.Median*2
			return s
		}
		for i, key := range rapid.SliceOfNDistinct(name, 0, 3, rapid.ID[string]).Draw(t, "profiles") {
			p := firmwarenotes.Profile{
				Key: key, Debounce: span("debounce"), Detect: span("detect"), Train: span("train"), Carrier: span("carrier"), Refresh: duration.Draw(t, "refresh") + 1,
			}
			values := []string{"debounce", "detect", "train", "carrier", "refresh"}
			if i%2 == 1 {
				p.Burst = &firmwarenotes.Burst{Window: time.Second, Free: i, Step: time.Millisecond, Most: time.Minute}
				values = []string{"debounce", "detect", "train", "carrier", "burst", "refresh"}
			}
			n.Profiles = append(n.Profiles, p)
			for _, v := range values {
				n.Origins = append(n.Origins, firmwarenotes.Origin{Profile: key, Value: v, Source: source(), Confidence: confidence.Draw(t, "sure")})
			}
		}
		for i := range n.Profiles {
			n.Profiles[i].Name = "rig"
			if len(n.Profiles) > 1 {
				n.Profiles[i].Name = "rig/" + n.Profiles[i].Key
			}
		}
		for _, key := range rapid.SliceOfNDistinct(name, 0, 3, rapid.ID[string]).Draw(t, "facts") {
			q, err := firmwarenotes.ParseQuantity(rapid.SampledFrom([]string{"6s", "-3 dBm", "7 retries", "none at all", "yes: it does"}).Draw(t, "value"))
			if err != nil {
				t.Fatal(err)
			}
			n.Facts = append(n.Facts, firmwarenotes.Fact{
				Name: key, What: text("what"), Value: q, Source: source(), Confidence: confidence.Draw(t, "sure"), AppliesTo: text("applies"), Check: text("check"),
			})
		}
		got, err := firmwarenotes.Parse("rig.md", n.Markdown())
		if d := cmp.Diff(n, got); err != nil || d != "" {
			t.Fatalf("%v (-written +read):\n%s\n%s", err, d, n.Markdown())
		}
	})
}

// The example of the documentation is a note.
func TestParse_Documentation(t *testing.T) {
	doc, err := os.ReadFile("../docs/firmware-notes.md")
	if err != nil {
		t.Fatal(err)
	}
	_, example, _ := strings.Cut(string(doc), "```yaml\n")
	example, _, _ = strings.Cut(example, "```\n")
	n, err := firmwarenotes.Parse("rig.md", []byte(example))
	if err != nil || len(n.Profiles) != 1 || len(n.Facts) != 1 {
		t.Errorf("%v: %+v", err, n)
	}
	for _, key := range []string{"`applies-to`", "`both-ends`", "`least-timeout`", "`effective`", "`unknown`", "`checks`"} {
		if !strings.Contains(string(doc), key) {
			t.Errorf("%s is not described", key)
		}
	}
}
