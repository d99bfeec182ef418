package optics

import (
	"context"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/ocslab/ocslab/ocs"
	"github.com/ocslab/ocslab/timeline"
	"github.com/ocslab/ocslab/wire/cmis"
)

// Sampler reads the received power of one module, at most once a period. Set Reader, and
// do not change the fields after the first use. It is not safe for concurrent use.
type Sampler struct {
	Reader Reader
	Period time.Duration // from the start of one sample to that of the next; 0: as fast as it goes

	// Flags reads the flags for loss of signal, too, still with one read. That is 55
	// bytes in place of 8 (SFF-8636) or 74 in place of 16 (CMIS), so it takes longer over
	// I²C, and it clears the flags, which the driver and others may want to see.
	Flags bool

	id         cmis.Identity
	identified bool
	next       time.Time // when the next sample is due
	buf        [128]byte
}

// Sample is one reading of the received power. The interval, on the host's axis, runs from
// before it was asked for until after it was there; how old the module's value was by
// then is not in it.
type Sample struct {
	timeline.Interval

	// Lanes is the power of each lane that carries light, in order, as the module says.
	// Minus infinity is less than the module can count, 0.05 µW or -43 dBm.
	Lanes []ocs.DBm

	// Power is the least of Lanes: a link is lit only if all its lanes are.
	Power ocs.DBm

	// RxLOS and TxLOS say of each of Lanes whether the signal was lost at any time since
	// the flags were last read, by anybody. They are nil unless [Sampler.Flags] is set.
	// A module may be 100 ms late with them, so a lit sample after a dark one has them, too.
	RxLOS, TxLOS []bool
}

// String shows the power, and of several lanes that of each: "-2.20 dBm (-2.1 -2.0 -2.2
// -2.1)", or "no light".
func (s Sample) String() string {
	dark := true
	for _, p := range s.Lanes {
		dark = dark && math.IsInf(float64(p), -1)
	}
	if dark {
		return "no light"
	}
	if len(s.Lanes) < 2 {
		return s.Power.String()
	}
	lanes := make([]string, len(s.Lanes))
	for i, p := range s.Lanes {
		lanes[i] = strconv.FormatFloat(float64(p), 'f', 1, 64)
	}
	return fmt.Sprintf("%v (%s)", s.Power, strings.Join(lanes, " "))
}

// Sample waits until the next sample is due and takes it. A late caller gets it at once;
// what was missed meanwhile is not made up for.
//
// A module is identified before its first sample and again after every error, so sampling
// may just go on when a module was pulled. For errors see [Reader] and [cmis.Identify];
// they never come with a number. When ctx ends while it waits, its error is returned.
func (s *Sampler) Sample(ctx context.Context) (Sample, error) {
	if err := s.wait(ctx); err != nil {
		return Sample{}, err
	}
	sample, err := s.take(ctx)
	if err != nil {
		s.identified = false
	}
	return sample, err
}

// Identify returns what the module is, and asks it unless it is known.
func (s *Sampler) Identify(ctx context.Context) (cmis.Identity, error) {
	if s.identified {
		return s.id, nil
	}
	id, err := cmis.Identify(func(a cmis.Address, buf []byte) error { return s.Reader.ReadPage(ctx, a, buf) })
	if err != nil {
		return cmis.Identity{}, err
	}
	s.id, s.identified = id, true
	return id, nil
}

func (s *Sampler) wait(ctx context.Context) error {
	if d := time.Until(s.next); !s.next.IsZero() && d > 0 {
		t := time.NewTimer(d)
		defer t.Stop()
		select {
		case <-t.C:
		case <-ctx.Done():
		}
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	// Counted from when this one was due, so that a late timer does not add up, unless
	// it is so late that the next would follow at once.
	now := time.Now()
	if s.next = s.next.Add(s.Period); s.next.Before(now) {
		s.next = now.Add(s.Period)
	}
	return nil
}

func (s *Sampler) take(ctx context.Context) (Sample, error) {
	id, err := s.Identify(ctx)
	if err != nil {
		return Sample{}, err
	}
	span := id.RxPowerSpan()
	if s.Flags {
		span = id.MonitorSpan()
	}
	data := s.buf[:span.Length]
	from := time.Now()
	err = s.Reader.ReadPage(ctx, span.Address, data)
	to := time.Now()
	if err != nil {
		return Sample{}, err
	}
	sample := Sample{Interval: timeline.HostAxis().Span(from, to)}
	if s.Flags {
		lanes, err := id.Monitors(data)
		if err != nil {
			return Sample{}, err
		}
		for _, l := range lanes {
			sample.add(l.RxPower)
			sample.RxLOS = append(sample.RxLOS, l.RxLOS)
			sample.TxLOS = append(sample.TxLOS, l.TxLOS)
		}
		return sample, nil
	}
	powers, err := id.RxPower(data)
	if err != nil {
		return Sample{}, err
	}
	for _, p := range powers {
		sample.add(p)
	}
	return sample, nil
}

func (s *Sample) add(p cmis.Power) {
	dBm := milliwatts(p)
	if len(s.Lanes) == 0 || dBm < s.Power {
		s.Power = dBm
	}
	s.Lanes = append(s.Lanes, dBm)
}

// Transmit reads the power that each lane of the module launches, in order, as the module
// says; minus infinity is a lane that does not send. It does not wait for the period, and
// clears the flags, as a sample with Flags does. Errors are those of [Sampler.Sample]; a
// module that does not measure what it sends tells 0, which is minus infinity, too.
func (s *Sampler) Transmit(ctx context.Context) ([]ocs.DBm, error) {
	powers, err := s.transmit(ctx)
	if err != nil {
		s.identified = false
	}
	return powers, err
}

func (s *Sampler) transmit(ctx context.Context) ([]ocs.DBm, error) {
	id, err := s.Identify(ctx)
	if err != nil {
		return nil, err
	}
	span := id.MonitorSpan()
	data := s.buf[:span.Length]
	if err := s.Reader.ReadPage(ctx, span.Address, data); err != nil {
		return nil, err
	}
	lanes, err := id.Monitors(data)
	if err != nil {
		return nil, err
	}
	powers := make([]ocs.DBm, len(lanes))
	for i, l := range lanes {
		powers[i] = milliwatts(l.TxPower)
	}
	return powers, nil
}

func milliwatts(p cmis.Power) ocs.DBm { return ocs.Milliwatts(p.Microwatts() / 1000) }
