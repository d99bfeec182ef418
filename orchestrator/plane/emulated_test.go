package plane_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/ocslab/ocslab/ocs"
	"github.com/ocslab/ocslab/orchestrator/plane"
	"github.com/ocslab/ocslab/orchestrator/proto"
	"github.com/ocslab/ocslab/topology/opus"
)

// Ensure an operation begins with its last member and ends for all at once.
func TestEmulated_Rendezvous(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := plane.NewEmulated(plane.EmulatedOptions{})
		defer e.Close()
		begun := nowNS()
		var wg sync.WaitGroup
		for rank := range 3 {
			wg.Go(func() {
				time.Sleep(time.Duration(rank) * time.Millisecond)
				for op := range uint64(2) {
					out, err := e.Do(t.Context(), plane.Transfer{
						Rail: "rail0", Rank: rank, Ref: proto.OpRef{Group: "dp/0", Op: op}, Members: []int{0, 1, 2},
						Bytes: 7, Duration: 10 * time.Millisecond, Slowdown: 2,
					})
					want := plane.Outcome{BeginNS: begun + 2e6 + int64(op)*20e6, EndNS: begun + 22e6 + int64(op)*20e6}
					if diff := cmp.Diff(want, out); diff != "" || err != nil || nowNS() != want.EndNS {
						t.Errorf("rank %d operation %d: %v (-want +got):\n%s", rank, op, err, diff)
					}
				}
			})
		}
		wg.Wait()
	})
}

// Ensure a rank that woke up late does not delay an operation that it needed no leave for, and one that claims to
// be ready in the future is ready now.
func TestEmulated_Issued(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := plane.NewEmulated(plane.EmulatedOptions{})
		defer e.Close()
		time.Sleep(time.Millisecond)
		begun := nowNS()
		part := func(rank int, issued int64) plane.Transfer {
			return plane.Transfer{Rank: rank, Members: []int{0, 1}, Duration: time.Millisecond, IssuedNS: issued}
		}
		for _, x := range []struct{ a, b, want int64 }{{-5e5, -2e5, -2e5}, {-5e5, 3e5, 0}, {-9e6, -9e6, -9e6}} {
			got := do(t.Context(), e, part(0, begun+x.a), part(1, begun+x.b))
			for _, r := range got {
				if r.err != nil || r.BeginNS != begun+x.want || r.EndNS != r.BeginNS+1e6 || nowNS() < r.EndNS {
					t.Errorf("%v: begins at %v and ends at %v, %v", x, r.BeginNS-begun, r.EndNS-begun, r.err)
				}
			}
			begun = nowNS()
		}
	})
}

// Ensure bytes are lost exactly while a circuit is not there, and at those ranks only that use it.
func TestEmulated_Lost(t *testing.T) {
	for _, x := range []struct {
		name    string
		meddle  func(t *testing.T, drop, join func(text string))
		at      time.Duration // when meddle is called, after the operation has begun
		lasts   time.Duration
		lost    []int64 // by rank, of 10,000 bytes
		dpFirst bool
	}{
		{"nothing", func(*testing.T, func(string), func(string)) {}, 0, 10 * time.Millisecond, []int64{0, 0, 0, 0}, true},
		{"removed", func(_ *testing.T, drop, _ func(string)) { drop("1") }, 4 * time.Millisecond, 10 * time.Millisecond, []int64{6000, 6000, 0, 0}, true},
		{"one nanosecond before the end", func(_ *testing.T, drop, _ func(string)) { drop("1") }, 10*time.Millisecond - 1, 10 * time.Millisecond, []int64{1, 1, 0, 0}, true},
		{"at the end", func(_ *testing.T, drop, _ func(string)) { drop("1") }, 10 * time.Millisecond, 10 * time.Millisecond, []int64{0, 0, 0, 0}, true},
		{"removed and made again", func(_ *testing.T, drop, join func(string)) {
			drop("5")
			time.Sleep(5 * time.Millisecond)
			join("5>16") // 20 ms later there is light
		}, 10 * time.Millisecond, 100 * time.Millisecond, []int64{0, 0, 2500, 2500}, true},
		{"two circuits, one after the other", func(_ *testing.T, drop, join func(string)) {
			drop("5")
			time.Sleep(5 * time.Millisecond)
			drop("6")
			time.Sleep(5 * time.Millisecond)
			join("5>16")
			join("6>15")
		}, 10 * time.Millisecond, 100 * time.Millisecond, []int64{0, 0, 3000, 3000}, true},
		{"moved by somebody else", func(_ *testing.T, _, join func(string)) { join("1>13") }, 5 * time.Millisecond, 10 * time.Millisecond, []int64{5000, 5000, 5000, 5000}, true},
		{"never there", func(*testing.T, func(string), func(string)) {}, 0, 10 * time.Millisecond, []int64{10_000, 10_000, 10_000, 10_000}, false},
	} {
		t.Run(x.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := exactly(t)
				e := emulated(t, d, plane.EmulatedOptions{})
				if x.dpFirst {
					id(t, d, "11")
				} else {
					id(t, d, "00")
				}
				begun := time.Now()
				go func() {
					time.Sleep(x.at)
					x.meddle(t, func(port string) {
						m := d.CrossConnects()
						var p ocs.Port
						fmt.Sscan(port, &p)
						if _, err := d.Disconnect(m.At(p)[0].Ingress); err != nil {
							t.Error(err)
						}
					}, func(text string) {
						if _, err := d.Connect(mustMap(t, text).Slice()); err != nil {
							t.Error(err)
						}
					})
				}()
				var parts []plane.Transfer
				for rank := range 4 {
					p := dp(rank, 0)
					p.Duration = x.lasts
					parts = append(parts, p)
				}
				var lost []int64
				for rank, r := range do(t.Context(), e, parts...) {
					if r.err != nil || r.EndNS-r.BeginNS != int64(x.lasts) || time.Since(begun) < x.lasts {
						t.Errorf("rank %d: %v", rank, r)
					}
					lost = append(lost, r.Lost)
				}
				if diff := cmp.Diff(x.lost, lost); diff != "" {
					t.Errorf("lost (-want +got):\n%s", diff)
				}
				time.Sleep(time.Second) // the meddler has ended
			})
		})
	}
}

