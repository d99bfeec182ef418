package tuitest

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/ocslab/ocslab/examples"
	"github.com/ocslab/ocslab/experiment"
	"github.com/ocslab/ocslab/lab"
	"github.com/ocslab/ocslab/ocs"
	"github.com/ocslab/ocslab/timeline"
	"github.com/ocslab/ocslab/tui/live"
)

// Now is when all invented states are of.
var Now = time.Date(2026, 11, 22, 15, 4, 5, 0, time.UTC)

const (
	ms  = int64(time.Millisecond)
	sec = int64(time.Second)
)

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

func mustMap(text string) ocs.Map { return must(ocs.ParseMap(text)) }

func parse(text string) *lab.File { return must(lab.Parse("lab.yaml", []byte(text))) }

// Empty is a lab that is still being opened.
func Empty() *live.State {
	f := must(lab.Parse("opus-testbed.yaml", examples.OpusTestbed))
	s := &live.State{Version: 1, At: Now, File: f, Emulated: true, Opening: "rail0"}
	for _, sw := range f.Switches {
		s.Switches = append(s.Switches, &live.Switch{Name: sw.Name, URL: sw.URL, Status: live.Opening, Since: Now.Add(-time.Second)})
	}
	for _, h := range f.Hosts {
		for i := range h.NICs {
			n := &h.NICs[i]
			s.NICs = append(s.NICs, &live.NIC{Name: n.FullName(), Host: n.Host, Tx: n.Tx, Rx: n.Rx, Firmware: n.Firmware, Carrier: live.CarrierUnknown, Why: "not opened yet"})
		}
	}
	return s
}

// Testbed is the testbed of four hosts on a 32x32 switch. Its last reconfiguration is under
// way: gpu1 and gpu3 have been joined, gpu1 has carrier again, gpu3 has not.
func Testbed() *live.State {
	f := must(lab.Parse("opus-testbed.yaml", examples.OpusTestbed))
	s := &live.State{Version: 42, At: Now, File: f, Emulated: true, Rung: "tap",
		Undo: "connect rail0 1>35,3>33 (change 12)", Redo: ""}
	circuits := mustMap("1>35,2>34,3>33,7>40")
	sw := &live.Switch{
		Name: "rail0", URL: "tl1://admin@192.0.2.10:3082", Device: "emulated:opus-testbed/rail0", Emulated: true,
		Status: live.Up, Since: Now.Add(-10 * time.Minute),
		Identity: ocs.Identity{Vendor: "Polatis", Model: "6000n-32x32-LU1", Serial: "OT0000000001", Firmware: "6.7.1.8", Geometry: ocs.TwoSided(32, 32)},
		Facts: []live.Fact{{Name: "monitors", Value: "64, averaging 10 ms"}, {Name: "boot mode", Value: "restore"},
			{Name: "sessions", Value: "2 of ours; this device does not tell of others"}},
		Map: circuits, MapAt: Now.Add(-700 * time.Millisecond), MapEvery: 2 * time.Second,
		Set: map[ocs.CrossConnect]live.Origin{
			{Ingress: 1, Egress: 35}: {Who: "us", ID: 12, When: Now.Add(-1300 * time.Millisecond)},
			{Ingress: 3, Egress: 33}: {Who: "us", ID: 12, When: Now.Add(-1300 * time.Millisecond)},
			{Ingress: 2, Egress: 34}: {Who: "run opus-toggle", ID: 9, When: Now.Add(-time.Hour)},
		},
		Power: map[ocs.Port]ocs.DBm{}, PowerAt: Now.Add(-300 * time.Millisecond), PowerEvery: time.Second,
		Labels: map[ocs.Port]string{7: "laser A", 40: "power meter 2"},
		Shut:   map[ocs.Port]bool{}, Shutters: true, Monitored: true,
		Protected: map[ocs.Port]bool{31: true, 63: true},
		Alarms:    []live.Alarm{{At: Now.Add(-9 * time.Minute), Severity: "minor", Text: "fan 2 slow"}},
	}
	for _, p := range []ocs.Port{1, 2, 3, 4, 7} {
		sw.Power[p] = ocs.DBm(-1.2 - float64(p)/10)
	}
	for c := range circuits.All() {
		sw.Power[c.Egress] = sw.Power[c.Ingress].Add(-1.31)
	}
	sw.Power[36] = -60
	s.Switches = []*live.Switch{sw}
	for i, h := range f.Hosts {
		for j := range h.NICs {
			n := &h.NICs[j]
			x := &live.NIC{Name: n.FullName(), Host: n.Host, Tx: n.Tx, Rx: n.Rx, Firmware: n.Firmware, Watched: true,
				Carrier: live.CarrierUp, State: "up", RxPower: -2.7 - ocs.DBm(i)/5, RxAt: Now.Add(-300 * time.Millisecond), RxSource: "switch", Traffic: "flows",
				SinceAt: Now.Add(-time.Duration(i+1) * time.Minute), Flaps: i,
				Outage: timeline.Between(3270*ms, 3273*ms), OutAt: Now.Add(-time.Minute)}
			trail(x, 60)
			s.NICs = append(s.NICs, x)
		}
	}
	s.NICs[0].Hears, s.NICs[0].HeardBy = "gpu3/ens1f0", "gpu3/ens1f0"
	s.NICs[2].Hears, s.NICs[2].HeardBy = "gpu1/ens1f0", "gpu1/ens1f0"
	s.NICs[1].Hears, s.NICs[1].HeardBy = "gpu2/ens1f0", "gpu2/ens1f0"
	s.NICs[2].Carrier, s.NICs[2].State, s.NICs[2].Traffic = live.CarrierDown, "down", "lost"
	s.NICs[2].SinceAt = Now.Add(-1290 * time.Millisecond)
	s.NICs[3].Carrier, s.NICs[3].State, s.NICs[3].Traffic, s.NICs[3].RxPower = live.CarrierDown, "down", "", -60
	s.Moves = append(s.Moves, running())
	for i := range 5 {
		s.Moves = append(s.Moves, moved(6-i, Now.Add(-time.Duration(i+1)*time.Minute), int64(i)))
	}
	s.Log = entries()
	s.LastEvent = s.Log[1]
	return s
}

