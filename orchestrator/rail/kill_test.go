package rail_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/ocslab/ocslab/drivers"
	"github.com/ocslab/ocslab/emulator"
	"github.com/ocslab/ocslab/internal/secret"
	"github.com/ocslab/ocslab/ocs"
	"github.com/ocslab/ocslab/orchestrator/proto"
	"github.com/ocslab/ocslab/orchestrator/rail"
	"github.com/ocslab/ocslab/topology/opus"
)

// killedAt is set in the process that is to be killed: the address of the switch.
const killedAt = "OCSLAB_TEST_RAIL"

// TestMain is also the process that works with a rail until it is killed.
func TestMain(m *testing.M) {
	if address := os.Getenv(killedAt); address != "" {
		fmt.Println("failed:", victim(address, os.Getenv(killedAt+"_DIR"), strings.Fields(os.Getenv(killedAt+"_IDS"))))
		os.Exit(1)
	}
	goleak.VerifyTestMain(m)
}

// dialed returns sessions with the switch at address.
func dialed(address string, n int) ([]ocs.Switch, error) {
	var all []ocs.Switch
	for range n {
		sw, err := drivers.Open(context.Background(), "tl1://admin@"+address, drivers.Options{Password: secret.New("root")})
		if err != nil {
			return nil, err
		}
		all = append(all, sw)
	}
	return all, nil
}

// victim brings the rail to the first ID, asks for the others at once, and says on standard output what happens from
// then on, one word a line. It ends when it is killed.
func victim(address, dir string, ids []string) error {
	sessions, err := dialed(address, 3)
	if err != nil {
		return err
	}
	opt := options(sessions...)
	opt.Assignment, opt.Dir = opus.Regular(figure8.DuplexPorts(), 1, 33), dir
	says := make(chan string, 100)
	opt.Gate = func() error { says <- "asked"; return nil } // a command is about to be sent
	opt.Changed = func(e rail.Event) { says <- string(e.What) }
	o, err := rail.New(context.Background(), opt)
	if err != nil {
		return err
	}
	epoch := make(chan uint64, 1)
	o.Open(openMessage(), func(s proto.Opened, _ error) { epoch <- s.Epoch })
	a := &asker{r: o, epoch: <-epoch}
	for _, id := range []string{"111", ids[0]} {
		if got := a.id(id); got.err != nil {
			return got.err
		}
	}
	for len(says) > 0 {
		<-says
	}
	for _, id := range ids[1:] {
		a.idLater(id)
	}
	for what := range says {
		fmt.Println(what)
	}
	return nil
}

// TestKill_Process kills a process with signal 9 in the middle of changes, whose commands the switch goes on with. The
// next one brings the rail to what was intended last, and then on.
func TestKill_Process(t *testing.T) {
	for _, x := range []struct {
		ids  string // the last of those asked for is what is intended
		at   string // the process is killed when it says this so many times
		n    int
		busy emulator.BusyMode
	}{
		{"111 222", "asked", 1, emulator.Takeover},
		{"111 222", "connected", 1, emulator.Takeover},
		{"111 222", "verified", 1, emulator.Takeover},
		{"111 201", "asked", 1, emulator.Takeover},        // before what only goes dark is disconnected
		{"111 201", "disconnected", 1, emulator.Takeover}, // after it
		{"111 201", "asked", 2, emulator.Takeover},        // before the rest is connected
		{"000 100 110", "asked", 1, emulator.Takeover},    // two at the same time, or with one command
		{"000 100 110", "connected", 1, emulator.Takeover},
		{"111 001", "disconnected", 1, emulator.Deny},
		{"111 222", "asked", 1, emulator.Deny},
	} {
		t.Run(fmt.Sprintf("%s/%s %d/%s", x.ids, x.at, x.n, x.busy), func(t *testing.T) {
			p, err := emulator.LoadPersonality("polatis-6000-32x32")
			if err != nil {
				t.Fatal(err)
			}
			p.Control.Busy = x.busy
			dev, address := serve(t, p, 20*time.Millisecond)
			dir := t.TempDir()
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
			defer cancel()
			c := exec.CommandContext(ctx, os.Args[0])
			c.Env = append(os.Environ(), killedAt+"="+address, killedAt+"_DIR="+dir, killedAt+"_IDS="+x.ids)
			out, err := c.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := c.Start(); err != nil {
				t.Fatal(err)
			}
			lines := bufio.NewScanner(out)
			for n := 0; n < x.n && lines.Scan(); {
				if lines.Text() == x.at {
					n++
				} else if strings.HasPrefix(lines.Text(), "failed") {
					t.Error(lines.Text())
				}
			}
			if err := c.Process.Kill(); err != nil {
				t.Error(err)
			}
			_, _ = io.Copy(io.Discard, out)
			if err := c.Wait(); err == nil || c.ProcessState.ExitCode() != -1 {
				t.Fatalf("it was to be killed, and ended by itself: %v", c.ProcessState)
			}

			sessions, err := dialed(address, 2)
			if err != nil {
				t.Fatal(err)
			}
			for _, sw := range sessions {
				defer sw.Close()
			}
			opt := options(sessions...)
			opt.Assignment, opt.Dir = opus.Regular(figure8.DuplexPorts(), 1, 33), dir
			o, err := rail.New(t.Context(), opt)
			if err != nil {
				t.Fatal(err)
			}
			defer o.Close()
			ids := strings.Fields(x.ids)
			a, state := opened(t, o)
			if want := ids[len(ids)-1]; state.Shape != proto.Digits || state.ID != want || state.Epoch < 3 {
				t.Errorf("after the restart it is %+v, want %s", state, want)
			}
			for _, id := range []string{state.ID, "121"} {
				if got := a.id(id); got.err != nil {
					t.Errorf("%s: %v", id, got.err)
				}
				want, err := wanted(opt.Assignment, id)
				if err != nil {
					t.Fatal(err)
				}
				if got := dev.CrossConnects(); !got.Equal(want) {
					t.Errorf("%s: the device holds %v, want %v", id, got, want)
				}
			}
		})
	}
}

// wanted is what a switch holds for figure8 that is cabled so.
func wanted(a opus.Assignment, text string) (ocs.Map, error) {
	id, err := figure8.ParseID(text)
	if err != nil {
		return ocs.Map{}, err
	}
	m, err := opus.Build(figure8, id, opus.Chain)
	if err != nil {
		return ocs.Map{}, err
	}
	return a.Map(m)
}
