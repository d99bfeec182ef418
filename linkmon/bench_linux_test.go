package linkmon_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os/exec"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/ocslab/ocslab/internal/netns"
	"github.com/ocslab/ocslab/linkmon"
	"github.com/ocslab/ocslab/timeline"
)

// churn moves the carrier of taps at random, n times, with exponential gaps.
func churn(t testing.TB, taps []*tap, n int, mean time.Duration) []toggled {
	t.Helper()
	random := rand.New(rand.NewPCG(1, uint64(n)))
	truth := make([]toggled, 0, n)
	for range n {
		i := random.IntN(len(taps))
		at, err := taps[i].toggle()
		if err != nil {
			t.Fatal(err)
		}
		truth = append(truth, toggled{i, taps[i].up, at})
		if mean > 0 {
			time.Sleep(time.Duration(random.ExpFloat64() * float64(mean)))
		}
	}
	return truth
}

// rest closes the monitor and returns all events that have not been read.
func rest(t testing.TB, m *linkmon.Monitor) []linkmon.Event {
	t.Helper()
	if err := m.Close(); err != nil {
		t.Fatal(err)
	}
	var events []linkmon.Event
	for {
		e, err := m.Next(context.Background())
		if errors.Is(err, io.EOF) {
			return events
		}
		if err != nil {
			t.Fatal(err)
		}
		events = append(events, e)
	}
}

// verdict holds what a monitor reported against what happened.
type verdict struct {
	lost, wrong, shared int
	widths, errors      []float64 // of transitions, in µs; errors are of the middle
	ends                []float64 // the same, from the end of the toggle, which waited for a lock first
	late                []float64 // announcements, from the end of the toggle, in µs
}

func judge(taps []*tap, truth []toggled, events []linkmon.Event) verdict {
	var v verdict
	us := func(ns int64) float64 { return float64(ns) / 1e3 }
	for i, p := range taps {
		var transitions, announced []linkmon.Event
		for _, e := range events {
			switch {
			case e.Interface != p.name:
			case e.Kind == linkmon.Transition:
				transitions = append(transitions, e)
			case e.Kind == linkmon.Announcement:
				announced = append(announced, e)
			}
		}
		var mine []toggled
		for _, x := range truth {
			if x.tap == i {
				mine = append(mine, x)
			}
		}
		v.lost += max(len(mine)-len(transitions), len(transitions)-len(mine))
		for n := range min(len(mine), len(transitions)) {
			e := transitions[n]
			if _, ok := e.Intersect(mine[n].at); !ok || e.Up != mine[n].up || e.Number != n+1 {
				v.wrong++
			}
			if e.Shared > 1 {
				v.shared++
			}
			v.widths = append(v.widths, us(int64(e.Width())))
			d := e.Mid() - mine[n].at.Mid()
			v.errors = append(v.errors, us(max(d, -d)))
			d = e.Mid() - mine[n].at.Latest
			v.ends = append(v.ends, us(max(d, -d)))
		}
		for _, e := range announced {
			if e.Number < 1 || e.Number > len(mine) {
				v.wrong++
				continue
			}
			x := mine[e.Number-1]
			if _, ok := e.Intersect(x.at); !ok || e.Up != x.up || e.Seen.Latest < x.at.Earliest {
				v.wrong++
			}
			v.late = append(v.late, us(e.Seen.Latest-x.at.Latest))
		}
	}
	return v
}

func quantile(xs []float64, q float64) float64 {
	slices.Sort(xs)
	return xs[int(q*float64(len(xs)-1))]
}

func quantiles(b *testing.B, name string, xs []float64) {
	if len(xs) == 0 {
		return
	}
	b.ReportMetric(quantile(xs, 0.5), name+"-p50-us")
	b.ReportMetric(quantile(xs, 0.99), name+"-p99-us")
}

// ipMonitor is `ip -ts monitor link`, what everybody uses.
type ipMonitor struct {
	cmd  *exec.Cmd
	done chan []ipLine
}

type ipLine struct {
	name string
	up   bool
	at   int64
}

var ipText = regexp.MustCompile(`^\[([^\]]+)\] (?:Deleted )?\d+: ([^:@]+)[^<]*<([^>]*)>`)