// trail fills the readings of a NIC: light, a dark spell, light.
func trail(n *live.NIC, count int) {
	for i := range count {
		p := n.RxPower + ocs.DBm(float64(i%7)/50)
		if i > count/2 && i < count/2+count/10 {
			p = -60
		}
		n.RxTrail = append(n.RxTrail, live.Sample{At: Now.Add(-time.Duration(count-i) * time.Second), Power: p})
	}
}

func mark(number int, stage timeline.Stage, subject string, from, to int64, source string) timeline.Mark {
	host, _, _ := strings.Cut(subject, "/")
	if strings.HasPrefix(subject, "rail") {
		host = "lab"
	}
	return timeline.Mark{Stage: stage, Subject: subject, Host: host, Source: source, Reconfiguration: number, Interval: timeline.Between(100*sec+from, 100*sec+to)}
}

func expect(number int, marks []timeline.Mark) (list []timeline.Expectation) {
	for _, m := range marks {
		list = append(list, timeline.Expectation{Reconfiguration: number, Stage: m.Stage, Subject: m.Subject})
	}
	return list
}

// running is a reconfiguration 1.3 s old.
func running() *live.Move {
	m := &live.Move{Number: 7, Title: "connect rail0 1>35,3>33", CLI: "ocslab --emulated connect rail0 '1>35,3>33' --mode update", By: "us",
		Began: Now.Add(-1300 * time.Millisecond), Running: true, Phase: "carrier of gpu3/ens1f0", ID: []int{12}}
	m.Marks = []timeline.Mark{
		mark(7, timeline.Command, "rail0", 0, 20_000, "driver"),
		mark(7, timeline.Ack, "rail0", 201*ms, 201*ms+80_000, "driver"),
		mark(7, timeline.Dark, "rail0/33", 4*ms, 16*ms, "opm"),
		mark(7, timeline.Light, "rail0/33", 188*ms, 205*ms, "opm"),
		mark(7, timeline.Dark, "rail0/35", 2*ms, 15*ms, "opm"),
		mark(7, timeline.Light, "rail0/35", 190*ms, 206*ms, "opm"),
		mark(7, timeline.CarrierDown, "gpu1/ens1f0", 11*ms, 11*ms+100_000, "counters"),
		mark(7, timeline.CarrierDown, "gpu3/ens1f0", 12*ms, 12*ms+100_000, "counters"),
		mark(7, timeline.CarrierUp, "gpu1/ens1f0", 1100*ms, 1100*ms+120_000, "counters+netlink"),
	}
	m.Expected = append(expect(7, m.Marks[1:]), timeline.Expectation{Reconfiguration: 7, Stage: timeline.CarrierUp, Subject: "gpu3/ens1f0"},
		timeline.Expectation{Reconfiguration: 7, Stage: timeline.Traffic, Subject: "gpu1/ens1f0>gpu3/ens1f0"})
	return m
}

