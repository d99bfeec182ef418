package ocstrx

import (
	"slices"
	"testing"
	"time"

	"github.com/ocslab/ocslab/ocs"
	"github.com/ocslab/ocslab/wire/cmis"
	"github.com/ocslab/ocslab/wire/cmis/ocst"
)

// TestStages ensures what a switch looks like from outside at each moment: state, light,
// receivers.
func TestStages(t *testing.T) {
	t.Parallel()
	b := readyBench(t, 7)
	b.switchTo(ocst.Path1, 0xff)
	b.switches = 41
	b.takeFlags()
	begin := b.clock.Now()
	b.order(ocst.LoopPath, 0xff, ocst.CommitNow)
	at := func(after time.Duration) ocst.LaneStatus {
		b.clock.Advance(begin + after - b.clock.Now())
		return b.lanes()
	}
	for _, after := range []time.Duration{0, 1999 * time.Nanosecond, 2 * time.Microsecond, 11999 * time.Nanosecond} {
		if l, s := at(after), b.status(); l.State != ocst.StateBreak || l.Path != [ocst.Lanes]ocst.Path{} || s.Path != ocst.Dark {
			t.Errorf("%v after the commit: %v, paths %v, of all %v, want break and dark", after, l.State, l.Path, s.Path)
		}
		b.wantDark()
	}
	if l := at(12 * time.Microsecond); l.State != ocst.StateSettle || b.chip.powers(b.now)[ocst.PDLaunched][0] == 0 {
		t.Errorf("12 µs after the commit: %v, want settle and light", l.State)
	}
	var l ocst.LaneStatus
	after := 12 * time.Microsecond
	for ; l.State != ocst.StateLocking && after < time.Millisecond; after += time.Microsecond {
		l = at(after)
	}
	if s := b.status(); s.Duration != after-time.Microsecond || s.Sequence != 2 || s.Switches != 42 || s.Path != ocst.LoopPath {
		t.Errorf("switched after %v: %+v", after-time.Microsecond, s)
	}
	if f := b.takeFlags(); f != ocst.FlagDone {
		t.Errorf("flags %v, want done", f)
	}
	if l.Lock[0] != ocst.Acquiring {
		t.Errorf("receivers %v, want acquiring", l.Lock)
	}
	if l = at(2 * time.Millisecond); l.State != ocst.StateReady || l.Lock[0] != ocst.Locked {
		t.Errorf("2 ms after the commit: %v, receivers %v, want ready and locked", l.State, l.Lock)
	}
}

// TestGolden ensures the figure that follows from one pole: an element that swings by π
// with τ = 15 µs is at -25 dB 50 µs after the drive.
func TestGolden(t *testing.T) {
	t.Parallel()
	p := DefaultParams()
	p.CouplerSpread, p.ThermalSpread, p.PowerPiSpread, p.ArmLossSpread = 0, 0, 0, 0
	clock := new(VirtualClock)
	b := &bench{t, NewModule(p, Options{Seed: 1, Clock: clock, Wall: testWall}), clock}
	clock.Advance(20 * time.Millisecond)
	b.switchTo(ocst.Path1, 0xff)
	b.switchTo(ocst.LoopPath, 0xff)
	settled := b.status().Duration - breakTime - selectTime - unmuteTime
	if want := 50 * time.Microsecond; settled < want-3*time.Microsecond || settled > want+3*time.Microsecond {
		t.Errorf("settled %v after the drive, want %v", settled, want)
	}
}

