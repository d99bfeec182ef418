package firmwarenotes_test

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	firmwarenotes "github.com/ocslab/ocslab/firmware-notes"
)

func TestNames(t *testing.T) {
	want := []string{"cmis-module", "connectx-6-dx/autoneg-on", "connectx-6-dx/autoneg-off", "quick"}
	if d := cmp.Diff(want, firmwarenotes.Names()); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

func TestAll(t *testing.T) {
	notes := firmwarenotes.All()
	if len(notes) == 0 {
		t.Fatal("no notes")
	}
	for _, n := range notes {
		if n.Title == "" || n.Summary == "" || !strings.HasPrefix(n.Text, "# ") {
			t.Errorf("%s: title %q, summary %q, text begins with %.20q", n.Name, n.Title, n.Summary, n.Text)
		}
		want := 0
		for _, p := range n.Profiles {
			want += 5
			if p.Burst != nil {
				want++
			}
			if found, err := firmwarenotes.Find(p.Name); err != nil || !cmp.Equal(found, p) {
				t.Errorf("Find(%q) = %+v, %v\nwant %+v", p.Name, found, err, p)
			}
		}
		if len(n.Origins) != want {
			t.Errorf("%s: %d origins for %d values", n.Name, len(n.Origins), want)
		}
	}
}

// What is handed out is a copy.
func TestGet_Own(t *testing.T) {
	spoilt, err := firmwarenotes.Get("connectx-6-dx")
	if err != nil {
		t.Fatal(err)
	}
	want := string(spoilt.Markdown())
	spoilt.Profiles[0].Burst.Most, spoilt.Profiles[0].Name, spoilt.Origins[0].Source = 0, "spoilt", "spoilt"
	spoilt.Facts[0].Source, spoilt.Sources[0].Title, spoilt.Unknown[0] = "spoilt", "spoilt", "spoilt"
	spoilt.Settings[0].Values[0], spoilt.Settings[0].Show[0] = "spoilt", "spoilt"
	spoilt.RDMA.Adaptive[0], spoilt.RDMA.Errors[0].After, spoilt.Checks[0].Run[0] = 0, 0, "spoilt"
	if again, err := firmwarenotes.Get("connectx-6-dx"); err != nil || string(again.Markdown()) != want {
		t.Errorf("a caller's change is in the next answer: %v\n%s", err, again.Markdown())
	}
	p, err := firmwarenotes.Find("connectx-6-dx/autoneg-on")
	if err != nil || p.Burst.Most == 0 {
		t.Fatalf("Find = %+v, %v", p, err)
	}
	p.Burst.Most = 0
	if again, _ := firmwarenotes.Find(p.Name); again.Burst.Most == 0 {
		t.Error("a caller's change is in the next answer")
	}
	firmwarenotes.RDMA("connectx-6-dx").Adaptive[0] = 0
	if firmwarenotes.RDMA("connectx-6-dx").Adaptive[0] == 0 {
		t.Error("a caller's change is in the next schedule")
	}
}

// The figures of the paper are those of the model.
func TestConnectX6Dx(t *testing.T) {
	for name, want := range map[string]time.Duration{
		"connectx-6-dx/autoneg-on":  6 * time.Second,
		"connectx-6-dx/autoneg-off": 3 * time.Second,
	} {
		p, err := firmwarenotes.Find(name)
		if err != nil {
			t.Fatal(err)
		}
		if got := p.Detect.Median + p.Train.Median; got != want {
			t.Errorf("%s: link-up after %v, want %v", name, got, want)
		}
		if got := p.Detect.Median + p.Train.Median + p.Burst.Most; got != 10*time.Second {
			t.Errorf("%s: link-up after %v at worst, want 10s", name, got)
		}
		if c := p.Carrier; c.Min != 70*time.Microsecond || c.Max != 80*time.Microsecond {
			t.Errorf("%s: carrier %+v", name, c)
		}
	}
}

func TestQuick(t *testing.T) {
	got, err := firmwarenotes.Find("quick")
	const ms = time.Millisecond
	want := firmwarenotes.Profile{
		Name:     "quick",
		Key:      "quick",
		Debounce: firmwarenotes.Span{Median: 2 * ms},
		Detect:   firmwarenotes.Span{Median: 5 * ms},
		Train:    firmwarenotes.Span{Median: 40 * ms, Spread: 2 * ms, Min: 30 * ms, Max: 50 * ms},
		Carrier:  firmwarenotes.Span{Median: 75 * time.Microsecond},
		Refresh:  10 * ms,
	}
	if d := cmp.Diff(want, got); err != nil || d != "" {
		t.Errorf("%v (-want +got):\n%s", err, d)
	}
	notes := firmwarenotes.All()
	quick := notes[slices.IndexFunc(notes, func(n firmwarenotes.Note) bool { return n.Name == "quick" })]
	if !strings.Contains(quick.Summary, "invented") {
		t.Errorf("the summary does not say that it is invented: %q", quick.Summary)
	}
}

func TestFind_Unknown(t *testing.T) {
	const list = "want one of cmis-module, connectx-6-dx/autoneg-on, connectx-6-dx/autoneg-off, quick"
	for name, want := range map[string]string{
		"connectx-6dx/autoneg-off": `unknown firmware "connectx-6dx/autoneg-off" (did you mean "connectx-6-dx/autoneg-off"?): ` + list,
		"e810":                     `unknown firmware "e810": ` + list,
		"":                         `unknown firmware "": ` + list,
		"quick/":                   `unknown firmware "quick/" (did you mean "quick"?): ` + list,
		"connectx-6-dx":            `unknown firmware "connectx-6-dx": say which of its profiles: connectx-6-dx/autoneg-on, connectx-6-dx/autoneg-off`,
	} {
		p, err := firmwarenotes.Find(name)
		if !errors.Is(err, firmwarenotes.ErrUnknown) || err.Error() != want || !cmp.Equal(p, firmwarenotes.Profile{}) {
			t.Errorf("Find(%q) = %+v, %v\nwant %s", name, p, err, want)
		}
	}
}

func TestGet_Unknown(t *testing.T) {
	for name, want := range map[string]string{
		"conectx-7": `unknown firmware note "conectx-7" (did you mean "connectx-7"?): want one of calient-bulk, `,
		"none.md":   "unknown firmware: the note none.md cannot be read: ",
	} {
		if _, err := firmwarenotes.Get(name); !errors.Is(err, firmwarenotes.ErrUnknown) || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("Get(%q): %v\nwant %s", name, err, want)
		}
	}
}