// moved is a reconfiguration that is over. Of number 4 a stage is missing.
func moved(number int, began time.Time, more int64) *live.Move {
	m := &live.Move{Number: number, Title: "configure pp", CLI: "ocslab --emulated connect rail0 '1>35,2>36,3>33,4>34' --mode update", By: "us",
		Began: began, ID: []int{5 + number}}
	if number%2 == 0 {
		m.Title, m.By = "dp", "run opus-toggle"
	}
	if number == 3 {
		m.Title, m.By, m.CLI, m.ID = "- 1>34 + 1>36", "others", "", nil
	}
	m.Marks = append(m.Marks, mark(number, timeline.Command, "rail0", 0, 18_000, "driver"), mark(number, timeline.Ack, "rail0", 203*ms, 203*ms+60_000, "driver"))
	for i := range 4 {
		nic := fmt.Sprintf("gpu%d/ens1f0", i+1)
		k := int64(i)*3*ms + more*10*ms
		m.Marks = append(m.Marks,
			mark(number, timeline.Dark, fmt.Sprintf("rail0/%d", 33+i), 3*ms, 15*ms, "opm"),
			mark(number, timeline.Light, fmt.Sprintf("rail0/%d", 33+i), 185*ms+k, 201*ms+k, "opm"),
			mark(number, timeline.CarrierDown, nic, 9*ms, 9*ms+100_000, "counters"),
			mark(number, timeline.Firmware, nic, 3200*ms+k, 3201*ms+k, "ib-phys"),
			mark(number, timeline.CarrierUp, nic, 3230*ms+k, 3230*ms+k+100_000, "counters+netlink"),
		)
	}
	m.Expected = expect(number, m.Marks[1:])
	if number == 4 {
		m.Marks = m.Marks[:len(m.Marks)-1]
		m.Unresolved = []string{"gpu4/ens1f0: carrier-up: not within 30s"}
	}
	return m
}

func entries() []*live.Entry {
	at := Now.Add(-1300 * time.Millisecond)
	list := []*live.Entry{
		{Kind: live.Did, Text: "connect rail0 1>35,3>33", CLI: "ocslab --emulated connect rail0 '1>35,3>33' --mode update", Switch: "rail0"},
		{Kind: live.Event, Text: "rail0: somebody else connected 7>40 (user bench2)", Switch: "rail0", Bad: true},
		{Kind: live.Sent, Raw: "RTRV-PATCH:::18;", Text: "read the cross-connects", Switch: "rail0", Routine: true},
		{Kind: live.Received, Raw: "\r\n\n   rail0 2026-11-22 15:04:03\r\nM  18 COMPLD\r\n   \"1,34\"\r\n   \"2,33\"\r\n;", Text: "completed: 2 cross-connects", Switch: "rail0", Routine: true},
		{Kind: live.Sent, Raw: "ENT-PATCH::1&3,35&33:19;", Text: "connect 1>35,3>33", Switch: "rail0"},
		{Kind: live.Received, Raw: "\r\n\n   rail0 2026-11-22 15:04:04\r\nM  19 COMPLD\r\n;", Text: "completed", Switch: "rail0"},
		{Kind: live.Sent, Raw: "ENT-PATCH::31,40:20;", Text: "connect 31>40", Switch: "rail0"},
		{Kind: live.Received, Raw: "\r\n\n   rail0 2026-11-22 15:04:04\r\nM  20 DENY\r\n   IIAC\r\n   /* port 40 is in use */\r\n;", Text: "denied: IIAC, port 40 is in use", Switch: "rail0", Bad: true},
	}
	for i, e := range list {
		e.N, e.At = uint64(i+1), at.Add(time.Duration(i)*27*time.Millisecond)
	}
	return list
}

