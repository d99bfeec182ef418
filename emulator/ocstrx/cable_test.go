package ocstrx

import (
	"context"
	"math"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/ocslab/ocslab/ocs"
	"github.com/ocslab/ocslab/wire/cmis"
	"github.com/ocslab/ocslab/wire/cmis/ocst"
)

// joined are two modules on one clock that are ready, with a cable of 1.5 dB from fibre 1 of
// the first to fibre 2 of the second.
func joined(t testing.TB) (a, b *bench, cut func()) {
	t.Helper()
	clock := new(VirtualClock)
	make := func(seed uint64) *bench {
		return &bench{t, NewModule(DefaultParams(), Options{Seed: seed, Clock: clock, Wall: testWall}), clock}
	}
	a, b = make(1), make(2)
	cut, err := Join(a.Module, 0, b.Module, 1, 1.5)
	if err != nil {
		t.Fatal(err)
	}
	clock.Advance(20 * time.Millisecond)
	a.wantState(ocst.StateReady)
	b.wantState(ocst.StateReady)
	return a, b, cut
}

// locks are what all receivers do, which must be the same.
func (b *bench) locks() ocst.Lock {
	b.Helper()
	l := b.lanes().Lock
	for lane := range l {
		if l[lane] != l[0] {
			b.Fatalf("receivers are not alike: %v", l)
		}
	}
	return l[0]
}

// lost returns the latched flags of lost light and lost lock, and clears them.
func (b *bench) lost() (los, lol byte) {
	b.Helper()
	b.get(cmis.Address{}, 1) // the lower memory has lanes latched
	p := b.get(cmis.Address{Page: 0x11, Offset: regRxLOS}, 2)
	return p[0], p[1]
}

// The light of a lane comes with what it launches, less two taps' worth of waveguide, both
// facets and the cable.
func TestJoinPower(t *testing.T) {
	t.Parallel()
	a, b, _ := joined(t)
	a.switchTo(ocst.Path1, 0xff)
	b.switchTo(ocst.Path2, 0xff)
	for _, end := range []struct {
		from, to *bench
		tap, rx  int
	}{{a, b, ocst.PDOut1, ocst.PDRx2}, {b, a, ocst.PDOut2, ocst.PDRx1}} {
		end.to.status()
		sent, heard := end.from.chip.powers(end.from.now), end.to.chip.powers(end.to.now)
		for lane := range ocst.Lanes {
			want := toDB(sent[end.tap][lane]*0.95) - 1.2 - 1.5 - 1.2
			near(t, "power at the receiver, dBm", toDB(heard[end.rx][lane]), want, 0.05)
		}
		if far := heard[ocst.PDRx1+ocst.PDRx2-end.rx]; far != [ocst.Lanes]float64{} {
			t.Errorf("light from a fibre without a cable: %v mW", far)
		}
	}
}

// Clock recovery begins when there is data, whichever end comes later, and ends 0.1 to 1 ms
// after that; what it does is the same whoever asks when.
func TestJoinLocks(t *testing.T) {
	t.Parallel()
	type result struct{ locked [ocst.Lanes]time.Duration }
	run := func(t *testing.T, step time.Duration) (r result) {
		a, b, _ := joined(t)
		a.switchTo(ocst.Path1, 0xff)
		a.wantState(ocst.StateReady)
		if l := a.locks(); l != ocst.NoLight {
			t.Fatalf("the far end is dark, and receivers are %v", l)
		}
		b.clock.Advance(3*time.Millisecond + 1234*time.Nanosecond)
		begun := b.clock.Now()
		b.order(ocst.Path2, 0xff, ocst.CommitNow)
		for b.clock.Now() < begun+2*time.Millisecond {
			b.clock.Advance(step)
			if step < time.Millisecond {
				a.status()
			}
		}
		if l := a.locks(); l != ocst.Locked {
			t.Fatalf("after 2 ms receivers are %v", l)
		}
		lit := begun + b.status().Duration
		for lane := range ocst.Lanes {
			r.locked[lane] = a.hearing.lockAt[lane]
			if d := r.locked[lane] - lit; d < lockLeast || d > lockMost {
				t.Errorf("lane %d has locked %v after the data", lane+1, d)
			}
		}
		if l := b.locks(); l != ocst.Locked {
			t.Errorf("at the far end receivers are %v", l)
		}
		return r
	}
	first := run(t, time.Microsecond)
	for _, step := range []time.Duration{7 * time.Microsecond, 130 * time.Microsecond, 2 * time.Millisecond} {
		if got := run(t, step); got != first {
			t.Errorf("asked every %v, lanes lock at %v, asked every µs at %v", step, got, first)
		}
	}
}