// TestDurations ensures that no switch of any of many modules takes a millisecond, that it
// takes 60 to 80 µs in the middle, and less with pre-emphasis.
func TestDurations(t *testing.T) {
	t.Parallel()
	median := map[uint8]time.Duration{}
	for _, control := range []uint8{0, ocst.PreEmphasis} {
		all := durations(t, 200, control)
		for _, d := range all {
			if d >= time.Millisecond {
				t.Fatalf("a switch takes %v, want less than a millisecond", d)
			}
		}
		median[control] = all[len(all)/2]
		t.Logf("control %d: p50 %v, p99 %v, most %v", control, all[len(all)/2], all[len(all)*99/100], all[len(all)-1])
	}
	if d := median[0]; d < 60*time.Microsecond || d > 80*time.Microsecond {
		t.Errorf("median %v, want 60 to 80 µs", d)
	}
	if median[ocst.PreEmphasis] >= median[0] {
		t.Errorf("median %v with pre-emphasis, %v without", median[ocst.PreEmphasis], median[0])
	}
}

// TestLittleRoom ensures that modules settle in time which have an element that could be driven
// at the very end of its converter: the other arm is taken then. Of seeds 0 to 499 it is these
// but the last, of which both arms have little.
func TestLittleRoom(t *testing.T) {
	t.Parallel()
	for _, seed := range []uint64{26, 33, 179, 234, 276, 388, 416, 474, 1435} {
		for _, ambient := range []float64{5, 25, 45} {
			for _, control := range []uint8{0, ocst.PreEmphasis} {
				b := newBench(t, Options{Seed: seed, Ambient: &ambient})
				b.clock.Advance(time.Minute)
				b.put(ocst.At(ocst.RegControl), control)
				for _, p := range []ocst.Path{ocst.Path1, ocst.Path2, ocst.LoopPath, ocst.Path1, ocst.LoopPath, ocst.Path2, ocst.Path1} {
					b.switchTo(p, 0xff)
					if s := b.status(); s.Duration > 150*time.Microsecond {
						t.Errorf("seed %d at %g °C: %v for a switch to %v", seed, ambient, s.Duration, p)
					}
				}
			}
		}
	}
}

// durations switches many modules through all changes of path, and returns how long it
// took, the shortest first.
func durations(t testing.TB, modules uint64, control uint8) (all []time.Duration) {
	for seed := range modules {
		b := readyBench(t, seed)
		b.put(ocst.At(ocst.RegControl), control)
		b.switchTo(ocst.Path1, 0xff)
		for _, p := range []ocst.Path{ocst.Path2, ocst.LoopPath, ocst.Path1, ocst.LoopPath, ocst.Path2, ocst.Path1} {
			b.switchTo(p, 0xff)
			all = append(all, b.status().Duration)
		}
	}
	slices.Sort(all)
	return all
}

// TestLanes ensures that lanes which are not switched keep their light and their lock while
// others are.
func TestLanes(t *testing.T) {
	t.Parallel()
	b := readyBench(t, 8)
	for lane := range ocst.Lanes {
		b.SetInput(0, lane, 0)
		b.SetInput(1, lane, 0)
	}
	b.switchTo(ocst.Path1, 0xff)
	b.order(ocst.Path2, 0x0c, ocst.CommitNow)
	for range 100 {
		b.clock.Advance(time.Microsecond)
		l := b.lanes()
		for lane := range ocst.Lanes {
			if 0x0c>>lane&1 == 0 && (l.Path[lane] != ocst.Path1 || l.Lock[lane] != ocst.Locked) {
				t.Fatalf("lane %d: %v, %v while others are switched", lane+1, l.Path[lane], l.Lock[lane])
			}
		}
	}
	b.clock.Advance(time.Millisecond)
	l := b.lanes()
	if l.Path != [ocst.Lanes]ocst.Path{1, 1, 2, 2, 1, 1, 1, 1} || b.status().Path != ocst.Mixed {
		t.Errorf("paths %v, of all %v", l.Path, b.status().Path)
	}
	if e := b.entries()[0]; e.Mask != 0x0c || e.From != ocst.Path1 || e.To != ocst.Path2 {
		t.Errorf("log %+v", e)
	}
}

