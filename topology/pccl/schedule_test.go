package pccl_test

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/ocslab/ocslab/topology/pccl"
)

var reductions = []pccl.Collective{pccl.ReduceScatter, pccl.AllGather, pccl.AllReduce}

// mustNew lays a schedule out that there is.
func mustNew(t testing.TB, c pccl.Collective, a pccl.Algorithm, gpus int, bytes float64) pccl.Schedule {
	t.Helper()
	s, err := pccl.New(c, a, gpus, bytes)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func peers(r pccl.Round) []int {
	var to []int
	for _, t := range r.Transfers {
		to = append(to, t.Dst)
	}
	return to
}

func TestNew_rounds(t *testing.T) {
	tests := []struct {
		c      pccl.Collective
		a      pccl.Algorithm
		gpus   int
		bytes  []float64 // of a buffer of 8 MB, in MB
		first  []int     // to whom GPUs 0, 1, ... send in the first round
		second []int
	}{
		{pccl.ReduceScatter, "rhd-halving", 8, []float64{4, 2, 1}, []int{4, 5, 6, 7, 0, 1, 2, 3}, []int{2, 3, 0, 1, 6, 7, 4, 5}},
		{pccl.ReduceScatter, "rhd", 4, []float64{4, 2}, []int{2, 3, 0, 1}, []int{1, 0, 3, 2}},
		{pccl.ReduceScatter, "rhd-doubling", 8, []float64{4, 2, 1}, []int{1, 0, 3, 2, 5, 4, 7, 6}, []int{2, 3, 0, 1, 6, 7, 4, 5}},
		{pccl.AllGather, "rhd-halving", 8, []float64{1, 2, 4}, []int{1, 0, 3, 2, 5, 4, 7, 6}, []int{2, 3, 0, 1, 6, 7, 4, 5}},
		{pccl.AllReduce, "rhd-halving", 4, []float64{4, 2, 2, 4}, []int{2, 3, 0, 1}, []int{1, 0, 3, 2}},
		{pccl.ReduceScatter, "ring", 4, []float64{2, 2, 2}, []int{1, 2, 3, 0}, []int{1, 2, 3, 0}},
		{pccl.AllGather, "ring", 4, []float64{2, 2, 2}, []int{1, 2, 3, 0}, []int{1, 2, 3, 0}},
		{pccl.ReduceScatter, "bucket 2x4", 8, []float64{4, 1, 1, 1}, []int{4, 5, 6, 7, 0, 1, 2, 3}, []int{1, 2, 3, 0, 5, 6, 7, 4}},
		{pccl.AllGather, "bucket 2x4", 8, []float64{1, 1, 1, 4}, []int{1, 2, 3, 0, 5, 6, 7, 4}, []int{1, 2, 3, 0, 5, 6, 7, 4}},
		// rho is 1, -1, 3: an even GPU adds it, an odd one takes it away.
		{pccl.ReduceScatter, "swing", 8, []float64{4, 2, 1}, []int{1, 0, 3, 2, 5, 4, 7, 6}, []int{7, 2, 1, 4, 3, 6, 5, 0}},
		{pccl.ReduceScatter, "swing 2x4", 8, []float64{4, 2, 1}, []int{4, 5, 6, 7, 0, 1, 2, 3}, []int{1, 0, 3, 2, 5, 4, 7, 6}},
		{pccl.AllToAll, "dex", 8, []float64{4, 4, 4}, []int{1, 0, 3, 2, 5, 4, 7, 6}, []int{2, 3, 0, 1, 6, 7, 4, 5}},
		{pccl.AllToAll, "linear", 4, []float64{2, 2, 2}, []int{1, 2, 3, 0}, []int{2, 3, 0, 1}},
	}
	for _, tt := range tests {
		t.Run(fmt.Sprint(tt.c, " ", tt.a), func(t *testing.T) {
			s := mustNew(t, tt.c, tt.a, tt.gpus, 8e6)
			var bytes []float64
			for _, r := range s.Rounds {
				bytes = append(bytes, r.Bytes/1e6)
			}
			if diff := cmp.Diff(tt.bytes, bytes); diff != "" {
				t.Errorf("bytes (-want +got):\n%s", diff)
			}
			if got := peers(s.Rounds[0]); !slices.Equal(got, tt.first) {
				t.Errorf("round 0 goes to %v, want %v", got, tt.first)
			}
			if got := peers(s.Rounds[1]); !slices.Equal(got, tt.second) {
				t.Errorf("round 1 goes to %v, want %v", got, tt.second)
			}
		})
	}
}

// Section 2.2's verified cases, and all else that New makes.
func TestCheck_generators(t *testing.T) {
	type made struct {
		a    pccl.Algorithm
		gpus int
	}
	var all []made
	for n := 4; n <= 128; n *= 2 {
		all = append(all, made{"rhd-halving", n}, made{"rhd-doubling", n}, made{"swing", n}, made{"ring", n})
	}
	for _, shape := range []string{"4x4", "8x8", "8x16", "4x4x4", "4x4x8", "2x4x4", "4x8", "16x8", "2x2x2", "2x32"} {
		n := 1
		for d := range strings.SplitSeq(shape, "x") {
			var v int
			fmt.Sscan(d, &v)
			n *= v
		}
		all = append(all, made{pccl.Algorithm("swing " + shape), n}, made{pccl.Algorithm("bucket " + shape), n})
	}
	for _, n := range []int{2, 3, 5, 6, 7, 12, 15} {
		all = append(all, made{"ring", n})
	}
	all = append(all, made{"bucket 3x5", 15}, made{"bucket 5x3x2", 30}, made{"bucket 3x3x3", 27}, made{"rhd", 2}, made{"swing", 2})
	for _, m := range all {
		for _, c := range reductions {
			s := mustNew(t, c, m.a, m.gpus, 256e6)
			if err := s.Check(); err != nil {
				t.Errorf("%s %s of %d: %v", c, m.a, m.gpus, err)
			}
			want := 256e6 * (1 - 1/float64(m.gpus))
			if c == pccl.AllReduce {
				want *= 2
			}
			if got := s.Sent(); math.Abs(got-want) > 1e-6*want {
				t.Errorf("%s %s of %d sends %g bytes, want %g", c, m.a, m.gpus, got, want)
			}
			if err := s.Reverse().Check(); err != nil {
				t.Errorf("mirror of %s %s of %d: %v", c, m.a, m.gpus, err)
			}
		}
	}
	for n := 2; n <= 64; n++ {
		for _, a := range pccl.Algorithms(pccl.AllToAll, n) {
			s := mustNew(t, pccl.AllToAll, a, n, 32e6)
			if err := s.Check(); err != nil {
				t.Errorf("%s of %d: %v", a, n, err)
			}
			if err := s.Reverse().Check(); err != nil {
				t.Errorf("mirror of %s of %d: %v", a, n, err)
			}
		}
	}
}

func TestAlgorithms_allFit(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(2, 96).Draw(t, "gpus")
		c := rapid.SampledFrom(append(reductions, pccl.AllToAll)).Draw(t, "collective")
		for _, a := range pccl.Algorithms(c, n) {
			s, err := pccl.New(c, a, n, 1e6)
			if err != nil {
				t.Fatalf("%s %s of %d: %v", c, a, n, err)
			}
			if err := s.Check(); err != nil {
				t.Fatalf("%s %s of %d: %v", c, a, n, err)
			}
			if again, err := pccl.ParseAlgorithm(string(a)); err != nil || again != a || s.Algorithm != a {
				t.Fatalf("%q is read as %q (%v), and its schedule has %q", a, again, err, s.Algorithm)
			}
		}
	})
	want := []pccl.Algorithm{"rhd-halving", "rhd-doubling", "ring", "bucket 8x16", "bucket 4x4x8", "swing", "swing 8x16", "swing 4x4x8"}
	if diff := cmp.Diff(want, pccl.Algorithms(pccl.AllReduce, 128)); diff != "" {
		t.Errorf("of 128 (-want +got):\n%s", diff)
	}
	want = []pccl.Algorithm{"ring", "bucket 3x4", "bucket 2x2x3"}
	if diff := cmp.Diff(want, pccl.Algorithms(pccl.ReduceScatter, 12)); diff != "" {
		t.Errorf("of 12 (-want +got):\n%s", diff)
	}
}