func startIP(t testing.TB, ns *netns.NS) *ipMonitor {
	t.Helper()
	cmd := exec.Command("nsenter", "--net="+ns.Path(), "ip", "-ts", "-o", "monitor", "link")
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	ip := &ipMonitor{cmd, make(chan []ipLine, 1)}
	// Its stamps are of the wall clock.
	now := time.Now()
	offset := now.UnixNano() - timeline.HostAxis().NS(now)
	heard := make(chan struct{})
	go func() {
		var lines []ipLine
		for s := bufio.NewScanner(out); s.Scan(); {
			m := ipText.FindStringSubmatch(s.Text())
			if m == nil {
				continue
			}
			at, err := time.ParseInLocation("2006-01-02T15:04:05.999999", m[1], time.Local)
			if err != nil {
				continue
			}
			if len(lines) == 0 {
				close(heard)
			}
			lines = append(lines, ipLine{m[2], slices.Contains(strings.Split(m[3], ","), "LOWER_UP"), at.UnixNano() - offset})
		}
		ip.done <- lines
	}()
	// Until it listens, give it something to hear.
	for {
		newTap(t, ns, "hear").f.Close()
		select {
		case <-heard:
			return ip
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// stop returns how many transitions it showed and how late, in µs.
func (ip *ipMonitor) stop(t testing.TB, taps []*tap, truth []toggled) (seen int, late []float64) {
	time.Sleep(1200 * time.Millisecond) // the kernel announces up to a second late
	if err := ip.cmd.Process.Signal(unix.SIGTERM); err != nil {
		t.Error(err)
	}
	lines := <-ip.done
	_ = ip.cmd.Wait() // terminated
	for i, p := range taps {
		state := true
		for _, l := range lines {
			if l.name != p.name || l.up == state {
				continue
			}
			state = l.up
			seen++
			last := int64(-1)
			for _, x := range truth {
				if x.tap == i && x.up == l.up && x.at.Earliest <= l.at {
					last = x.at.Latest
				}
			}
			if last >= 0 {
				late = append(late, float64(l.at-last)/1e3)
			}
		}
	}
	return seen, late
}

func start(t testing.TB, opt linkmon.Options, ns *netns.NS, interfaces ...string) *linkmon.Monitor {
	t.Helper()
	opt.Hosts = []linkmon.Host{{Name: "gpu1", NS: ns, Interfaces: interfaces}}
	m, err := linkmon.Start(context.Background(), opt)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { m.Close() })
	return m
}

func BenchmarkMonitor16(b *testing.B) {
	for _, bc := range []struct {
		name string
		opt  linkmon.Options
	}{
		{"observe", linkmon.Options{}},
		{"sync", linkmon.Options{Sync: true}},
		{"netlink-only", linkmon.Options{NoCounters: true}},
	} {
		b.Run(bc.name, func(b *testing.B) {
			ns := newNS(b, "bench")
			taps := newTaps(b, ns, 16)
			ip := startIP(b, ns)
			m := start(b, bc.opt, ns, "tap*")
			b.ResetTimer()
			began := time.Now()
			truth := churn(b, taps, b.N, 2*time.Millisecond)
			took := time.Since(began)
			b.StopTimer()
			if err := m.Flush(context.Background()); err != nil {
				b.Fatal(err)
			}
			cpu := m.Account().Sweeps.CPU
			seen, late := ip.stop(b, taps, truth)
			v := judge(taps, truth, rest(b, m))
			b.ReportMetric(float64(v.lost), "lost")
			if !bc.opt.NoCounters {
				b.ReportMetric(float64(v.wrong), "wrong")
				quantiles(b, "width", v.widths)
				quantiles(b, "mid-error", v.errors)
				b.ReportMetric(100*cpu.Seconds()/took.Seconds(), "cpu-%")
				b.ReportMetric(float64(len(v.late)), "announced")
			}
			quantiles(b, "announced-late", v.late)
			b.ReportMetric(float64(seen), "ip-seen")
			quantiles(b, "ip-late", late)
		})
	}
}

// BenchmarkBare is what a sweep of 16 counters and a pause cost on this machine when
// nothing is done with them: the floor of BenchmarkMonitor16, whose widths cannot be
// below its periods.
func BenchmarkBare(b *testing.B) {
	ns := newNS(b, "bench")
	taps := newTaps(b, ns, 16)
	sys, err := ns.Sysfs()
	if err != nil {
		b.Fatal(err)
	}
	defer sys.Close()
	fds := make([]int, len(taps))
	for i, p := range taps {
		if fds[i], err = unix.Openat(int(sys.Fd()), "class/net/"+p.name+"/carrier_changes", unix.O_RDONLY|unix.O_CLOEXEC, 0); err != nil {
			b.Fatal(err)
		}
		defer unix.Close(fds[i])
	}
	var stop atomic.Bool
	type result struct {
		periods []float64
		cpu     time.Duration
	}
	ended := make(chan result)
	go func() {
		runtime.LockOSThread() // ends with the goroutine
		_ = unix.Setpriority(unix.PRIO_PROCESS, 0, -20)
		_ = unix.Prctl(unix.PR_SET_TIMERSLACK, 1, 0, 0, 0)
		var r result
		var buf [16]byte
		pause := unix.NsecToTimespec(int64(linkmon.DefaultPoll))
		for before := time.Now(); !stop.Load(); {
			for _, fd := range fds {
				_, _, _ = syscall.RawSyscall6(unix.SYS_PREAD64, uintptr(fd), uintptr(unsafe.Pointer(&buf)), uintptr(len(buf)), 0, 0, 0)
			}
			_ = unix.ClockNanosleep(unix.CLOCK_MONOTONIC, 0, &pause, nil)
			now := time.Now()
			r.periods = append(r.periods, float64(now.Sub(before))/1e3)
			before = now
		}
		var ts unix.Timespec
		_ = unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &ts)
		r.cpu = time.Duration(ts.Nano())
		ended <- r
	}()
	b.ResetTimer()
	began := time.Now()
	churn(b, taps, b.N, 2*time.Millisecond)
	took := time.Since(began)
	b.StopTimer()
	stop.Store(true)
	r := <-ended
	quantiles(b, "period", r.periods)
	b.ReportMetric(100*r.cpu.Seconds()/took.Seconds(), "cpu-%")
}

func BenchmarkMonitorTight(b *testing.B) {
	ns := newNS(b, "bench")
	taps := newTaps(b, ns, 1)
	m := start(b, linkmon.Options{Tight: true}, ns, "tap*")
	truth := churn(b, taps, b.N, 2*time.Millisecond)
	v := judge(taps, truth, rest(b, m))
	b.ReportMetric(float64(v.lost), "lost")
	b.ReportMetric(float64(v.wrong), "wrong")
	quantiles(b, "width", v.widths)
}

// Others hold the lock that the kernel announces under.
func BenchmarkMonitorRTNL(b *testing.B) {
	ns, other := newNS(b, "bench"), newNS(b, "other")
	taps := newTaps(b, ns, 4)
	m := start(b, linkmon.Options{Sync: true}, ns, "tap*")
	stop, stopped := make(chan struct{}), make(chan error, 1)
	go func() { stopped <- other.Do(func() error { return vethChurn(stop) }) }()
	truth := churn(b, taps, b.N, 5*time.Millisecond)
	close(stop)
	if err := <-stopped; err != nil {
		b.Fatal(err)
	}
	v := judge(taps, truth, rest(b, m))
	b.ReportMetric(float64(v.lost), "lost")
	b.ReportMetric(float64(v.wrong), "wrong")
	b.ReportMetric(slices.Max(v.ends), "error-max-us")
	b.ReportMetric(quantile(v.ends, 0.99), "error-p99-us")
	b.ReportMetric(slices.Max(append(v.late, 0)), "announced-late-max-us")
}

// vethChurn makes and deletes 150 pairs in a loop.
func vethChurn(stop <-chan struct{}) error {
	for {
		for i := range 150 {
			select {
			case <-stop:
				return nil
			default:
			}
			err := netlink.LinkAdd(&netlink.Veth{LinkAttrs: netlink.LinkAttrs{Name: fmt.Sprintf("v%d", i)}, PeerName: fmt.Sprintf("w%d", i)})
			if err != nil {
				return err
			}
		}
		links, err := netlink.LinkList()
		if err != nil {
			return err
		}
		for _, l := range links {
			if strings.HasPrefix(l.Attrs().Name, "v") {
				if err := netlink.LinkDel(l); err != nil {
					return err
				}
			}
		}
	}
}

// As fast as they go, over 64 ports.
func BenchmarkSoak(b *testing.B) {
	ns := newNS(b, "bench")
	taps := newTaps(b, ns, 64)
	m := start(b, linkmon.Options{}, ns, "tap*")
	read := make(chan int)
	go func() {
		n := 0
		for {
			e, err := m.Next(context.Background())
			if err != nil {
				read <- n
				return
			}
			if e.Kind == linkmon.Transition {
				n++
			}
		}
	}()
	before := heap()
	b.ResetTimer()
	random := rand.New(rand.NewPCG(1, 2))
	for range b.N {
		if _, err := taps[random.IntN(len(taps))].toggle(); err != nil {
			b.Fatal(err)
		}
	}
	b.StopTimer()
	if err := m.Flush(context.Background()); err != nil {
		b.Fatal(err)
	}
	after := heap()
	if err := m.Close(); err != nil {
		b.Fatal(err)
	}
	a := m.Account()
	if err := a.Err(); err != nil {
		b.Error(err)
	}
	b.ReportMetric(float64(b.N-<-read), "lost")
	b.ReportMetric(float64(before), "heap-before-B")
	b.ReportMetric(float64(after), "heap-after-B")
	b.ReportMetric(float64(a.Sweeps.Longest.Microseconds()), "sweep-max-us")
}

func heap() uint64 {
	runtime.GC()
	var s runtime.MemStats
	runtime.ReadMemStats(&s)
	return s.HeapAlloc
}