// TestPermutation ensures that the loop takes lanes where it is told, that a change of it
// breaks those on it and nobody else, and that light arrives at the right receivers.
func TestPermutation(t *testing.T) {
	t.Parallel()
	b := readyBench(t, 9)
	b.switchTo(ocst.LoopPath, 0x7f)
	b.switchTo(ocst.Path1, 0x80)
	for _, p := range []ocst.Permutation{{7, 6, 5, 4, 3, 2, 1, 0}, {1, 2, 3, 4, 5, 6, 7, 0}, {0, 1, 2, 3, 4, 5, 6, 7}, {3, 0, 2, 1, 7, 5, 6, 4}} {
		before := b.status().Sequence
		status, reply := b.cdb(ocst.CDBPermute, p[:]...)
		b.clock.Advance(2 * time.Millisecond)
		if s := b.status(); status != cmis.CDBSuccess || len(reply) != 5 || s.Sequence != before+1 {
			t.Fatalf("permutation %v: %v, % x, %v", p, status, reply, s)
		}
		if e := b.entries()[0]; e.Mask != 0x7f || e.From != ocst.LoopPath || e.To != ocst.LoopPath || e.Duration < 70*time.Microsecond {
			t.Errorf("permutation %v: log %+v", p, e)
		}
		l := b.lanes()
		if l.Loop != p {
			t.Errorf("loop %v, want %v", l.Loop, p)
		}
		seen := b.chip.powers(b.now)[ocst.PDRxLoop]
		for lane, to := range p {
			if lit := seen[to] > 0.3; lit != (lane != 7) {
				t.Errorf("permutation %v: receiver %d gets %.3f mW", p, to+1, seen[to])
			}
			// Lane 8 is on fibre 1, and its receiver listens there, where there is nothing.
			want := ocst.Locked
			if lane == 7 || to == 7 {
				want = ocst.NoLight
			}
			if l.Lock[to] != want && to != 7 {
				t.Errorf("permutation %v: receiver %d is %v, want %v", p, to+1, l.Lock[to], want)
			}
		}
	}
	// Staged with a commit of a lane that is not on the loop, it moves those that are.
	b.put(ocst.At(ocst.RegLoop), 0, 1, 2, 3, 5, 4, 6, 7)
	b.switchTo(ocst.Path2, 0x80)
	if e := b.entries()[0]; e.Mask != 0xff || e.From != ocst.Mixed {
		t.Errorf("log %+v, want all lanes", e)
	}
	// With nobody on it, the loop moves all the same, and no light goes away.
	b.switchTo(ocst.Path1, 0xff)
	if status, _ := b.cdb(ocst.CDBPermute, 7, 6, 5, 4, 3, 2, 1, 0); status != cmis.CDBSuccess {
		t.Errorf("permutation without lanes: %v", status)
	}
	if l := b.lanes(); l.Loop[0] != 7 || l.Path[3] != ocst.Path1 {
		t.Errorf("after a permutation without lanes: %+v", l)
	}
	if e := b.entries()[0]; e.Mask != 0 || e.Sequence != b.status().Sequence || e.Result != ocst.NoFault {
		t.Errorf("log of a permutation without lanes: %+v", e)
	}
}

