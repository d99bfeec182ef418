// Package analysistest makes runs in memory, for tests and benchmarks of what reads runs.
package analysistest

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/ocslab/ocslab/experiment/plan"
	"github.com/ocslab/ocslab/experiment/runs"
	"github.com/ocslab/ocslab/linkmon/watch"
	"github.com/ocslab/ocslab/ocs"
	"github.com/ocslab/ocslab/timeline"
)

// The conditions of a [Synthetic] run.
const (
	Quick = "connectx-6-dx/autoneg-off" // links are up about 3 s after the light: condition 1
	Slow  = "connectx-6-dx/autoneg-on"  // and here about 6 s: condition 2
)

// Truths of a [Synthetic] run: about the medians of light and carrier since the command.
const (
	LightMedian        = 203 * time.Millisecond
	QuickCarrierMedian = LightMedian + 2900*time.Millisecond
	SlowCarrierMedian  = LightMedian + 5700*time.Millisecond
)

// sampled is how many reconfigurations have samples: more would only fill memory.
const sampled = 200

// patience of a Synthetic run.
const patience = 30 * time.Second

// Synthetic returns a finished run of an emulated lab, as if it had been read from its
// directory: one switch, rail0, and NICs gpu1/ens1f0 and so on; two conditions, [Quick]
// and [Slow], in an order that interleaves them; a null toggle for ten points; and two
// sessions. Every reconfiguration moves the links of all NICs from one neighbour to the
// other, and is seen at six stages of each NIC, its port, or its pair.
//
// The number of reconfigurations, null toggles not counted, is rounded up to a multiple
// of 4, and that of NICs to an even one that is at least 4. The same arguments give the
// same run.
//
// Some of it is odd, as it is in reality: 5 of 1000 links come up 3 s late, 2 of 1000 not
// at all, 1 of 1000 does not go down, one null toggle in 20 shows a link that flapped, and
// there is a gap, an outage and a clock step. The truth is inside of nearly all marks. The
// first 200 reconfigurations have samples.
func Synthetic(reconfigurations, nics int, seed uint64) *runs.Run {
	s := &synthesis{
		seed: seed,
		nics: max(4, nics+nics%2),
		run:  &runs.Run{Done: map[int]bool{}, Dropped: map[int]bool{}, State: runs.Done},
	}
	s.name()
	s.plan(max(1, (reconfigurations+3)/4))
	s.meta()
	s.measure()
	s.finish()
	return s.run
}

// synthesis is a run in the making.
type synthesis struct {
	seed uint64
	nics int
	run  *runs.Run

	hosts, names, ports []string    // of NICs; the ports are their egress
	flows               [2][]string // to each NIC, by configuration
	maps                [2]ocs.Map
	began               []int64 // of each point, on the axis of the marks, by place in the plan
}

// epoch is when a Synthetic run began, and epochNS the same on the axis of its marks.
var epoch = time.Date(2026, 11, 22, 1, 0, 0, 0, time.UTC)

const epochNS = int64(5000 * time.Second)

var configurations = []string{"dp", "pp"}

// name gives names to all there is. Neighbours are joined in pairs: 1-2, 3-4 in the first
// configuration, 2-3, 4-1 in the second.
func (s *synthesis) name() {
	for i := range s.nics {
		host := fmt.Sprintf("gpu%d", i+1)
		s.hosts = append(s.hosts, host)
		s.names = append(s.names, host+"/ens1f0")
		s.ports = append(s.ports, fmt.Sprintf("rail0/%d", s.nics+i+1))
	}
	for c := range s.maps {
		var circuits []ocs.CrossConnect
		s.flows[c] = make([]string, s.nics)
		for i := range s.nics {
			peer := s.peer(c, i)
			s.flows[c][i] = s.names[peer] + ">" + s.names[i]
			circuits = append(circuits, ocs.CrossConnect{Ingress: ocs.Port(peer + 1), Egress: ocs.Port(s.nics + i + 1)})
		}
		s.maps[c] = ocs.MustMap(circuits...)
	}
}

// peer returns the NIC that is joined with i.
func (s *synthesis) peer(configuration, i int) int {
	if (i+configuration)%2 == 0 {
		return (i + 1) % s.nics
	}
	return (i + s.nics - 1) % s.nics
}