// Ensure that without switches everything gets through at full bandwidth, as it does when there are real ones.
func TestEmulated_NoSwitch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for want, opt := range map[string]plane.EmulatedOptions{
			"": {}, "1>14,2>13,5>10,6>9": {Assignments: map[string]opus.Assignment{"rail0": cabled}},
		} {
			e := plane.NewEmulated(opt)
			defer e.Close()
			got := do(t.Context(), e, plane.Transfer{
				Rail: "rail0", Switch: "ocs", Members: []int{0}, Bytes: 1000, Duration: 10 * time.Millisecond,
				Uses: []opus.Circuit{{A: 1, B: 4}, {A: 0, B: 5}},
			})
			if r := got[0]; r.err != nil || r.EndNS-r.BeginNS != 10e6 || r.Uses.String() != want || r.Lost != 0 {
				t.Errorf("%+v, want to be on %q", r, want)
			}
		}
	})
}

// Ensure an error names who has not come, and that somebody who has left can come again.
func TestEmulated_Missing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := plane.NewEmulated(plane.EmulatedOptions{Patience: 5 * time.Second})
		defer e.Close()
		part := func(rank int) plane.Transfer {
			return plane.Transfer{Rail: "rail0", Rank: rank, Ref: proto.OpRef{Group: "pp/1", Op: 7, Way: 2}, Members: []int{1, 3, 5, 9}}
		}
		ctx, cancel := context.WithTimeoutCause(t.Context(), 2*time.Second, errors.New("rank 9 has burst"))
		defer cancel()
		got := do(ctx, e, part(3))
		want := "rank 3 of pp/1 operation 7 between stages 2 and 3 on rail0: it has waited 2s for ranks 1, 5, 9: rank 9 has burst"
		if got[0].err == nil || got[0].err.Error() != want {
			t.Errorf("got %v, want %s", got[0].err, want)
		}

		got = do(t.Context(), e, part(1), part(5), part(9))
		for _, r := range got {
			if !errors.Is(r.err, plane.ErrMissing) || !strings.Contains(r.err.Error(), "it has waited 5s for rank") {
				t.Errorf("got %v", r.err)
			}
		}
		for _, r := range do(t.Context(), e, part(1), part(5), part(9), part(3)) {
			if r.err != nil {
				t.Error(r.err)
			}
		}
	})
}

func TestEmulated_Refuses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := emulated(t, exactly(t), plane.EmulatedOptions{})
		bad := func(want string, change func(*plane.Transfer)) {
			t.Helper()
			p := dp(1, 0)
			change(&p)
			if _, err := e.Do(t.Context(), p); !errors.Is(err, plane.ErrTransfer) || !strings.Contains(err.Error(), want) {
				t.Errorf("got %v, want %s", err, want)
			}
		}
		bad("it has -1 bytes", func(p *plane.Transfer) { p.Bytes = -1 })
		bad("it lasts -1ns", func(p *plane.Transfer) { p.Duration = -1 })
		bad("longer than 24h", func(p *plane.Transfer) { p.Slowdown = 1e9 })
		bad("slowed down -1 times", func(p *plane.Transfer) { p.Slowdown = -1 })
		bad("its members are ranks [0 1]", func(p *plane.Transfer) { p.Rank = 2 })
		bad("do not ascend", func(p *plane.Transfer) { p.Members = []int{1, 0} })
		bad("no rail rail7", func(p *plane.Transfer) { p.Rail = "rail7" })
		bad("no switch x", func(p *plane.Transfer) { p.Switch = "x" })
		bad("no circuit between duplex ports 0 and 8", func(p *plane.Transfer) { p.Uses = []opus.Circuit{{A: 0, B: 8}} })
		bad("its circuits: ", func(p *plane.Transfer) { p.Uses = []opus.Circuit{{A: 0, B: 3}, {A: 0, B: 2}} })

		// Nothing of it is left behind, and one who comes twice does no harm.
		waits := make(chan error)
		go func() {
			_, err := e.Do(t.Context(), dp(1, 0))
			waits <- err
		}()
		synctest.Wait()
		bad("takes part already", func(*plane.Transfer) {})
		bad("takes its members to be [1], and others [0 1]", func(p *plane.Transfer) { p.Members = []int{1} })
		e.Close()
		if err := <-waits; !errors.Is(err, plane.ErrClosed) || !strings.Contains(err.Error(), "for rank 0") {
			t.Errorf("closed: %v", err)
		}
		if _, err := e.Do(t.Context(), dp(1, 0)); !errors.Is(err, plane.ErrClosed) {
			t.Errorf("after close: %v", err)
		}
	})
}