// Troubled is a lab where things have gone wrong: rail0 is lost, somebody else has moved a
// circuit on rail1, whose powers are stale, a panic is in force, hosts are not watched.
func Troubled() *live.State {
	f := parse(`
name: troubled
switches:
  - {name: rail0, url: "tl1://admin@192.0.2.10:3082"}
  - {name: rail1, url: "scpi://192.0.2.11:5025"}
  - {name: rail2, url: "netconf://admin@192.0.2.12:830"}
hosts:
  - name: gpu1
    nics:
      - {name: ens1f0, tx: rail0/1, rx: rail0/9}
      - {name: ens1f1, tx: rail1/1, rx: rail1/9}
  - name: gpu2
    nics:
      - {name: ens1f0, tx: rail0/2, rx: rail0/10}
      - {name: ens1f1, tx: rail1/2, rx: rail1/10}
protect: [rail1/8]
`)
	at := func(d time.Duration) time.Time { return Now.Add(-d) }
	s := &live.State{Version: 7, At: Now, File: f,
		Panic: &live.Panic{At: at(95 * time.Second), Reason: "smoke in rack 7", Who: "mara", What: "rail1: shutters of 1-2,9-10"},
		Lacks: []experiment.Lack{{Subjects: []string{"gpu1", "gpu2"}, Reason: "counters: gpu1 is not this machine (bench): say in the lab file how to get there, agent: [ssh, gpu1, ocslab] or netns: NAME"}},
		Undo:  "panic: smoke in rack 7",
	}
	s.Switches = []*live.Switch{
		{Name: "rail0", URL: "tl1://admin@192.0.2.10:3082", Device: "tl1://192.0.2.10:3082", Status: live.Lost, Since: at(12 * time.Second), Tries: 3,
			Err:      errors.New("dial tcp 192.0.2.10:3082: connect: no route to host"),
			Identity: ocs.Identity{Vendor: "Polatis", Model: "6000n-8x8", Serial: "OT0000000007", Firmware: "6.7.1.8", Geometry: ocs.TwoSided(8, 8)},
			Map:      mustMap("1>10,2>9"), MapAt: at(13 * time.Second), MapEvery: 2 * time.Second,
			Power: map[ocs.Port]ocs.DBm{1: -1.2, 2: -1.4, 9: -2.7, 10: -2.5}, PowerAt: at(13 * time.Second), PowerEvery: time.Second, Monitored: true, Shutters: true},
		{Name: "rail1", URL: "scpi://192.0.2.11:5025", Device: "scpi://192.0.2.11:5025", Status: live.Up, Since: at(time.Hour),
			Identity: ocs.Identity{Vendor: "Polatis", Model: "6000n-8x8", Serial: "OT0000000008", Firmware: "6.7.1.8", Geometry: ocs.TwoSided(8, 8)},
			Map:      mustMap("1>10,2>11"), MapAt: at(time.Second), MapEvery: 2 * time.Second,
			Power: map[ocs.Port]ocs.DBm{1: -60, 2: -60, 10: -60, 11: -60}, PowerAt: at(44 * time.Second), PowerEvery: time.Second, Monitored: true, Shutters: true,
			Protected: map[ocs.Port]bool{8: true}, Shut: map[ocs.Port]bool{1: true, 2: true, 9: true, 10: true},
			Set:    map[ocs.CrossConnect]live.Origin{{Ingress: 2, Egress: 11}: {Who: "others", When: at(5 * time.Second)}},
			Drift:  []live.Drift{{At: at(5 * time.Second), Change: ocs.Change{Remove: mustMap("2>9"), Add: mustMap("2>11")}, Who: "bench2"}},
			Alarms: []live.Alarm{{At: at(time.Minute), Severity: "critical", Port: 3, Text: "input power lost"}, {At: at(time.Hour), Severity: "event", Text: "configuration saved"}}},
		{Name: "rail2", URL: "netconf://admin@192.0.2.12:830", Status: live.Opening, Since: at(4 * time.Second), Tries: 1, Err: errors.New("ssh: handshake failed: unknown host key SHA256:47DEQpj8HBSa")},
	}
	for _, h := range f.Hosts {
		for i := range h.NICs {
			n := &h.NICs[i]
			x := &live.NIC{Name: n.FullName(), Host: n.Host, Tx: n.Tx, Rx: n.Rx, Carrier: live.CarrierUnknown, Why: "gpu1 is not this machine (bench)",
				RxPower: -60, RxAt: at(44 * time.Second), RxSource: "switch"}
			trail(x, 30)
			s.NICs = append(s.NICs, x)
		}
	}
	s.Log = []*live.Entry{
		{N: 1, At: at(95 * time.Second), Kind: live.Did, Text: "panic: smoke in rack 7", CLI: "ocslab panic --reason 'smoke in rack 7'", Bad: true},
		{N: 2, At: at(12 * time.Second), Kind: live.Event, Switch: "rail0", Text: "rail0 does not answer: dial tcp 192.0.2.10:3082: connect: no route to host", Bad: true},
		{N: 3, At: at(5 * time.Second), Kind: live.Event, Switch: "rail1", Text: "rail1: somebody else (bench2) moved 2>9 to 2>11", Bad: true},
	}
	s.LastEvent = s.Log[2]
	m := moved(1, at(5*time.Second), 0)
	m.Title, m.By, m.Marks, m.Expected = "- 2>9 + 2>11", "others (bench2)", nil, nil
	s.Moves = []*live.Move{m, {Number: 0, Title: "connect rail0 3>12", By: "us", Began: at(30 * time.Second),
		Err: &ocs.OpError{Op: "connect", Device: "rail0", Request: "ENT-PATCH::3,12:20;", Reply: "M  20 DENY\r\n   IIAC\r\n;", Err: ocs.ErrDenied}}}
	return s
}