// links returns the pairs of a configuration as YAML.
func (s *synthesis) links(configuration int) string {
	var pairs []string
	for i := range s.nics {
		if peer := s.peer(configuration, i); i < peer {
			pairs = append(pairs, fmt.Sprintf("[%s, %s]", s.names[i], s.names[peer]))
		}
	}
	return "[" + strings.Join(pairs, ", ") + "]"
}

// lab returns the lab file.
func (s *synthesis) lab() []byte {
	var b strings.Builder
	b.WriteString("name: synthetic\nswitches:\n  - name: rail0\n    url: tl1://admin@192.0.2.10:3082\n" +
		"    emulate: {model: polatis-6000-32x32, switching: 200ms}\nhosts:\n")
	for i := range s.nics {
		fmt.Fprintf(&b, "  - name: %s\n    nics: [{name: ens1f0, tx: rail0/%d, rx: %s}]\n", s.hosts[i], i+1, s.ports[i])
	}
	b.WriteString("configurations:\n")
	for c, name := range configurations {
		fmt.Fprintf(&b, "  %s: {links: %s}\n", name, s.links(c))
	}
	return []byte(b.String())
}

// plan lays out the points: repeats of two conditions, and null toggles.
func (s *synthesis) plan(repeats int) {
	nulls := max(2, 2*repeats/10)
	carrier := plan.Statistic{Stage: timeline.CarrierUp, Of: plan.P50}
	limits := []plan.Limit{
		{Text: "carrier_p50 < 4s where firmware=" + Quick, Statistic: carrier, Op: "<", Value: 4e9, Where: map[string]string{"firmware": Quick}},
		{Text: "carrier_p50 < 4s where firmware=" + Slow, Statistic: carrier, Op: "<", Value: 4e9, Where: map[string]string{"firmware": Slow}},
		{Text: "missing == 0", Statistic: plan.Statistic{Of: plan.Missing}, Op: "=="},
	}
	var text strings.Builder
	fmt.Fprintf(&text, "name: synthetic\nabout: A run that no testbed has seen.\nsequence: [dp, pp]\n"+
		"axes:\n  - list: [{firmware: %s}, {firmware: %s}]\nrepeats: %d\nwarm_ups: 3\norder: interleaved\nseed: %d\n"+
		"nulls: {count: %d, window: 1s}\nwait: traffic\nlimits:\n", Quick, Slow, repeats, s.seed, nulls)
	for _, l := range limits {
		fmt.Fprintf(&text, "  - %s\n", l.Text)
	}
	text.WriteString("finally: {light: restore}\n")

	warmUps := 3
	s.run.File = &plan.File{
		Path: "synthetic.yaml", Text: []byte(text.String()), Name: "synthetic", About: "A run that no testbed has seen.",
		Sequence: configurations, Axes: []plan.Axis{{List: []map[string]string{{"firmware": Quick}, {"firmware": Slow}}}},
		Repeats: &repeats, WarmUps: &warmUps, Order: plan.Interleaved, Seed: &s.seed,
		Nulls: &plan.Nulls{Count: nulls, Window: time.Second}, Wait: &plan.Wait{Until: plan.UntilTraffic},
		Limits: limits, Finally: &plan.Finally{Light: plan.Restore},
	}

	p := &plan.Plan{
		Name: "synthetic", Seed: s.seed, Emulated: true, Order: plan.Interleaved, WarmUps: warmUps,
		Window: int64(time.Second), Varied: []string{"firmware"},
	}
	for i, firmware := range []string{Quick, Slow} {
		p.Conditions = append(p.Conditions, plan.Condition{
			Number: i + 1, Label: "firmware=" + firmware,
			Parameters: map[string]string{"firmware": firmware}, Settings: plan.Settings{Firmware: firmware},
			Sequence: configurations, Maps: []map[string]ocs.Map{{"rail0": s.maps[0]}, {"rail0": s.maps[1]}},
			Setup: "firmware=" + firmware, Expected: 4 * time.Second, Basis: "the firmware's profile",
		})
	}
	null := func(i int) plan.Point {
		return plan.Point{ID: 2*repeats + i + 1, Condition: i%2 + 1, Repeat: i/2 + 1, Null: true, First: 4*repeats + i + 1}
	}
	given := 0 // null toggles in the plan so far
	for r := range repeats {
		for c := range 2 {
			id := c*repeats + r + 1
			p.Points = append(p.Points, plan.Point{ID: id, Condition: c + 1, Repeat: r + 1, First: 2*id - 1})
		}
		for ; given < nulls*(r+1)/repeats; given++ {
			p.Points = append(p.Points, null(given))
		}
	}
	s.run.Plan = p
}

