package phy

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/ocslab/ocslab/timeline"
)

func openKmsg(tb testing.TB, interfaces ...string) *Kmsg {
	tb.Helper()
	if os.Geteuid() != 0 {
		tb.Skip("needs root, to write into the kernel log")
	}
	k, err := OpenKmsg(interfaces...)
	if err != nil {
		tb.Fatal(err)
	}
	k.anybody = true
	tb.Cleanup(func() { k.Close() })
	return k
}

// say writes a line into the kernel log and returns when.
func say(tb testing.TB, line string) timeline.Interval {
	tb.Helper()
	f, err := os.OpenFile("/dev/kmsg", os.O_WRONLY, 0)
	if err != nil {
		tb.Fatal(err)
	}
	defer f.Close()
	from := time.Now()
	_, err = f.WriteString("<15>" + line + "\n")
	to := time.Now()
	if err != nil {
		tb.Fatal(err)
	}
	return timeline.HostAxis().Span(from, to)
}

func next(tb testing.TB, k *Kmsg) KmsgEvent {
	tb.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	e, err := k.Next(ctx)
	if err != nil {
		tb.Fatal(err)
	}
	return e
}

// Our own lines come back, each within its interval, with and without a calibrated clock.
func TestKmsg(t *testing.T) {
	for _, calibrated := range []bool{true, false} {
		iface := fmt.Sprintf("ocs%d", os.Getpid()%1e6)
		k := openKmsg(t, iface)
		bound, err := k.Calibration()
		if err != nil {
			t.Fatal(err)
		}
		t.Logf("the stamps of the log are good to ±%v", bound)
		if !calibrated {
			k.failed = errors.New("not in this test")
			if _, err := k.Calibration(); err == nil {
				t.Error("nothing is said of the failure")
			}
		}
		for i := range 4 {
			if i == 2 {
				k.calibrated = k.calibrated.Add(-time.Second) // so that it is done again
			}
			before := time.Now()
			up := i%2 == 0
			text := fmt.Sprintf("ocslab-test: %s: Link %s", iface, map[bool]string{true: "up", false: "down"}[up])
			written := say(t, text)
			e := next(t, k)
			if e.Interface != iface || e.Up != up || e.Text != text || e.Lost != 0 {
				t.Errorf("%+v", e)
			}
			if _, ok := e.Intersect(written); !ok {
				t.Errorf("calibrated %v: at %v, written at %v", calibrated, e.Interval, written)
			}
			if i == 2 && k.calibrated.After(before) != calibrated {
				t.Errorf("calibrated %v, at %v, and a line was written at %v", calibrated, k.calibrated, before)
			}
		}
	}
}

// Without the right to write, what follows is as exact as reading is.
func TestKmsg_ReadOnly(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root, to take rights from a thread")
	}
	iface := fmt.Sprintf("ocr%d", os.Getpid()%1e6)
	k, err := as(func() (*Kmsg, error) {
		// Files are then opened as nobody does, but CAP_SYSLOG stays.
		if err := unix.Setfsuid(65534); err != nil {
			return nil, err
		}
		return OpenKmsg(iface)
	})
	if err != nil {
		t.Fatal(err)
	}
	defer k.Close()
	k.anybody = true
	if _, err := k.Calibration(); !errors.Is(err, fs.ErrPermission) {
		t.Errorf("calibration: %v", err)
	}
	written := say(t, "ocslab-test: "+iface+": Link up")
	e := next(t, k)
	if _, ok := e.Intersect(written); !ok || !e.Up {
		t.Errorf("%+v, written at %v", e, written)
	}
}

func TestOpenKmsg_Forbidden(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root, to take rights from a thread")
	}
	b, err := os.ReadFile("/proc/sys/kernel/dmesg_restrict")
	if err != nil {
		t.Fatal(err)
	}
	restricted := strings.TrimSpace(string(b)) == "1"
	k, err := as(func() (*Kmsg, error) {
		header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
		var none [2]unix.CapUserData
		if err := unix.Capset(&header, &none[0]); err != nil {
			return nil, err
		}
		if s := probeKmsg(); s.On == restricted {
			t.Errorf("%+v", s)
		}
		return OpenKmsg("ens1f0")
	})
	if !restricted {
		if err != nil {
			t.Fatalf("everybody may read the log: %v", err)
		}
		k.Close()
		return
	}
	if !errors.Is(err, fs.ErrPermission) || !strings.Contains(err.Error(), "dmesg_restrict") {
		t.Errorf("%v", err)
	}
}

