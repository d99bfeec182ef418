package railx_test

import (
	"testing"

	"github.com/ocslab/ocslab/topology/railx"
)

// The largest grid of the paper: 64 x 64 nodes of 7 x 7 chips on 8,064 switches of 128 ports.
func large(b *testing.B) railx.Grid {
	g, err := railx.Full(128, 7, 9)
	if err != nil {
		b.Fatal(err)
	}
	return g
}

// BenchmarkR128 plans it; the goal is a second for the whole plan, 516,096 links: build.
func BenchmarkR128(b *testing.B) {
	g := large(b)
	torus, hyperx := build(b, g, railx.Torus2D()), build(b, g, railx.HyperX2D())
	if n := hyperx.CountLinks(); n != 516_096 || len(hyperx.Switches()) != 8064 {
		b.Fatalf("%d links on %d switches", n, len(hyperx.Switches()))
	}
	settled := railx.Settle(torus, hyperx)
	// As many groups with a ring of their own each: nothing is shared.
	var dead []railx.Node
	for i := range 64 {
		dead = append(dead, railx.Node{Column: i, Row: i})
	}
	hurt, err := torus.Bypass(dead...)
	if err != nil {
		b.Fatal(err)
	}
	hurtX, err := hyperx.Bypass(dead...)
	if err != nil {
		b.Fatal(err)
	}
	cables, err := railx.Regular(g, 0)
	if err != nil {
		b.Fatal(err)
	}
	for _, bench := range []struct {
		name string
		run  func() error
	}{
		{"build", func() error { _, err := railx.Build(g, railx.HyperX2D()); return err }},
		{"check", hyperx.Check},
		{"settle", func() error { railx.Settle(torus, hyperx); return nil }},
		{"settle-nothing-shared", func() error { railx.Settle(hurt, hurtX); return nil }},
		{"relabel", func() error { railx.Relabel(torus, hyperx); return nil }},
		{"diff", func() error { railx.Diff(torus, settled); return nil }},
		{"bypass", func() error { _, err := hyperx.Bypass(dead...); return err }},
		{"rolling", func() error { _, _, err := railx.Rolling(torus, settled); return err }},
		{"rolling-nothing-shared", func() error { _, _, err := railx.Rolling(hurt, hurtX); return err }},
		{"diameter", func() error { _, err := hyperx.Diameter(); return err }},
		{"pairs", func() error { hyperx.Pairs(); return nil }},
		{"maps", func() error { _, err := hyperx.Maps(cables); return err }},
		{"expander", func() error { _, _, err := railx.Expanding(64, 16); return err }},
	} {
		b.Run(bench.name, func(b *testing.B) {
			for b.Loop() {
				if err := bench.run(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