// A transfer left out, sent elsewhere, or a round with the wrong size or at the wrong place is found.
func TestCheck_mistakes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := rapid.SampledFrom(append(reductions, pccl.AllToAll)).Draw(t, "collective")
		n := rapid.SampledFrom([]int{4, 8, 12, 16}).Draw(t, "gpus")
		a := rapid.SampledFrom(pccl.Algorithms(c, n)).Draw(t, "algorithm")
		s, err := pccl.New(c, a, n, 1e6)
		if err != nil {
			t.Fatal(err)
		}
		rounds := make([]pccl.Round, len(s.Rounds))
		for i, r := range s.Rounds {
			rounds[i] = pccl.Round{Transfers: slices.Clone(r.Transfers), Bytes: r.Bytes}
		}
		s.Rounds = rounds
		i := rapid.IntRange(0, len(rounds)-1).Draw(t, "round")
		r := &rounds[i]
		switch rapid.IntRange(0, 3).Draw(t, "mistake") {
		case 0:
			k := rapid.IntRange(0, len(r.Transfers)-1).Draw(t, "transfer")
			r.Transfers = slices.Delete(r.Transfers, k, k+1)
		case 1:
			s.Rounds = slices.Delete(rounds, i, i+1)
		case 2:
			r.Bytes /= 2
		case 3:
			r.Bytes *= 2
		}
		if err := s.Check(); !errors.Is(err, pccl.ErrSchedule) {
			t.Fatalf("%s %s of %d: got %v, want ErrSchedule", c, a, n, err)
		}
	})
}