// Ensure an operation under way ends with its ctx, for that rank only.
func TestEmulated_Cancelled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := plane.NewEmulated(plane.EmulatedOptions{})
		defer e.Close()
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		part := plane.Transfer{Rail: "rail0", Rank: 1, Members: []int{0, 1}, Duration: time.Second}
		other := part
		other.Rank = 0
		ended := make(chan result)
		go func() { ended <- do(t.Context(), e, other)[0] }()
		if r := do(ctx, e, part)[0]; !errors.Is(r.err, context.DeadlineExceeded) {
			t.Errorf("got %v", r.err)
		}
		if r := <-ended; r.err != nil || r.EndNS-r.BeginNS != int64(time.Second) {
			t.Errorf("the other: %v", r)
		}
	})
}

// Property: what is dark is what is not lit, nanosecond by nanosecond.
func TestDark(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var past []plane.Span
		for egress := ocs.Port(1); egress <= 3; egress++ {
			at := int64(0)
			for range rapid.IntRange(0, 4).Draw(t, "spans") {
				since := at + int64(rapid.IntRange(0, 5).Draw(t, "gap"))
				till := since + int64(rapid.IntRange(0, 5).Draw(t, "lit"))
				past = append(past, plane.Span{Egress: egress, From: ocs.Port(rapid.IntRange(1, 2).Draw(t, "from")), Since: since, Till: till})
				at = till
			}
		}
		var all []ocs.CrossConnect
		for egress := range rapid.IntRange(0, 3).Draw(t, "uses") {
			all = append(all, ocs.CrossConnect{Ingress: ocs.Port(rapid.IntRange(1, 2).Draw(t, "ingress")), Egress: ocs.Port(egress + 1)})
		}
		begin := int64(rapid.IntRange(0, 20).Draw(t, "begin"))
		end := begin + int64(rapid.IntRange(0, 20).Draw(t, "length"))
		want := int64(0)
		for at := begin; at < end; at++ {
			for _, c := range all {
				lit := false
				for _, s := range past {
					lit = lit || s.Egress == c.Egress && s.From == c.Ingress && s.Since <= at && at < s.Till
				}
				if !lit {
					want++
					break
				}
			}
		}
		if got := plane.Dark(past, all, begin, end); got != want {
			t.Fatalf("%v of %v in %d to %d: %d, want %d", all, past, begin, end, got, want)
		}
	})
}

func TestShare(t *testing.T) {
	const big = 1<<63 - 1
	for _, x := range [][4]int64{{10, 0, 5, 0}, {10, 5, 5, 10}, {10, 1, 3, 4}, {big, big - 1, big, big - 1}, {0, 3, 5, 0}, {10, 1, 0, 10}} {
		if got := plane.Share(x[0], x[1], x[2]); got != x[3] {
			t.Errorf("%d of %d in %d: %d, want %d", x[1], x[2], x[0], got, x[3])
		}
	}
}

// BenchmarkEmulated_Do is what an operation costs all of its members together, per member.
func BenchmarkEmulated_Do(b *testing.B) {
	for _, n := range []int{2, 64, 2048} {
		b.Run(fmt.Sprintf("members=%d", n), func(b *testing.B) {
			d := exactly(b)
			e := emulated(b, d, plane.EmulatedOptions{})
			parts := make([]plane.Transfer, n)
			members := make([]int, n)
			for i := range parts {
				members[i] = i
				parts[i] = plane.Transfer{Rail: "rail0", Switch: "ocs", Rank: i, Members: members, Bytes: 0, Uses: []opus.Circuit{{A: 0, B: 3}, {A: 1, B: 2}}}
			}
			var wg sync.WaitGroup
			b.ReportAllocs()
			start := make(chan struct{})
			for i := range parts {
				wg.Go(func() {
					<-start
					t := parts[i]
					for op := range b.N {
						t.Ref.Op = uint64(op)
						if _, err := e.Do(context.Background(), t); err != nil {
							b.Error(err)
							return
						}
					}
				})
			}
			b.ResetTimer()
			close(start)
			wg.Wait()
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(n), "ns/member")
		})
	}
}
