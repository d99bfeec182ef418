package firmwarenotes_test

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	firmwarenotes "github.com/ocslab/ocslab/firmware-notes"
	"github.com/ocslab/ocslab/internal/strictyaml"
)

const whole = `---
title: A card
summary: Slow.
profiles:
  slow:
    source: a paper
    confidence: high
    debounce: "10ms" # in quotes
    detect: { median: 50ms, confidence: low, source: assumed }
    train:
      median: 3s
      spread: 100ms
      min: 2.8s
      max: 4s
    carrier: '75us'
    burst: {window: 30s, free: 2, step: 1s, most: 7s, confidence: medium}
    refresh: {period: 100ms, source: a data sheet}
  fast: {source: assumed, confidence: low, debounce: 1ms, detect: 2ms, train: 3ms, carrier: 0s, refresh: 4ms}
---

# A card

---
More.
`

func TestParse(t *testing.T) {
	const ms = time.Millisecond
	type span = firmwarenotes.Span
	origin := func(profile, value, source string, c firmwarenotes.Confidence) firmwarenotes.Origin {
		return firmwarenotes.Origin{Profile: profile, Value: value, Source: source, Confidence: c}
	}
	want := firmwarenotes.Note{
		Name: "card", Title: "A card", Summary: "Slow.",
		Profiles: []firmwarenotes.Profile{
			{
				Name: "card/slow", Key: "slow", Debounce: span{Median: 10 * ms}, Detect: span{Median: 50 * ms},
				Train:   span{Median: 3000 * ms, Spread: 100 * ms, Min: 2800 * ms, Max: 4000 * ms},
				Carrier: span{Median: 75 * time.Microsecond},
				Burst:   &firmwarenotes.Burst{Window: 30000 * ms, Free: 2, Step: 1000 * ms, Most: 7000 * ms},
				Refresh: 100 * ms,
			},
			{
				Name: "card/fast", Key: "fast", Debounce: span{Median: ms}, Detect: span{Median: 2 * ms}, Train: span{Median: 3 * ms},
				Refresh: 4 * ms,
			},
		},
		Origins: []firmwarenotes.Origin{
			origin("slow", "debounce", "a paper", firmwarenotes.High),
			origin("slow", "detect", "assumed", firmwarenotes.Low),
			origin("slow", "train", "a paper", firmwarenotes.High),
			origin("slow", "carrier", "a paper", firmwarenotes.High),
			origin("slow", "burst", "a paper", firmwarenotes.Medium),
			origin("slow", "refresh", "a data sheet", firmwarenotes.High),
			origin("fast", "debounce", "assumed", firmwarenotes.Low),
			origin("fast", "detect", "assumed", firmwarenotes.Low),
			origin("fast", "train", "assumed", firmwarenotes.Low),
			origin("fast", "carrier", "assumed", firmwarenotes.Low),
			origin("fast", "refresh", "assumed", firmwarenotes.Low),
		},
		Text: "# A card\n\n---\nMore.\n",
	}
	dos := strings.ReplaceAll(whole, "\n", "\r\n")
	for name, md := range map[string]string{"card.md": whole, "../notes/card.md": "\ufeff" + whole, `C:\notes\card.md`: dos} {
		got, err := firmwarenotes.Parse(name, []byte(md))
		got.Text = strings.ReplaceAll(got.Text, "\r\n", "\n")
		if d := cmp.Diff(want, got); err != nil || d != "" {
			t.Errorf("%s: %v (-want +got):\n%s", name, err, d)
		}
	}
}

// A note may be for people only.
func TestParse_NoProfiles(t *testing.T) {
	n, err := firmwarenotes.Parse("a.md", []byte("---\ntitle: A\nsummary: S.\n---"))
	if err != nil || n.Title != "A" || n.Profiles != nil || n.Text != "" {
		t.Errorf("got %+v, %v", n, err)
	}
}

