package live

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ocslab/ocslab/lab"
	"github.com/ocslab/ocslab/ocs"
	"github.com/ocslab/ocslab/ocs/ocstest"
)

// monitored is a switch in memory with monitors, that can be made to fail.
type monitored struct {
	*ocstest.Switch

	mu     sync.Mutex // guards what follows
	down   error      // what reading gives
	hang   bool       // reading waits for its context to end
	blind  error      // what reading power gives
	events []func(ocs.Event)
}

func newMonitored(m ocs.Map) *monitored { return &monitored{Switch: ocstest.New(8, m)} }

func (m *monitored) set(down error, hang bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.down, m.hang = down, hang
}

func (m *monitored) CrossConnects(ctx context.Context) (ocs.Map, error) {
	m.mu.Lock()
	down, hang := m.down, m.hang
	m.mu.Unlock()
	if hang {
		<-ctx.Done()
		return ocs.Map{}, context.Cause(ctx)
	}
	if down != nil {
		return ocs.Map{}, down
	}
	return m.Switch.CrossConnects(ctx)
}

func (m *monitored) Power(context.Context, ...ocs.Port) (ocs.PowerReading, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.blind != nil {
		return ocs.PowerReading{}, m.blind
	}
	now := time.Now()
	return ocs.PowerReading{Earliest: now, Latest: now, Ports: map[ocs.Port]ocs.DBm{9: -3}}, nil
}

func (m *monitored) Monitors(context.Context, ...ocs.Port) ([]ocs.Monitor, error) {
	return []ocs.Monitor{{Port: 9, Averaging: 10 * time.Millisecond}}, nil
}

func (m *monitored) SetMonitor(context.Context, ocs.Monitor) error { return nil }

func (m *monitored) Notify(ctx context.Context, f func(ocs.Event)) error {
	m.mu.Lock()
	m.events = append(m.events, f)
	m.mu.Unlock()
	<-ctx.Done()
	return context.Cause(ctx)
}

func (m *monitored) tell(e ocs.Event) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, f := range m.events {
		f(e)
	}
}

// fakeSession is a Session with one switch, sw0, in memory.
func fakeSession(t *testing.T, sw ocs.Switch, change func(*reader)) *Session {
	t.Helper()
	f, err := lab.Parse("lab.yaml", []byte("switches:\n  - {name: sw0, url: 'tl1://192.0.2.1'}\nhosts: []\n"))
	if err != nil {
		t.Fatal(err)
	}
	s := newSession(Options{File: f})
	b := s.newBed(f)
	r := b.readers["sw0"]
	r.dial = func(context.Context) (*lab.Opened, error) {
		return &lab.Opened{Switch: sw, Name: "sw0", Device: "fake"}, nil
	}
	r.begin = func(context.Context) (ocs.Switch, error) { return sw, nil }
	if change != nil {
		change(r)
	}
	s.bed = b
	b.start()
	return s
}

// later lets fake time go by and returns the newest State.
func later(s *Session, d time.Duration) *State {
	time.Sleep(d)
	synctest.Wait()
	return s.State()
}

func lastEvent(x *State) string {
	if x.LastEvent == nil {
		return ""
	}
	return x.LastEvent.Text
}

// Ensure a switch that stops to answer is lost, keeps what it said last with its time, is
// tried again ever more rarely, and is back with what has changed while it was away.
func TestReader_LostAndBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sw := newMonitored(mustMap(t, "1>9"))
		s := fakeSession(t, sw, nil)
		defer s.Close()
		x := later(s, 5*time.Second).Switches[0]
		if x.Status != Up || !x.Map.Equal(mustMap(t, "1>9")) || x.MapStale(time.Now()) || x.Power[9] != -3 {
			t.Fatalf("at first: %+v", x)
		}
		sw.set(errors.New("connection reset"), false)
		read := x.MapAt
		x = later(s, 2500*time.Millisecond).Switches[0]
		if x.Status != Lost || x.Err == nil || !x.Map.Equal(mustMap(t, "1>9")) || x.MapAt.Sub(read) > 2*time.Second || !x.MapStale(time.Now()) {
			t.Fatalf("lost: %+v", x)
		}
		powered := x.PowerAt
		x = later(s, 30*time.Second).Switches[0]
		// 0.5, 1.5, 3.5, 7.5 s, then each 5 s.
		if x.Tries < 7 || x.Tries > 9 {
			t.Errorf("%d tries in half a minute", x.Tries)
		}
		if !x.PowerAt.Equal(powered) {
			t.Error("power is told as read while the switch was lost")
		}
		sw.Set(mustMap(t, "1>10,2>9"))
		sw.set(nil, false)
		state := later(s, 6*time.Second)
		x = state.Switches[0]
		if x.Status != Up || x.Err != nil || x.Tries != 0 || !x.Map.Equal(mustMap(t, "1>10,2>9")) || len(x.Drift) != 1 {
			t.Fatalf("back: %+v", x)
		}
		if text := lastEvent(state); !strings.Contains(text, "somebody, or a restart, disconnected 1>9 and connected 1>10,2>9 while it was away") {
			t.Errorf("last event: %q", text)
		}
		back := false
		for _, e := range state.Log {
			back = back || strings.HasPrefix(e.Text, "sw0 is back after ") && !e.Bad
		}
		if !back {
			t.Error("nothing says that the switch is back")
		}
		if mv := state.Moves[0]; mv.By != "others" {
			t.Errorf("move: %+v", mv)
		}
	})
}

