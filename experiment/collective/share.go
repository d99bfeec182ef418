package collective

import (
	"context"
	"fmt"
	"time"

	"github.com/ocslab/ocslab/topology/pccl"
)

// Share meters transfers of as many bytes each that begin together on one link, of p.Beta seconds a byte, and returns how
// long it took until the last byte had passed, without p.Alpha: how links are shared, apart from any switch. That of
// one transfer over that of several is the part of the bandwidth that each of them had. It takes that long. The error
// matches pccl.ErrArgument, or is that of ctx.
func Share(ctx context.Context, p pccl.Params, transfers int, bytes float64) (time.Duration, error) {
	if took := p.Beta * bytes * float64(transfers); transfers < 1 || !(took > 0 && took <= MostTime.Seconds()) {
		return 0, fmt.Errorf("%w: %d transfers of %g bytes at %g s a byte on one link: want one or more, and %v in all at most",
			pccl.ErrArgument, transfers, bytes, p.Beta, MostTime)
	}
	paths := make([][]int, transfers)
	for i := range paths {
		paths[i] = []int{0, 1}
	}
	n := &network{perByte: p.Beta * 1e9, patience: DefaultPatience, light: always{}}
	began := time.Now()
	end, err := n.run(ctx, paths, bytes)
	return end.Sub(began), err
}

// always is light that is there.
type always struct{}

func (always) lit(pccl.Transfer) (since time.Time, ok bool) { return time.Time{}, true }
func (always) changed() <-chan struct{}                     { return nil }
func (always) dark(pccl.Transfer) string                    { return "" }
