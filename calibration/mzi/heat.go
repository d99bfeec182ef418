package mzi

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/ocslab/ocslab/wire/cmis/ocst"
)

// ErrPower is a setting of the heaters that the module did not take, because it would go
// beyond its power.
var ErrPower = errors.New("heaters not set: the module would go beyond its power")

const (
	// nominalOhms is what heaters have by design, for estimates only.
	nominalOhms = 400
	// sureWatts is the optical heaters' power below which a module cannot come to its
	// limit, so that what was written need not be read back.
	sureWatts = 0.6
)

// Heat drives an element; its other arm gets nothing.
func (s *Session) Heat(ctx context.Context, e ocst.Element, d ocst.Drive) error {
	if err := checkElement(e); err != nil {
		return err
	}
	want := s.codes
	setDrive(&want, e, d)
	return s.heat(ctx, want)
}

// HeatAll drives all elements, with one write for all arms A and one for all arms B.
func (s *Session) HeatAll(ctx context.Context, drives [ocst.Elements]ocst.Drive) error {
	var want [2][ocst.Elements]uint16
	for e, d := range drives {
		setDrive(&want, ocst.Element(e), d)
	}
	return s.heat(ctx, want)
}

// Drives returns how the elements are driven.
func (s *Session) Drives() (drives [ocst.Elements]ocst.Drive) {
	for e := range drives {
		drives[e] = ocst.Drive(s.codes[0][e])
		if b := s.codes[1][e]; b != 0 {
			drives[e] = ocst.Drive(b) | ocst.ArmB
		}
	}
	return drives
}

func setDrive(codes *[2][ocst.Elements]uint16, e ocst.Element, d ocst.Drive) {
	code, armB := d.Code()
	codes[0][e], codes[1][e] = code, 0
	if armB {
		codes[0][e], codes[1][e] = 0, code
	}
}

// heat writes what differs from what the module has. Of the two arms the one that gets
// less power is written first, so that the sum does not overshoot.
func (s *Session) heat(ctx context.Context, want [2][ocst.Elements]uint16) error {
	order := [2]int{0, 1}
	if power(want[0])-power(s.codes[0]) > power(want[1])-power(s.codes[1]) {
		order = [2]int{1, 0}
	}
	for _, arm := range order {
		first, last := -1, -1
		for e := range want[arm] {
			if want[arm][e] != s.codes[arm][e] {
				if first < 0 {
					first = e
				}
				last = e
			}
		}
		if first < 0 {
			continue
		}
		var buf [2 * ocst.Elements]byte
		b := buf[:0]
		for _, code := range want[arm][first : last+1] {
			b = binary.BigEndian.AppendUint16(b, code)
		}
		at := heaters(arm, uint8(ocst.RegCodes+2*first))
		if err := s.write(ctx, at, b); err != nil {
			return fmt.Errorf("heaters of module %s: %w", s.serial, err)
		}
		before := s.codes[arm]
		s.codes[arm] = want[arm]
		if power(s.codes[0])+power(s.codes[1]) < sureWatts {
			continue
		}
		got := make([]byte, len(b))
		if err := s.read(ctx, at, got); err != nil {
			return fmt.Errorf("heaters of module %s: %w", s.serial, err)
		}
		if string(got) != string(b) {
			s.codes[arm] = before
			return fmt.Errorf("module %s: %w", s.serial, ErrPower)
		}
	}
	return nil
}

// power is about what heaters with such codes take, W.
func power(codes [ocst.Elements]uint16) float64 {
	sum := 0.0
	for _, code := range codes {
		v := ocst.Drive(code).Volts()
		sum += v * v / nominalOhms
	}
	return sum
}
