package ocst

import (
	"encoding/binary"
	"fmt"
	"math"
	"time"

	"github.com/ocslab/ocslab/wire/cmis"
)

// PowersAt returns where the powers of an array of photodiodes are, in the order of
// [Table.Dark]; the span of an array that is not there is empty.
func PowersAt(array int) cmis.Span {
	spans := [Photodiodes]cmis.Address{
		PDOut1: At(RegOut1), PDOut2: on(PageMonitors, RegOut2), PDLoopTap: on(PageMonitors, RegLoopTap),
		PDRx1: on(PageMonitors, RegRx1), PDRx2: on(PageMonitors, RegRx2), PDRxLoop: on(PageMonitors, RegRxLoop),
		PDLaunched: on(PageMonitors, RegLaunched),
	}
	if array < 0 || array >= Photodiodes {
		return cmis.Span{}
	}
	return cmis.Span{Address: spans[array], Length: 2 * Lanes}
}

// Setting is how a module takes an element to its states at present: ten bytes of page B2h.
type Setting struct {
	Bar, Cross Drive
	Phase0     float64 // radians without power, -π to π in steps of 0.1 mrad
	PowerPi    float64 // W for a phase of π, in steps of 1 µW, up to 65.535 mW
	Extinction float64 // dB, the worse of both states, in steps of 0.01, 0 to 655.35
}

// SettingBanks are the banks of page B2h.
const (
	SettingBanks    = 3
	settingSize     = 10
	settingsPerBank = Elements / SettingBanks
)

// EncodeSettings writes the banks of page B2h, 128 bytes each. Phases are taken modulo 2π;
// what else does not fit is cut off at the largest.
func EncodeSettings(list [Elements]Setting) (banks [SettingBanks][]byte) {
	be := binary.BigEndian
	for i := range banks {
		p := make([]byte, pageSize)
		for j, s := range list[settingsPerBank*i:][:settingsPerBank] {
			b := p[settingSize*j:]
			be.PutUint16(b, uint16(s.Bar))
			be.PutUint16(b[2:], uint16(s.Cross))
			if phase := math.Remainder(s.Phase0, 2*math.Pi); !math.IsNaN(phase) {
				be.PutUint16(b[4:], uint16(int16(math.Round(phase*1e4))))
			}
			be.PutUint16(b[6:], fixed(s.PowerPi, 1e-6))
			be.PutUint16(b[8:], fixed(s.Extinction, 0.01))
		}
		be.PutUint16(p[PageData:], CRC16(p[:PageData]))
		banks[i] = p
	}
	return banks
}

// DecodeSettings is the inverse of [EncodeSettings]. A wrong CRC is an error.
func DecodeSettings(banks [SettingBanks][]byte) (list [Elements]Setting, err error) {
	be := binary.BigEndian
	for i, p := range banks {
		if len(p) != pageSize {
			return list, fmt.Errorf("settings of elements: %d bytes where %d belong", len(p), pageSize)
		}
		if got, want := be.Uint16(p[PageData:]), CRC16(p[:PageData]); got != want {
			return list, fmt.Errorf("settings of elements: bank %d is damaged: its CRC is %04Xh, and %04Xh that of what it holds", i, got, want)
		}
		for j := range settingsPerBank {
			b := p[settingSize*j:]
			list[settingsPerBank*i+j] = Setting{
				Bar: Drive(be.Uint16(b)), Cross: Drive(be.Uint16(b[2:])),
				Phase0: float64(int16(be.Uint16(b[4:]))) * 1e-4, PowerPi: float64(be.Uint16(b[6:])) * 1e-6,
				Extinction: float64(be.Uint16(b[8:])) / 100,
			}
		}
	}
	return list, nil
}

// Capture is the transient of a switch as one tap saw it: a bank of page B8h.
type Capture struct {
	Lane int           // from 0 to Lanes-1
	Step time.Duration // between samples, in steps of 1 µs, up to 255 µs
	// Below are the samples, at most CaptureSamples: dB below the launched power, in steps of
	// 0.25, 0 to 63.75, which also stands for all above. The first is at the commit.
	Below []float64
}

// CaptureSamples is how many samples a capture has at most.
const CaptureSamples = 120

// Where they are on the page.
const (
	captureStep = 0.25
	captureData = 8
)

// Encode writes the bank, 128 bytes. What does not fit is cut off at the largest.
func (c Capture) Encode() []byte {
	p := make([]byte, pageSize)
	samples := c.Below[:min(len(c.Below), CaptureSamples)]
	p[0] = byte(min(max(c.Lane, 0), Lanes-1))
	p[1] = byte(min(max(c.Step/time.Microsecond, 0), math.MaxUint8))
	p[2] = byte(len(samples))
	for i, db := range samples {
		p[captureData+i] = byte(min(fixed(db, captureStep), math.MaxUint8))
	}
	return p
}

// DecodeCapture is the inverse of [Capture.Encode].
func DecodeCapture(p []byte) (c Capture, err error) {
	if len(p) != pageSize {
		return c, fmt.Errorf("capture of a switch: %d bytes where %d belong", len(p), pageSize)
	}
	if p[0] >= Lanes || p[2] > CaptureSamples {
		return c, fmt.Errorf("capture of a switch: %d samples of lane %d, and there are %d lanes and at most %d samples",
			p[2], int(p[0])+1, Lanes, CaptureSamples)
	}
	c = Capture{Lane: int(p[0]), Step: time.Duration(p[1]) * time.Microsecond}
	for _, b := range p[captureData:][:p[2]] {
		c.Below = append(c.Below, float64(b)*captureStep)
	}
	return c, nil
}