func TestCheck_names(t *testing.T) {
	without := func(c pccl.Collective, a pccl.Algorithm, round, transfer int) pccl.Schedule {
		s := mustNew(t, c, a, 8, 8e6)
		s.Rounds = slices.Clone(s.Rounds)
		s.Rounds[round].Transfers = slices.Delete(slices.Clone(s.Rounds[round].Transfers), transfer, transfer+1)
		return s
	}
	swapped := mustNew(t, pccl.ReduceScatter, "rhd-halving", 8, 8e6)
	swapped.Rounds[2].Transfers = swapped.Rounds[1].Transfers
	twice := mustNew(t, pccl.AllGather, "rhd-doubling", 8, 8e6)
	twice.Rounds[1].Transfers = twice.Rounds[0].Transfers
	tests := []struct {
		name string
		s    pccl.Schedule
		want []string
	}{
		{"reduce-scatter lacks a transfer", without(pccl.ReduceScatter, "rhd-halving", 1, 3), []string{"round 1", "GPU 3"}},
		{"all-gather lacks a transfer", without(pccl.AllGather, "rhd-halving", 1, 3), []string{"round 1", "GPU 1"}},
		{"all-reduce lacks a transfer", without(pccl.AllReduce, "rhd-halving", 4, 5), []string{"the last 3 of 6 rounds", "round 4", "GPU 7"}},
		{"all-reduce lacks one while scattering", without(pccl.AllReduce, "rhd-halving", 1, 3),
			[]string{"the first 3 of 6 rounds", "round 1", "GPU 3"}},
		{"all-to-all lacks a transfer", without(pccl.AllToAll, "dex", 1, 6), []string{"round 0", "GPU 6"}}, // for which 6>4 is missed in round 1
		{"ring lacks a transfer", without(pccl.AllGather, "ring", 2, 6), []string{"round 2", "GPU 7"}},
		{"reduce-scatter sends in vain", swapped, []string{"round 1", "GPU 0 ", "GPU 2 "}},
		{"all-gather sends in vain", twice, []string{"round 1", "GPU 0", "GPU 4"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			err := tt.s.Check()
			if !errors.Is(err, pccl.ErrSchedule) {
				t.Fatalf("got %v, want ErrSchedule", err)
			}
			for _, want := range tt.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("%q does not name %q", err, want)
				}
			}
		})
	}
}

// byHand reads "0>1 1>0 | 0>2" with the bytes of each round.
func byHand(c pccl.Collective, gpus int, bytes float64, rounds string, sizes ...float64) pccl.Schedule {
	s := pccl.Schedule{Algorithm: "by hand", Collective: c, GPUs: gpus, Bytes: bytes}
	for i, text := range strings.Split(rounds, "|") {
		r := pccl.Round{Bytes: sizes[min(i, len(sizes)-1)]}
		for part := range strings.FieldsSeq(text) {
			var tr pccl.Transfer
			fmt.Sscanf(part, "%d>%d", &tr.Src, &tr.Dst)
			r.Transfers = append(r.Transfers, tr)
		}
		s.Rounds = append(s.Rounds, r)
	}
	return s
}

