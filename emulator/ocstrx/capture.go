package ocstrx

import (
	"math"
	"time"

	"github.com/ocslab/ocslab/wire/cmis/ocst"
)

// captureSamples is how many samples page B8h holds, one for each captureTime.
const (
	captureSamples = 120
	captureTime    = time.Microsecond
	captureUnit    = 0.25 // dB
	captureDark    = math.MaxUint8
)

// capture is what the taps saw during the last switch: powers in mW, which only whoever
// reads them turns into decibels. While the modulators are blanked there is nothing to see.
type capture struct {
	lanes    uint8 // that have samples
	samples  int
	launched [ocst.Lanes]float32
	mw       [ocst.Lanes][captureSamples][outputs]float32
	lane     uint8 // whose samples the host wants to read
}

func (c *capture) clear() { *c = capture{} }

// begin makes room for a switch.
func (c *capture) begin(r *run) {
	c.lanes, c.samples = r.lit, 0
	for lane := range c.mw {
		if r.lit>>lane&1 != 0 {
			c.mw[lane] = [captureSamples][outputs]float32{}
		}
	}
}

// sample keeps what the taps of a lane see, so long after the commit.
func (c *capture) sample(after time.Duration, lane int, taps *[outputs]float64) {
	n := int(after / captureTime)
	if n >= captureSamples {
		return
	}
	for i, mw := range taps {
		c.mw[lane][n][i] = float32(mw)
	}
	c.samples = max(c.samples, n+1)
}

// read fills p with the samples of the chosen lane at one output, and returns how many they
// are. Where there is no sample, as where there is no light, is the least that can be said.
func (c *capture) read(output int, p []byte) int {
	for i := range p {
		p[i] = captureDark
	}
	if c.lanes>>c.lane&1 == 0 {
		return 0
	}
	launched := float64(c.launched[c.lane])
	for i := range min(c.samples, len(p)) {
		mw := float64(c.mw[c.lane][i][output])
		if mw <= 0 || launched <= 0 {
			continue
		}
		p[i] = byte(min(max(math.Round(10*math.Log10(launched/mw)/captureUnit), 0), captureDark))
	}
	return c.samples
}