// as runs fn on a thread that ends afterwards, so fn may give up rights of the thread.
func as(fn func() (*Kmsg, error)) (k *Kmsg, err error) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread() // never unlocked
		k, err = fn()
	}()
	<-done
	return k, err
}

func TestKmsg_Lost(t *testing.T) {
	k := &Kmsg{interfaces: []string{"ens1f0"}, failed: errors.New("not calibrated"), seq: 10}
	at := timeline.Between(100, 200)
	k.take(record{seq: 10, text: "ens1f0: Link up"}, at)
	k.take(record{seq: 14, text: "ens1f0: Link down"}, at)
	k.take(record{seq: 15, text: "another line"}, at)
	k.take(record{seq: 16, facility: 3, text: "ens1f0: Link up"}, at) // a program
	for i, want := range []KmsgEvent{
		{Interface: "ens1f0", Up: true, Interval: at, Text: "ens1f0: Link up"},
		{Lost: 3, Interval: at, Text: "at least 3 records of the kernel log were overwritten before they were read"},
		{Interface: "ens1f0", Interval: at, Text: "ens1f0: Link down"},
	} {
		if len(k.queue) <= i || k.queue[i] != want {
			t.Fatalf("event %d of %+v, want %+v", i, k.queue, want)
		}
	}
	if len(k.queue) != 3 {
		t.Errorf("%+v", k.queue)
	}

	k = &Kmsg{overrun: true} // before the first record was read
	k.take(record{seq: 14}, at)
	k.take(record{seq: 15}, at)
	if len(k.queue) != 1 || k.queue[0].Lost != 1 {
		t.Errorf("%+v", k.queue)
	}
}

// A stamp far from when its record was read is not believed.
func TestKmsg_ClocksApart(t *testing.T) {
	k := &Kmsg{offset: offset(timeline.Between(0, 1000)), calibrated: time.Now()}
	now := timeline.HostAxis().NS(time.Now())
	read := timeline.Between(now-1e6, now)
	if got := k.place(time.Duration(now-5e5), read); !got.Contains(now-5e5) || got == read {
		t.Errorf("within: %v", got)
	}
	if got := k.place(time.Duration(now+50e9), read); got != read {
		t.Errorf("apart: %v", got)
	}
}

func TestKmsg_End(t *testing.T) {
	k := openKmsg(t, "ens1f0")
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Millisecond)
	defer cancel()
	if _, err := k.Next(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("ended context: %v", err)
	}
	done := make(chan error, 1)
	go func() {
		_, err := k.Next(context.Background())
		done <- err
	}()
	k.Close()
	if err := <-done; !errors.Is(err, os.ErrClosed) {
		t.Errorf("closed: %v", err)
	}
}

// BenchmarkKmsg reports how wide events are, how late they are known, and how many do not
// hold when they were written.
func BenchmarkKmsg(b *testing.B) {
	iface := fmt.Sprintf("ocb%d", os.Getpid()%1e6)
	k := openKmsg(b, iface)
	var width, late []timeline.Interval
	wrong := 0
	for b.Loop() {
		written := say(b, "ocslab-test: "+iface+": Link up")
		e := next(b, k)
		now := timeline.HostAxis().NS(time.Now())
		width = append(width, timeline.Point(int64(e.Width())))
		late = append(late, timeline.Point(now-written.Latest))
		if _, ok := e.Intersect(written); !ok {
			wrong++
		}
	}
	for name, xs := range map[string][]timeline.Interval{"width": width, "late": late} {
		b.ReportMetric(float64(timeline.Quantile(xs, .5).Mid())/1e3, name+"-p50-us")
		b.ReportMetric(float64(timeline.Quantile(xs, .99).Mid())/1e3, name+"-p99-us")
	}
	b.ReportMetric(float64(wrong), "wrong")
}
