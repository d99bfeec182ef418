package job_test

import (
	"testing"

	"github.com/ocslab/ocslab/lab"
	"github.com/ocslab/ocslab/ocs"
	"github.com/ocslab/ocslab/orchestrator/job"
	"github.com/ocslab/ocslab/topology/opus"
)

// Ensure the files of the example give the circuits of the testbed, as cabled.
func TestAssignment(t *testing.T) {
	in, err := lab.Load("../../examples/opus-rails.yaml")
	if err != nil {
		t.Fatal(err)
	}
	f, err := job.Load("../../examples/lab-job.yaml", in)
	if err != nil {
		t.Fatal(err)
	}
	for _, x := range []struct{ rail, id, want string }{
		{"rail0", "11", "1>36,2>35,3>34,4>33,5>40,6>39,7>38,8>37"},
		{"rail0", "00", "1>38,2>37,3>40,4>39,5>34,6>33,7>36,8>35"},
		{"rail1", "00", "9>46,10>45,11>48,12>47,13>42,14>41,15>44,16>43"},
	} {
		id, err := f.Job().ParseID(x.id)
		if err != nil {
			t.Fatal(err)
		}
		m, err := opus.Build(f.Job(), id, f.OpusPolicy())
		if err != nil {
			t.Fatal(err)
		}
		a, err := f.Assignment(x.rail, in)
		if err != nil {
			t.Fatal(err)
		}
		got, err := a.Map(m)
		if err != nil || got.String() != x.want {
			t.Errorf("%s %s: got %v, %v; want %s", x.rail, x.id, got, err, x.want)
		}
	}
}

// Ensure a made-up lab fits its job: the circuits of rank 0 and 1 are on the first ports.
func TestEmulated(t *testing.T) {
	j := opus.Job{Name: "two by eight", Stages: 2, Axes: []opus.Axis{{Name: "fsdp", Size: 8}}}
	in, f, err := job.Emulated(j, 4, opus.Pair, 0)
	if err != nil {
		t.Fatal(err)
	}
	if len(in.Switches) != 4 || len(f.Rails) != 4 || f.Job().Ranks() != 16 {
		t.Errorf("%d switches, %d rails, %d ranks", len(in.Switches), len(f.Rails), f.Job().Ranks())
	}
	m, err := opus.Build(j, opus.ID{1, 1}, opus.Pair)
	if err != nil {
		t.Fatal(err)
	}
	a, err := f.Assignment("rail3", in)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := a.Map(m); err != nil || !got.Has(ocs.CrossConnect{Ingress: 2, Egress: 35}) {
		t.Errorf("%v, %v: want 2>35, from the right port of rank 0 to the left of rank 1", got, err)
	}
	if _, _, err := job.Emulated(opus.Job{Name: "large", Stages: 400}, 1, opus.Chain, 0); err == nil {
		t.Error("400 ranks fit on a switch of 384 ports")
	}
}