// TestListen ensures what receivers listen to: a lane on a fibre that fibre, another one the
// loop if a lane on it is taken there; and that light which comes later is locked to.
func TestListen(t *testing.T) {
	t.Parallel()
	b := readyBench(t, 10)
	b.switchTo(ocst.LoopPath, 0x01) // to receiver 5
	if l := b.lanes(); l.Lock != [ocst.Lanes]ocst.Lock{4: ocst.Locked} {
		t.Errorf("receivers %v, want 5 locked", l.Lock)
	}
	b.order(ocst.LoopPath, 0x01, ocst.CommitNow)
	if l := b.lanes(); l.Lock[4] != ocst.NoLight {
		t.Errorf("receiver 5 is %v while the lane that it hears is switched", l.Lock[4])
	}
	b.clock.Advance(2 * time.Millisecond)
	b.switchTo(ocst.Path2, 0x10) // lane 5 listens to fibre 2 now
	if l := b.lanes(); l.Lock != [ocst.Lanes]ocst.Lock{} {
		t.Errorf("receivers %v, want none with light", l.Lock)
	}
	b.SetInput(0, 4, 0)
	if l := b.lanes(); l.Lock[4] != ocst.NoLight {
		t.Errorf("receiver 5 is %v with light in the other fibre", l.Lock[4])
	}
	b.SetInput(1, 4, 0)
	if l := b.lanes(); l.Lock[4] != ocst.Acquiring {
		t.Errorf("receiver 5 is %v, want acquiring", l.Lock[4])
	}
	b.clock.Advance(time.Millisecond)
	if l := b.lanes(); l.Lock[4] != ocst.Locked {
		t.Errorf("receiver 5 is %v, want locked", l.Lock[4])
	}
	b.SetInput(1, 4, ocs.DBm(-60))
	if l := b.lanes(); l.Lock[4] != ocst.NoLight {
		t.Errorf("receiver 5 is %v without light", l.Lock[4])
	}
}

// TestArm ensures arming lane by lane, the trigger by line and by command, and disarming.
func TestArm(t *testing.T) {
	t.Parallel()
	b := readyBench(t, 11)
	b.order(ocst.Path1, 0x03, ocst.CommitArm)
	b.order(ocst.Path2, 0x0c, ocst.CommitArm)
	b.order(ocst.LoopPath, 0x01, ocst.CommitArm)
	b.wantState(ocst.StateArmed)
	b.wantDark()
	if !b.Armed() {
		t.Error("not armed")
	}
	b.order(ocst.Path1, 0xff, ocst.CommitNow)
	if s := b.status(); s.Result != ocst.FaultNotAllowed || s.State != ocst.StateArmed {
		t.Errorf("a commit while armed: %v, %v, want refused and armed", s.Result, s.State)
	}
	b.put(ocst.At(ocst.RegLoop), 9, 9, 9, 9, 9, 9, 9, 9) // too late: it was latched
	b.Trigger()
	b.clock.Advance(2 * time.Millisecond)
	if l := b.lanes(); l.Path != [ocst.Lanes]ocst.Path{3, 1, 2, 2} || b.status().Sequence != 1 {
		t.Errorf("paths %v, %+v", l.Path, b.status())
	}
	b.put(ocst.At(ocst.RegLoop), 4, 5, 6, 7, 0, 1, 2, 3)
	b.order(ocst.Path1, 0xff, ocst.CommitArm)
	b.put(ocst.At(ocst.RegCommit), byte(ocst.CommitDisarm))
	b.takeFlags()
	b.put(ocst.At(ocst.RegCommit), byte(ocst.CommitTrigger))
	if s := b.status(); s.Result != ocst.FaultNotArmed || s.State != ocst.StateReady || b.takeFlags() != ocst.FlagRejected {
		t.Errorf("trigger after disarming: %+v", s)
	}
	b.order(ocst.Path1, 0xff, ocst.CommitArm)
	b.put(ocst.At(ocst.RegCommit), byte(ocst.CommitTrigger))
	b.clock.Advance(2 * time.Millisecond)
	if s := b.status(); s.Path != ocst.Path1 || s.Sequence != 2 {
		t.Errorf("triggered by command: %+v", s)
	}
}