// meta says where and how the run was made.
func (s *synthesis) meta() {
	r := s.run
	r.Lab = s.lab()
	r.Meta = runs.Meta{
		Format: runs.Format, ID: "20261122T010000-synthetic-0001", Name: "synthetic", About: r.File.About,
		Created: epoch, Version: "0.0.0-test", Revision: "0123456789ab", Command: []string{"run", "synthetic.yaml"},
		Lab: "synthetic", LabPath: "synthetic-lab.yaml", Emulated: true, StateDir: "state",
	}
	for i, p := range r.Plan.Points {
		r.Done[p.ID] = true
		if i == 0 {
			s.began = append(s.began, epochNS+int64(20*time.Second))
			continue
		}
		last := r.Plan.Points[i-1]
		took := 2 * time.Second
		if !last.Null {
			took = 2 * (4 + 3*time.Duration(last.Condition-1)) * time.Second
		}
		s.began = append(s.began, s.began[i-1]+int64(took))
	}
	resumed := s.began[s.resumed()] - int64(10*time.Second)
	for i, ns := range []int64{epochNS, resumed} {
		session := runs.Session{
			Number: i + 1, Begun: wall(ns), MonoNS: ns, Boot: "c0ffee00-0000-4000-8000-000000000000",
			Host: "labhost", Kernel: "6.12.0", Version: r.Meta.Version, Revision: r.Meta.Revision,
		}
		if i == 0 {
			session.Found = map[string]ocs.Map{"rail0": {}}
		} else {
			session.Ended = "all points are done"
		}
		r.Sessions = append(r.Sessions, session)
		for c := range r.Plan.Conditions {
			r.Setups = append(r.Setups, s.setup(i+1, c))
		}
	}
	r.Events = []runs.Event{
		{Kind: "recovered", Session: 2, Wall: wall(resumed), Text: "The run was interrupted, and what was written of the point under way was dropped."},
		{Kind: "clock-step", Session: 2, Wall: wall(resumed), Text: "The wall clock was stepped by 1.2 s; marks do not depend on it."},
	}
}

// resumed is the place in the plan from which the second session went on.
func (s *synthesis) resumed() int { return len(s.run.Plan.Points) * 2 / 3 }

func wall(ns int64) time.Time { return epoch.Add(time.Duration(ns - epochNS)) }

func (s *synthesis) setup(session, condition int) runs.Setup {
	firmware := s.run.Plan.Conditions[condition].Settings.Firmware
	setup := runs.Setup{
		Session: session, Conditions: []int{condition + 1}, Rung: "memory", Carrier: "counters every 100µs",
		PollNS: int64(100 * time.Microsecond), PaceNS: int64(100 * time.Microsecond),
		Missing: []string{"no firmware: emulated in memory"},
		Devices: []runs.Device{{
			Name: "rail0", URL: "tl1://admin@192.0.2.10:3082", Vendor: "Polatis", Model: "6000-32x32", Serial: "000123",
			Firmware: "6.6.2.12", Size: fmt.Sprintf("%dx%d", s.nics, s.nics), Emulated: true, AveragingNS: int64(10 * time.Millisecond),
		}},
	}
	for i := range s.nics {
		setup.NICs = append(setup.NICs, runs.NIC{
			Name: s.names[i], Tx: fmt.Sprintf("rail0/%d", i+1), Rx: s.ports[i], Firmware: firmware, Driver: "emulated",
		})
	}
	return setup
}

// measure carries out the plan, in order of the numbers of reconfigurations.
func (s *synthesis) measure() {
	r := s.run
	places := make([]int, len(r.Plan.Points))
	for i := range places {
		places[i] = i
	}
	slices.SortFunc(places, func(a, b int) int { return cmp.Compare(r.Plan.Points[a].First, r.Plan.Points[b].First) })
	moves := 0
	for _, p := range r.Plan.Points {
		moves += 2
		if p.Null {
			moves--
		}
	}
	r.Reconfigurations = make([]runs.Reconfiguration, 0, moves)
	r.Marks = make([]timeline.Mark, 0, moves*(6*s.nics+2))
	r.Truth = make([]timeline.Mark, 0, moves*(6*s.nics+2))
	r.Expected = make([]timeline.Expectation, 0, moves*6*s.nics)
	for _, i := range places {
		p := r.Plan.Points[i]
		session := 1
		if i >= s.resumed() {
			session = 2
		}
		if p.Null {
			s.null(p, session, s.began[i])
			continue
		}
		for to := range configurations {
			at := s.began[i] + int64(to)*int64(4+3*(p.Condition-1))*int64(time.Second)
			s.move(p, session, to, at)
		}
	}
}