// Large is an n x n switch with all ports connected, and so many NICs on it.
func Large(n, nics int) *live.State {
	var b strings.Builder
	fmt.Fprintf(&b, "name: large\nswitches:\n  - {name: core, url: \"tl1://admin@192.0.2.20:3082\"}\nhosts:\n")
	for i := range nics {
		fmt.Fprintf(&b, "  - {name: node%03d, nics: [{name: ens1f0, tx: core/%d, rx: core/%d}]}\n", i+1, i+1, n+i+1)
	}
	f := parse(b.String())
	s := &live.State{Version: 3, At: Now, File: f}
	var ccs []ocs.CrossConnect
	sw := &live.Switch{Name: "core", URL: "tl1://admin@192.0.2.20:3082", Device: "tl1://192.0.2.20:3082", Status: live.Up, Since: Now.Add(-time.Hour),
		Identity: ocs.Identity{Vendor: "Polatis", Model: fmt.Sprintf("7000-%dx%d", n, n), Serial: "OT0000000020", Firmware: "6.7.1.8", Geometry: ocs.TwoSided(n, n)},
		MapAt:    Now.Add(-time.Second), MapEvery: 2 * time.Second, PowerAt: Now.Add(-500 * time.Millisecond), PowerEvery: time.Second,
		Power: map[ocs.Port]ocs.DBm{}, Labels: map[ocs.Port]string{}, Shut: map[ocs.Port]bool{}, Protected: map[ocs.Port]bool{}, Monitored: true, Shutters: true,
		Set: map[ocs.CrossConnect]live.Origin{}}
	step := n/3*2 + 1 // has no divisor in common with n, or nearly
	for gcd(step, n) != 1 {
		step++
	}
	for i := range n {
		c := ocs.CrossConnect{Ingress: ocs.Port(i + 1), Egress: ocs.Port(n + 1 + (i*step+7)%n)}
		ccs = append(ccs, c)
		sw.Power[c.Ingress] = ocs.DBm(-1 - float64(i%10)/10)
		sw.Power[c.Egress] = ocs.DBm(-2.3 - float64(i%17)/10)
		sw.Set[c] = live.Origin{Who: "us", ID: i/8 + 1, When: Now.Add(-time.Duration(i) * time.Second)}
	}
	sw.Map = ocs.MustMap(ccs...)
	s.Switches = []*live.Switch{sw}
	for _, h := range f.Hosts {
		for i := range h.NICs {
			c := &h.NICs[i]
			x := &live.NIC{Name: c.FullName(), Host: c.Host, Tx: c.Tx, Rx: c.Rx, Watched: true, Carrier: live.CarrierUp, State: "up",
				RxPower: sw.Power[c.Rx.Port], RxAt: Now.Add(-500 * time.Millisecond), RxSource: "switch", SinceAt: Now.Add(-time.Minute)}
			if e, ok := sw.Map.EgressOf(c.Tx.Port); ok {
				x.HeardBy = f.Receiver("core", e)
			}
			if in, ok := sw.Map.IngressOf(c.Rx.Port); ok {
				x.Hears = f.Sender("core", in)
			}
			trail(x, live.KeepSamples)
			s.NICs = append(s.NICs, x)
		}
	}
	m := &live.Move{Number: 1, Title: "configure all", By: "us", Began: Now.Add(-2 * time.Second), Running: true, Phase: "carrier of 60 NICs"}
	m.Marks = append(m.Marks, mark(1, timeline.Command, "core", 0, 20_000, "driver"), mark(1, timeline.Ack, "core", 201*ms, 202*ms, "driver"))
	for i, x := range s.NICs {
		k := int64(i) * ms
		m.Marks = append(m.Marks, mark(1, timeline.CarrierDown, x.Name, 9*ms+k, 9*ms+k+100_000, "counters"),
			mark(1, timeline.Dark, fmt.Sprintf("core/%d", x.Rx.Port), 3*ms, 15*ms, "opm"),
			mark(1, timeline.Light, fmt.Sprintf("core/%d", x.Rx.Port), 185*ms+k, 201*ms+k, "opm"))
		if i%16 == 0 {
			m.Marks = append(m.Marks, mark(1, timeline.CarrierUp, x.Name, 1200*ms+k, 1201*ms+k, "counters"))
		}
		m.Expected = append(m.Expected, timeline.Expectation{Reconfiguration: 1, Stage: timeline.CarrierUp, Subject: x.Name})
	}
	m.Expected = append(m.Expected, expect(1, m.Marks[1:])...)
	s.Moves = []*live.Move{m}
	for i := range live.KeepMoves - 1 {
		s.Moves = append(s.Moves, moved(live.KeepMoves-i, Now.Add(-time.Duration(i+1)*time.Minute), int64(i%7)))
	}
	for i := range live.KeepLog {
		e := *entries()[i%8]
		e.N, e.At = uint64(i+1), Now.Add(-time.Duration(live.KeepLog-i)*time.Millisecond)
		s.Log = append(s.Log, &e)
	}
	s.LastEvent = s.Log[len(s.Log)-7]
	return s
}

