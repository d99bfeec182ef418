package collective

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ocslab/ocslab/experiment"
	"github.com/ocslab/ocslab/ocs"
	"github.com/ocslab/ocslab/timeline"
	"github.com/ocslab/ocslab/topology/pccl"
)

// dim is a switch that acknowledges at once and has light 25 ms later, with monitors that average.
type dim struct {
	ocs.Switch
	average time.Duration

	mu    sync.Mutex // guards what follows
	have  ocs.Map
	moved time.Time
	gone  error
}

// set changes the switch while it is being read.
func (d *dim) set(change func()) {
	d.mu.Lock()
	defer d.mu.Unlock()
	change()
}

func (d *dim) CrossConnects(context.Context) (ocs.Map, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.have, d.gone
}

func (d *dim) Power(_ context.Context, ports ...ocs.Port) (ocs.PowerReading, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	now := time.Now()
	r := ocs.PowerReading{Earliest: now, Latest: now, Ports: map[ocs.Port]ocs.DBm{}}
	for _, p := range ports {
		since := now.Sub(d.moved)
		if r.Ports[p] = -3; since >= d.average && since < 25*time.Millisecond {
			r.Ports[p] = -60 // all that was averaged is of the dark
		}
	}
	return r, nil
}

func (d *dim) Monitors(context.Context, ...ocs.Port) ([]ocs.Monitor, error) { return nil, nil }
func (d *dim) SetMonitor(context.Context, ocs.Monitor) error                { return nil }

// Ensure that of a switch which is asked for its light, what its monitors still show of the circuit before is not taken for
// light of the new one: not with quick monitors, which see the dark, and not with slow ones, which never do. Circuits that
// stay keep their light, and a switch that cannot be read is named.
func TestLights_Polled(t *testing.T) {
	for average, want := range map[time.Duration]time.Duration{10 * time.Millisecond: 25 * time.Millisecond, 100 * time.Millisecond: 100 * time.Millisecond} {
		synctest.Test(t, func(t *testing.T) {
			d := &dim{average: average, have: ocs.MustMap(ocs.CrossConnect{Ingress: 1, Egress: 65}, ocs.CrossConnect{Ingress: 2, Egress: 66})}
			l := newLights()
			l.polled = []*experiment.Rig{{Name: "rail0", Switch: d, Meter: d, Rule: timeline.SettleRule{Averaging: average}}}
			moving, staying := pccl.Transfer{Src: 0, Dst: 1}, pccl.Transfer{Src: 1, Dst: 0}
			stay := at{"rail0", ocs.CrossConnect{Ingress: 2, Egress: 66}}
			l.wire(map[pccl.Transfer][]at{moving: {{"rail0", ocs.CrossConnect{Ingress: 1, Egress: 65}}}, staying: {stay}})
			stop := l.follow(experiment.Move{})
			if _, err := l.wait(t.Context(), time.Second); err != nil {
				t.Fatal(err)
			}
			stop()

			now := ocs.CrossConnect{Ingress: 3, Egress: 65}
			change := ocs.Change{Remove: ocs.MustMap(ocs.CrossConnect{Ingress: 1, Egress: 65}), Add: ocs.MustMap(now)}
			d.set(func() { d.have, d.moved = ocs.MustMap(now, stay.CrossConnect), time.Now() })
			l.wire(map[pccl.Transfer][]at{moving: {{"rail0", now}}, staying: {stay}})
			stop = l.follow(experiment.Move{Reports: map[string]ocs.Report{"rail0": {Change: change}}})
			defer stop()
			if _, ok := l.lit(staying); !ok {
				t.Error("a circuit that stays has lost its light")
			}
			since, err := l.wait(t.Context(), time.Second)
			if took := since.Sub(d.moved); err != nil || took < want || took > want+2*experiment.DefaultPoll {
				t.Errorf("averaging %v: light after %v, want %v; %v", average, took, want, err)
			}
			d.set(func() { d.gone = errors.New("it has hung up") })
			time.Sleep(2 * pollEvery)
			if _, ok := l.lit(moving); ok || !strings.Contains(l.dark(moving), "the switch does not say: it has hung up") {
				t.Errorf("lit %v: %s", ok, l.dark(moving))
			}
		})
	}
}
