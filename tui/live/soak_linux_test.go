package live_test

import (
	"bytes"
	"flag"
	"fmt"
	"io"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/charmbracelet/x/ansi"
	"golang.org/x/sys/unix"

	"github.com/ocslab/ocslab/emulator/fabric"
	"github.com/ocslab/ocslab/lab"
	"github.com/ocslab/ocslab/lab/history"
	"github.com/ocslab/ocslab/linkmon/watch"
	"github.com/ocslab/ocslab/ocs"
	"github.com/ocslab/ocslab/timeline"
	"github.com/ocslab/ocslab/tui"
	"github.com/ocslab/ocslab/tui/live"
)

var soak = flag.Duration("soak", 0, "how long TestSoak loads the UI and measures (default: briefly, to see that it works)")

// TestSoak loads all there is between a link and the eye: an emulated switch of 384 x 384
// ports, all of them joined, its 768 power monitors read each second, 64 NICs with 2000
// events a second, and the UI in a terminal of 200x60, in which a key is struck ten times a
// second. With -soak it says what that takes.
func TestSoak(t *testing.T) {
	length := *soak
	if length == 0 {
		length = time.Second
	}
	s := openLarge(t)
	master, slave := pty(t, 200, 60)
	term := newTerminal(master)
	ended := make(chan error, 1)
	go func() { ended <- tui.Run(t.Context(), tui.Options{Lab: s, In: slave, Out: slave}) }()
	term.wait(t, "384 circuits")

	stop := make(chan struct{})
	var feeding sync.WaitGroup
	feeding.Go(func() { feed(s, stop) })
	runtime.GC()
	var heap []uint64
	used, began := cpuTime(), time.Now()
	var took []time.Duration
	for i := 0; time.Since(began) < length; i++ {
		next := time.Now().Add(100 * time.Millisecond)
		// Up and down on the first egress; the place of the cursor is in the last lines.
		ingress := 1 + (i+1)%2
		took = append(took, term.strike(t, []string{"k", "j"}[(i+1)%2], fmt.Sprintf(" %d>385,", ingress)))
		if minute := time.Since(began) / max(length/10, time.Second); int(minute) >= len(heap) {
			var m runtime.MemStats
			runtime.GC()
			runtime.ReadMemStats(&m)
			heap = append(heap, m.HeapAlloc>>20)
		}
		time.Sleep(time.Until(next)) // the pace of the keys
	}
	elapsed, written := time.Since(began), term.bytes()
	used = cpuTime() - used
	var others []string
	for key := 2; key <= 6; key++ { // what the other screens take, each a tenth as long
		if _, err := fmt.Fprint(master, key); err != nil {
			t.Fatal(err)
		}
		used, since := cpuTime(), time.Now()
		time.Sleep(length / 10) // while it is measured
		others = append(others, fmt.Sprintf("%d: %.1f %%", key, 100*float64(cpuTime()-used)/float64(time.Since(since))))
	}
	close(stop)
	feeding.Wait()
	if _, err := master.WriteString("q"); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	if n := s.State().NICs[0].Flaps; n == 0 {
		t.Error("no event has arrived")
	}
	slices.Sort(took)
	t.Logf("%v: %d keys, key to screen p50 %v, p99 %v, most %v; %.1f %% of a core, %.2f MB/s to the terminal, heap in MiB at equal distances %v; on the other screens %s",
		elapsed.Round(time.Millisecond), len(took), took[len(took)/2], took[len(took)*99/100], took[len(took)-1],
		100*float64(used)/float64(elapsed), float64(written)/1e6/elapsed.Seconds(), heap, strings.Join(others, ", "))
}