// Next returns a state that follows s, as a lab where much happens has it 20 times a
// second: all powers were read anew, all NICs have changed, 100 carriers have gone or come,
// and there are as many more lines in the log. Both share what has not changed.
func Next(s *live.State, i int) *live.State {
	n := *s
	n.Version, n.At = s.Version+1, s.At.Add(50*time.Millisecond)
	n.Switches = nil
	for _, sw := range s.Switches {
		x := *sw
		x.PowerAt = n.At
		x.Power = make(map[ocs.Port]ocs.DBm, len(sw.Power))
		for p, v := range sw.Power {
			x.Power[p] = v + ocs.DBm(i%3-1)/100
		}
		n.Switches = append(n.Switches, &x)
	}
	n.NICs = nil
	for k, nic := range s.NICs {
		x := *nic
		x.Carrier = []live.Carrier{live.CarrierUp, live.CarrierDown}[(i+k)%2]
		x.SinceAt, x.Flaps = n.At, x.Flaps+1
		x.RxTrail = append(append([]live.Sample{}, nic.RxTrail[min(1, len(nic.RxTrail)):]...), live.Sample{At: n.At, Power: x.RxPower})
		n.NICs = append(n.NICs, &x)
	}
	if len(s.Moves) > 0 && len(s.NICs) > 0 {
		m := *s.Moves[0]
		m.Marks = append([]timeline.Mark{}, m.Marks...)
		for k := range 100 {
			nic := s.NICs[k%len(s.NICs)].Name
			m.Marks = append(m.Marks, mark(m.Number, []timeline.Stage{timeline.CarrierDown, timeline.CarrierUp}[k%2], nic, int64(1300+k)*ms, int64(1300+k)*ms+100_000, "counters"))
		}
		n.Moves = append([]*live.Move{&m}, s.Moves[1:]...)
		if len(m.Marks) > 4000 { // a reconfiguration has an end
			m.Marks = m.Marks[:200]
		}
	}
	n.Log = append([]*live.Entry{}, s.Log[min(100, len(s.Log)):]...)
	for k := range min(100, len(s.Log)) {
		e := *s.Log[k]
		e.N, e.At = s.Log[len(s.Log)-1].N+uint64(k)+1, n.At
		n.Log = append(n.Log, &e)
	}
	return &n
}