func TestCheck_byHand(t *testing.T) {
	both := byHand(pccl.AllGather, 8, 8, strings.TrimSuffix(strings.Repeat(
		"0>1 0>7 1>0 1>2 2>1 2>3 3>2 3>4 4>3 4>5 5>4 5>6 6>5 6>7 7>0 7>6|", 7), "|"), 0.5)
	scatter := both.Reverse()
	tests := []struct {
		name string
		s    pccl.Schedule
		want string // of the error; "" if it is right
	}{
		{"recursive doubling of whole buffers", byHand(pccl.AllReduce, 4, 8, "0>1 1>0 2>3 3>2|0>2 1>3 2>0 3>1", 8), ""},
		{"a tree there and back", byHand(pccl.AllReduce, 4, 8, "1>0 3>2|2>0|0>2|0>1 2>3", 8), ""},
		{"a star of three in two rounds", byHand(pccl.AllReduce, 3, 9, "1>0 2>0|0>1 0>2", 9), ""},
		{"the tree counts GPU 3 twice", byHand(pccl.AllReduce, 4, 8, "3>1 3>2|1>0|2>0|0>1 0>2|0>3", 8), "round 2: GPU 2 sends to GPU 0, and some data would be in its sum twice"},
		{"the tree forgets GPU 3", byHand(pccl.AllReduce, 4, 8, "1>0 3>2|2>0|0>2|0>1", 8), "GPU 3 lacks the data of GPU 0"},
		{"the tree says it again", byHand(pccl.AllReduce, 2, 8, "0>1 1>0|0>1", 8), "round 1"},
		{"all-gather of everybody at once", byHand(pccl.AllGather, 3, 3, "0>1 0>2 1>0 1>2 2>0 2>1", 1), ""},
		{"and scatters first, with three GPUs", byHand(pccl.AllReduce, 3, 3, "0>1 1>2 2>0|0>1 1>2 2>0|0>1 0>2 1>0 1>2 2>0 2>1", 1), ""},
		{"around both ways, half shares", both, ""},
		{"and its mirror", scatter, ""},
		{"all-to-all around a ring", byHand(pccl.AllToAll, 4, 4, "0>1 1>2 2>3 3>0|0>1 1>2 2>3 3>0|0>1 1>2 2>3 3>0", 3, 2, 1), ""},
		{"the same with too little at first", byHand(pccl.AllToAll, 4, 4, "0>1 1>2 2>3 3>0|0>1 1>2 2>3 3>0|0>1 1>2 2>3 3>0", 2, 2, 1), "round"},
		{"all-to-all at once", byHand(pccl.AllToAll, 3, 3, "0>1 0>2 1>0 1>2 2>0 2>1", 1), ""},
		{"through a hub", byHand(pccl.AllToAll, 3, 3, "1>0 2>0|0>1 0>2", 2), ""},
		{"two could bring it", byHand(pccl.AllGather, 3, 3, "0>1|0>2 1>2", 1, 2), "not every choice"},
		{"no whole shares", byHand(pccl.AllGather, 2, 2, "0>1 1>0", math.Pi/4), "no whole number of shares"},
		{"more than the buffer", byHand(pccl.AllGather, 2, 2, "0>1 1>0", 3), "no whole number of shares"},
		{"twice as much as is of use", byHand(pccl.AllGather, 2, 2, "0>1 1>0", 2), "none carries more than 1"},
		{"nothing at all", pccl.Schedule{Collective: pccl.AllGather, GPUs: 2, Bytes: 2}, "GPU 0"},
		{"nothing to everybody", pccl.Schedule{Collective: pccl.AllToAll, GPUs: 2, Bytes: 2}, "GPU 0"},
		{"no reduction", pccl.Schedule{Collective: pccl.AllReduce, GPUs: 2, Bytes: 2}, "GPU 0"},
		{"stops after scattering", byHand(pccl.AllReduce, 2, 2, "0>1 1>0", 1), "as all-gather"},
		{"no known spelling", byHand("allgather", 2, 2, "0>1 1>0", 1), "collective"},
		{"no collective", pccl.Schedule{Collective: "all", GPUs: 2, Bytes: 2}, "collective"},
		{"to itself", byHand(pccl.AllGather, 2, 2, "0>0", 1), "to itself"},
		{"to nobody", byHand(pccl.AllGather, 2, 2, "0>2", 1), "no GPU 2"},
		{"twice the same", byHand(pccl.AllGather, 2, 2, "0>1 0>1", 1), "0>1 is there twice"},
		{"negative", byHand(pccl.AllGather, 2, 2, "0>1", -1), "-1 bytes"},
		{"one GPU", pccl.Schedule{Collective: pccl.AllGather, GPUs: 1, Bytes: 2}, "want 2 to"},
		{"no buffer", pccl.Schedule{Collective: pccl.AllGather, GPUs: 2}, "more than 0"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			err := tt.s.Check()
			if tt.want == "" {
				if err != nil {
					t.Error(err)
				}
				return
			}
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want %q in it", err, tt.want)
			}
		})
	}
}

