package cmis

import "fmt"

// ControlPage is where the host controls lanes and stages the settings of data paths.
const ControlPage = 0x10

// Registers of [ControlPage].
const (
	RegDPDeinit       = 128
	RegTxFlip         = 129
	RegTxDisable      = 130
	RegTxSquelchOff   = 131
	RegTxSquelch      = 132
	RegRxFlip         = 137
	RegRxDisable      = 138
	RegRxSquelchOff   = 139
	RegApplyDPInit    = 143 // staged set 0: take over what is staged, of the lanes with a set bit
	RegApplyImmediate = 144
	RegDPConfig       = 145 // staged set 0: a DataPathConfig for each of eight lanes
	RegLaneMasks      = 213 // of the flags at 11h:134 to 153
)

// LaneControl is what the host wants of lanes 1 to 8, one bit each, bit 0 is lane 1. It
// holds at once, without being staged.
type LaneControl struct {
	Deinit       uint8 // take the data path of the lane down
	TxFlip       uint8 // polarity of what comes from the host
	TxDisable    uint8 // no light
	TxSquelchOff uint8 // leave the light on when nothing comes from the host
	TxSquelch    uint8 // squelch the light
	RxFlip       uint8 // polarity of what goes to the host
	RxDisable    uint8 // nothing to the host
	RxSquelchOff uint8 // leave the output to the host on when no light comes
}

// LaneControlSpan is the read that [DecodeLaneControl] wants, and where what Encode gives is
// written. It is up to the first register that does something when it is written.
var LaneControlSpan = Span{Address{Page: ControlPage, Offset: RegDPDeinit}, RegRxSquelchOff + 1 - RegDPDeinit}

// fields are the bytes of a LaneControl.
func (c *LaneControl) fields() map[int]*uint8 {
	return map[int]*uint8{
		RegDPDeinit: &c.Deinit, RegTxFlip: &c.TxFlip, RegTxDisable: &c.TxDisable, RegTxSquelchOff: &c.TxSquelchOff,
		RegTxSquelch: &c.TxSquelch, RegRxFlip: &c.RxFlip, RegRxDisable: &c.RxDisable, RegRxSquelchOff: &c.RxSquelchOff,
	}
}

// DecodeLaneControl takes apart what LaneControlSpan gave.
func DecodeLaneControl(p []byte) (c LaneControl, err error) {
	if len(p) != LaneControlSpan.Length {
		return c, fmt.Errorf("lane controls: %d bytes where %d belong", len(p), LaneControlSpan.Length)
	}
	for reg, field := range c.fields() {
		*field = p[reg-RegDPDeinit]
	}
	return c, nil
}

// Encode is the inverse of [DecodeLaneControl]. Bytes 133 to 136, the equalizers', are 0.
func (c LaneControl) Encode() []byte {
	p := make([]byte, LaneControlSpan.Length)
	for reg, field := range c.fields() {
		p[reg-RegDPDeinit] = *field
	}
	return p
}

// DataPathConfig is what a lane is for, as staged at 10h:145 to 152 and in use at 11h:206 to
// 213.
type DataPathConfig struct {
	Application uint8 // number of its descriptor, 1 to 15; 0: the lane is not used
	First       uint8 // the first lane of its data path, from 0 to 7
	Explicit    bool  // signal integrity as staged, not as the application has it
}

// DecodeDataPathConfig is the inverse of [DataPathConfig.Encode].
func DecodeDataPathConfig(b byte) DataPathConfig {
	return DataPathConfig{Application: b >> 4, First: b >> 1 & 7, Explicit: b&1 != 0}
}

// Encode writes the byte; what is too large loses its upper bits.
func (c DataPathConfig) Encode() byte {
	b := c.Application<<4 | c.First&7<<1
	if c.Explicit {
		b |= 1
	}
	return b
}
