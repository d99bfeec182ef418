package firmwarenotes_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	firmwarenotes "github.com/ocslab/ocslab/firmware-notes"
)

func TestNames(t *testing.T) {
	want := []string{"connectx-6-dx/autoneg-on", "connectx-6-dx/autoneg-off", "quick"}
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
		if len(n.Facts) != want {
			t.Errorf("%s: %d facts for %d values", n.Name, len(n.Facts), want)
		}
	}
}

// What is handed out is a copy.
func TestAll_Own(t *testing.T) {
	spoilt := firmwarenotes.All()
	spoilt[0].Profiles[0].Burst.Most = 0
	spoilt[0].Profiles[0].Name = "spoilt"
	spoilt[0].Facts[0].Source = "spoilt"
	name := firmwarenotes.Names()[0]
	p, err := firmwarenotes.Find(name)
	if err != nil || p.Burst.Most == 0 {
		t.Fatalf("Find(%q) = %+v, %v", name, p, err)
	}
	p.Burst.Most = 0
	if again, _ := firmwarenotes.Find(name); again.Burst.Most == 0 {
		t.Error("a caller's change is in the next answer")
	}
	if n := firmwarenotes.All()[0]; n.Facts[0].Source == "spoilt" || n.Profiles[0].Name == "spoilt" {
		t.Errorf("a caller's change is in the notes: %+v", n)
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
	const list = "want one of connectx-6-dx/autoneg-on, connectx-6-dx/autoneg-off, quick"
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