// reconfiguration enters what all reconfigurations have.
func (s *synthesis) reconfiguration(p plan.Point, session, number int, at int64) *runs.Reconfiguration {
	s.run.Reconfigurations = append(s.run.Reconfigurations, runs.Reconfiguration{
		Number: number, Point: p.ID, Condition: p.Condition, Repeat: p.Repeat, Null: p.Null, Session: session,
		From: configurations[0], To: configurations[0], Wall: wall(at), MonoNS: at, Readings: 300, PatienceNS: int64(patience),
	})
	return &s.run.Reconfigurations[len(s.run.Reconfigurations)-1]
}

// null is a window in which nothing is moved. In one of 20 a link flaps all the same.
func (s *synthesis) null(p plan.Point, session int, at int64) {
	s.reconfiguration(p, session, p.First, at)
	if p.First%20 != 0 {
		return
	}
	i := p.First / 20 % s.nics
	for stage, after := range map[timeline.Stage]int64{timeline.CarrierDown: 3e8, timeline.CarrierUp: 7e8} {
		s.run.Marks = append(s.run.Marks, timeline.Mark{
			Stage: stage, Subject: s.names[i], Host: s.hosts[i], Interval: timeline.Between(at+after, at+after+134_000),
			Source: "counters", Reconfiguration: p.First,
		})
	}
	marks := s.run.Marks[len(s.run.Marks)-2:]
	slices.SortFunc(marks, func(a, b timeline.Mark) int { return cmp.Compare(a.Earliest, b.Earliest) })
}

// move is one reconfiguration.
func (s *synthesis) move(p plan.Point, session, to int, at int64) {
	r := s.run
	number := p.First + to
	random := rand.New(rand.NewPCG(s.seed, uint64(number)))
	rec := s.reconfiguration(p, session, number, at)
	rec.From, rec.To = configurations[1-to], configurations[to]
	rec.Removed = map[string]ocs.Map{"rail0": s.maps[1-to]}
	rec.Added = map[string]ocs.Map{"rail0": s.maps[to]}

	marks, truths := len(r.Marks), len(r.Truth)
	// seen adds a mark of the given width around the truth.
	seen := func(stage timeline.Stage, subject, host, source string, truth, width int64) {
		r.Truth = append(r.Truth, timeline.Mark{
			Stage: stage, Subject: subject, Host: host, Interval: timeline.Point(truth), Source: "truth", Reconfiguration: number,
		})
		early := random.Int64N(width + 1)
		if random.IntN(1000) == 0 {
			early = -1 // a reading that was wrong by a little
		}
		r.Marks = append(r.Marks, timeline.Mark{
			Stage: stage, Subject: subject, Host: host, Interval: timeline.Between(max(at, truth-early), truth-early+width),
			Source: source, Reconfiguration: number,
		})
	}
	expect := func(stage timeline.Stage, subject string) {
		r.Expected = append(r.Expected, timeline.Expectation{Reconfiguration: number, Stage: stage, Subject: subject})
	}
	since := func(ms, spread float64) int64 { // lognormal: its median is ms
		return int64(ms * 1e6 * math.Exp(spread*random.NormFloat64()))
	}

	sent := at + int64(40*time.Microsecond)
	seen(timeline.Command, "rail0", "labhost", "driver", sent, 12_000)
	common := since(float64(LightMedian)/1e6, 0.02) // the mirrors of one command move together
	seen(timeline.Ack, "rail0", "labhost", "driver", sent+common+since(6, 0.1), 20_000)
	carrier := QuickCarrierMedian
	if p.Condition == 2 {
		carrier = SlowCarrierMedian
	}
	up := make([]int64, s.nics) // 0: not in time
	lights := make([]int64, s.nics)
	for i := range s.nics {
		host, name, port := s.hosts[i], s.names[i], s.ports[i]
		dark := sent + since(8, 0.1)
		light := sent + common + since(0.5, 0.3)
		lights[i] = light
		held := random.IntN(1000) == 0
		expect(timeline.Dark, port)
		expect(timeline.Light, port)
		seen(timeline.Dark, port, "labhost", "opm", dark, 10_000_000)
		seen(timeline.Light, port, "labhost", "opm", light, 10_000_000)
		seen(timeline.TrafficLost, s.flows[1-to][i], host, "probe", dark, 120_000)
		expect(timeline.TrafficLost, s.flows[1-to][i])
		if held {
			rec.Held = append(rec.Held, name)
			up[i] = light
			continue
		}
		expect(timeline.CarrierDown, name)
		expect(timeline.CarrierUp, name)
		seen(timeline.CarrierDown, name, host, "counters", dark+since(1, 0.2), 134_000)
		up[i] = light + since(float64(carrier-LightMedian)/1e6, 0.01)
		switch x := random.IntN(1000); {
		case x < 5:
			up[i] += int64(3 * time.Second)
		case x < 7:
			up[i] = 0
			rec.Unresolved = append(rec.Unresolved, fmt.Sprintf("%s: carrier-up: not within %v", name, patience))
		}
		if up[i] != 0 {
			seen(timeline.CarrierUp, name, host, "counters", up[i], 134_000)
		}
	}
	for i := range s.nics {
		flow, peer := s.flows[to][i], s.peer(to, i)
		expect(timeline.Traffic, flow)
		if up[i] == 0 || up[peer] == 0 {
			rec.Unresolved = append(rec.Unresolved, fmt.Sprintf("%s: traffic: not within %v", flow, patience))
			continue
		}
		seen(timeline.Traffic, flow, s.hosts[i], "probe", max(up[i], up[peer])+since(0.4, 0.3), 120_000)
	}
	for _, list := range [][]timeline.Mark{r.Marks[marks:], r.Truth[truths:]} {
		slices.SortStableFunc(list, func(a, b timeline.Mark) int { return cmp.Compare(a.Earliest, b.Earliest) })
	}
	if number <= sampled {
		s.samples(number, sent, lights)
	}
	s.notes(number, at)
}