// Light without data, as there is while taps settle, is light, and nothing to lock on.
func TestJoinSettles(t *testing.T) {
	t.Parallel()
	a, b, _ := joined(t)
	a.switchTo(ocst.Path1, 0xff)
	b.order(ocst.Path2, 0xff, ocst.CommitNow)
	var seen []ocst.Lock
	var state []ocst.State
	for range 1200 {
		a.clock.Advance(time.Microsecond)
		l, s := a.lanes().Lock[0], b.status().State
		if n := len(seen); n == 0 || seen[n-1] != l || state[n-1] != s {
			seen, state = append(seen, l), append(state, s)
		}
		if s == ocst.StateBreak && l != ocst.NoLight {
			t.Fatalf("receivers are %v while the far end is in %v", l, s)
		}
	}
	withoutData := false
	for i, l := range seen {
		withoutData = withoutData || l == ocst.Acquiring && state[i] == ocst.StateSettle
	}
	if !withoutData || seen[len(seen)-1] != ocst.Locked {
		t.Errorf("receivers were %v while the far end was in %v", seen, state)
	}
}

// What has come and gone between two looks is latched.
func TestJoinFlags(t *testing.T) {
	t.Parallel()
	a, b, _ := joined(t)
	a.switchTo(ocst.Path1, 0xff)
	b.switchTo(ocst.Path2, 0xff)
	a.lost()
	if los, lol := a.lost(); los != 0 || lol != 0 {
		t.Fatalf("flags of lanes %08b, %08b with light", los, lol)
	}
	b.switchTo(ocst.Dark, 0x0f)
	b.switchTo(ocst.Path2, 0x0f) // nobody has looked meanwhile
	a.clock.Advance(2 * time.Millisecond)
	if l := a.locks(); l != ocst.Locked {
		t.Fatalf("receivers are %v", l)
	}
	if los, lol := a.lost(); los != 0x0f || lol&0x0f != 0x0f || lol&0xf0 != 0 {
		t.Errorf("flags of lanes %08b, %08b, want 1 to 4", los, lol)
	}
	if los, lol := a.lost(); los != 0 || lol != 0 {
		t.Errorf("flags of lanes %08b, %08b a second time", los, lol)
	}
}

// Light that came, and has been locked on since, has had a receiver without lock.
func TestJoinLossOfLock(t *testing.T) {
	t.Parallel()
	a, b, _ := joined(t)
	a.switchTo(ocst.Path1, 0xff)
	b.order(ocst.Path2, 0xff, ocst.CommitNow)
	a.lost() // which is the last that is seen of the dark
	a.clock.Advance(2 * time.Millisecond)
	if los, lol := a.lost(); los != 0 || lol != 0xff {
		t.Errorf("flags of lanes %08b, %08b, want lost lock of all", los, lol)
	}
}

// Modules that were given power at different times have clocks that differ.
func TestJoinRealClocks(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var ends []*Module
		for seed := range uint64(2) {
			ends = append(ends, NewModule(DefaultParams(), Options{Seed: seed, Wall: testWall}))
			time.Sleep(time.Hour)
		}
		if _, err := Join(ends[0], 0, ends[1], 0, 1); err != nil {
			t.Fatal(err)
		}
		for _, dark := range []*Module{nil, ends[0], ends[1]} {
			for _, m := range ends {
				path := ocst.Path1
				if m == dark {
					path = ocst.Dark
				}
				if err := m.Write(t.Context(), ocst.At(ocst.RegStaged), []byte{byte(path), 0xff, byte(ocst.CommitNow)}); err != nil {
					t.Fatal(err)
				}
			}
			time.Sleep(2 * time.Millisecond)
			for i, m := range ends {
				want := ocst.Locked
				if dark != nil {
					want = ocst.NoLight
				}
				if l := (&bench{t, m, nil}).locks(); l != want {
					t.Errorf("receivers of module %d are %v, want %v", i, l, want)
				}
			}
		}
	})
}

