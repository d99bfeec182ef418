package pods

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ocslab/ocslab/experiment"
	"github.com/ocslab/ocslab/experiment/runs"
	"github.com/ocslab/ocslab/lab"
	"github.com/ocslab/ocslab/lab/history"
	"github.com/ocslab/ocslab/ocs"
	"github.com/ocslab/ocslab/topology/crosswiring"
)

// hold returns what the switches of a lab hold.
func hold(t *testing.T, l *lab.File, cables *Cables, opt lab.Options) *crosswiring.Config {
	t.Helper()
	open := lab.New(l, opt)
	held, err := Read(t.Context(), open, cables)
	if err := errors.Join(err, open.Close()); err != nil {
		t.Fatal(err)
	}
	return held
}

// Ensure a move that ends in the middle, when the even switch of a pair has disconnected and the odd one has not, leaves the lab as it
// was found, and says why: because it is interrupted, or because a switch no longer answers.
func TestApply_Ended(t *testing.T) {
	t.Parallel()
	f := crosswiring.Fabric{Pods: 4, SpinePorts: 4, Groups: 1}
	l, text, cables := emulate(t, f, time.Millisecond)
	from, to := planned(t, f, 1), planned(t, f, 4)
	stop := errors.New("interrupted by hand")
	for _, tt := range []struct {
		name  string
		state runs.State
		want  string
		act   func(sw *lab.Opened, cancel context.CancelCauseFunc) error
		lost  int
	}{
		{"interrupted", runs.Stopped, stop.Error(), func(_ *lab.Opened, cancel context.CancelCauseFunc) error { cancel(stop); return nil }, -1},
		{"hung up", runs.Failed, "g0-k3", func(sw *lab.Opened, _ context.CancelCauseFunc) error { return sw.Close() }, 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			ctx, cancel := context.WithCancelCause(t.Context())
			defer cancel(nil)
			opt := Options{Options: options(t, "ended", text), Order: Paired}
			opt.Lab.StateDir, opt.Leave = t.TempDir(), true
			if _, err := Apply(t.Context(), l, cables, nil, from, opt); err != nil {
				t.Fatal(err)
			}
			a := &applying{file: l, cables: cables, opt: opt, to: to, report: &Report{}}
			acted := false
			authority(opt.Options).Begun = func(entries []history.Entry) error {
				if acted || entries[0].Switch != "g0-k3" || entries[0].Change.Remove.Len() == 0 {
					return nil
				}
				acted = true
				rigs := a.session.Testbed.Bench.Rigs
				i := slices.IndexFunc(rigs, func(r *experiment.Rig) bool { return r.Name == "g0-k3" })
				return tt.act(rigs[i].Switch.(*lab.Opened), cancel)
			}
			r, err := a.play(ctx, from)
			if err == nil || !strings.Contains(err.Error(), tt.want) || r == nil {
				t.Fatalf("error %v, report %+v", err, r)
			}
			if r.State != tt.state || !r.Restored || r.Followed != 0 || tt.lost >= 0 && len(r.Lost) != tt.lost {
				t.Errorf("%+v", r)
			}
			for _, x := range r.Lost {
				if !x.Back {
					t.Errorf("not put back: %+v", x)
				}
			}
			if held := hold(t, l, cables, opt.Lab); !held.Equal(from) {
				t.Errorf("the switches hold %+v, want what was found", held.AllCircuits())
			}
		})
	}
}

// Ensure a port that the lab file protects is named, and nothing is moved.
func TestApply_Protected(t *testing.T) {
	t.Parallel()
	f := crosswiring.Fabric{Pods: 3, SpinePorts: 2, Groups: 1}
	l, text, cables := emulate(t, f, time.Millisecond)
	l.Protect = []lab.PortRef{{Switch: "g0-k1", Port: 2}}
	r, err := Apply(t.Context(), l, cables, nil, planned(t, f, 1), Options{Options: options(t, "protected", text)})
	if !errors.Is(err, ocs.ErrInterlock) || !strings.Contains(err.Error(), "g0-k1") || r.Run != "" {
		t.Errorf("%+v, error %v", r, err)
	}
}