// cpuTime is what this process has used.
func cpuTime() time.Duration {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u) // of itself it does not fail
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// openLarge opens the lab, and joins all ports.
func openLarge(t *testing.T) *live.Session {
	t.Helper()
	var b strings.Builder
	b.WriteString("name: large\nswitches:\n  - {name: core, emulate: {model: polatis-7000-384x384, seed: 1}}\nhosts:\n")
	for i := range 64 {
		fmt.Fprintf(&b, "  - {name: node%02d, nics: [{name: ens1f0, tx: core/%d, rx: core/%d}]}\n", i+1, i+1, 385+i)
	}
	f, err := lab.Parse("large.yaml", []byte(b.String()))
	if err != nil {
		t.Fatal(err)
	}
	f.Path = ""
	log, err := history.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	s, err := live.Open(t.Context(), live.Options{
		File: f, Lab: lab.Options{Emulated: true}, History: log, StateDir: t.TempDir(),
		Fabric: lab.FabricOptions{Rung: fabric.Memory, Firmware: "quick"},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	for x := s.State(); x.Switches[0].Status != live.Up || x.Opening != ""; x = s.State() {
		<-s.Changed()
	}
	all, err := ocs.ParseMap("1-384>385-768")
	if err != nil {
		t.Fatal(err)
	}
	p := s.Preview(t.Context(), live.Wish{Verb: live.Connect, Switch: "core", Map: all})
	if p.Err != nil {
		t.Fatal(p.Err)
	}
	if o := s.Apply(t.Context(), p); o.Err != nil {
		t.Fatal(o.Err)
	}
	return s
}

// feed makes 2000 events a second: carriers that come and go.
func feed(s *live.Session, stop <-chan struct{}) {
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	axis := timeline.HostAxis()
	for i := 0; ; {
		select {
		case <-stop:
			return
		case <-tick.C:
		}
		now := axis.NS(time.Now())
		for range 20 {
			nic := fmt.Sprintf("node%02d/ens1f0", 1+i/2%64)
			stage := []timeline.Stage{timeline.CarrierDown, timeline.CarrierUp}[i%2]
			s.SeenRecord(watch.Record{Mark: &timeline.Mark{Stage: stage, Subject: nic, Host: "here", Source: "counters", Interval: timeline.Between(now-100_000, now)}})
			i++
		}
	}
}

// terminal reads what is written to a terminal.
type terminal struct {
	master *os.File

	mu   sync.Mutex // guards what follows
	more chan struct{}
	text []byte
	n    int64
}

func newTerminal(master *os.File) *terminal {
	x := &terminal{master: master, more: make(chan struct{})}
	go func() {
		buf := make([]byte, 64<<10)
		for {
			n, err := master.Read(buf)
			x.mu.Lock()
			x.text = append(x.text, buf[:n]...)
			x.n += int64(n)
			close(x.more)
			x.more = make(chan struct{})
			x.mu.Unlock()
			if err != nil {
				return
			}
		}
	}()
	return x
}

func (x *terminal) bytes() int64 {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.n
}

// wait returns when something has been written since the last call.
func (x *terminal) wait(t *testing.T, text string) {
	t.Helper()
	deadline := time.After(time.Minute)
	for {
		x.mu.Lock()
		more := x.more
		if bytes.Contains([]byte(ansi.Strip(string(x.text))), []byte(text)) {
			x.text = x.text[:0]
			x.mu.Unlock()
			return
		}
		x.mu.Unlock()
		select {
		case <-more:
		case <-deadline:
			t.Fatalf("%q was not written, but\n%s", text, ansi.Strip(string(x.text)))
		}
	}
}

// strike strikes a key and returns how long it took until a text was written.
func (x *terminal) strike(t *testing.T, key, text string) time.Duration {
	t.Helper()
	x.mu.Lock()
	x.text = x.text[:0]
	x.mu.Unlock()
	began := time.Now()
	if _, err := io.WriteString(x.master, key); err != nil {
		t.Fatal(err)
	}
	x.wait(t, text)
	return time.Since(began)
}

// pty returns both ends of a terminal of that size.
func pty(t *testing.T, width, height int) (master, slave *os.File) {
	t.Helper()
	fd, err := unix.Open("/dev/ptmx", unix.O_RDWR|unix.O_NOCTTY|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	master = os.NewFile(uintptr(fd), "/dev/ptmx")
	t.Cleanup(func() { master.Close() })
	if err := unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	number, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	if err != nil {
		t.Fatal(err)
	}
	if err := unix.IoctlSetWinsize(fd, unix.TIOCSWINSZ, &unix.Winsize{Row: uint16(height), Col: uint16(width)}); err != nil {
		t.Fatal(err)
	}
	if slave, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|unix.O_NOCTTY, 0); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { slave.Close() })
	return master, slave
}