// Each case changes one line of whole.
func TestParse_Errors(t *testing.T) {
	for _, c := range []struct{ old, new, want string }{
		{"---\ntitle", "--\ntitle", "card.md:1:1: there is no header: begin the note with a line of three hyphens, ---, the header, and another such line"},
		{"title: A card", "title: [A card]", `card.md:2:8: title: want text, found a list`},
		{"title: A card", "titel: A card", "card.md:2:1: unknown key \"titel\" (did you mean \"title\"?)\ncard.md:2:1: the key \"title\" is missing"},
		{"  slow:", "  Slow_1:", `card.md:5:3: profiles.Slow_1: not the name of a profile: want lower-case letters, digits and single hyphens, such as connectx-6-dx`},
		{"confidence: high", "confidence: hihg", `card.md:7:17: profiles.slow.confidence: want high, medium or low, found "hihg" (did you mean "high"?)`},
		{"    source: a paper", "    sauce: a paper", `card.md:6:5: profiles.slow: unknown key "sauce" (did you mean "source"?)`},
		{`"10ms"`, "10", `card.md:8:15: profiles.slow.debounce.median: "10" has no unit: write 10ms, 10s or 10m`},
		{`"10ms"`, `"\u0031"`, `card.md:8:15: profiles.slow.debounce: want a mapping with the keys median, spread, modes, min, max, source, confidence, found a single value`},
		{`"10ms"`, "", "card.md:8:14: profiles.slow.debounce: has no value: write one, or remove the key"},
		{`"10ms"`, `""`, `card.md:8:15: profiles.slow.debounce: want a mapping with the keys median, spread, modes, min, max, source, confidence, found a single value`},
		{`"10ms"`, "~", "card.md:8:15: profiles.slow.debounce: has no value, as ~ means none: write one, or put it in quotes if it is text"},
		{`"10ms"`, "[1ms]", "card.md:8:15: profiles.slow.debounce: want a mapping with the keys median, spread, modes, min, max, source, confidence, found a list"},
		{`"10ms"`, "&a 10ms", "card.md:8:15: profiles.slow.debounce: anchors and aliases are not supported: write the value out\n" +
			"card.md:8:15: profiles.slow.debounce: want a mapping with the keys median, spread, modes, min, max, source, confidence, found a single value"},
		{`"10ms"`, "-10ms", "card.md:8:15: profiles.slow.debounce.median: is negative"},
		{"spread: 100ms", "spread: 2h", "card.md:12:15: profiles.slow.train.spread: is longer than an hour"},
		{"min: 2.8s", "min: 3.8s", "card.md:13:12: profiles.slow.train.min: is above the median of 3s"},
		{"max: 4s", "max: 2s", "card.md:14:12: profiles.slow.train.max: is below the median of 3s"},
		{"window: 30s", "window: 0s", "card.md:16:21: profiles.slow.burst.window: want more than nothing and an hour at most, found 0s"},
		{"free: 2", "free: -2", "card.md:16:32: profiles.slow.burst.free: is negative: it counts link-ups"},
		{"most: 7s", "most: 7", `card.md:16:51: profiles.slow.burst.most: "7" has no unit: write 7ms, 7s or 7m`},
		{"period: 100ms", "period: 0s", "card.md:17:23: profiles.slow.refresh.period: want more than nothing and an hour at most, found 0s"},
		// Behind others on one line that were written short, too.
		{"train: 3ms", "train: 3", `card.md:18:79: profiles.fast.train.median: "3" has no unit: write 3ms, 3s or 3m`},
		{"carrier: 0s", "carrier: {mean: 0s}", `card.md:18:94: profiles.fast.carrier: unknown key "mean" (did you mean "median"?)`},
		{"refresh: 4ms}", "refresh: 4ms, größe: 1}", `card.md:18:111: profiles.fast: unknown key "größe": the keys here are debounce, detect, train, carrier, burst, refresh, source, confidence`},
		{"refresh: 4ms}", "}", `card.md:18:9: profiles.fast: the key "refresh" is missing`},
		{"debounce: 1ms, detect: 2ms", "debounce: {median: 1ms, source: a}, detect: 2ms, detect: 3ms", `card.md:18:93: profiles.fast: the key "detect" is there twice, first on line 18`},
		{"source: assumed, ", "", strings.Join([]string{
			"card.md:18:37: profiles.fast.debounce: " + unsourced, "card.md:18:50: profiles.fast.detect: " + unsourced,
			"card.md:18:62: profiles.fast.train: " + unsourced, "card.md:18:76: profiles.fast.carrier: " + unsourced,
			"card.md:18:89: profiles.fast.refresh: " + unsourced}, "\n")},
		{"  fast: {", "  fast: ", "card.md:18:15: a colon is not allowed here: put quotes around text that holds one, or mend the indentation"},
	} {
		md := strings.Replace(whole, c.old, c.new, 1)
		n, err := firmwarenotes.Parse("card.md", []byte(md))
		if err == nil || err.Error() != c.want {
			t.Errorf("%s instead of %s:\n got %v\nwant %s", c.new, c.old, err, c.want)
		}
		if errs := (strictyaml.Errors)(nil); !errors.As(err, &errs) {
			t.Errorf("%s instead of %s: %T", c.new, c.old, err)
		}
		if !cmp.Equal(n, firmwarenotes.Note{}) {
			t.Errorf("%s instead of %s: a note comes with the error: %+v", c.new, c.old, n)
		}
	}
}

