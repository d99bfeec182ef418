package main

import (
	"bytes"
	"os"
	"strings"
	"testing"

	"github.com/ocslab/ocslab/lab"
	"github.com/ocslab/ocslab/ocs"
)

const ci = "../ci.yaml"

// The timeline has every stage of an emulated lab, the history all changes, and the lab
// is left as it was found.
func TestToggle(t *testing.T) {
	opt := lab.Options{Emulated: true, StateDir: t.TempDir()}
	mine := ocs.MustMap(ocs.CrossConnect{Ingress: 20, Egress: 90})
	set(t, opt, mine)
	var out bytes.Buffer
	if err := toggle(t.Context(), &out, ci, "crossed", opt); err != nil {
		t.Fatal(err)
	}
	for _, stage := range []string{"ack", "light", "carrier-up", "traffic"} {
		if !strings.Contains(out.String(), "\n"+stage+" ") {
			t.Errorf("no %s in\n%s", stage, out.String())
		}
	}
	if got := holds(t, opt); !got.Equal(mine) {
		t.Errorf("left with %v, found with %v", got, mine)
	}
	entries, _, err := lab.Files(opt.StateDir).Entries()
	if err != nil || len(entries) != 4 {
		t.Fatalf("history: %+v, %v, want faster monitors, crossed, its way back, and the monitors as they were", entries, err)
	}
	monitors, crossed := entries[0], entries[1]
	if len(monitors.Set) != 8 || monitors.UndoneBy != 4 || crossed.Change.Add.String() != "1>72,2>71,3>70,4>69,5>68,6>67,7>66,8>65" || crossed.Command != "toggle crossed" {
		t.Errorf("history: %+v", entries)
	}
}

// A circuit of somebody else that is in the way stays, and nothing is moved.
func TestToggle_Busy(t *testing.T) {
	opt := lab.Options{Emulated: true, StateDir: t.TempDir()}
	theirs := ocs.MustMap(ocs.CrossConnect{Ingress: 20, Egress: 72})
	set(t, opt, theirs)
	var out bytes.Buffer
	if err := toggle(t.Context(), &out, ci, "crossed", opt); err == nil || !strings.Contains(err.Error(), "busy with 20>72") {
		t.Errorf("got error %v, want one that names 20>72", err)
	}
	if got := holds(t, opt); !got.Equal(theirs) {
		t.Errorf("left with %v, found with %v", got, theirs)
	}
}

func TestToggle_Unknown(t *testing.T) {
	var out bytes.Buffer
	if err := toggle(t.Context(), &out, ci, "nosuch", lab.Options{Emulated: true, StateDir: t.TempDir()}); err == nil {
		t.Error("a configuration that is not there was brought about")
	}
}

// The page of examples promises a program that is read in a minute.
func TestShort(t *testing.T) {
	text, err := os.ReadFile("main.go")
	if lines := bytes.Count(text, []byte("\n")); err != nil || lines >= 60 {
		t.Errorf("%d lines (%v), want less than 60", lines, err)
	}
}

// set leaves the emulated switch of the lab with these circuits.
func set(t *testing.T, opt lab.Options, want ocs.Map) {
	t.Helper()
	with(t, opt, func(sw ocs.Switch) {
		if _, err := ocs.Reconcile(t.Context(), sw, want, ocs.Safe); err != nil {
			t.Fatal(err)
		}
	})
}

func holds(t *testing.T, opt lab.Options) (m ocs.Map) {
	t.Helper()
	with(t, opt, func(sw ocs.Switch) {
		var err error
		if m, err = sw.CrossConnects(t.Context()); err != nil {
			t.Fatal(err)
		}
	})
	return m
}

func with(t *testing.T, opt lab.Options, do func(ocs.Switch)) {
	t.Helper()
	f, err := lab.Load(ci)
	if err != nil {
		t.Fatal(err)
	}
	l := lab.New(f, opt)
	defer l.Close()
	sw, err := l.Switch(t.Context(), "rail0")
	if err != nil {
		t.Fatal(err)
	}
	do(sw)
}
