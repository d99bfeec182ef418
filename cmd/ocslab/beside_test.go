package main

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ocslab/ocslab/ocs"
)

// slowly stands between clients and a TL1 server, and holds the first command of a kind back for a while.
type slowly struct {
	addr string
	held chan struct{} // closed when a command is held
}

const holdTime = 1500 * time.Millisecond

func newSlowly(t *testing.T, target, verb string) *slowly {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &slowly{addr: l.Addr().String(), held: make(chan struct{})}
	var once atomic.Bool
	var conns sync.WaitGroup
	t.Cleanup(func() { l.Close(); conns.Wait() })
	conns.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			d, err := net.Dial("tcp", target)
			if err != nil {
				c.Close()
				continue
			}
			conns.Go(func() {
				defer c.Close()
				_, _ = io.Copy(c, d) // until one of them closes
			})
			conns.Go(func() {
				defer d.Close()
				for in := bufio.NewReader(c); ; {
					command, err := in.ReadString(';')
					if strings.Contains(command, verb) && once.CompareAndSwap(false, true) {
						close(s.held)
						time.Sleep(holdTime)
					}
					if _, werr := io.WriteString(d, command); err != nil || werr != nil {
						return
					}
				}
			})
		}
	})
	return s
}

// process is a command that runs.
type process struct {
	cmd *exec.Cmd
	out bytes.Buffer
}

func (b *bench) start(t *testing.T, state string, args ...string) *process {
	t.Helper()
	p := &process{cmd: b.command(state, args...)}
	p.cmd.Stdout, p.cmd.Stderr = &p.out, &p.out
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.cmd.Process.Kill() }) // it has ended, unless the test failed
	return p
}

// end waits until it has ended and returns its exit code.
func (p *process) end() int {
	_ = p.cmd.Wait() // the exit code says it
	return p.cmd.ProcessState.ExitCode()
}

// oneWins checks that exactly one of two commands that want the same egress port has it, and that the other was refused.
func (b *bench) oneWins(t *testing.T, codes [2]int, circuits [2]string, outs ...string) {
	t.Helper()
	holds := b.devices["a"].CrossConnects().String()
	for i, code := range codes {
		if code == exitDone && codes[1-i] == exitRefused && holds == circuits[i] {
			return
		}
	}
	t.Errorf("exit codes %v, and the switch holds %s:\n%s", codes, holds, strings.Join(outs, "\n"))
}

// Ensure that a change waits for that of another program to the same device, whatever the two call it, and is then
// planned on what the device holds.
func TestBeside_Held(t *testing.T) {
	for name, address := range map[string]func(b *bench, tl1 string) (lab bool, first, second string){
		"by name":               func(*bench, string) (bool, string, string) { return true, "a", "a" },
		"by name and URL":       func(_ *bench, tl1 string) (bool, string, string) { return true, "a", tl1 },
		"by URLs without a lab": func(_ *bench, tl1 string) (bool, string, string) { return false, tl1, tl1 },
		"by localhost and 127": func(_ *bench, tl1 string) (bool, string, string) {
			return false, tl1, strings.Replace(tl1, "127.0.0.1", "localhost", 1)
		},
		"by TL1 and SCPI":          func(b *bench, tl1 string) (bool, string, string) { return false, tl1, b.scpi },
		"by name and through SCPI": func(b *bench, _ string) (bool, string, string) { return true, "a", b.scpi },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, false)
			u, err := url.Parse(b.urls["a"])
			if err != nil {
				t.Fatal(err)
			}
			slow := newSlowly(t, u.Host, "ENT-PATCH")
			u.Host = slow.addr
			b.write(t, "lab.yaml", fmt.Sprintf(benchLab, u, b.urls["b"]))
			withLab, first, second := address(b, u.String())
			if !withLab {
				b.file = ""
			}
			state := filepath.Join(b.dir, "state")
			one := b.start(t, state, "connect", first, "1>34")
			select {
			case <-slow.held:
			case <-t.Context().Done():
				t.Fatal("the change was not sent")
			}
			two := b.start(t, state, "connect", second, "2>34")
			if name == "by name" {
				b.readersWork(t, state)
			}
			codes := [2]int{one.end(), two.end()}
			b.oneWins(t, codes, [2]string{"1>34", "2>34"}, one.out.String(), two.out.String())
			if codes[0] != exitDone {
				t.Errorf("the first has ended with %d:\n%s", codes[0], one.out.String())
			}
		})
	}
}