// Ensure a switch that hangs is lost after a while, and does not hold up a change that goes
// through another session, nor Close.
func TestReader_Hangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sw, second := newMonitored(ocs.Map{}), newMonitored(ocs.Map{})
		s := fakeSession(t, sw, func(r *reader) {
			r.begin = func(context.Context) (ocs.Switch, error) { return second, nil }
		})
		later(s, time.Second)
		second.set(nil, true)
		began := time.Now()
		x := later(s, 2*time.Second).Switches[0]
		if x.Status != Up {
			t.Errorf("%s after %v", x.Status, time.Since(began))
		}
		o, err := s.open(t.Context(), "sw0")
		if err != nil {
			t.Fatal(err)
		}
		asked := time.Now()
		if _, err := o.Apply(t.Context(), ocs.Change{Add: mustMap(t, "1>9")}); err != nil || time.Since(asked) > 0 {
			t.Errorf("a change waited %v for a reading: %v", time.Since(asked), err)
		}
		if x = later(s, 2*readTime).Switches[0]; x.Status != Lost {
			t.Errorf("%s after %v", x.Status, time.Since(began))
		}
		asked = time.Now()
		if err := s.Close(); err != nil || time.Since(asked) > closeTime {
			t.Errorf("Close took %v: %v", time.Since(asked), err)
		}
	})
}

// stubborn is a switch whose reading does not end with its context.
type stubborn struct {
	ocs.Switch
	release chan struct{}
}

func (s stubborn) CrossConnects(context.Context) (ocs.Map, error) {
	<-s.release
	return ocs.Map{}, errors.New("released")
}

// Ensure Close ends within a few seconds though a switch never answers.
func TestClose_Hangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sw := stubborn{ocstest.New(8, ocs.Map{}), make(chan struct{})}
		s := fakeSession(t, sw, nil)
		later(s, time.Second)
		began := time.Now()
		if err := s.Close(); err == nil || time.Since(began) > closeTime {
			t.Errorf("Close took %v: %v", time.Since(began), err)
		}
		close(sw.release) // so that the test ends
	})
}

// Ensure a report has the circuits read at once, names who it was, and an alarm is kept.
func TestReader_Reports(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sw := newMonitored(mustMap(t, "1>9"))
		s := fakeSession(t, sw, nil)
		defer s.Close()
		later(s, 2500*time.Millisecond) // half way between two readings
		sw.Set(mustMap(t, "1>10"))
		sw.tell(ocs.Event{Received: time.Now(), Severity: "event", Text: "REPT EVT EQPT: PORT-1:OXC,TC:Port 1,10 connected by alice", Raw: "A 1 REPT"})
		x := later(s, 2*PublishEvery).Switches[0]
		if len(x.Drift) != 1 || x.Drift[0].Who != "alice" || x.Drift[0].Raw != "A 1 REPT" {
			t.Fatalf("drift: %+v", x.Drift)
		}
		sw.tell(ocs.Event{Received: time.Now(), Severity: "major", Port: 3, Text: "power is low"})
		state := later(s, 2*PublishEvery)
		if a := state.Switches[0].Alarms; len(a) != 1 || a[0].Port != 3 || a[0].Text != "power is low" {
			t.Errorf("alarms: %+v", a)
		}
		if text := lastEvent(state); text != "sw0: major alarm: power is low" {
			t.Errorf("last event: %q", text)
		}
	})
}

