package controller

import (
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"

	"github.com/ocslab/ocslab/orchestrator/proto"
	"github.com/ocslab/ocslab/topology/opus"
)

// drawJob draws a job of up to 4 stages and 3 axes.
func drawJob(t *rapid.T) opus.Job {
	j := opus.Job{Name: "job", Stages: rapid.IntRange(1, 4).Draw(t, "stages"), Ports: rapid.SampledFrom([]int{0, 2, 2, 3, 4}).Draw(t, "ports")}
	for i := range rapid.IntRange(0, 3).Draw(t, "axes") {
		j.Axes = append(j.Axes, opus.Axis{Name: []string{"dp", "cp", "ep"}[i], Size: rapid.IntRange(1, 3).Draw(t, "size")})
	}
	return j
}

// schedule makes a program that is the same for all groups of an axis in a stage: a sequence of classes, of which each stage runs
// those that it is in.
func schedule(j opus.Job, rng *rand.Rand, n int) []*class {
	var all []*class
	for range n {
		if j.Stages > 1 && rng.IntN(2) == 0 || len(j.Axes) == 0 {
			if j.Stages == 1 {
				return nil
			}
			all = append(all, &class{axis: opus.PP, stage: rng.IntN(j.Stages - 1)})
			continue
		}
		axis, stage, times := 1+rng.IntN(len(j.Axes)), rng.IntN(j.Stages), 1+rng.IntN(3)
		everywhere := rng.IntN(2) == 0
		for s := range j.Stages {
			if s == stage || everywhere {
				for range times {
					all = append(all, &class{axis: axis, stage: s})
				}
			}
		}
	}
	return all
}

func drawSim(t *rapid.T, grans []Granularity, fault bool) *sim {
	j := drawJob(t)
	seed := rapid.Uint64().Draw(t, "seed")
	opt := Options{
		Policy: rapid.SampledFrom(opus.Policies).Draw(t, "policy"), Granularity: rapid.SampledFrom(grans).Draw(t, "granularity"), Barrier: -1,
	}
	so := simOptions{
		provision: rapid.Bool().Draw(t, "provision"), always: rapid.Bool().Draw(t, "always"),
		wrong: rapid.SampledFrom([]float64{0, 0, .1, .5}).Draw(t, "wrong"), slow: rapid.SampledFrom([]int64{0, 5, 300}).Draw(t, "slow"),
	}
	if fault {
		so.fault = rapid.SampledFrom([]float64{0, .05, .5}).Draw(t, "fault")
		so.ringFault = rapid.SampledFrom([]float64{0, .2}).Draw(t, "ring fault")
		opt.ResumeAfter = 5000
	}
	return newSim(t, j, opt, so, seed, schedule(j, rand.New(rand.NewPCG(seed, 2)), 25))
}

// TestProgramsComplete: every program ends, in whatever order messages and changes come, no change touches what
// somebody uses, and nobody runs on what is not there.
func TestProgramsComplete(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		s := drawSim(rt, []Granularity{Stage, Circuit}, false)
		s.run(proto.Opened{Epoch: 1, Shape: proto.Giant, Circuits: ringPairs(s.e)})
		s.checkEnd(t)
	})
}

// TestProgramsCompleteWithFaults: also when the switch fails now and then, and the rail falls back, resumes, and dies.
func TestProgramsCompleteWithFaults(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		s := drawSim(rt, []Granularity{Stage, Circuit}, true)
		s.e.others = true
		s.run(proto.Opened{Epoch: 1, Shape: proto.Giant, Circuits: ringPairs(s.e)})
		s.checkEnd(t)
		switch {
		case s.e.mode == dead && s.shape != proto.Dead, s.e.mode == onRing && s.shape != proto.Giant:
			rt.Fatalf("the controller takes the rail for %s, and it is %s", s.e.mode, s.shape)
		}
	})
}

func ringPairs(e *engine) [][2]int {
	var all [][2]int
	for c := range e.ring.Circuits() {
		all = append(all, [2]int{c.A, c.B})
	}
	return all
}

// TestPublishedMovesUnderOperations: the same programs find what is wrong with the published rules.
func TestPublishedMovesUnderOperations(t *testing.T) {
	for _, gran := range []Granularity{Published, Stage, Circuit} {
		hit := 0
		for seed := range uint64(20) {
			s := newSim(t, hazard, Options{Granularity: gran, Barrier: -1}, simOptions{hazard: true, always: true, slow: 300}, seed, schedule(hazard, rand.New(rand.NewPCG(seed, 2)), 25))
			s.run(proto.Opened{Epoch: 1, Shape: proto.Giant, Circuits: ringPairs(s.e)})
			hit += len(s.hit)
		}
		if (hit > 0) != (gran == Published) {
			t.Errorf("granularity %s: %d ports were moved under an operation", gran, hit)
		}
	}
}

// TestScenarioD_Overlap: changes of different stages are under way at the same time.
func TestScenarioD_Overlap(t *testing.T) {
	most := 0
	for seed := range uint64(20) {
		s := newSim(t, figure8, Options{Barrier: -1}, simOptions{always: true}, seed, schedule(figure8, rand.New(rand.NewPCG(seed, 2)), 25))
		s.run(proto.Opened{Epoch: 1, Shape: proto.Giant, Circuits: ringPairs(s.e)})
		most = max(most, s.maxWhile)
	}
	if most < 2 {
		t.Error("two stages never changed at the same time")
	}
}