// samples are what the power monitors read: of equal readings the first and the last.
func (s *synthesis) samples(number int, sent int64, lights []int64) {
	const period = int64(2 * time.Millisecond)
	for i, port := range s.ports {
		read := func(at int64, dBm float64, dark bool) {
			if dark {
				dBm = 0
			}
			s.run.Samples = append(s.run.Samples, runs.Sample{
				Reconfiguration: number, Subject: port, EarliestNS: at, LatestNS: at + 300_000, PowerDBm: dBm, Dark: dark,
			})
		}
		level := -3.2 - 0.1*float64(i)
		read(sent-3*period, level, false)
		read(sent+2*period, level, false)
		read(sent+4*period, level-4, false)
		read(sent+5*period, 0, true)
		read(lights[i]-period, 0, true)
		read(lights[i], level-6, false)
		read(lights[i]+period, level-0.2, false)
		read(lights[i]+2*period, level, false)
		read(lights[i]+200*period, level, false)
	}
}

// notes are few.
func (s *synthesis) notes(number int, at int64) {
	note := func(n watch.Note) {
		s.run.Notes = append(s.run.Notes, n)
		s.run.NoteOf = append(s.run.NoteOf, number)
	}
	switch number {
	case 2:
		note(watch.Note{Kind: watch.Gap, Host: s.hosts[1], Interval: timeline.Between(at+5e8, at+6e8), Source: "counters",
			Text: "no sweep for 100 ms"})
	case 3:
		note(watch.Note{Kind: watch.Outage, Subject: s.flows[0][0], Host: s.hosts[0], Interval: timeline.Between(at+34e8, at+36e8),
			Source: "probe", Text: "traffic was interrupted again after it had come"})
	}
}

// finish writes the summary.
func (s *synthesis) finish() {
	r := s.run
	end := s.began[len(s.began)-1] + int64(20*time.Second)
	r.Summary = &runs.Summary{
		Format: runs.Format, Run: r.Meta.ID, State: runs.Done, Ended: wall(end),
		Points: len(r.Plan.Points), Planned: len(r.Plan.Points), Verdict: "fail", Restored: true,
	}
}
