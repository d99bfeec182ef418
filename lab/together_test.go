package lab_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ocslab/ocslab/lab"
	"github.com/ocslab/ocslab/ocs"
	"github.com/ocslab/ocslab/ocs/ocstest"
)

// arming is a switch that prepares a change before it asks whether the others are ready, as transceivers do.
type arming struct {
	*ocstest.Switch
	armed time.Duration // how long it was
}

func (s *arming) Apply(ctx context.Context, c ocs.Change) (ocs.Receipt, error) {
	began := time.Now()
	if err := ocs.Ready(ctx); err != nil {
		return ocs.Receipt{}, err
	}
	s.armed = time.Since(began)
	return s.Switch.Apply(ctx, c)
}

// Ensure that no switch is armed before the slowest of the operation has been read: transceivers stay armed for a second.
func TestGate_ApplyAll_Armed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fast, slow := &arming{Switch: ocstest.New(4, ocs.Map{})}, &arming{Switch: ocstest.New(4, ocs.Map{})}
		slow.OnRead = func() error { time.Sleep(2 * time.Second); return nil }
		a, b := lab.Of("a", fast), lab.Of("b", slow)
		unchanged := lab.Of("c", ocstest.New(4, ocs.Map{}))
		want := ocs.MustMap(ocs.CrossConnect{Ingress: 1, Egress: 5})
		reports, err := a.Gate().ApplyAll(t.Context(), []lab.Intent{{On: a, Want: want, Policy: ocs.Safe}, {On: b, Want: want, Policy: ocs.Safe},
			{On: unchanged, Policy: ocs.Safe, UndoOf: 1}})
		if err != nil {
			t.Fatal(err)
		}
		for i, s := range []*arming{fast, slow} {
			if s.armed >= time.Second || !reports[i].After.Equal(want) {
				t.Errorf("switch %d was armed for %v and holds %v", i, s.armed, reports[i].After)
			}
		}
	})
}