func TestNew_errors(t *testing.T) {
	tests := []struct {
		c     pccl.Collective
		a     pccl.Algorithm
		gpus  int
		bytes float64
		is    error
		want  string
	}{
		{pccl.AllReduce, "rhd-halving", 12, 1, pccl.ErrSize, "8 or 16; for 12 there is ring, bucket 3x4, bucket 2x2x3"},
		{pccl.AllReduce, "swing", 6, 1, pccl.ErrSize, "4 or 8"},
		{pccl.AllToAll, "dex", 6, 1, pccl.ErrSize, "there is linear"},
		{pccl.AllReduce, "dex", 8, 1, pccl.ErrArgument, "want rhd-halving"},
		{pccl.AllToAll, "ring", 8, 1, pccl.ErrArgument, "want dex, linear"},
		{pccl.AllReduce, "rign", 8, 1, pccl.ErrArgument, "did you mean"},
		{pccl.AllReduce, "bucket", 8, 1, pccl.ErrArgument, "bucket 8x16"},
		{pccl.AllReduce, "bucket 3x3", 8, 1, pccl.ErrSize, "want 2x4 or 2x2x2"},
		{pccl.AllReduce, "bucket 1x8", 8, 1, pccl.ErrSize, "dimension of 1"},
		{pccl.AllReduce, "bucket 2d", 7, 1, pccl.ErrSize, "no lattice of 2"},
		{pccl.AllReduce, "bucket 99999999x99999999", 8, 1, pccl.ErrSize, "smaller"},
		{pccl.AllReduce, "bucket axb", 8, 1, pccl.ErrArgument, "sizes"},
		{pccl.AllReduce, "rhd 8", 8, 1, pccl.ErrArgument, "nothing after"},
		{pccl.AllReduce, "ring 8", 8, 1, pccl.ErrArgument, "ring on torus"},
		{pccl.AllReduce, "ring on grid 3x3", 9, 1, pccl.ErrSize, "9 is odd"},
		{pccl.AllReduce, "ring", 1, 1, pccl.ErrSize, "2 to 65536"},
		{pccl.AllReduce, "ring", 1 << 20, 1, pccl.ErrSize, "2 to 65536"},
		{pccl.AllReduce, "ring", 4096, 1, pccl.ErrSize, "fewer rounds, such as rhd-halving"},
		{pccl.AllToAll, "linear", 4096, 1, pccl.ErrSize, "such as dex"},
		{pccl.AllReduce, "ring", 8, 0, pccl.ErrSize, "more than 0"},
		{pccl.AllReduce, "ring", 8, math.NaN(), pccl.ErrSize, "more than 0"},
		{pccl.AllReduce, "ring", 8, math.Inf(1), pccl.ErrSize, "more than 0"},
		{"all", "ring", 8, 1, pccl.ErrArgument, "reduce-scatter, all-gather, all-reduce, all-to-all"},
	}
	for _, tt := range tests {
		t.Run(fmt.Sprint(tt.c, " ", tt.a, " ", tt.gpus, " ", tt.bytes), func(t *testing.T) {
			_, err := pccl.New(tt.c, tt.a, tt.gpus, tt.bytes)
			if !errors.Is(err, tt.is) || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want %v with %q", err, tt.is, tt.want)
			}
		})
	}
	if s, err := pccl.New("allreduce", "ring", 4, 1); err != nil || s.Collective != pccl.AllReduce || len(s.Rounds) != 6 {
		t.Errorf("allreduce is %s of %d rounds, %v", s.Collective, len(s.Rounds), err)
	}
	for text, want := range map[string]pccl.Collective{"allreduce": pccl.AllReduce, "All-Reduce": pccl.AllReduce,
		"AllToAll": pccl.AllToAll, "all_gather": pccl.AllGather, "reducescatter": pccl.ReduceScatter} {
		if got, err := pccl.ParseCollective(text); got != want || err != nil {
			t.Errorf("ParseCollective(%q) = %q, %v, want %q", text, got, err, want)
		}
	}
}