// YAML takes characters for line breaks that no editor does; positions are the editor's.
func TestParse_LineBreaks(t *testing.T) {
	for _, c := range []struct{ md, want string }{
		{"---\nprofiles:\u0085 a: {train: 3s, detect: 4s}\n---\n", `a.md:2:10: there is an invisible character here, '\u0085': remove it`},
		{"---\nprofiles: {a: {train: 3s,\u2028 detect:\u2028 4s}}\n---\n", `a.md:2:26: there is an invisible character here, '\u2028': remove it`},
		{"---\nprofiles: {a: {train: 3s,\r detect: 4s}}\n---\n", `a.md:2:26: there is an invisible character here, '\r': remove it`},
		{"---\ntitle: \xff\n---\n", "a.md:2:8: the file is not UTF-8 text here"},
	} {
		if _, err := firmwarenotes.Parse("a.md", []byte(c.md)); err == nil || err.Error() != c.want {
			t.Errorf("%q:\n got %v\nwant %s", c.md, err, c.want)
		}
	}
}

const unsourced = "does not say where it comes from and how sure that is: give it a source and a confidence, or its profile"

func TestParse_Unclosed(t *testing.T) {
	const (
		empty = "the file is empty"
		end   = "the header has no end: close it with a line of three hyphens, ---"
		none  = "there is no header: begin the note with a line of three hyphens, ---, the header, and another such line"
	)
	for md, want := range map[string]string{
		"": empty, " \r\n\n": empty, "\ufeff": empty, "---": end, "---\n": end, "---\r\ntitle: A\n": end, "---\ntitle: \xff\n": "the file is not UTF-8 text",
		"title: A\n---\n": none, "----\n---\n": none, "\x7fELF\xff\xfe": "the file is not UTF-8 text",
	} {
		if _, err := firmwarenotes.Parse("a.md", []byte(md)); err == nil || err.Error() != "a.md:1:1: "+want {
			t.Errorf("%q:\n got %v\nwant %s", md, err, want)
		}
	}
	if _, err := firmwarenotes.Parse("card.md", []byte(whole+"Good.\nB\xffd.\n")); err == nil || err.Error() != fmt.Sprintf("card.md:%d:1: this line is not UTF-8 text", strings.Count(whole, "\n")+2) {
		t.Errorf("text that is not UTF-8: %v", err)
	}
	if _, err := firmwarenotes.Parse("a.md", []byte("---\n---\n")); err == nil || err.Error() != "a.md:1:1: the header is empty: write at least a title and a summary" {
		t.Errorf("an empty header: %v", err)
	}
}

func TestParse_Name(t *testing.T) {
	for _, name := range []string{"", ".md", "Card.md", "a b.md", "a--b.md", "a/..", "ä.md"} {
		_, err := firmwarenotes.Parse(name, []byte(whole))
		if err == nil || !strings.Contains(err.Error(), "its profiles are called by the name of the file") {
			t.Errorf("Parse(%q): %v", name, err)
		}
	}
}

// Whatever the text, Parse returns: a note whose values a model can use and that can be
// written and read again, or errors that point into the text.
func FuzzParse(f *testing.F) {
	f.Add([]byte(whole))
	f.Add([]byte(wholeHeader))
	names, err := fs.Glob(os.DirFS("."), "*.md")
	if err != nil {
		f.Fatal(err)
	}
	for _, name := range names {
		md, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(md)
	}
	f.Fuzz(func(t *testing.T, md []byte) {
		n, err := firmwarenotes.Parse("a.md", md)
		if errs := (strictyaml.Errors)(nil); errors.As(err, &errs) {
			lines := strings.Split(strings.TrimPrefix(string(md), "\ufeff"), "\n")
			for _, e := range errs {
				if e.Line < 1 || e.Line > len(lines) || e.Column < 1 || e.Column > len([]rune(lines[e.Line-1]))+1 {
					t.Errorf("%v: there is no such place", e)
				}
			}
			return
		}
		if err != nil {
			t.Fatalf("an error of another kind: %v", err)
		}
		if again, err := firmwarenotes.Parse("a.md", n.Markdown()); err != nil || !cmp.Equal(n, again) {
			t.Errorf("written, it is something else: %v\n%s\n%s", err, cmp.Diff(n, again), n.Markdown())
		}
		for _, p := range n.Profiles {
			for _, s := range []firmwarenotes.Span{p.Debounce, p.Detect, p.Train, p.Carrier} {
				if s.Min < 0 || s.Min > s.Median || s.Spread < 0 || s.Max != 0 && s.Max < s.Median {
					t.Errorf("%s: %+v", p.Name, s)
				}
			}
		}
	})
}
