package opus_test

import (
	"errors"
	"fmt"
	"math/big"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ocslab/ocslab/ocs"
	"github.com/ocslab/ocslab/topology/opus"
)

var (
	figure8  = opus.Job{Name: "figure-8", Stages: 3, Axes: []opus.Axis{{Name: "dp", Size: 2}, {Name: "cp", Size: 2}}}
	labJob   = opus.Job{Name: "lab", Stages: 2, Axes: []opus.Axis{{Name: "dp", Size: 2}}}
	eight    = opus.Job{Name: "eight", Stages: 2, Axes: []opus.Axis{{Name: "dp", Size: 2}, {Name: "cp", Size: 2}}}
	cabling8 = opus.Regular(24, 1, 25)
)

func parseID(t testing.TB, j opus.Job, text string) opus.ID {
	t.Helper()
	id, err := j.ParseID(text)
	if err != nil {
		t.Fatal(err)
	}
	return id
}

func build(t testing.TB, j opus.Job, text string, p opus.Policy) opus.Matching {
	t.Helper()
	m, err := opus.Build(j, parseID(t, j, text), p)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func giantRing(t testing.TB, j opus.Job) opus.Matching {
	t.Helper()
	m, err := opus.GiantRing(j)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func newTable(t testing.TB, j opus.Job, p opus.Policy, a opus.Assignment) *opus.Table {
	t.Helper()
	table, err := opus.NewTable(j, p, a)
	if err != nil {
		t.Fatal(err)
	}
	return table
}

func cabled(t testing.TB, a opus.Assignment, m opus.Matching) string {
	t.Helper()
	circuits, err := a.Map(m)
	if err != nil {
		t.Fatal(err)
	}
	var parts []string
	for _, c := range circuits.Slice() {
		parts = append(parts, c.String())
	}
	return strings.Join(parts, " ")
}

func TestBuild_Figure8(t *testing.T) {
	const stage2 = " 17>46 18>45 19>48 20>47 21>42 22>41 23>44 24>43"
	for _, x := range []struct {
		id     string
		policy opus.Policy
		want   string
	}{
		{"111", opus.Chain, "1>30 2>29 3>32 4>31 5>26 6>25 7>28 8>27 9>38 10>37 11>40 12>39 13>34 14>33 15>36 16>35" + stage2},
		{"111", opus.Pair, "1>30 2>29 3>32 4>31 5>26 6>25 7>28 8>27 9>38 10>37 11>40 12>39 13>34 14>33 15>36 16>35" + stage2},
		{"222", opus.Chain, "1>28 2>27 3>26 4>25 5>32 6>31 7>30 8>29 9>36 10>35 11>34 12>33 13>40 14>39 15>38 16>37" +
			" 17>44 18>43 19>42 20>41 21>48 22>47 23>46 24>45"},
		{"000", opus.Chain, "2>33 4>35 6>37 8>39 9>26 10>41 11>28 12>43 13>30 14>45 15>32 16>47 17>34 19>36 21>38 23>40"},
		{"000", "", "2>33 4>35 6>37 8>39 9>26 10>41 11>28 12>43 13>30 14>45 15>32 16>47 17>34 19>36 21>38 23>40"},
		{"000", opus.Pair, "2>33 4>35 6>37 8>39 9>26 10>41 11>28 12>43 13>30 14>45 15>32 16>47 17>34 19>36 21>38 23>40"},
		{"000", opus.Ring, "1>42 2>33 3>44 4>35 5>46 6>37 7>48 8>39 9>26 10>41 11>28 12>43 13>30 14>45 15>32 16>47" +
			" 17>34 18>25 19>36 20>27 21>38 22>29 23>40 24>31"},
		{"001", opus.Pair, "1>34 2>33 3>36 4>35 5>38 6>37 7>40 8>39 9>26 10>25 11>28 12>27 13>30 14>29 15>32 16>31" + stage2},
		{"001", opus.Ring, "1>34 2>33 3>36 4>35 5>38 6>37 7>40 8>39 9>26 10>25 11>28 12>27 13>30 14>29 15>32 16>31" + stage2},
		{"001", opus.Chain, "2>33 4>35 6>37 8>39 9>26 11>28 13>30 15>32" + stage2},
		{"101", opus.Pair, "1>30 2>29 3>32 4>31 5>26 6>25 7>28 8>27" + stage2}, // stage 1 has nobody to talk to
	} {
		if diff := cmp.Diff(x.want, cabled(t, cabling8, build(t, figure8, x.id, x.policy))); diff != "" {
			t.Errorf("%s %s (-want +got):\n%s", x.id, x.policy, diff)
		}
	}
}

// touched returns what a table of differences shows of one.
func touched(d opus.Delta) string {
	var stages []string
	for _, s := range d.Stages {
		stages = append(stages, fmt.Sprint(s))
	}
	return fmt.Sprintf("%d/%d/%d %s", len(d.Remove), len(d.Add), len(d.Ports), strings.Join(stages, ","))
}

func TestChange_Figure8(t *testing.T) {
	for _, x := range []struct {
		from, to string
		policies []opus.Policy
		want     string // removed/added/ingress touched, and the stages
	}{
		{"111", "001", []opus.Policy{opus.Pair}, "16/16/16 0,1"},
		{"111", "001", []opus.Policy{opus.Chain}, "16/8/16 0,1"},
		{"111", "211", opus.Policies, "8/8/8 0"},
		{"001", "111", []opus.Policy{opus.Pair}, "16/16/16 0,1"},
		{"001", "101", []opus.Policy{opus.Pair}, "16/8/16 0,1"},
		{"001", "101", []opus.Policy{opus.Chain}, "8/8/12 0,1"},
		{"001", "000", []opus.Policy{opus.Chain}, "8/8/12 1,2"},
		{"001", "000", []opus.Policy{opus.Pair}, "16/8/16 0,1,2"},
		{"000", "100", []opus.Policy{opus.Chain}, "8/8/12 0,1"},
		{"000", "010", []opus.Policy{opus.Chain}, "16/8/16 0,1,2"},
		{"111", "222", opus.Policies, "24/24/24 0,1,2"},
		{"111", "111", opus.Policies, "0/0/0 "},
	} {
		for _, p := range x.policies {
			d, err := newTable(t, figure8, p, cabling8).Change(parseID(t, figure8, x.from), parseID(t, figure8, x.to))
			if got := touched(d); err != nil || got != x.want {
				t.Errorf("%s to %s, %s: %s, %v; want %s", x.from, x.to, p, got, err, x.want)
			}
		}
	}
}

func TestLab(t *testing.T) {
	for rail, want := range []map[string]string{
		{
			"11":   "1>36 2>35 3>34 4>33 5>40 6>39 7>38 8>37",
			"00":   "1>38 2>37 3>40 4>39 5>34 6>33 7>36 8>35",
			"ring": "1>38 2>35 3>34 4>39 5>40 6>33 7>36 8>37",
		},
		{
			"11":   "9>44 10>43 11>42 12>41 13>48 14>47 15>46 16>45",
			"00":   "9>46 10>45 11>48 12>47 13>42 14>41 15>44 16>43",
			"ring": "9>46 10>43 11>42 12>47 13>48 14>41 15>44 16>45",
		},
	} {
		a := opus.Regular(8, ocs.Port(8*rail+1), ocs.Port(32+8*rail+1))
		got := map[string]string{
			"11":   cabled(t, a, build(t, labJob, "11", opus.Pair)),
			"00":   cabled(t, a, build(t, labJob, "00", opus.Pair)),
			"ring": cabled(t, a, giantRing(t, labJob)),
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("rail %d (-want +got):\n%s", rail, diff)
		}

		// A step of one microbatch.
		table := newTable(t, labJob, opus.Pair, a)
		var steps []string
		for ids := []string{"11", "00", "01", "00", "10", "11"}; len(ids) > 1; ids = ids[1:] {
			d, err := table.Change(parseID(t, labJob, ids[0]), parseID(t, labJob, ids[1]))
			if err != nil {
				t.Fatal(err)
			}
			steps = append(steps, fmt.Sprintf("%d/%d", len(d.Remove), len(d.Add)))
		}
		if got, want := strings.Join(steps, " "), "8/8 8/4 4/8 8/4 0/4"; got != want {
			t.Errorf("rail %d: the changes of a step are %s, want %s", rail, got, want)
		}
		// Falling back moves half of the ports.
		for _, x := range []struct {
			from, to opus.Matching
			want     int
		}{
			{build(t, labJob, "11", opus.Pair), build(t, labJob, "00", opus.Pair), 8},
			{build(t, labJob, "11", opus.Pair), giantRing(t, labJob), 4},
			{build(t, labJob, "00", opus.Pair), giantRing(t, labJob), 4},
		} {
			if d, err := x.from.Delta(x.to, a); err != nil || len(d.Ports) != x.want {
				t.Errorf("rail %d: %v to %v touches %d ingress ports, %v; want %d", rail, x.from, x.to, len(d.Ports), err, x.want)
			}
		}
	}
}

func TestRingOrder(t *testing.T) {
	for _, x := range []struct {
		job  opus.Job
		want []int
	}{
		{figure8, []int{0, 1, 5, 4, 8, 9, 11, 10, 6, 7, 3, 2}},
		{labJob, []int{0, 1, 3, 2}},
		{opus.Job{Stages: 1}, []int{0}},
		{opus.Job{Stages: 3}, []int{0, 1, 2}},
		{opus.Job{Stages: 3, Axes: []opus.Axis{{Name: "dp", Size: 3}}}, []int{0, 1, 2, 5, 4, 3, 6, 7, 8}},
	} {
		if diff := cmp.Diff(x.want, opus.RingOrder(x.job)); diff != "" {
			t.Errorf("%+v (-want +got):\n%s", x.job, diff)
		}
	}
}

func TestGiantRing_KeepsCircuits(t *testing.T) {
	ring := giantRing(t, figure8)
	for id, want := range map[string]int{"222": 12, "111": 4} {
		d, err := build(t, figure8, id, opus.Chain).Delta(ring, cabling8)
		if kept := 24 - len(d.Ports); err != nil || kept != want {
			t.Errorf("from %s %d ingress ports keep their circuit, %v; want %d", id, kept, err, want)
		}
	}
}

func TestGroups(t *testing.T) {
	job := func(p, d, c int) opus.Job {
		return opus.Job{Stages: p, Axes: []opus.Axis{{Name: "dp", Size: d}, {Name: "cp", Size: c}}}
	}
	for _, x := range []struct {
		job         opus.Job
		pp, dp, cp  int
		naive       string
		decomposed  int
		ranksOfSubs int
	}{
		{job(3, 2, 2), 4, 6, 6, "324", 36, 4},
		{job(2, 2, 4), 8, 8, 4, "144", 48, 8},
		{job(2, 8, 4), 32, 8, 16, "576", 192, 32},
		{job(16, 64, 8), 512, 128, 1024, "352638738432", 24576, 512},
		{job(16, 8, 8), 64, 128, 128, "44079842304", 3072, 64},
	} {
		var got []int
		for axis := range 3 {
			got = append(got, len(x.job.Groups(axis)))
		}
		if want := []int{x.pp, x.dp, x.cp}; !slices.Equal(got, want) || x.job.GroupCount() != x.pp+x.dp+x.cp {
			t.Errorf("%+v: %v groups, %d in all; want %v", x.job, got, x.job.GroupCount(), want)
		}
		naive, decomposed := opus.Storage(x.job)
		if naive.String() != x.naive || decomposed != x.decomposed || x.job.RanksPerStage() != x.ranksOfSubs {
			t.Errorf("%+v: %v entries or %d, %d ranks; want %s, %d, %d",
				x.job, naive, decomposed, x.job.RanksPerStage(), x.naive, x.decomposed, x.ranksOfSubs)
		}
	}
	four := opus.Job{Stages: 8, Axes: []opus.Axis{{Name: "dp", Size: 4}, {Name: "cp", Size: 4}, {Name: "ep", Size: 4}}}
	if naive, decomposed := opus.Storage(four); naive.Cmp(big.NewInt(33554432)) != 0 || decomposed != 2048 {
		t.Errorf("four dimensions: %v and %d, want 33554432 and 2048", naive, decomposed)
	}
	if got := newTable(t, figure8, opus.Chain, cabling8).Entries(); got != 36 {
		t.Errorf("the table of figure 8 has %d entries, want 36", got)
	}
}

// In the example of how a stage's digit disturbs others (two stages, DP and CP of two), the request for the circuits
// of one group moves half as many ports, and none of a rank that has no part in it.
func TestWith_TouchesNoBystander(t *testing.T) {
	a := opus.Regular(16, 1, 17)
	before := build(t, eight, "00", opus.Pair)
	group, ok := eight.FindGroup("dp/0")
	if !ok || !slices.Equal(group.Members, []int{0, 2}) {
		t.Fatalf("dp/0 is %v", group)
	}
	after, removed, added, err := before.With(eight.GroupCircuits(group), nil)
	if err != nil {
		t.Fatal(err)
	}
	ingress := func(to opus.Matching) (ports []ocs.Port) {
		d, err := before.Delta(to, a)
		if err != nil {
			t.Fatal(err)
		}
		for _, q := range d.Ports {
			ports = append(ports, a[q].In)
		}
		return ports
	}
	if diff := cmp.Diff([]ocs.Port{1, 2, 5, 6, 9, 10, 13, 14}, ingress(after)); diff != "" {
		t.Errorf("ingress touched (-want +got):\n%s", diff)
	}
	if n := len(ingress(build(t, eight, "10", opus.Pair))); n != 16 {
		t.Errorf("the digit touches %d ingress ports, want 16", n)
	}
	want := [][]opus.Circuit{{{0, 9}, {1, 8}, {4, 13}, {5, 12}}, {{0, 5}, {1, 4}}}
	if diff := cmp.Diff(want, [][]opus.Circuit{removed, added}); diff != "" {
		t.Errorf("removed and added (-want +got):\n%s", diff)
	}

	// The same again changes nothing; parting a port of it takes one circuit.
	same, removed, added, err := after.With(eight.GroupCircuits(group), nil)
	if err != nil || len(removed)+len(added) > 0 || !same.Equal(after) {
		t.Errorf("again: %v, %v, %v", removed, added, err)
	}
	_, removed, added, err = after.With(nil, []int{0, 5, 8})
	if diff := cmp.Diff([]opus.Circuit{{0, 5}}, removed); diff != "" || len(added) > 0 || err != nil {
		t.Errorf("parted: added %v, %v; removed (-want +got):\n%s", added, err, diff)
	}
}

func TestWith_Refuses(t *testing.T) {
	m := build(t, labJob, "11", opus.Pair)
	before := m.String()
	for _, x := range []struct {
		join []opus.Circuit
		part []int
	}{
		{join: []opus.Circuit{{0, 8}}},
		{join: []opus.Circuit{{-1, 2}}},
		{join: []opus.Circuit{{3, 3}}},
		{join: []opus.Circuit{{0, 2}, {2, 4}}},
		{part: []int{8}},
	} {
		if next, _, _, err := m.With(x.join, x.part); !errors.Is(err, opus.ErrJob) || next.Len() != 0 {
			t.Errorf("%v, %v: %v, %v", x.join, x.part, next, err)
		}
	}
	if m.String() != before {
		t.Errorf("the matching has changed: %v", m)
	}
	if _, _, _, err := (opus.Matching{}).With([]opus.Circuit{{0, 1}}, nil); !errors.Is(err, opus.ErrJob) {
		t.Errorf("the zero matching: %v", err)
	}
}

func TestTransferCircuits(t *testing.T) {
	pp, _ := figure8.FindGroup("pp/1") // ranks 1, 5, 9
	dp, _ := figure8.FindGroup("dp/0")
	wide := figure8
	wide.Ports = 4
	for _, x := range []struct {
		name string
		got  []opus.Circuit
		want []opus.Circuit
	}{
		{"open", figure8.TransferCircuits(pp, 0, false), []opus.Circuit{{3, 10}}},
		{"closed", figure8.TransferCircuits(pp, 1, true), []opus.Circuit{{10, 19}, {11, 18}}},
		{"four ports", wide.TransferCircuits(pp, 0, false), []opus.Circuit{{5, 20}, {7, 22}}},
		{"none after it", figure8.TransferCircuits(pp, 2, true), nil},
		{"no such stage", figure8.TransferCircuits(pp, -1, true), nil},
		{"not a pipeline", figure8.TransferCircuits(dp, 0, true), nil},
		{"chain", figure8.GroupCircuits(pp), []opus.Circuit{{3, 10}, {11, 18}}},
		{"two", figure8.GroupCircuits(dp), []opus.Circuit{{0, 5}, {1, 4}}},
		{"one", opus.Job{Stages: 2}.GroupCircuits(opus.Group{Axis: 1, Members: []int{1}}), nil},
	} {
		if diff := cmp.Diff(x.want, x.got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", x.name, diff)
		}
	}
}

func TestLanesAndHops(t *testing.T) {
	one := opus.Job{Stages: 1, Axes: []opus.Axis{{Name: "dp", Size: 4}}}
	wide := labJob
	wide.Ports = 5
	for _, x := range []struct {
		name     string
		job      opus.Job
		m        opus.Matching
		from, to int
		lanes    int
		hops     int
		reached  bool
	}{
		{"a pair has both ports", labJob, build(t, labJob, "11", opus.Pair), 0, 1, 2, 1, true},
		{"not the other dimension", labJob, build(t, labJob, "11", opus.Pair), 0, 2, 0, 0, false},
		{"an odd port is of no use", wide, build(t, wide, "11", opus.Pair), 1, 0, 4, 1, true},
		{"a ring of four", one, build(t, one, "1", opus.Chain), 0, 3, 1, 1, true},
		{"across it", one, build(t, one, "1", opus.Chain), 0, 2, 0, 2, true},
		{"an open pair", labJob, build(t, labJob, "00", opus.Chain), 0, 2, 1, 1, true},
		{"the giant ring", figure8, giantRing(t, figure8), 0, 11, 0, 6, true},
		{"the same rank", labJob, build(t, labJob, "00", opus.Chain), 3, 3, 0, 0, true},
		{"nowhere", labJob, build(t, labJob, "00", opus.Chain), 0, 9, 0, 0, false},
		{"no circuits at all", labJob, opus.Matching{}, 0, 1, 0, 0, false},
	} {
		hops, ok := x.m.Hops(x.job, x.from, x.to)
		if lanes := x.m.Lanes(x.from, x.to); lanes != x.lanes || hops != x.hops || ok != x.reached {
			t.Errorf("%s: %d lanes, %d hops, %v; want %d, %d, %v", x.name, lanes, hops, ok, x.lanes, x.hops, x.reached)
		}
	}
}

func TestRefusals(t *testing.T) {
	id := parseID(t, labJob, "11")
	for name, try := range map[string]func() error{
		"no stages":    func() error { return opus.Job{}.Check() },
		"one port":     func() error { return opus.Job{Stages: 1, Ports: 1}.Check() },
		"twice":        func() error { return opus.Job{Stages: 1, Axes: []opus.Axis{{"dp", 2}, {"DP", 2}}}.Check() },
		"the pipeline": func() error { return opus.Job{Stages: 1, Axes: []opus.Axis{{"PP", 2}}}.Check() },
		"ten axes":     func() error { return opus.Job{Stages: 1, Axes: make([]opus.Axis, 10)}.Check() },
		"too many":     func() error { return opus.Job{Stages: 2, Axes: []opus.Axis{{"dp", 1 << 62}}}.Check() },
		"build": func() error {
			_, err := opus.Build(labJob, opus.ID{1, 2}, opus.Pair)
			return err
		},
		"build of a value above nine": func() error {
			_, err := opus.Build(labJob, opus.ID{1, 208}, opus.Pair)
			return err
		},
		"an unknown policy": func() error {
			_, err := opus.Build(labJob, id, "rings")
			return err
		},
		"a short ID":          func() error { return changeTo(t, opus.ID{1}) },
		"an ID of other axes": func() error { return changeTo(t, opus.ID{1, 3}) },
		"a short assignment": func() error {
			_, err := opus.NewTable(labJob, opus.Pair, opus.Regular(7, 1, 33))
			return err
		},
		"a short assignment of a difference": func() error {
			_, err := build(t, labJob, "11", opus.Pair).Delta(build(t, labJob, "00", opus.Pair), opus.Regular(7, 1, 33))
			return err
		},
		"an ingress of two": func() error {
			a := opus.Regular(8, 1, 33)
			a[3].In = 1
			_, err := opus.NewTable(labJob, opus.Pair, a)
			return err
		},
		"an egress of two": func() error {
			a := opus.Regular(8, 1, 33)
			a[3].Out = 33
			_, err := opus.NewTable(labJob, opus.Pair, a)
			return err
		},
		"not cabled": func() error {
			a := opus.Regular(8, 1, 33)
			a[3] = opus.Fibre{}
			_, err := opus.NewTable(labJob, opus.Pair, a)
			return err
		},
		"two jobs": func() error {
			_, err := build(t, labJob, "11", opus.Pair).Delta(build(t, figure8, "111", opus.Pair), cabling8)
			return err
		},
		"a port used twice": func() error {
			_, err := opus.NewMatching(labJob, opus.Circuit{0, 1}, opus.Circuit{1, 2})
			return err
		},
	} {
		if err := try(); !errors.Is(err, opus.ErrJob) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func changeTo(t *testing.T, id opus.ID) error {
	_, err := newTable(t, labJob, opus.Pair, opus.Regular(8, 1, 33)).Change(parseID(t, labJob, "11"), id)
	return err
}

func TestDelta_ZeroMatching(t *testing.T) {
	a := opus.Regular(8, 1, 33)
	ring := giantRing(t, labJob)
	on, err := opus.Matching{}.Delta(ring, a)
	if err != nil || len(on.Add) != 8 || len(on.Remove) != 0 || len(on.Ports) != 8 {
		t.Errorf("from nothing: %+v, %v", on, err)
	}
	off, err := ring.Delta(opus.Matching{}, a)
	if diff := cmp.Diff(on.Inverse(), off); diff != "" || err != nil {
		t.Errorf("back, %v (-want +got):\n%s", err, diff)
	}
	if d, err := (opus.Matching{}).Delta(opus.Matching{}, nil); err != nil || !d.Empty() {
		t.Errorf("nothing to nothing: %+v, %v", d, err)
	}
	dark, err := opus.NewMatching(labJob)
	if err != nil || !dark.Equal(opus.Matching{}) || !(opus.Matching{}).Equal(dark) || dark.Equal(ring) {
		t.Errorf("a dark matching is not like none, or like a ring: %v", err)
	}
}

func TestIDForms(t *testing.T) {
	id := parseID(t, figure8, "001")
	if id.String() != "001" || id.Decimal() != "1" || id.Binary() != "110" {
		t.Errorf("%s is %s in decimal and %s in binary", id, id.Decimal(), id.Binary())
	}
	if back, err := figure8.FromBinary("110", 2); err != nil || back.String() != "002" {
		t.Errorf("from binary: %v, %v", back, err)
	}
	if got := parseID(t, figure8, "121").Transfer(0).String(); got != "001" {
		t.Errorf("after a transfer: %s", got)
	}
	if got := id.Symmetrical(1, 2).String(); got != "021" || id.String() != "001" {
		t.Errorf("after going over: %s, from %s", got, id)
	}
	long := opus.Job{Stages: 64}
	if got := parseID(t, long, strings.Repeat("0", 64)).Decimal(); got != "0" {
		t.Errorf("64 stages: %s", got)
	}
}
