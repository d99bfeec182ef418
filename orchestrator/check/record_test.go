package check_test

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"github.com/ocslab/ocslab/emulator"
	"github.com/ocslab/ocslab/ocs"
	"github.com/ocslab/ocslab/orchestrator/check"
	"github.com/ocslab/ocslab/timeline"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// device returns a switch of 8 x 8 that takes exactly as long as said.
func device(t *testing.T, switching time.Duration) *emulator.Device {
	t.Helper()
	p, err := emulator.LoadPersonality("polatis-6000-32x32")
	if err != nil {
		t.Fatal(err)
	}
	p.Size = "8x8"
	p.Switching = emulator.Switching{Single: switching, Bulk: switching, Ack: emulator.AckAfter}
	d, err := emulator.New(p, emulator.Options{Name: "dev", Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func edit(t interface{ Fatal(...any) }, d *emulator.Device, drop []ocs.Port, add string) {
	if _, err := d.Edit(nil, emulator.Edit{Drop: drop, Add: parse(add).Slice()}); err != nil {
		t.Fatal(err)
	}
}

func nowNS() int64 { return timeline.HostAxis().NS(time.Now()) }

// spans writes lights in short, in ms since begun.
func spans(ls []check.Light, begun int64) []string {
	slices.SortStableFunc(ls, func(a, b check.Light) int {
		return cmp.Or(cmp.Compare(a.FromNS, b.FromNS), cmp.Compare(a.Ingress, b.Ingress))
	})
	var all []string
	for _, l := range ls {
		until := "now"
		if l.UntilNS != never {
			until = fmt.Sprint(time.Duration(l.UntilNS - begun))
		}
		all = append(all, fmt.Sprintf("%v %v-%v", l.Path(), time.Duration(l.FromNS-begun), until))
	}
	return all
}

func changes(cs []check.Change, begun int64) []string {
	var all []string
	for _, c := range cs {
		all = append(all, fmt.Sprintf("%v %v", time.Duration(c.AtNS-begun), c.Circuits()))
	}
	return all
}

func TestRecord(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := device(t, 20*time.Millisecond)
		edit(t, d, nil, "1>9,2>10")
		time.Sleep(time.Second)
		begun := nowNS()
		r := check.Record("s", d, nil)
		ms := func(n int) { time.Sleep(time.Duration(n) * time.Millisecond) }

		ms(10)
		edit(t, d, nil, "1>10,3>11") // takes 10 from ingress 2
		ms(10)
		edit(t, d, []ocs.Port{3}, "") // its light was still to come
		ms(20)
		if err := d.SetShutters(true, 1); err != nil {
			t.Fatal(err)
		}
		if err := d.SetShutters(false, 1); err != nil { // in the same nanosecond
			t.Fatal(err)
		}
		ms(10)
		d.ResetMatrix(nil) // puts the same circuits back, and reports no change
		ms(30)
		if err := d.SetInput(1, -12); err != nil { // weaker, and there all the time
			t.Fatal(err)
		}
		ms(10)
		edit(t, d, nil, "4>12") // on its way at the end
		ms(1)

		truth, err := r.Stop()
		if err != nil {
			t.Fatal(err)
		}
		if diff := gocmp.Diff([]string{
			"10ms - 1>9,2>10 + 1>10,3>11",
			"20ms - 3>11",
			"90ms + 4>12",
		}, changes(truth.Changes, begun)); diff != "" {
			t.Errorf("changes (-want +got):\n%s", diff)
		}
		if diff := gocmp.Diff([]string{
			"1>9 0s-10ms", "2>10 0s-10ms",
			"1>10 30ms-40ms", "1>10 40ms-50ms", "1>10 70ms-now",
		}, spans(truth.Lights, begun)); diff != "" {
			t.Errorf("light (-want +got):\n%s", diff)
		}
		ms(100)
		edit(t, d, []ocs.Port{1}, "")
		again, err := r.Stop()
		if diff := gocmp.Diff(truth, again); diff != "" || err != nil {
			t.Errorf("the truth has changed after the end (-want +got): %v\n%s", err, diff)
		}
	})
}

// Ensure a takeover without any switching time is two spans, and that who asked is known.
func TestRecord_Instant(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := device(t, 0)
		begun := nowNS()
		r := check.Record("s", d, nil)
		me := d.Enter(emulator.SessionInfo{Protocol: "TL1", Client: "127.0.0.1", User: "admin"}, func() {})
		defer me.Leave()
		for _, add := range []string{"1>9", "1>10", "2>10", "2>9,1>10"} {
			if _, err := d.Edit(me, emulator.Edit{Add: parse(add).Slice()}); err != nil {
				t.Fatal(err)
			}
		}
		early := r.Truth() // also in the middle
		if diff := gocmp.Diff([]string{"1>9 0s-0s", "1>10 0s-0s", "1>10 0s-now", "2>10 0s-0s", "2>9 0s-now"}, spans(early.Lights, begun)); diff != "" {
			t.Errorf("light (-want +got):\n%s", diff)
		}
		time.Sleep(time.Millisecond)
		truth, err := r.Stop()
		if err != nil {
			t.Fatal(err)
		}
		if got, want := truth.Changes[2].By, "session 1 (TL1, admin, 127.0.0.1)"; got != want {
			t.Errorf("By=%q, want %q", got, want)
		}
		if got, want := len(truth.Changes), 4; got != want {
			t.Errorf("%d changes, want %d", got, want)
		}
	})
}

