package ocstrx

import (
	"math"
	"time"

	"github.com/ocslab/ocslab/wire/cmis/ocst"
)

// captureTime is the time from one sample to the next.
const captureTime = time.Microsecond

// capture is what the taps saw during the last switch: powers in mW, which only whoever
// reads them turns into decibels. While the modulators are blanked there is nothing to see.
type capture struct {
	lanes    uint8 // that have samples
	samples  int
	launched [ocst.Lanes]float32
	mw       [ocst.Lanes][ocst.CaptureSamples][outputs]float32
	lane     uint8 // whose samples the host wants to read
}

func (c *capture) clear() { *c = capture{} }

// begin makes room for a switch.
func (c *capture) begin(r *run) {
	c.lanes, c.samples = r.lit, 0
	for lane := range c.mw {
		if r.lit>>lane&1 != 0 {
			c.mw[lane] = [ocst.CaptureSamples][outputs]float32{}
		}
	}
}

// sample keeps what the taps of a lane see, so long after the commit.
func (c *capture) sample(after time.Duration, lane int, taps *[outputs]float64) {
	n := int(after / captureTime)
	if n >= ocst.CaptureSamples {
		return
	}
	for i, mw := range taps {
		c.mw[lane][n][i] = float32(mw)
	}
	c.samples = max(c.samples, n+1)
}

// read returns the samples of the chosen lane at one output. Where there is no light is as far
// below the launched power as can be said.
func (c *capture) read(output int) ocst.Capture {
	out := ocst.Capture{Lane: int(c.lane), Step: captureTime}
	if c.lanes>>c.lane&1 == 0 {
		return out
	}
	launched := float64(c.launched[c.lane])
	out.Below = make([]float64, c.samples)
	for i := range out.Below {
		mw := float64(c.mw[c.lane][i][output])
		out.Below[i] = math.Inf(1)
		if mw > 0 && launched > 0 {
			out.Below[i] = 10 * math.Log10(launched/mw)
		}
	}
	return out
}
