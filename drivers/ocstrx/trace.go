package ocstrx

import (
	"context"

	"github.com/ocslab/ocslab/ocs"
	"github.com/ocslab/ocslab/wire/cmis/ocst"
)

// Trace is told what an [Switch.Apply] sends and sees, while it does: more closely than its Receipt says. Its functions
// are called by the goroutine of Apply, which they hold up; a nil one is not.
type Trace struct {
	// Told is called when requests that change something were acknowledged. What they do took effect between Begun and
	// Acked. The last of them before a look is the commit or the trigger.
	Told func(r ocs.Receipt)
	// Seen is called for each module that was looked at since. What it says was so at some time between Begun and Acked.
	Seen func(r ocs.Receipt, slot int, status ocst.Status, lanes ocst.LaneStatus)
}

// WithTrace returns a context with which Apply tells a trace. It passes through whatever is wrapped around the Switch.
func WithTrace(ctx context.Context, t *Trace) context.Context {
	return context.WithValue(ctx, traceKey{}, t)
}

type traceKey struct{}

func traceTold(ctx context.Context, r ocs.Receipt) {
	if t, _ := ctx.Value(traceKey{}).(*Trace); t != nil && t.Told != nil {
		t.Told(r)
	}
}

func traceSeen(ctx context.Context, r ocs.Receipt, all []seen) {
	if t, _ := ctx.Value(traceKey{}).(*Trace); t != nil && t.Seen != nil {
		for _, s := range all {
			t.Seen(r, s.slot, s.status, s.lanes)
		}
	}
}

// Lanes reads where the lanes of some modules go and what their receivers do, by one read of each: it takes a fraction of
// [Switch.Telemetry]. The Receipt is that of the reads, and the result in the order of slots, which count from 0; none
// are all that are there.
func (sw *Switch) Lanes(ctx context.Context, slots ...int) ([]ocst.LaneStatus, ocs.Receipt, error) {
	if len(slots) == 0 {
		slots = sw.present()
	}
	var b batch
	raw := make([][]byte, len(slots))
	for i, slot := range slots {
		raw[i] = b.read(slot, ocst.LanesSpan)
	}
	r, err := sw.do(ctx, "read lanes", b...)
	if err != nil {
		return nil, r, err
	}
	all := make([]ocst.LaneStatus, len(slots))
	for i := range all {
		all[i], _ = ocst.DecodeLanes(raw[i]) // its length is right
	}
	return all, r, nil
}