// A module that fails, or starts anew, takes the light from the other end at once, and brings
// it back when it is switched again.
func TestJoinEnds(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(*bench){
		"brown-out": func(b *bench) { b.BrownOut() },
		"hot":       func(b *bench) { b.Inject(DeviceFault{Kind: Hot}); b.clock.Advance(time.Minute); b.status() },
		"low power": func(b *bench) { b.put(cmis.Address{Offset: cmis.RegGlobalControl}, byte(cmis.LowPwrRequestSW)) },
		"dark":      func(b *bench) { b.order(ocst.Dark, 0xff, ocst.CommitNow) },
		"disabled":  func(b *bench) { b.put(cmis.Address{Page: 0x10, Offset: 130}, 0xff) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a, b, _ := joined(t)
			a.switchTo(ocst.Path1, 0xff)
			b.switchTo(ocst.Path2, 0xff)
			if l := a.locks(); l != ocst.Locked {
				t.Fatalf("receivers are %v", l)
			}
			end(b)
			if l := a.locks(); l != ocst.NoLight {
				t.Errorf("receivers are %v", l)
			}
			a.wantState(ocst.StateReady) // and sends
		})
	}
}

// A cable that is cut leaves both ends dark, and the fibres to SetInput.
func TestCut(t *testing.T) {
	t.Parallel()
	a, b, cut := joined(t)
	a.switchTo(ocst.Path1, 0xff)
	b.switchTo(ocst.Path2, 0xff)
	a.SetInput(0, 3, ocs.DBm(math.Inf(-1)))
	if l := a.locks(); l != ocst.Locked {
		t.Fatalf("receivers are %v", l)
	}
	cut()
	cut()
	if x, y := a.locks(), b.locks(); x != ocst.NoLight || y != ocst.NoLight {
		t.Errorf("receivers are %v and %v", x, y)
	}
	a.SetInput(0, 3, 0)
	a.clock.Advance(time.Millisecond)
	if l := a.lanes().Lock[3]; l != ocst.Locked {
		t.Errorf("with light set from outside: %v", l)
	}
	if _, err := Join(b.Module, 1, a.Module, 0, 0); err != nil {
		t.Fatal(err)
	}
	a.clock.Advance(time.Millisecond)
	if x, y := a.locks(), b.locks(); x != ocst.Locked || y != ocst.Locked {
		t.Errorf("joined again, receivers are %v and %v", x, y)
	}
}

func TestJoinRefuses(t *testing.T) {
	t.Parallel()
	a, b, _ := joined(t)
	other := NewModule(DefaultParams(), Options{Clock: new(VirtualClock)})
	for _, c := range []struct {
		a, b   *Module
		fa, fb int
		loss   ocs.DB
		want   string
	}{
		{a.Module, b.Module, 0, 0, 0, "fibre 0 of module has a cable"},
		{b.Module, a.Module, 0, 0, 0, "fibre 0 of module has a cable"},
		{a.Module, b.Module, 2, 0, 0, "want 0 or 1"},
		{a.Module, b.Module, 1, -1, 0, "want 0 or 1"},
		{a.Module, a.Module, 1, 1, 0, "joined to itself"},
		{a.Module, b.Module, 1, 0, -0.1, "want 0 or more"},
		{a.Module, b.Module, 1, 0, ocs.DB(math.NaN()), "want 0 or more"},
		{a.Module, other, 1, 0, 0, "different clocks"},
		{other, NewModule(DefaultParams(), Options{}), 1, 0, 0, "different clocks"},
	} {
		if _, err := Join(c.a, c.fa, c.b, c.fb, c.loss); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%d to %d, %v: %v, want %q", c.fa, c.fb, c.loss, err, c.want)
		}
	}
	one, eight := testBoard(t, "ocstrx-8x112g", nil), testBoard(t, "ocstrx-8x112g-x8", nil)
	if _, err := JoinBoards(one, 0, eight, 0, 0); err == nil || !strings.Contains(err.Error(), "one has 1 modules, the other 8") {
		t.Errorf("boards that differ: %v", err)
	}
	cut, err := JoinBoards(eight, 0, testBoard(t, "ocstrx-8x112g-x8", nil), 1, 1)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := JoinBoards(eight, 0, testBoard(t, "ocstrx-8x112g-x8", nil), 0, 1); err == nil {
		t.Error("a second cable at a board's fibre")
	}
	cut()
}

