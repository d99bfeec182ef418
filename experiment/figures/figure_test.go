package figures

import (
	"errors"
	"io/fs"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ocslab/ocslab/examples"
	"github.com/ocslab/ocslab/experiment/plan"
	"github.com/ocslab/ocslab/lab"
)

func testbed(t *testing.T) *lab.File {
	t.Helper()
	l, err := lab.Parse("opus-testbed.yaml", examples.OpusTestbed)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// Who runs a preset as it is waits for less than four minutes on the emulated testbed, and
// its plan can be made for real labs, too.
func TestPresetsResolve(t *testing.T) {
	l := testbed(t)
	for _, f := range All() {
		t.Run(f.Name, func(t *testing.T) {
			file, err := f.File(Options{Emulated: true})
			if err != nil {
				t.Fatal(err)
			}
			p, err := file.Resolve(l, plan.Options{Emulated: true})
			if err != nil {
				t.Fatal(err)
			}
			if p.Total() <= 0 || p.Total() > 4*time.Minute {
				t.Errorf("takes %v", p.Total())
			}
			t.Logf("%d points in %v", len(p.Points), p.Total().Round(time.Second))

			if file, err = f.File(Options{Lab: l}); err != nil {
				t.Fatal(err)
			}
			if _, err := file.Resolve(l, plan.Options{}); err != nil {
				t.Fatal(err)
			}
		})
	}
}

// An example is for the lab of its name, or else for the testbed.
func TestExampleExperiments(t *testing.T) {
	entries, err := examples.Experiments.ReadDir("experiments")
	if err != nil {
		t.Fatal(err)
	}
	names := map[string]bool{}
	for _, e := range entries {
		t.Run(e.Name(), func(t *testing.T) {
			data, err := examples.Experiments.ReadFile("experiments/" + e.Name())
			if err != nil {
				t.Fatal(err)
			}
			file, err := plan.Parse(e.Name(), data)
			if err != nil {
				t.Fatal(err)
			}
			if names[file.Name] || file.Name+".yaml" != e.Name() {
				t.Errorf("is called %q", file.Name)
			}
			names[file.Name] = true
			l, err := lab.Load("../../examples/" + e.Name())
			if errors.Is(err, fs.ErrNotExist) {
				l, err = testbed(t), nil
			}
			if err != nil {
				t.Fatal(err)
			}
			real := strings.HasSuffix(file.Name, "-hardware") || file.Name == "night"
			p, err := file.Resolve(l, plan.Options{Emulated: !real})
			if err != nil {
				t.Fatal(err)
			}
			if p.Total() <= 0 {
				t.Errorf("takes %v", p.Total())
			}
			if file.Name == "opus-toggle" && p.Total() > 10*time.Second {
				t.Errorf("takes %v, and its comment says less than ten seconds", p.Total())
			}
			// Reading it again gives the same plan: nothing in it is left to chance.
			again, err := file.Resolve(l, plan.Options{Emulated: !real})
			if err != nil || !slices.Equal(p.Points, again.Points) {
				t.Errorf("another plan the second time (%v)", err)
			}
		})
	}
}

// The ring and the pairs of the preset have half of their circuits in common.
func TestCrossWiringMovesHalf(t *testing.T) {
	l := testbed(t)
	f, err := Find("crosswiring-table1")
	if err != nil {
		t.Fatal(err)
	}
	file, err := f.File(Options{Emulated: true, Lab: l})
	if err != nil {
		t.Fatal(err)
	}
	p, err := file.Resolve(l, plan.Options{Emulated: true})
	if err != nil {
		t.Fatal(err)
	}
	maps := p.Conditions[0].Maps
	pairs, ring := maps[0]["rail0"], maps[1]["rail0"]
	if kept := pairs.Len() - pairs.Minus(ring).Len(); pairs.Len() != 4 || ring.Len() != 4 || kept != 2 {
		t.Errorf("%v and %v share %d circuits, want 2 of 4", pairs, ring, kept)
	}
}

func TestFind(t *testing.T) {
	f, err := Find("autoneg")
	if err != nil || f.Name != "autoneg" {
		t.Errorf("Find = %q, %v", f.Name, err)
	}
	_, err = Find("opus-9x")
	want := `there is no figure "opus-9x" (did you mean "opus-9c"?): known are opus-9c, opus-9d, autoneg, delay-sweep, crosswiring-table1`
	if err == nil || err.Error() != want {
		t.Errorf("error %v\nwant  %s", err, want)
	}
}

// A lab has configurations of its own.
func TestFileSequence(t *testing.T) {
	lab := func(configurations string) *lab.File {
		text, _, _ := strings.Cut(string(examples.OpusTestbed), "# What an experiment")
		l, err := lab.Parse("lab.yaml", []byte(text+configurations))
		if err != nil {
			t.Fatal(err)
		}
		return l
	}
	const two = "configurations:\n  b: {links: [[gpu1, gpu2]]}\n  a: {links: [[gpu1, gpu3]]}\n"
	for _, tt := range []struct {
		name     string
		preset   string
		opt      Options
		sequence []string
		fails    string
	}{
		{"none of its own", "opus-9c", Options{Emulated: true}, []string{"dp", "pp"}, ""},
		{"as the lab has them", "opus-9c", Options{Lab: testbed(t)}, []string{"dp", "pp"}, ""},
		{"two others", "opus-9c", Options{Lab: lab(two)}, []string{"a", "b"}, ""},
		{"too many", "opus-9c", Options{Lab: lab(two + "  c: {links: [[gpu1, gpu4]]}\n")}, nil,
			`figure opus-9c: the lab has no configuration "dp": say which two to move between; it has a, b, c`},
		{"too few", "opus-9c", Options{Lab: lab("")}, nil,
			`figure opus-9c: the lab has no configuration "dp", and not two others to move between: write two into the lab file`},
		{"asked for", "opus-9c", Options{Lab: lab(two), Sequence: []string{"b", "a"}}, []string{"b", "a"}, ""},
		{"of the experiment", "crosswiring-table1", Options{Lab: lab(two)}, []string{"pairs", "ring"}, ""},
		{"one", "opus-9c", Options{Sequence: []string{"a"}}, nil, "figure opus-9c: one configuration is not enough: a light path moves from one to another"},
		{"no name", "opus-9c", Options{Sequence: []string{"a", "b]\nrepeats: 7"}}, nil, `figure opus-9c: "b]\nrepeats: 7" is not the name of a configuration`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f, err := Find(tt.preset)
			if err != nil {
				t.Fatal(err)
			}
			file, err := f.File(tt.opt)
			if tt.fails != "" {
				if err == nil || err.Error() != tt.fails {
					t.Fatalf("error %v\nwant  %s", err, tt.fails)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(file.Sequence, tt.sequence) {
				t.Errorf("goes through %q, want %q", file.Sequence, tt.sequence)
			}
			// The text that is kept of the run says the same.
			again, err := plan.Parse("again.yaml", file.Text)
			if err != nil || !slices.Equal(again.Sequence, tt.sequence) {
				t.Errorf("its text goes through %q, %v", again.Sequence, err)
			}
		})
	}
}

// What the lab's own sequence is replaced in stands on one line in every preset.
func TestPresetsHaveOneSequenceLine(t *testing.T) {
	for _, f := range All() {
		for _, emulated := range []bool{true, false} {
			file, err := f.File(Options{Emulated: emulated})
			if err != nil {
				t.Fatal(err)
			}
			if n := len(sequenceLine.FindAll(file.Text, -1)); n != 1 {
				t.Errorf("%s has %d lines with a sequence, want 1", file.Path, n)
			}
		}
	}
}