// TestRefused ensures that commands which cannot be done are named, and do nothing.
func TestRefused(t *testing.T) {
	t.Parallel()
	b := readyBench(t, 12)
	b.switchTo(ocst.Path1, 0xff)
	before := b.status()
	refused := func(want ocst.Fault) {
		t.Helper()
		s := b.status()
		f := b.takeFlags()
		if s.Result != want || f&ocst.FlagRejected == 0 || s.Sequence != before.Sequence || s.Path != ocst.Path1 {
			t.Errorf("%v, flags %v, sequence number %d, path %v; want %v, rejected, and as before", s.Result, f, s.Sequence, s.Path, want)
		}
	}
	b.order(ocst.Path2, 0, ocst.CommitNow)
	refused(ocst.FaultStage)
	b.order(ocst.Mixed, 1, ocst.CommitArm)
	refused(ocst.FaultStage)
	b.order(ocst.Path2, 1, 9)
	refused(ocst.FaultStage)
	b.put(ocst.At(ocst.RegLoop), 1, 1)
	b.order(ocst.Path2, 1, ocst.CommitNow)
	refused(ocst.FaultStage)
	b.put(ocst.At(ocst.RegLoop), 4, 5)
	b.Trigger()
	refused(ocst.FaultNotArmed)

	b.order(ocst.Path2, 0x01, ocst.CommitNow)
	b.clock.Advance(5 * time.Microsecond)
	for _, c := range []ocst.Commit{ocst.CommitNow, ocst.CommitArm, ocst.CommitTrigger, ocst.CommitDisarm} {
		b.takeFlags()
		b.order(ocst.LoopPath, 0xff, c)
		if s := b.status(); s.Result != ocst.FaultBusy || b.takeFlags() != ocst.FlagRejected {
			t.Errorf("commit %d while busy: %v, want %v", c, s.Result, ocst.FaultBusy)
		}
	}
	if status, reply := b.cdb(ocst.CDBSwitch, 3, 0xff, 1); status != cmis.CDBFailed || ocst.Fault(reply[0]) != ocst.FaultBusy {
		t.Errorf("CDB while busy: %v, % x", status, reply)
	}
	b.clock.Advance(time.Millisecond)
	if s := b.status(); s.Sequence != before.Sequence+1 || s.Path != ocst.Mixed {
		t.Errorf("the switch that was under way: %+v", s)
	}
}

// TestCapture ensures that the transient of the last switch can be read: the light goes from
// one output to the other, and stays.
func TestCapture(t *testing.T) {
	t.Parallel()
	b := readyBench(t, 13)
	b.switchTo(ocst.Path1, 0xff)
	b.switchTo(ocst.Path2, 0x0f)
	read := func(lane byte, bank uint8) (n int, p []byte) {
		b.put(scopeAt(bank, 128), lane)
		head := b.get(scopeAt(bank, 128), 3)
		if head[0] != lane || head[1] != 1 {
			t.Fatalf("lane %d, sample time %d, want %d, 1", head[0], head[1], lane)
		}
		return int(head[2]), b.get(scopeAt(bank, 136), 120)
	}
	n, old := read(2, 0)
	_, fresh := read(2, 1)
	if want := int(b.status().Duration/time.Microsecond) + 1; n != want {
		t.Errorf("%d samples, want %d", n, want)
	}
	if old[5] != 0xff || fresh[11] != 0xff {
		t.Errorf("there is light while the modulators are blanked: %d, %d", old[5], fresh[11])
	}
	if old[12] > 80 || old[n-9] < fresh[n-9]+4*23 || fresh[n-1] > 8 {
		t.Errorf("fibre 1: % d\nfibre 2: % d", old[:n], fresh[:n])
	}
	if n, _ := read(7, 0); n != 0 {
		t.Errorf("lane 8 was not switched, and has %d samples", n)
	}
}

// TestLog ensures that the log keeps the last sixteen switches, the newest first.
func TestLog(t *testing.T) {
	t.Parallel()
	b := readyBench(t, 14)
	for range 20 {
		b.switchTo(ocst.Dark, 0x01)
	}
	log := b.entries()
	if len(log) != ocst.LogSize {
		t.Fatalf("%d entries, want %d", len(log), ocst.LogSize)
	}
	for i, e := range log {
		want := ocst.LogEntry{At: uint32(20000 + 2000*(19-i)), Sequence: uint32(20 - i), Mask: 1, Duration: 10 * time.Microsecond}
		if e != want {
			t.Errorf("entry %d: %+v, want %+v", i, e, want)
		}
	}
}
