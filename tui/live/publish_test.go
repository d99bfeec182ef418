package live

import (
	"fmt"
	"testing"
	"time"

	"github.com/ocslab/ocslab/lab"
	"github.com/ocslab/ocslab/linkmon/watch"
	"github.com/ocslab/ocslab/ocs"
	"github.com/ocslab/ocslab/timeline"
)

// Ensure the log keeps the newest lines, and that routine displaces nothing else as long as
// there is room for half of it.
func TestTrimmed(t *testing.T) {
	list := func(routine ...bool) (l []*Entry) {
		for i, r := range routine {
			l = append(l, &Entry{N: uint64(i + 1), Routine: r})
		}
		return l
	}
	const o, r = false, true
	for _, x := range []struct {
		name string
		in   []*Entry
		want string
	}{
		{"no routine", list(o, o, o, o, o, o), "[3 4 5 6]"},
		{"all routine", list(r, r, r, r, r, r), "[3 4 5 6]"},
		{"little else", list(o, r, r, r, r, r), "[1 4 5 6]"},
		{"little routine", list(r, o, o, o, o, o), "[1 4 5 6]"},
		{"both", list(o, o, o, r, r, r, r), "[2 3 6 7]"},
	} {
		var got []uint64
		for _, e := range trimmed(x.in, 4) {
			got = append(got, e.N)
		}
		if fmt.Sprint(got) != x.want {
			t.Errorf("%s: %v, want %s", x.name, got, x.want)
		}
	}
}

// Ensure what was handed out does not change, however much comes after it, and that what has
// not changed is shared.
func TestState_Immutable(t *testing.T) {
	p := bigParts(t, 2, 4)
	first := p.state(1, Options{})
	log, trail := fmt.Sprint(values(first.Log)), fmt.Sprint(first.NICs[0].RxTrail)
	power, set := fmt.Sprint(first.Switches[0].Power), fmt.Sprint(first.Switches[0].Set)
	number := first.Moves[0].Title
	for i := range 3 * KeepSamples {
		at := time.Unix(int64(i), 0)
		p.power("sw0", map[ocs.Port]ocs.DBm{5: ocs.DBm(i)}, at)
		p.say(Entry{At: at, Text: "more"})
		p.set("sw0", ocs.CrossConnect{Ingress: 1, Egress: 5}, Origin{ID: i})
		p.move(1, func(m *Move) { m.Title = "changed" })
	}
	if got := fmt.Sprint(values(first.Log)); got != log {
		t.Error("the log of an old State has changed")
	}
	if got := fmt.Sprint(first.NICs[0].RxTrail); got != trail {
		t.Error("a trail of an old State has changed")
	}
	if fmt.Sprint(first.Switches[0].Power) != power || fmt.Sprint(first.Switches[0].Set) != set || first.Moves[0].Title != number {
		t.Error("an old State has changed")
	}
	second := p.state(2, Options{})
	if first.Switches[1] != second.Switches[1] || first.NICs[3] != second.NICs[3] {
		t.Error("what has not changed is not shared")
	}
	if first.Switches[0] == second.Switches[0] || len(second.NICs[0].RxTrail) != KeepSamples || second.Moves[0].Title != "changed" {
		t.Error("what has changed is not there")
	}
}

func values(list []*Entry) (v []Entry) {
	for _, e := range list {
		v = append(v, *e)
	}
	return v
}

// Ensure readings are never replaced by older ones.
func TestParts_Order(t *testing.T) {
	p := bigParts(t, 1, 1)
	at := time.Now()
	p.took("sw0", mustMap(t, "1>9"), at)
	if p.took("sw0", mustMap(t, "2>9"), at.Add(-time.Millisecond)) || !p.at("sw0").Map.Equal(mustMap(t, "1>9")) {
		t.Error("an older map replaced a newer one")
	}
	p.power("sw0", map[ocs.Port]ocs.DBm{5: -1}, at)
	p.power("sw0", map[ocs.Port]ocs.DBm{5: -2}, at.Add(-time.Millisecond))
	if x := p.at("sw0"); x.Power[5] != -1 || !x.PowerAt.Equal(at) {
		t.Error("an older power replaced a newer one")
	}
}

