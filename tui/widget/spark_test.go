package widget

import (
	"math"
	"testing"

	"pgregory.net/rapid"

	"github.com/ocslab/ocslab/tui/canvas"
	"github.com/ocslab/ocslab/tui/tuitest"
)

// slots draws slots of all kinds, with values a long way beyond what is shown, too.
func slots(t *rapid.T) []Slot {
	return rapid.SliceOfN(rapid.Custom(func(t *rapid.T) (s Slot) {
		for range rapid.IntRange(0, 3).Draw(t, "readings") {
			s.Add(rapid.OneOf(rapid.Float64Range(-70, 5), rapid.SampledFrom([]float64{math.Inf(-1), math.NaN(), 1e300})).Draw(t, "power"), -45)
		}
		return s
	}), 0, 300).Draw(t, "slots")
}

// framed draws in an area with a margin, and fails when something is drawn in the margin.
func framed(t *rapid.T, draw func(a canvas.Area)) canvas.Area {
	w, h := rapid.IntRange(0, 90).Draw(t, "w"), rapid.IntRange(0, 12).Draw(t, "h")
	c := canvas.New(w+4, h+4)
	a := c.Area().Sub(2, 2, w, h)
	draw(a)
	for y := range c.H {
		for x := range c.W {
			if outside := x < 2 || y < 2 || x >= w+2 || y >= h+2; outside && c.At(x, y) != (canvas.Cell{Rune: ' '}) {
				t.Fatalf("%q is outside, at %d,%d of\n%s", c.At(x, y).Rune, x, y, c.String())
			}
		}
	}
	return a
}

func TestSlot_Add(t *testing.T) {
	var s Slot
	if s.Lit || s.Dark {
		t.Error("the zero slot is no gap")
	}
	for _, v := range []float64{-3, -5, -4} {
		s.Add(v, -45)
	}
	if s != (Slot{Low: -5, High: -3, Lit: true}) {
		t.Errorf("%+v", s)
	}
	for _, v := range []float64{-45, math.Inf(-1), math.NaN()} {
		var s Slot
		if s.Add(v, -45); s != (Slot{Dark: true}) {
			t.Errorf("%v: %+v", v, s)
		}
	}
}

func TestRange(t *testing.T) {
	lit := func(lo, hi float64) Slot { return Slot{Low: lo, High: hi, Lit: true} }
	for name, tc := range map[string]struct {
		slots  []Slot
		lo, hi float64
		ok     bool
	}{
		"nothing": {},
		"dark":    {slots: []Slot{{Dark: true}, {}}},
		"quiet":   {[]Slot{lit(-3, -3), {}}, -3.5, -2.5, true},
		"wide":    {[]Slot{lit(-3, -3), lit(-9, -4), {Dark: true}}, -9, -3, true},
	} {
		if lo, hi, ok := Range(tc.slots, 1); lo != tc.lo || hi != tc.hi || ok != tc.ok {
			t.Errorf("%s: %v, %v, %v", name, lo, hi, ok)
		}
	}
}

func TestSpark(t *testing.T) {
	var list []Slot
	for i := range 8 {
		list = append(list, Slot{Low: float64(i), High: float64(i), Lit: true})
	}
	list = append(list, Slot{}, Slot{Dark: true}, Slot{Low: 7, High: 7, Lit: true, Dark: true}, Slot{Low: 99, High: 99, Lit: true}, Slot{Low: -99, High: -99, Lit: true})
	for w, want := range map[int]string{13: "▁▂▃▄▅▆▇█ ××█▁\n", 20: "       ▁▂▃▄▅▆▇█ ××█▁\n", 3: "×█▁\n", 0: "\n"} {
		got := tuitest.Draw(w, 1, func(a canvas.Area) { Spark(a, list, 0, 7, canvas.S(canvas.Light)) }).String()
		if got != want {
			t.Errorf("%d columns: %q, want %q", w, got, want)
		}
	}
}

// In each column of a Spark there is a block where there was light, Dark where it was
// dark, and nothing in a gap; and nothing is outside.
func TestSpark_Properties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		list := slots(t)
		lo, hi := rapid.Float64Range(-50, 5).Draw(t, "lo"), rapid.Float64Range(-50, 5).Draw(t, "hi")
		var c *canvas.Canvas
		framed(t, func(a canvas.Area) {
			Spark(a, list, lo, hi, canvas.S(canvas.Light))
			c = tuitest.Draw(a.W, 1, func(a canvas.Area) { Spark(a, list, lo, hi, canvas.S(canvas.Light)) })
		})
		for i := range min(c.W, len(list)) {
			slot, got := list[len(list)-1-i], c.At(c.W-1-i, 0).Rune
			if ok := slot.Dark && got == Dark || !slot.Dark && !slot.Lit && got == ' ' || !slot.Dark && slot.Lit && got >= '▁' && got <= '█'; !ok {
				t.Fatalf("%+v is %q", slot, got)
			}
		}
	})
}

func TestChart(t *testing.T) {
	var list []Slot
	for i := range 160 {
		s := Slot{}
		switch v := -5 + 2*math.Sin(float64(i)/12); {
		case i >= 70 && i < 80: // nothing was read
		case i >= 100 && i < 106:
			s.Add(-60, -45)
		default:
			s.Add(v, -45)
			s.Add(v-0.3, -45)
		}
		list = append(list, s)
	}
	tuitest.Golden(t, "trail", func(a canvas.Area) {
		lo, hi, _ := Range(list, 1)
		Chart(a.Sub(0, 0, 80, 12), list, lo, hi, canvas.S(canvas.Light))
		Spark(a.Sub(0, 14, 80, 1), list, lo, hi, canvas.S(canvas.Light))
		Spark(a.Sub(0, 15, 24, 1), list, lo, hi, canvas.S(canvas.Stale))
	})
}

// A Chart is inside its area, and shows light in each column where there was some.
func TestChart_Properties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		list := slots(t)
		lo, hi := rapid.Float64Range(-50, 5).Draw(t, "lo"), rapid.Float64Range(-50, 5).Draw(t, "hi")
		var c *canvas.Canvas
		framed(t, func(a canvas.Area) {
			Chart(a, list, lo, hi, canvas.S(canvas.Light))
			c = tuitest.Draw(a.W, a.H, func(a canvas.Area) { Chart(a, list, lo, hi, canvas.S(canvas.Light)) })
		})
		if c.H < 2 || c.W == 0 {
			return
		}
		for i := range min(2*c.W, len(list)) {
			slot, x := list[len(list)-1-i], c.W-1-i/2
			lit := false
			for y := range c.H - 1 {
				lit = lit || c.At(x, y).Rune > 0x2800 && c.At(x, y).Rune <= 0x28ff
			}
			if slot.Lit && !lit {
				t.Fatalf("no light in column %d for %+v", x, slot)
			}
			if slot.Dark && c.At(x, c.H-1).Rune != Dark {
				t.Fatalf("column %d is not dark for %+v", x, slot)
			}
		}
	})
}
