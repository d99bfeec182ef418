package live

import (
	"context"
	"os"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/ocslab/ocslab/emulator/fabric"
	"github.com/ocslab/ocslab/examples"
	"github.com/ocslab/ocslab/lab"
	"github.com/ocslab/ocslab/ocs"
)

// TestMain makes sure that no test leaves a goroutine behind.
func TestMain(m *testing.M) {
	// A tick of bubbletea that is on its way lasts until it is due.
	goleak.VerifyTestMain(m, goleak.IgnoreTopFunction("github.com/charmbracelet/bubbletea.Tick.func1"))
}

// testbedFile is the built-in testbed.
func testbedFile(t testing.TB) *lab.File {
	t.Helper()
	f, err := lab.Parse("opus-testbed.yaml", examples.OpusTestbed)
	if err != nil {
		t.Fatal(err)
	}
	f.Path = ""
	return f
}

// openTestbed opens the built-in testbed, emulated, with NICs in memory.
func openTestbed(t testing.TB, change func(*Options)) *Session {
	t.Helper()
	opt := Options{
		File: testbedFile(t), Lab: lab.Options{Emulated: true}, Fabric: lab.FabricOptions{Firmware: "quick", Rung: fabric.Memory, Seed: 1},
		MapEvery: 100 * time.Millisecond, PowerEvery: 100 * time.Millisecond,
	}
	if change != nil {
		change(&opt)
	}
	s, err := Open(context.Background(), opt)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	})
	return s
}

// until waits for a State that is as wanted.
func until(t testing.TB, s *Session, what string, ok func(*State) bool) *State {
	t.Helper()
	limit := time.NewTimer(30 * time.Second)
	defer limit.Stop()
	for {
		x := s.State()
		if ok(x) {
			return x
		}
		select {
		case <-s.Changed():
		case <-limit.C:
			t.Fatalf("still not so after 30 s: %s\n%s", what, describe(s.State()))
		}
	}
}

// describe is a State for people who read the output of tests.
func describe(x *State) string {
	var b strings.Builder
	for _, sw := range x.Switches {
		b.WriteString(sw.Name + " " + string(sw.Status) + " " + sw.Map.String() + "\n")
	}
	for _, n := range x.NICs {
		b.WriteString(n.Name + " " + string(n.Carrier) + " " + n.State + " " + n.Hears + " " + n.Why + "\n")
	}
	for _, e := range x.Log {
		if e.Kind == Event || e.Bad {
			b.WriteString(e.Text + "\n")
		}
	}
	return b.String()
}

// ready waits until all is open.
func ready(t testing.TB, s *Session) *State {
	t.Helper()
	return until(t, s, "everything is open", func(x *State) bool {
		for _, sw := range x.Switches {
			if sw.Status != Up {
				return false
			}
		}
		for _, n := range x.NICs {
			if !n.Watched {
				return false
			}
		}
		return x.Opening == ""
	})
}

func mustMap(t testing.TB, text string) ocs.Map {
	t.Helper()
	m, err := ocs.ParseMap(text)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// connecting is a measurement that adds circuits.
func connecting(t testing.TB, s *Session, text string) measurement {
	t.Helper()
	want := mustMap(t, text)
	sw, err := s.open(t.Context(), "rail0")
	if err != nil {
		t.Fatal(err)
	}
	p, err := ocs.Preview(t.Context(), sw, want, ocs.Update)
	if err != nil {
		t.Fatal(err)
	}
	after, err := p.Change.ApplyTo(p.Before)
	if err != nil {
		t.Fatal(err)
	}
	return measurement{
		title: "connect rail0 " + text, cli: "ocslab connect rail0 '" + text + "'", after: map[string]ocs.Map{"rail0": after},
		do: map[string]func(context.Context, *lab.Opened) (ocs.Report, error){
			"rail0": func(ctx context.Context, sw *lab.Opened) (ocs.Report, error) {
				return ocs.Reconcile(ctx, sw, want, ocs.Update)
			},
		},
	}
}

func writeFile(t testing.TB, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}
