package pccl_test

import (
	"errors"
	"slices"
	"testing"

	"github.com/ocslab/ocslab/topology/pccl"
)

// What is too large is left out of a choice, with the reason, and what is wrong is not.
func TestTables_tooLarge(t *testing.T) {
	small := problem(t, pccl.RHDHalving, 8, 1*MB)
	large := problem(t, pccl.RHDHalving, 8, 1*MB)
	a, b := large.Schedule.Rounds[0], large.Schedule.Rounds[1]
	large.Schedule.Algorithm = "to and fro"
	for range 1100 {
		large.Schedule.Rounds = append(large.Schedule.Rounds, a, b)
	}
	wrong := problem(t, pccl.RHDDoubling, 8, 1*MB)
	wrong.Params.Alpha = -1

	tables, left, err := pccl.Tables([]pccl.Problem{large, small})
	if err != nil || len(tables) != 1 || len(left) != 1 {
		t.Fatalf("%d tables, %v left out, %v; want one of each", len(tables), left, err)
	}
	if left[0].Algorithm != "to and fro" || !errors.Is(left[0].Err, pccl.ErrTooLarge) || !errors.Is(left[0].Err, pccl.ErrSize) {
		t.Errorf("left out %v, want the large one", left[0])
	}
	if list := get[[]pccl.Alternative](t)(pccl.Choose([]pccl.Problem{large, small}, 5*us)); len(list) != 1 || list[0].Schedule.Algorithm != pccl.RHDHalving {
		t.Errorf("%d alternatives, want the small one", len(list))
	}
	if _, _, err := pccl.Tables([]pccl.Problem{large}); !errors.Is(err, pccl.ErrTooLarge) {
		t.Errorf("nothing but too large: %v", err)
	}
	if _, _, err := pccl.Tables([]pccl.Problem{small, wrong}); !errors.Is(err, pccl.ErrArgument) {
		t.Errorf("one that is wrong: %v", err)
	}
}

// Of 65,536 GPUs the algorithms of many rounds are too long, and are named as such; every algorithm is in one of the lists.
func TestOversized(t *testing.T) {
	for _, test := range []struct {
		c    pccl.Collective
		want []pccl.Algorithm
	}{
		{pccl.AllReduce, []pccl.Algorithm{pccl.RingPass, pccl.Bucket(256, 256), pccl.Bucket(32, 32, 64)}},
		{pccl.AllToAll, []pccl.Algorithm{pccl.Linear}},
	} {
		var got []pccl.Algorithm
		for _, x := range pccl.Oversized(test.c, 1<<16) {
			got = append(got, x.Algorithm)
			_, err := pccl.New(test.c, x.Algorithm, 1<<16, 1*MB)
			if !errors.Is(err, pccl.ErrTooLarge) || err.Error() != x.Err.Error() {
				t.Errorf("%s: New says %v, Oversized %v", x.Algorithm, err, x.Err)
			}
		}
		if !slices.Equal(got, test.want) {
			t.Errorf("%s: %v are oversized, want %v", test.c, got, test.want)
		}
		if small := pccl.Oversized(test.c, 128); len(small) != 0 {
			t.Errorf("%s of 128 GPUs: %v are oversized", test.c, small)
		}
	}
	if got := pccl.Oversized("broadcast", 8); got != nil {
		t.Errorf("no collective: %v", got)
	}
}

// On a long ring, where the way of each transfer may be thousands of hops, all go the shorter way around, and each circuit of
// that direction carries as many as one transfer has hops.
func TestCost_longRing(t *testing.T) {
	const gpus = 1 << 14
	ring := topology(t, "ring", gpus)
	for by, want := range map[int]pccl.Cost{
		1:            {Congestion: 1, Dilation: 1},
		gpus - 1:     {Congestion: 1, Dilation: 1},
		5:            {Congestion: 5, Dilation: 5},
		gpus/2 + 100: {Congestion: gpus/2 - 100, Dilation: gpus/2 - 100},
	} {
		var r pccl.Round
		for x := range gpus {
			r.Transfers = append(r.Transfers, pccl.Transfer{Src: x, Dst: (x + by) % gpus})
		}
		got := get[pccl.Cost](t)(pccl.Params{}.Cost(ring, r))
		if got != want {
			t.Errorf("each to the one %d further: %v, want %v", by, got, want)
		}
	}
}