// readersWork checks that what only reads does not wait for a change.
func (b *bench) readersWork(t *testing.T, state string) {
	t.Helper()
	for _, args := range [][]string{{"show", "a"}, {"history"}, {"panic", "--status"}, {"snapshot"}} {
		if code, out := b.run(t, state, args...); code != 0 {
			t.Errorf("%v during a change: exit code %d\n%s", args, code, out)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	watch := b.command(state, "watch", "a", "--json")
	out, err := watch.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := watch.Start(); err != nil {
		t.Fatal(err)
	}
	context.AfterFunc(ctx, func() { _ = watch.Process.Kill() })
	if line, err := bufio.NewReader(out).ReadString('\n'); err != nil {
		t.Errorf("watch during a change: %q, %v", line, err)
	}
	cancel()
	_ = watch.Wait() // it was killed
}

// Ensure that a change that is in progress when a panic begins brings no light, on a switch without shutters: it is taken
// back, and says so.
func TestBeside_Panic(t *testing.T) {
	t.Parallel()
	b := newBench(t, false)
	u, err := url.Parse(b.urls["b"])
	if err != nil {
		t.Fatal(err)
	}
	if _, err := b.devices["b"].Connect([]ocs.CrossConnect{{Ingress: 1, Egress: 321}}); err != nil {
		t.Fatal(err)
	}
	slow := newSlowly(t, u.Host, "ENT-CRS")
	u.Host = slow.addr
	b.write(t, "lab.yaml", fmt.Sprintf(benchLab, b.urls["a"], u))
	state := filepath.Join(b.dir, "state")
	one := b.start(t, state, "connect", "b", "2>326")
	select {
	case <-slow.held:
	case <-t.Context().Done():
		t.Fatal("the change was not sent")
	}
	if code, out := b.run(t, state, "panic", "--reason", "test", "b"); code != 0 {
		t.Errorf("panic: exit code %d\n%s", code, out)
	}
	if code := one.end(); code != exitRefused || !strings.Contains(one.out.String(), "was removed again") {
		t.Errorf("exit code %d, want %d:\n%s", code, exitRefused, one.out.String())
	}
	if got := b.devices["b"].CrossConnects().String(); got != "" {
		t.Errorf("the switch holds %s during a panic", got)
	}
	if code, out := b.run(t, state, "panic", "--lift"); code != 0 {
		t.Errorf("panic --lift: exit code %d\n%s", code, out)
	}
	if got := b.devices["b"].CrossConnects().String(); got != "1>321" {
		t.Errorf("the switch holds %s after the panic, want 1>321", got)
	}
}

// Ensure that of two commands that want the same port at the same time one has it and the other is refused, and that
// commands in parallel leave what the history says.
func TestBeside_Natural(t *testing.T) {
	t.Parallel()
	pairs, batches := 20, 4
	switch {
	case os.Getenv(killsEnv) != "": // the long form
		pairs, batches = 60, 10
	case testing.Short():
		pairs, batches = 6, 2
	}
	b := newBench(t, false)
	state := filepath.Join(b.dir, "state")
	circuits := [2]string{"1>34", "2>34"}
	for range pairs {
		if held := b.devices["a"].CrossConnects(); held.Len() > 0 {
			if _, err := b.devices["a"].Disconnect(34); err != nil {
				t.Fatal(err)
			}
		}
		one, two := b.start(t, state, "connect", "a", circuits[0]), b.start(t, state, "connect", b.urls["a"], circuits[1])
		b.oneWins(t, [2]int{one.end(), two.end()}, circuits, one.out.String(), two.out.String())
	}
	random := rand.New(rand.NewPCG(1, 2))
	begun := b.devices["a"].CrossConnects()
	last := len(record(t, state))
	for range batches {
		var all []*process
		for range 6 {
			c := ocs.CrossConnect{Ingress: ocs.Port(1 + random.IntN(4)), Egress: ocs.Port(33 + random.IntN(4))}
			all = append(all, b.start(t, state, "connect", "a", c.String(), "--mode", "update", "--verify", "table"))
		}
		for _, p := range all {
			if code := p.end(); code != 0 {
				t.Errorf("exit code %d:\n%s", code, p.out.String())
			}
		}
	}
	want := begun
	for _, e := range record(t, state)[last:] {
		var err error
		if want, err = want.Minus(e.Change.Remove).Plus(e.Change.Add); err != nil {
			t.Fatalf("change %d was not planned on what the switch held: %v", e.ID, err)
		}
	}
	if got := b.devices["a"].CrossConnects(); !got.Equal(want) {
		t.Errorf("the switch holds %v, and by the history %v", got, want)
	}
}