// A note of the user's is found by its path, and its profiles behind that.
func TestFind_File(t *testing.T) {
	dir := t.TempDir()
	one, two, none := filepath.Join(dir, "one.md"), filepath.Join(dir, "two.md"), filepath.Join(dir, "none.md")
	for path, md := range map[string]string{one: strings.Replace(whole, "  fast: {", "  # fast: {", 1), two: whole, none: "---\ntitle: A\nsummary: B.\n---\n"} {
		if err := os.WriteFile(path, []byte(md), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{one, one + "#slow", two + "#slow"} {
		if p, err := firmwarenotes.Find(name); err != nil || p.Name != name || p.Train.Median != 3*time.Second {
			t.Errorf("Find(%q) = %+v, %v", name, p, err)
		}
	}
	for name, want := range map[string]string{
		two:            "say which of its profiles: " + two + "#slow, " + two + "#fast",
		two + "#slwo":  `(did you mean "` + two + `#slow"?): want one of ` + two + "#slow, " + two + "#fast",
		none:           "the note has no profiles",
		dir + "/no.md": "no.md cannot be read: ",
	} {
		if _, err := firmwarenotes.Find(name); !errors.Is(err, firmwarenotes.ErrUnknown) || !strings.Contains(err.Error(), want) {
			t.Errorf("Find(%q): %v\nwant %s", name, err, want)
		}
	}
	if err := os.WriteFile(one, []byte("---\ntitel: A\n---\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := firmwarenotes.Find(one); err == nil || !strings.Contains(err.Error(), `one.md:2:1: unknown key "titel"`) {
		t.Errorf("a note with a mistake: %v", err)
	}
}

func TestSearch(t *testing.T) {
	hits := firmwarenotes.Search(firmwarenotes.All(), "3439438")
	if len(hits) == 0 || hits[0].Note != "connectx-7" {
		t.Errorf("%+v", hits)
	}
	for _, h := range firmwarenotes.Search(firmwarenotes.All(), "SQUELCH", "both") {
		if text := strings.ToLower(h.In + h.Text); !strings.Contains(text, "squelch") || !strings.Contains(text, "both") {
			t.Errorf("%+v", h)
		}
	}
	n, err := firmwarenotes.Parse("card.md", []byte(whole+"A line about LIGHT.\n"))
	if err != nil {
		t.Fatal(err)
	}
	want := []firmwarenotes.Hit{{Note: "card", In: "text", Heading: "A card", Line: 4, Text: "More. A line about LIGHT."}}
	if d := cmp.Diff(want, n.Search("light", "line")); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	n.Text = "# A card\n\nIt takes 6\ns, or 60 s.\n\n## Firmware\n\n| FEC | 6s |\n| --- | --- |\n| none | 6 min |\n\n- PHY_AUTO_NEG\n- auto-negotiation,\n  6.\n"
	for words, want := range map[string][]int{
		"6 s": {3, 8}, "6s": {3, 8}, "6 S it": {3}, "60": {3}, "6": {3, 8, 10, 13}, "6 min": {10}, "autoneg": {12, 13}, "AUTO-NEG 6": {13}, "firm-ware": {6},
		"no": nil, "none": {10}, "0 s": nil,
	} {
		var lines []int
		for _, h := range n.Search(strings.Fields(words)...) {
			if h.In == "text" {
				lines = append(lines, h.Line)
			}
		}
		if !slices.Equal(lines, want) {
			t.Errorf("%q is in lines %v, want %v", words, lines, want)
		}
	}
	if hits := n.Search("none"); len(hits) != 1 || hits[0].Heading != "Firmware" || hits[0].Text != "none | 6 min" {
		t.Errorf("%+v", hits)
	}
	for words, first := range map[string]string{
		"6 s": "connectx-6-dx", "autoneg": "connectx-6-dx", "retransmission": "connectx-6-dx", "reboot": "polatis", "3 min": "connectx-7", "calient": "calient-bulk",
	} {
		if hits := firmwarenotes.Search(firmwarenotes.All(), words); len(hits) == 0 || hits[0].Note != first {
			t.Errorf("%q: %+v, want %s first", words, hits, first)
		}
	}
	if hits := n.Search(); hits != nil {
		t.Errorf("without words: %+v", hits)
	}
}

// A search leaves the note as it is, also what lies behind the ends of its lists: notes are
// searched by several at once.
func TestSearch_LeavesTheNote(t *testing.T) {
	run := []string{"one", "behind"}
	n := firmwarenotes.Note{Name: "rig", Checks: []firmwarenotes.Check{{Name: "c", What: "w", Run: run[:1], Expect: "e"}}}
	if hits := n.Search("one"); len(hits) != 1 || hits[0].Text != "w; one; e" {
		t.Errorf("%+v", hits)
	}
	if run[1] != "behind" {
		t.Errorf("the search wrote %q into the note", run[1])
	}
}

// The commands of real settings are whole once everything is filled in, and as they stand
// in the note where it is not.
func TestSteps(t *testing.T) {
	for _, n := range firmwarenotes.All() {
		for _, s := range n.Settings {
			for _, v := range s.Values {
				steps, err := s.Steps(firmwarenotes.Target{PCI: "0000:3b:00.0", Dev: "ens1f0", Port: "1", Value: v})
				if err != nil {
					t.Errorf("%s %s: %v", n.Name, s.Name, err)
				}
				for _, step := range steps {
					for _, c := range step.Commands {
						if step.Do != "undo" && strings.ContainsAny(c, "{}") || strings.Contains(strings.ReplaceAll(c, "{previous}", ""), "{") {
							t.Errorf("%s %s: %s: %s", n.Name, s.Name, step.Do, c)
						}
					}
				}
				if open, err := s.Steps(firmwarenotes.Target{Value: v}); err != nil || open[0].Commands[0] != s.Show[0] {
					t.Errorf("%s %s: %+v, %v", n.Name, s.Name, open, err)
				}
			}
		}
	}
}

func TestSteps_Refused(t *testing.T) {
	n, err := firmwarenotes.Get("connectx-6-dx")
	if err != nil {
		t.Fatal(err)
	}
	s, err := n.Setting("PHY_AUTO_NEG")
	if err != nil {
		t.Fatal(err)
	}
	const off = "AUTO_NEG_DISABLED"
	for _, target := range []firmwarenotes.Target{
		{}, {Value: "off"}, {Value: off + ";reboot"}, {Value: off, PCI: "3b"}, {Value: off, PCI: "0000:3b:00.0; reboot"},
		{Value: off, Dev: "a b"}, {Value: off, Dev: "-x"}, {Value: off, Dev: "$(id)"}, {Value: off, Port: "0"}, {Value: off, Port: "1;"},
	} {
		if steps, err := s.Steps(target); err == nil {
			t.Errorf("%+v: %+v", target, steps)
		}
	}
	only, err := n.Setting("PHY_RATE_MASK_OVERRIDE")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := only.Steps(firmwarenotes.Target{Value: "True"}); err == nil || !strings.Contains(err.Error(), "does not say how to set it: look at it with mstconfig ") {
		t.Errorf("without commands: %v", err)
	}
	if _, err := n.Setting("PHY_AUTONEG"); !errors.Is(err, firmwarenotes.ErrUnknown) || !strings.Contains(err.Error(), `did you mean "PHY_AUTO_NEG"?`) {
		t.Error(err)
	}
}
