package experiment_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/ocslab/ocslab/experiment"
	"github.com/ocslab/ocslab/ocs"
)

// broken is a power meter that panics.
type broken struct{ ocs.PowerMeter }

func (broken) Power(context.Context, ...ocs.Port) (ocs.PowerReading, error) { panic("no meter") }

// Ensure that a panic on a goroutine of the bench does not end the program, in which the light
// is still to be put back, and that it is told where it was.
func TestBench_Panic(t *testing.T) {
	for name, spoil := range map[string]func(r *experiment.Rig){
		"driver": func(r *experiment.Rig) {
			r.Reconcile = func(context.Context, ocs.Map, ocs.Policy) (ocs.Report, error) { panic("no driver") }
		},
		"meter": func(r *experiment.Rig) { r.Meter = broken{r.Meter} },
	} {
		t.Run(name, func(t *testing.T) {
			b, _ := bench(t, nil)
			spoil(b.Rigs[0])
			_, err := b.Move(t.Context(), 1, rail0(t, "1>33"), ocs.Update)
			var p *experiment.Panic
			if !errors.As(err, &p) || p.Value != "no "+name || !strings.Contains(string(p.Stack), "panic_test.go") {
				t.Errorf("error %v, want the panic and its stack", err)
			}
		})
	}
}
