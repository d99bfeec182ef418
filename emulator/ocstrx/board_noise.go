package ocstrx

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
)

// Noise is what a bad cable does to the bytes of the controller link, both ways.
type Noise struct {
	Flip, Drop float64 // probability that a byte has a bit flipped, or is lost; 0 to 1
	Seed       uint64
}

// noise is a cable with its noise.
type noise struct {
	Noise
	rng *rand.Rand
}

// Noise makes the line of the board noisy from now on; the zero Noise makes it good again.
func (b *Board) Noise(n Noise) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.noise = nil
	if n.Flip > 0 || n.Drop > 0 {
		b.noise = &noise{n, rand.New(rand.NewPCG(n.Seed, 0x6e6f697365))}
	}
}

// spoil returns what is left of p, in the same memory.
func (b *Board) spoil(p []byte) []byte {
	b.mu.Lock()
	defer b.mu.Unlock()
	n := b.noise
	if n == nil {
		return p
	}
	left := p[:0]
	for _, c := range p {
		if n.rng.Float64() < n.Drop {
			continue
		}
		if n.rng.Float64() < n.Flip {
			c ^= 1 << n.rng.IntN(8)
		}
		left = append(left, c)
	}
	return left
}

// ParseFault reads what is to go wrong with a board, and returns what makes it go wrong:
//
//	noise:P        a byte of the line has a bit flipped with probability P
//	drop:P         a byte of the line is lost with probability P
//	power-off      the board has no power, see [Board.SetPower]
//	power-off:TIME it has none any more that long after, by the clock of the machine
//	FAULT          in all modules
//	SLOT/FAULT     in the module of that slot, counted from 1
//
// where FAULT is as [ParseDeviceFault] reads it. Noise and drop add up.
func ParseFault(s string) (func(*Board) error, error) {
	kind, value, _ := strings.Cut(s, ":")
	switch kind {
	case "power-off":
		return powerFault(s, value)
	case "noise", "drop":
		p, err := strconv.ParseFloat(value, 64)
		if err != nil || !(p >= 0 && p <= 1) {
			return nil, fmt.Errorf("fault %q: %q is no probability, want 0 to 1", s, value)
		}
		return func(b *Board) error {
			n := b.noiseNow()
			if kind == "noise" {
				n.Flip = p
			} else {
				n.Drop = p
			}
			b.Noise(n)
			return nil
		}, nil
	}
	slot, fault := 0, s
	if before, after, ok := strings.Cut(s, "/"); ok {
		n, err := strconv.Atoi(before)
		if err != nil || n < 1 || n > MaxModules {
			return nil, fmt.Errorf("fault %q: slot %q, want 1 to %d", s, before, MaxModules)
		}
		slot, fault = n, after
	}
	f, err := ParseDeviceFault(fault)
	if err != nil {
		return nil, err
	}
	return func(b *Board) error {
		if slot > len(b.modules) {
			return fmt.Errorf("fault %q: %s has %d modules", s, b.name, len(b.modules))
		}
		for i, m := range b.modules {
			if slot == 0 || i == slot-1 {
				m.Inject(f)
			}
		}
		return nil
	}, nil
}

func (b *Board) noiseNow() Noise {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.noise == nil {
		return Noise{Seed: b.seed}
	}
	return b.noise.Noise
}