// Section 5.1: linear all-to-all of 8 GPUs as one round has degree 7.
func TestSplit_linear(t *testing.T) {
	s := mustNew(t, pccl.AllToAll, "linear", 8, 8)
	all := pccl.Schedule{Collective: pccl.AllToAll, GPUs: 8, Bytes: 8, Rounds: []pccl.Round{{Bytes: 1}}}
	for x := range 8 {
		for y := range 8 {
			if x != y {
				all.Rounds[0].Transfers = append(all.Rounds[0].Transfers, pccl.Transfer{Src: x, Dst: y})
			}
		}
	}
	for limit, want := range map[int]int{1: 7, 2: 4, 3: 3, 4: 2, 6: 2, 7: 1, 8: 1, 0: 1} {
		got, err := all.Split(limit, limit)
		if err != nil || len(got.Rounds) != want {
			t.Errorf("with %d transmitters: %d sub-rounds (%v), want %d", limit, len(got.Rounds), err, want)
		}
		if err := got.Check(); err != nil {
			t.Errorf("with %d transmitters: %v", limit, err)
		}
	}
	if got, err := s.Split(1, 1); err != nil || !cmp.Equal(got, s) {
		t.Errorf("rounds of one transfer a GPU are not the same when split: %v", err)
	}
	if _, err := s.Split(-1, 1); !errors.Is(err, pccl.ErrArgument) {
		t.Errorf("got %v, want ErrArgument", err)
	}
}

func TestSplit_property(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(2, 12).Draw(t, "gpus")
		chance := rapid.IntRange(1, 10).Draw(t, "chance")
		r := pccl.Round{Bytes: 1}
		for x := range n {
			for y := range n {
				if x != y && rapid.IntRange(1, 10).Draw(t, "") <= chance {
					r.Transfers = append(r.Transfers, pccl.Transfer{Src: x, Dst: y})
				}
			}
		}
		tx, rx := rapid.IntRange(0, 5).Draw(t, "tx"), rapid.IntRange(0, 5).Draw(t, "rx")
		s := pccl.Schedule{Collective: pccl.AllToAll, GPUs: n, Bytes: float64(n), Rounds: []pccl.Round{r}}
		got, err := s.Split(tx, rx)
		if err != nil {
			t.Fatal(err)
		}
		out, in := r.Degree()
		want := 1
		if tx > 0 {
			want = max(want, (out+tx-1)/tx)
		}
		if rx > 0 {
			want = max(want, (in+rx-1)/rx)
		}
		if len(got.Rounds) != want {
			t.Fatalf("%d sub-rounds, want %d", len(got.Rounds), want)
		}
		var all []pccl.Transfer
		for _, part := range got.Rounds {
			out, in := part.Degree()
			if tx > 0 && out > tx || rx > 0 && in > rx {
				t.Fatalf("a sub-round has degrees %d and %d, and the limits are %d and %d", out, in, tx, rx)
			}
			all = append(all, part.Transfers...)
		}
		slices.SortFunc(all, func(a, b pccl.Transfer) int { return (a.Src-b.Src)*100 + a.Dst - b.Dst })
		if diff := cmp.Diff(r.Transfers, all); diff != "" {
			t.Fatalf("transfers (-want +got):\n%s", diff)
		}
		if err := got.Valid(); err != nil {
			t.Fatal(err)
		}
	})
}

// The distances that data travels with Swing, weighted with the sizes: the congestion that section 6 of the paper quotes as
// 19 % and 3 % is their sum, on a lattice without end; in one dimension it grows by a third for each round.
func TestSwing_distances(t *testing.T) {
	sum := func(a pccl.Algorithm, n, d int) float64 {
		sum := 0.0
		for _, r := range mustNew(t, pccl.ReduceScatter, a, n, 1).Rounds {
			far := 0
			for to := r.Transfers[0].Dst; to > 0; to /= d {
				far = max(far, min(to%d, d-to%d))
			}
			sum += float64(far) * r.Bytes
		}
		return sum
	}
	for _, tt := range []struct {
		shape string
		d     int
		want  float64
	}{{"256x256", 256, 1.2000}, {"32x32x32", 32, 1.0370}, {"16x16x16x16", 16, 1.0084}} {
		n := 1
		for range strings.Count(tt.shape, "x") + 1 {
			n *= tt.d
		}
		if got := sum(pccl.Algorithm("swing "+tt.shape), n, tt.d); math.Abs(got-tt.want) > 0.005 {
			t.Errorf("%s: %.4f, want %.4f but for the rounds that a larger lattice would have", tt.shape, got, tt.want)
		}
	}
	if got := sum("swing", 1<<13, 1<<13) - sum("swing", 1<<10, 1<<10); math.Abs(got-1) > 0.001 {
		t.Errorf("three rounds more in one dimension: %.4f more, want 1", got)
	}
}