// Ensure a change of our own is no drift, whenever the circuits are read around it, and
// that one by others at the same time is.
func TestReader_OwnChanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sw := newMonitored(mustMap(t, "1>9"))
		s := fakeSession(t, sw, nil)
		defer s.Close()
		later(s, time.Second)
		o, err := s.open(t.Context(), "sw0")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := o.Apply(t.Context(), ocs.Change{Remove: mustMap(t, "1>9"), Add: mustMap(t, "1>10")}); err != nil {
			t.Fatal(err)
		}
		s.touch("sw0")
		if x := later(s, 2*PublishEvery).Switches[0]; !x.Map.Equal(mustMap(t, "1>10")) || len(x.Drift) > 0 {
			t.Errorf("map %v, drift %+v", x.Map, x.Drift)
		}
		have := mustMap(t, "1>10,3>12")
		sw.Set(have)
		x := later(s, 5*time.Second).Switches[0]
		if len(x.Drift) != 1 || !x.Drift[0].Change.Add.Equal(mustMap(t, "3>12")) {
			t.Errorf("drift %+v", x.Drift)
		}
	})
}

// Ensure monitors that cannot be read leave what they said last to get old, and the switch
// up.
func TestReader_Blind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sw := newMonitored(ocs.Map{})
		s := fakeSession(t, sw, nil)
		defer s.Close()
		later(s, 2*time.Second)
		sw.mu.Lock()
		sw.blind = errors.New("monitor card failed")
		sw.mu.Unlock()
		state := later(s, 10*time.Second)
		x := state.Switches[0]
		if x.Status != Up || x.Power[9] != -3 || !x.PowerStale(time.Now()) || x.MapStale(time.Now()) {
			t.Errorf("%+v", x)
		}
		said := 0
		for _, e := range state.Log {
			if strings.Contains(e.Text, "monitor card failed") {
				said++
			}
		}
		if said != 1 {
			t.Errorf("it is said %d times that the monitors cannot be read", said)
		}
	})
}

// Ensure a switch with one session is read over that, and says so.
func TestReader_OneSession(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := fakeSession(t, newMonitored(mustMap(t, "1>9")), func(r *reader) {
			r.begin = func(context.Context) (ocs.Switch, error) { return nil, errors.New("the line is in use") }
		})
		defer s.Close()
		x := later(s, time.Second).Switches[0]
		if x.Status != Up || len(x.Facts) == 0 || !strings.Contains(x.Facts[0].Value, "one") || !strings.Contains(x.Facts[0].Value, "the line is in use") {
			t.Errorf("%+v", x)
		}
	})
}

func TestUserIn(t *testing.T) {
	for _, x := range []struct{ raw, text, want string }{
		{`<opsw:activity><notification-username>carol</notification-username></opsw:activity>`, "", "carol"},
		{`<o:notification-username xmlns:o="x"> dave </o:notification-username>`, "", "dave"},
		{"", "REPT EVT EQPT: PORT-1:OXC,TC:Port 1,36 connected by admin", "admin"},
		{"", "REPT EVT EQPT: user=bob, circuit removed", "bob"},
		{"", "REPT EVT EQPT: circuit removed", ""},
	} {
		if got := userIn(ocs.Event{Raw: x.raw, Text: x.text}); got != x.want {
			t.Errorf("%q %q: %q, want %q", x.raw, x.text, got, x.want)
		}
	}
}

// Ensure a report that is of another change names nobody.
func TestTold(t *testing.T) {
	now := time.Now()
	c := ocs.Change{Add: mustMap(t, "1>9")}
	for _, x := range []struct {
		text string
		at   time.Time
		ours bool
		want string
	}{
		{"Port 1,9 connected by alice", now, true, "alice"},
		{"Port 2,10 connected by alice", now, false, ""},
		{"something was done by alice", now, false, "alice"},
		{"something was done by alice", now, true, ""}, // it may be of our own change
		{"Port 1,9 connected by alice", now.Add(-time.Minute), false, ""},
	} {
		var told told
		told.add(ocs.Event{Received: x.at, Text: x.text})
		if got, _ := told.who(c, x.ours, now.Add(-time.Second)); got != x.want {
			t.Errorf("%q: %q, want %q", x.text, got, x.want)
		}
	}
}