// testBoard is a board on a clock; nil is that of the machine.
func testBoard(t testing.TB, model string, clock Clock) *Board {
	t.Helper()
	p, err := LoadPersonality(model)
	if err != nil {
		t.Fatal(err)
	}
	b, err := NewBoard(p, Options{Clock: clock, Wall: testWall})
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// A module may be joined to itself, fibre to fibre.
func TestJoinSelf(t *testing.T) {
	t.Parallel()
	a := readyBench(t, 1)
	if _, err := Join(a.Module, 0, a.Module, 1, 0); err != nil {
		t.Fatal(err)
	}
	a.switchTo(ocst.Path1, 0x0f)
	a.order(ocst.Path2, 0xf0, ocst.CommitNow)
	a.clock.Advance(2 * time.Millisecond)
	if l := a.locks(); l != ocst.NoLight {
		t.Errorf("receivers are %v: lanes listen where they send", l)
	}
	if p := a.powersOf(ocst.PDRx2); p[0] < 1000 || p[7] > 300 {
		t.Errorf("fibre 2 brings %v", p)
	}
}

// Changes that nobody hears are kept up to a number, and the last of them always.
func TestJoinUnheard(t *testing.T) {
	t.Parallel()
	a, b, _ := joined(t)
	a.switchTo(ocst.Path1, 0xff)
	b.switchTo(ocst.Path2, 0xff)
	disable := cmis.Address{Page: 0x10, Offset: 130}
	for i := range 3 * mostBeams {
		b.put(disable, byte(i))
		b.clock.Advance(time.Microsecond)
	}
	if n := len(a.feeds[0].Load().beams); n > mostBeams {
		t.Errorf("%d changes wait", n)
	}
	b.put(disable, 0x0f)
	for lane, l := range a.lanes().Lock {
		if (l == ocst.NoLight) != (lane < 4) {
			t.Errorf("lane %d is %v", lane+1, l)
		}
	}
}

// TestJoinInvariants does arbitrary things to two joined modules: a receiver has light of a
// fibre only when both ends are on it.
func TestJoinInvariants(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		a, b, _ := joined(t)
		ends := []*bench{a, b}
		onCable := []ocst.Path{ocst.Path1, ocst.Path2}
		check := func() {
			for i, end := range ends {
				far := ends[1-i]
				l, s := far.lanes(), far.status()
				mine := end.lanes()
				for lane, lock := range mine.Lock {
					if lock == ocst.NoLight || mine.Path[lane] == ocst.LoopPath || mine.Path[lane] == ocst.Dark || s.State.Busy() {
						continue
					}
					if mine.Path[lane] != onCable[i] || l.Path[lane] != onCable[1-i] {
						rt.Fatalf("lane %d is %v on %v, the far end on %v", lane+1, lock, mine.Path[lane], l.Path[lane])
					}
				}
			}
		}
		which := rapid.IntRange(0, 1)
		rt.Repeat(map[string]func(*rapid.T){
			"commit": func(rt *rapid.T) {
				ends[which.Draw(rt, "end")].order(ocst.Path(rapid.IntRange(0, 3).Draw(rt, "path")), rapid.Uint8().Draw(rt, "lanes"), ocst.CommitNow)
			},
			"arm": func(rt *rapid.T) {
				ends[which.Draw(rt, "end")].order(ocst.Path(rapid.IntRange(0, 3).Draw(rt, "path")), rapid.Uint8().Draw(rt, "lanes"), ocst.CommitArm)
			},
			"trigger":   func(rt *rapid.T) { ends[which.Draw(rt, "end")].Trigger() },
			"brown-out": func(rt *rapid.T) { ends[which.Draw(rt, "end")].BrownOut() },
			"wait": func(rt *rapid.T) {
				a.clock.Advance(rapid.SampledFrom([]time.Duration{time.Microsecond, 40 * time.Microsecond, time.Millisecond, 20 * time.Millisecond, time.Minute}).Draw(rt, "time"))
			},
			"": func(*rapid.T) { check() },
		})
	})
}

// Modules that hear each other are asked and told from many sides at once.
func TestJoinRace(t *testing.T) {
	t.Parallel()
	const n = 4
	ring := make([]*Module, n)
	for i := range ring {
		ring[i] = NewModule(DefaultParams(), Options{Seed: uint64(i)})
	}
	for i := range ring {
		if _, err := Join(ring[i], 0, ring[(i+1)%n], 1, 1); err != nil {
			t.Fatal(err)
		}
	}
	var all sync.WaitGroup
	for i, m := range ring {
		for range 2 {
			all.Go(func() {
				p := make([]byte, ocst.LanesSpan.Length)
				for k := range 60 {
					_ = m.Write(context.Background(), ocst.At(ocst.RegStaged), []byte{byte(1 + (k+i)%3), 0xff, byte(ocst.CommitNow)})
					_ = m.Read(context.Background(), ocst.LanesSpan.Address, p)
					_ = m.Read(context.Background(), cmis.Address{}, p[:16])
				}
			})
		}
	}
	all.Go(func() {
		for range 20 {
			cut, err := Join(ring[0], 1, ring[2], 0, 0)
			if err == nil {
				cut()
			}
			ring[1].BrownOut()
		}
	})
	all.Wait()
}