func FuzzParseAlgorithm(f *testing.F) {
	for _, seed := range []string{"ring", "ring on torus 8x16", "Bucket 8x16", "swing2d", "rhd", "dex ", "bucket 1x", "swing 18446744073709551616"} {
		f.Add(seed, 16)
	}
	f.Fuzz(func(t *testing.T, text string, gpus int) {
		a, err := pccl.ParseAlgorithm(text)
		if err != nil {
			if !errors.Is(err, pccl.ErrArgument) && !errors.Is(err, pccl.ErrSize) {
				t.Errorf("%q: %v", text, err)
			}
			return
		}
		if again, err := pccl.ParseAlgorithm(string(a)); err != nil || again != a {
			t.Errorf("%q is %q, which is %q, %v", text, a, again, err)
		}
		if gpus > 64 {
			return
		}
		for _, c := range []pccl.Collective{pccl.AllReduce, pccl.AllToAll} {
			if s, err := pccl.New(c, a, gpus, 1e6); err == nil {
				if err := s.Check(); err != nil {
					t.Errorf("%q of %d: %v", text, gpus, err)
				}
			}
		}
	})
}

func TestCheck_tooLarge(t *testing.T) {
	for _, tt := range []struct {
		c    pccl.Collective
		a    pccl.Algorithm
		gpus int
		want string
	}{
		{pccl.AllGather, "rhd-halving", 32768, "want 16384"}, {pccl.AllReduce, "swing", 65536, "want 16384"},
		{pccl.AllToAll, "dex", 8192, "want 4096"},
	} {
		err := mustNew(t, tt.c, tt.a, tt.gpus, 1e6).Check()
		if !errors.Is(err, pccl.ErrSize) || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s %s of %d: got %v, want ErrSize with %q", tt.c, tt.a, tt.gpus, err, tt.want)
		}
	}
}

func TestRingOn_errors(t *testing.T) {
	torus := mustTopology(t, "torus 3x3", 9)
	for _, tt := range []struct {
		top   *pccl.Topology
		c     pccl.Collective
		bytes float64
		is    error
		want  string
	}{
		{torus, pccl.AllToAll, 1, pccl.ErrArgument, "does not compute"},
		{torus, pccl.AllReduce, 0, pccl.ErrSize, "more than 0"},
		{mustTopology(t, "grid 3x3", 9), pccl.AllReduce, 1, pccl.ErrSize, "9 is odd"},
		{mustTopology(t, "grid 8", 8), pccl.AllReduce, 1, pccl.ErrSize, "is a line"},
		{mustTopology(t, "0-1,1-2", 3), pccl.AllReduce, 1, pccl.ErrArgument, "no cycle visits each GPU"},
		{mustTopology(t, "torus 64x64", 4096), pccl.AllReduce, 1, pccl.ErrSize, "fewer GPUs"},
	} {
		if _, err := pccl.RingOn(tt.top, tt.c, tt.bytes); !errors.Is(err, tt.is) || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s on %s: got %v, want %v with %q", tt.c, tt.top.Name(), err, tt.is, tt.want)
		}
	}
}

// A transfer of an all-to-all that can carry nothing is a mistake, also where all others carry what they should.
func TestCheck_idleExchange(t *testing.T) {
	s, err := pccl.New(pccl.AllToAll, pccl.Dex, 4, 4)
	if err != nil {
		t.Fatal(err)
	}
	last := &s.Rounds[1]
	last.Transfers = slices.Insert(slices.Clone(last.Transfers), 1, pccl.Transfer{Src: 0, Dst: 3})
	if err := s.Check(); !errors.Is(err, pccl.ErrSchedule) || !strings.Contains(err.Error(), "round 1: GPU 0 sends to GPU 3") {
		t.Errorf("%v: want ErrSchedule about GPU 0 and GPU 3 in round 1", err)
	}
}