// Ensure operations on a real device are judged by its own light: before, under and after a change, and beside it.
func TestCheck_Device(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := device(t, 25*time.Millisecond)
		edit(t, d, nil, "1>9,2>10,3>11")
		time.Sleep(time.Second)
		r := check.Record("s", d, nil)
		begun := nowNS()
		at := func(f time.Duration) int64 { return begun + int64(f) }
		time.Sleep(100 * time.Millisecond)
		edit(t, d, []ocs.Port{2}, "1>10") // 100 to 125 ms
		time.Sleep(100 * time.Millisecond)
		if err := d.SetShutters(true, 3); err != nil {
			t.Fatal(err)
		}
		time.Sleep(100 * time.Millisecond)
		truth, err := r.Stop()
		if err != nil {
			t.Fatal(err)
		}
		const ms = time.Millisecond
		ops := []check.Op{
			op("1>9,2>10", at(0), at(100*ms)),         // done as it begins
			op("3>11", at(0), at(200*ms)),             // beside it
			op("1>10", at(125*ms), at(300*ms)),        // as it has settled
			op("1>9", at(50*ms), at(110*ms)),          // G2
			op("1>10", at(110*ms), at(130*ms)),        // G1
			op("3>11", at(150*ms), at(250*ms)),        // the shutter
			op("4>12", at(1*ms), at(2*ms)),            // never made
			op("2>10", at(100*ms), at(100*ms+1)),      // of what was taken over: G1, since 10 is on its way to 1
			op("2>10", at(300*ms-1), at(300*ms)),      // long after
			op("2>12", at(100*ms-1), at(100*ms+1)),    // 2 was let go under it
			op("1>10", at(125*ms-1), at(125*ms)),      // a nanosecond early
			op("3>11", at(200*ms), at(200*ms+1)),      // a nanosecond late
			op("3>11", at(200*ms-1), at(200*ms)),      // in time
			op("1>9", at(0), at(100*ms)),              // in time
			op("1>10", at(300*ms-1), at(300*ms)),      // in time
			op("1>9,3>11", at(99*ms), at(100*ms)),     // in time
			op("2>10,3>11", at(99*ms), at(100*ms+1)),  // one of two
			op("1>10,3>11", at(199*ms), at(200*ms+1)), // the other
		}
		want := []string{
			"3 G2 1>9", "4 G1 1>10", "5 absent 3>11", "6 absent 4>12", "7 G1 2>10", "8 absent 2>10", "9 G2 2>12", "10 G1 1>10",
			"11 absent 3>11", "16 G2 2>10", "17 absent 3>11",
		}
		var got []string
		for i := range ops {
			ops[i].Rank = i
		}
		v := check.Check(ops, truth)
		slices.SortFunc(v.Violations, func(a, b check.Violation) int { return cmp.Compare(a.Op.Rank, b.Op.Rank) })
		for _, x := range v.Violations {
			got = append(got, fmt.Sprint(x.Op.Rank, " ", x.Guarantee, " ", x.Path))
		}
		if diff := gocmp.Diff(want, got); diff != "" {
			t.Errorf("violations (-want +got):\n%s\n%v", diff, v)
		}
		var bystanders []string
		for _, b := range truth.Bystanders("s", 3, 11) {
			bystanders = append(bystanders, b.String())
		}
		if diff := gocmp.Diff([]string{
			"the light at port 3 of s went, and no circuit was changed",
			"the light at port 11 of s went, and no circuit was changed",
		}, bystanders); diff != "" {
			t.Errorf("bystanders (-want +got):\n%s", diff)
		}
	})
}