// Ensure carriers, flaps and outages follow the marks of the counters, and not those of the
// kernel's announcements, which tell the same again.
func TestParts_Carrier(t *testing.T) {
	p := bigParts(t, 1, 1)
	n := p.nics[0]
	mark := func(s timeline.Stage, source string, from, to int64) {
		p.saw(timeline.Mark{Stage: s, Subject: n.Name, Source: source, Interval: timeline.Between(from, to)})
	}
	n.State = firmwareUp
	mark(timeline.CarrierDown, "counters", 100, 110)
	mark(timeline.CarrierDown, "netlink", 90, 200)
	axis := timeline.HostAxis()
	if n.Carrier != CarrierDown || n.Flaps != 1 || n.State != firmwareDown || !n.SinceAt.Equal(axis.Time(110)) {
		t.Errorf("down: %+v", n.NIC)
	}
	mark(timeline.Firmware, "ib-phys", 900, 950)
	mark(timeline.CarrierUp, "counters", 1000, 1020)
	mark(timeline.CarrierUp, "netlink+bpf", 1000, 1020)
	if n.Carrier != CarrierUp || n.Flaps != 1 || n.State != firmwareUp || n.Outage != timeline.Between(890, 920) || n.Since != timeline.Between(1000, 1020) || !n.SinceAt.Equal(axis.Time(1020)) {
		t.Errorf("up: %+v", n.NIC)
	}
	n.watched(true, nil)
	n.watched(false, nil)
	if n.Carrier != CarrierUnknown || !n.SinceAt.IsZero() {
		t.Errorf("not watched: %+v", n.NIC)
	}
}

// bigParts are switches sw0, sw1 … and NICs h0/n0 … on the first.
func bigParts(t testing.TB, switches, nics int) parts {
	t.Helper()
	yaml := "switches:\n"
	for i := range switches {
		yaml += fmt.Sprintf("  - {name: sw%d, url: 'tl1://192.0.2.1:%d'}\n", i, 3000+i)
	}
	yaml += "hosts:\n"
	for i := range nics {
		yaml += fmt.Sprintf("  - {name: h%d, nics: [{name: n0, tx: sw0/%d, rx: sw0/%d}]}\n", i, i+1, i+1+nics)
	}
	f, err := lab.Parse("lab.yaml", []byte(yaml))
	if err != nil {
		t.Fatal(err)
	}
	p := newParts(f, false, Options{}, time.Now())
	p.power("sw0", map[ocs.Port]ocs.DBm{5: -3}, time.Unix(0, 0))
	p.begin(Move{Title: "a move"})
	for i := range 100 {
		p.say(Entry{Text: fmt.Sprint(i)})
	}
	return p
}

// BenchmarkPublish is a tenth of a second of 64 NICs whose carriers change 2000 times a second:
// 200 marks are entered, and two States are made. An operation well below 1 ms is less than
// 1 % of one processor.
func BenchmarkPublish(b *testing.B) {
	s := &Session{wake: make(chan struct{}, 1), changed: make(chan struct{}, 1)}
	s.parts = bigParts(b, 1, 64)
	m := timeline.Mark{Source: "counters"}
	var names []string
	for _, n := range s.parts.nics {
		names = append(names, n.Name)
	}
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		for j := range 200 {
			x := m
			x.Subject, x.Stage, x.Interval = names[j%len(names)], timeline.CarrierDown, timeline.Point(int64(i*200+j))
			if j%2 == 1 {
				x.Stage = timeline.CarrierUp
			}
			s.seenRecord(watch.Record{Mark: &x})
			if j%100 == 99 {
				s.publishNow()
			}
		}
	}
}