func gcd(a, b int) int {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}

// Bundle is a bundle of two transceivers of eight lanes, the first on path 1, the second
// with a table that expires soon.
func Bundle() *live.State {
	f := parse("name: bundle\nswitches:\n  - {name: bundle, url: \"ocstrx+serial:///dev/ttyACM0\"}\n")
	g := ocs.Transceivers(2, 8)
	sw := &live.Switch{Name: "bundle", URL: "ocstrx+serial:///dev/ttyACM0", Device: "ocstrx+serial:///dev/ttyACM0", Status: live.Up, Since: Now.Add(-time.Hour),
		Identity: ocs.Identity{Vendor: "ocslab", Model: "OCSTrx-8x112G", Serial: "OT0000000007", Firmware: "1.0", Geometry: g},
		Map:      mustMap("1-8>17-24,9-16>41-48"), MapAt: Now.Add(-time.Second), MapEvery: 2 * time.Second,
		Power: map[ocs.Port]ocs.DBm{}, PowerAt: Now.Add(-time.Second), PowerEvery: time.Second, Monitored: true,
		Facts: []live.Fact{{Name: "sessions", Value: "one: a serial line has no more; readings wait for changes"}}}
	for c := range sw.Map.All() {
		sw.Power[c.Ingress], sw.Power[c.Egress] = -1, -2.1
	}
	for i := range 2 {
		m := live.Module{Name: fmt.Sprintf("module %d", i+1), Status: []string{"ready, path 1", "ready, path 2"}[i],
			Facts: []live.Fact{{Name: "serial", Value: fmt.Sprintf("OT0000000007-%02d", i+1)}, {Name: "case", Value: "37.0 °C"},
				{Name: "table", Value: []string{"version 3, 12 days old, good until 2027-11-10", "version 1, 350 days old, good until 2026-12-07"}[i]}}}
		m.Expires = []time.Time{Now.AddDate(0, 0, 353), Now.AddDate(0, 0, 15)}[i]
		for k := range 12 {
			part := float64(k%5) / 5
			m.Heater = append(m.Heater, live.Reading{Name: fmt.Sprintf("S1.%d", k+1), Text: fmt.Sprintf("%.1f mW", 25*part), Part: part})
		}
		for k := range 8 {
			m.Tap = append(m.Tap, live.Reading{Name: fmt.Sprintf("lane %d", k+1), Text: fmt.Sprintf("%.1f dBm", -2.1-float64(k)/10), Part: 0.8 - float64(k)/20})
		}
		sw.Modules = append(sw.Modules, m)
	}
	return &live.State{Version: 5, At: Now, File: f, Switches: []*live.Switch{sw}}
}
