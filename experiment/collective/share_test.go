package collective

import (
	"context"
	"errors"
	"math"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ocslab/ocslab/topology/pccl"
)

// Section 4 of the paper, figure 6: transfers that share a link by 2 or 4 have a half or a quarter of it each.
func TestShare(t *testing.T) {
	for _, transfers := range []int{1, 2, 3, 4, 16} {
		synctest.Test(t, func(t *testing.T) {
			got, err := Share(t.Context(), pccl.Params{Beta: 1 / 0.45e9}, transfers, 32e6)
			if err != nil {
				t.Fatal(err)
			}
			want := time.Duration(transfers) * 71111111 // of 32 MB at 0.45 GB/s
			if off := (got - want).Abs(); off > 50*time.Microsecond {
				t.Errorf("%d transfers took %v, want %v", transfers, got, want)
			}
		})
	}
}

func TestShare_Refused(t *testing.T) {
	for _, x := range []struct {
		transfers   int
		bytes, beta float64
	}{{0, 1, 1}, {-1, 1, 1}, {1, 0, 1}, {1, 1, 0}, {1, 1, math.NaN()}, {1, math.Inf(1), 1}, {2, 1e13, 1e-9}} {
		if _, err := Share(t.Context(), pccl.Params{Beta: x.beta}, x.transfers, x.bytes); !errors.Is(err, pccl.ErrArgument) {
			t.Errorf("%+v: %v: want ErrArgument", x, err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Share(ctx, pccl.Params{Beta: 1}, 1, 60); !errors.Is(err, context.Canceled) {
		t.Errorf("interrupted: %v", err)
	}
}