// Ensure what is streamed is what is kept, whatever the device does, and that both agree with the device's own truth log.
func TestRecord_Streamed(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		switching := rapid.SampledFrom([]time.Duration{0, time.Millisecond, 20 * time.Millisecond}).Draw(rt, "switching")
		var steps []emulator.Edit
		var pauses []time.Duration
		for range rapid.IntRange(0, 20).Draw(rt, "steps") {
			in := rapid.Permutation([]ocs.Port{1, 2, 3, 4}).Draw(rt, "in")
			out := rapid.Permutation([]ocs.Port{9, 10, 11, 12}).Draw(rt, "out")
			e := emulator.Edit{Drop: in[:rapid.IntRange(0, 2).Draw(rt, "drop")]}
			for i := range rapid.IntRange(0, 3).Draw(rt, "add") {
				e.Add = append(e.Add, ocs.CrossConnect{Ingress: in[i], Egress: out[i]})
			}
			if rapid.IntRange(0, 4).Draw(rt, "shut") == 0 {
				e.Closed = map[ocs.Port]bool{in[3]: rapid.Bool().Draw(rt, "closed")}
			}
			steps = append(steps, e)
			pauses = append(pauses, rapid.SampledFrom([]time.Duration{0, 1, time.Millisecond, 30 * time.Millisecond}).Draw(rt, "pause"))
		}
		var failed string // told outside of the bubble, since a property cannot fail inside
		fail := func(format string, args ...any) { failed = cmp.Or(failed, fmt.Sprintf(format, args...)) }
		synctest.Test(t, func(t *testing.T) {
			d := device(t, switching)
			var log bytes.Buffer
			kept, streamed := check.Record("s", d, nil), check.Record("s", d, &log)
			for i, e := range steps {
				if _, err := d.Edit(nil, e); err != nil {
					fail("%v", err)
				}
				time.Sleep(pauses[i])
			}
			want, err := kept.Stop()
			if err != nil {
				fail("%v", err)
			}
			if _, err := streamed.Stop(); err != nil {
				fail("%v", err)
			}
			got, err := check.ReadTruth(&log)
			if err != nil {
				fail("%v in %s", err, log.String())
			}
			order := func(ls []check.Light) {
				slices.SortFunc(ls, func(a, b check.Light) int {
					return cmp.Or(cmp.Compare(a.FromNS, b.FromNS), cmp.Compare(a.UntilNS, b.UntilNS), cmp.Compare(a.Egress, b.Egress), cmp.Compare(a.Ingress, b.Ingress))
				})
			}
			order(want.Lights)
			order(got.Lights)
			if diff := gocmp.Diff(want, got); diff != "" {
				fail("streamed (-kept +streamed):\n%s", diff)
			}

			marks, _ := d.Truth(0)
			own := map[string]int{}
			for _, m := range marks {
				if m.Stage == timeline.Dark || m.Stage == timeline.Light {
					own[fmt.Sprint(m.Stage, " of ", strings.TrimPrefix(m.Subject, "dev/"), " at ", m.Latest)]++
				}
			}
			ours := map[string]int{}
			for _, l := range want.Lights {
				ours[fmt.Sprint(timeline.Light, " of ", l.Egress, " at ", l.FromNS)]++
				if l.UntilNS != never {
					ours[fmt.Sprint(timeline.Dark, " of ", l.Egress, " at ", l.UntilNS)]++
				}
			}
			if diff := gocmp.Diff(own, ours); diff != "" {
				fail("marks (-the device's own +ours):\n%s", diff)
			}
		})
		if failed != "" {
			rt.Fatal(failed)
		}
	})
}
