package proto_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/ocslab/ocslab/ocs"
	"github.com/ocslab/ocslab/ocs/ocstest"
	"github.com/ocslab/ocslab/orchestrator/controller"
	"github.com/ocslab/ocslab/orchestrator/proto"
	"github.com/ocslab/ocslab/orchestrator/rail"
	"github.com/ocslab/ocslab/orchestrator/shim"
	"github.com/ocslab/ocslab/topology/opus"
)

// labJob is that of examples/lab-job.yaml.
var labJob = opus.Job{Name: "lab-job", Stages: 2, Axes: []opus.Axis{{Name: "dp", Size: 2}}, Ports: 2}

// tap writes down the frames of a connection, on the side that dialled it.
type tap struct {
	net.Conn
	mu      sync.Mutex
	parts   [2][]byte // of frames that are not complete: received, sent
	frames  []shown
	stopped bool
}

func (c *tap) see(way int, p []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.parts[way] = append(c.parts[way], p...)
	for !c.stopped {
		b := c.parts[way]
		m, err := proto.Read(bufio.NewReader(bytes.NewReader(b)))
		if err != nil {
			return
		}
		n := 4 + int(b[0])<<24 + int(b[1])<<16 + int(b[2])<<8 + int(b[3])
		c.frames = append(c.frames, shown{out: way == 1, length: fmt.Sprintf("%x", b[:4]), body: string(b[4:n])})
		c.parts[way] = b[n:]
		_, c.stopped = m.(*proto.Bye)
	}
}

func (c *tap) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	c.see(0, p[:n])
	return n, err
}

func (c *tap) Write(p []byte) (int, error) {
	c.see(1, p) // before the other side can answer
	return c.Conn.Write(p)
}

func (c *tap) said() []shown {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.frames)
}

// slowSwitch takes 25 ms for a change, and answers nothing while it is told so.
type slowSwitch struct {
	*ocstest.Switch
	mu    sync.Mutex
	mutes int // changes that it will not answer
}

func (s *slowSwitch) mute(n int) { s.mu.Lock(); defer s.mu.Unlock(); s.mutes = n }

func (s *slowSwitch) Apply(ctx context.Context, c ocs.Change) (ocs.Receipt, error) {
	s.mu.Lock()
	mute := s.mutes > 0
	s.mutes--
	s.mu.Unlock()
	if mute {
		<-ctx.Done()
		return ocs.Receipt{}, context.Cause(ctx)
	}
	begun := time.Now()
	time.Sleep(25 * time.Millisecond)
	_, err := s.Switch.Apply(ctx, c)
	return ocs.Receipt{Sent: begun, Acked: time.Now()}, err
}

func openRail(t *testing.T, health time.Duration) (*rail.Orchestrator, *slowSwitch) {
	t.Helper()
	sw := &slowSwitch{Switch: ocstest.New(32, ocs.Map{})}
	o, err := rail.New(t.Context(), rail.Options{Rail: "rail0", Switch: "ocs1", Job: labJob, Policy: opus.Pair,
		Assignment: opus.Regular(8, 1, 33), Sessions: []ocs.Switch{sw}, Health: health})
	if err != nil {
		t.Fatal(err)
	}
	return o, sw
}

var nanos = regexp.MustCompile(`"([a-z_]+_ns)":(-?[0-9]+)`)

// steady replaces times by those of a clock that stood at 81 s when the first was told, so that they are the same each time.
// Times of day are no part of the protocol; order and distances are, and these are those of the run.
func steady(frames []shown) []shown {
	first := int64(0)
	out := slices.Clone(frames)
	for i, f := range out {
		out[i].body = nanos.ReplaceAllStringFunc(f.body, func(m string) string {
			key := nanos.FindStringSubmatch(m)[1]
			ns, _ := strconv.ParseInt(nanos.FindStringSubmatch(m)[2], 10, 64)
			if ns == 0 || key == "timeout_ns" {
				return m
			}
			if first == 0 {
				first = ns
			}
			return fmt.Sprintf(`"%s":%d`, key, ns-first+81e9)
		})
		out[i].length = fmt.Sprintf("%08x", len(out[i].body))
	}
	return out
}

// compare holds what was said against the page, or writes the page.
func compare(t *testing.T, name string, said []shown) {
	t.Helper()
	text := readPage(t)
	want, rest, begin, end := session(t, text, name)
	if *update {
		var b strings.Builder
		for i, f := range said {
			if i < len(want) {
				f.comments = want[i].comments
			}
			for _, c := range f.comments {
				b.WriteString(c + "\n")
			}
			b.WriteString(f.String() + "\n")
		}
		for _, c := range rest {
			b.WriteString(c + "\n")
		}
		if err := os.WriteFile(page, []byte(text[:begin]+b.String()+text[end:]), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	lines := func(frames []shown) (all []string) {
		for _, f := range frames {
			all = append(all, f.String())
		}
		return all
	}
	if diff := cmp.Diff(lines(want), lines(said)); diff != "" {
		t.Errorf("the session %s of %s is not what is said (- page, + now; -update writes it anew):\n%s", name, page, diff)
	}
}

// The first session of the page: rank 0 of the lab job, with the shim, the controller and the rail of this project. A step is one
// collective of DP and one transfer of PP. Three steps are profiled, the fourth is predicted.
func TestSession_Shim(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o, _ := openRail(t, -1)
		defer o.Close()
		c, err := controller.New(controller.Options{Job: labJob, Policy: opus.Pair, Rails: map[string]controller.Rail{"rail0": o}})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		var running sync.WaitGroup
		defer running.Wait()
		defer cancel()
		running.Go(func() { _ = c.Run(ctx) })
		var recorded *tap
		var ranks sync.WaitGroup
		for rank := range 4 {
			time.Sleep(time.Millisecond) // they come in order
			dial := func(context.Context) (net.Conn, error) {
				a, b := net.Pipe()
				running.Go(func() { _ = c.ServeConn(ctx, b) })
				if rank == 0 {
					recorded = &tap{Conn: a}
					return recorded, nil
				}
				return a, nil
			}
			ranks.Go(func() {
				if err := fourSteps(ctx, dial, rank); err != nil {
					t.Error(err)
				}
			})
		}
		ranks.Wait()
		compare(t, "shim", steady(recorded.said()))
	})
}

func fourSteps(ctx context.Context, dial func(context.Context) (net.Conn, error), rank int) error {
	s, err := shim.Dial(ctx, shim.Options{Dial: dial, Job: labJob, Rail: "rail0", Rank: rank, Host: fmt.Sprintf("gpu%d", rank+1), ProfileSteps: 3})
	if err != nil {
		return err
	}
	defer s.Close()
	do := func(axis int, n uint64) error {
		op := shim.Op{Axis: axis, OpRef: proto.OpRef{Group: labJob.GroupOf(rank, axis).Name, Op: n}}
		if _, err := s.PreOp(ctx, op); err != nil {
			return err
		}
		time.Sleep(5*time.Millisecond + time.Duration(rank)*100*time.Microsecond) // the last to be ready is always the same
		return s.PostOp(op)
	}
	for step := range uint64(4) {
		time.Sleep(10*time.Millisecond + time.Duration(rank)*100*time.Microsecond)
		if err := do(1, step); err != nil {
			return err
		}
		time.Sleep(40*time.Millisecond + time.Duration(rank)*100*time.Microsecond)
		if err := do(opus.PP, step); err != nil {
			return err
		}
		if err := s.Step(ctx); err != nil {
			return err
		}
	}
	return nil
}

// The second session of the page: a controller asks a rail whose switch fails.
func TestSession_Rail(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o, sw := openRail(t, 10*time.Second)
		defer o.Close()
		ctx, cancel := context.WithCancel(t.Context())
		var serving sync.WaitGroup
		defer serving.Wait()
		defer cancel()
		var recorded *tap
		c := rail.Dial(ctx, func(context.Context) (net.Conn, error) {
			a, b := net.Pipe()
			serving.Go(func() { rail.ServeConn(ctx, b, map[string]*rail.Orchestrator{"rail0": o}) })
			recorded = &tap{Conn: a}
			return recorded, nil
		}, rail.ClientOptions{Rail: "rail0"})
		defer c.Close()
		epoch := make(chan uint64, 1)
		c.Open(proto.Open{Version: proto.Version, Rail: "rail0", Controller: "ocslab on gpu1, process 4711", Job: labJob, Policy: opus.Pair},
			func(o proto.Opened, err error) {
				if err != nil {
					t.Error(err)
				}
				epoch <- o.Epoch
			})
		now := <-epoch
		ask := func(f func(done func(proto.Done, error))) error {
			failed := make(chan error, 1)
			f(func(_ proto.Done, err error) { failed <- err })
			return <-failed
		}
		apply := func(req uint64, a proto.Apply) error {
			a.Req, a.Epoch = req, now
			return ask(func(done func(proto.Done, error)) { c.Apply(a, done) })
		}
		wantOK := func(err error) {
			t.Helper()
			if err != nil {
				t.Error(err)
			}
		}
		wantOK(apply(1, proto.Apply{ID: "11"}))
		sw.mute(1)
		wantOK(apply(2, proto.Apply{ID: "00"}))
		wantOK(apply(3, proto.Apply{ID: "00"}))
		sw.mute(3)
		var refusal *proto.Refusal
		if err := apply(4, proto.Apply{ID: "11"}); !errors.As(err, &refusal) || refusal.Attempts != 3 {
			t.Errorf("a switch that does not answer: %v", err)
		}
		wantOK(ask(func(done func(proto.Done, error)) {
			c.GiantRing(proto.GiantRing{Req: 5, Epoch: now, Reason: "the change to 11 failed: " + refusal.Detail}, done)
		}))
		// Somebody else takes a cross-connect away; the rail looks every ten seconds.
		m, err := sw.CrossConnects(ctx)
		wantOK(err)
		var others []ocs.CrossConnect
		for x := range m.All() {
			if x.Ingress != 1 {
				others = append(others, x)
			}
		}
		sw.Set(ocs.MustMap(others...))
		<-c.Alarms()
		wantOK(ask(func(done func(proto.Done, error)) { c.Mark(proto.Mark{Req: 6, Epoch: now}, done) }))
		wantOK(apply(7, proto.Apply{Join: [][2]int{{0, 3}, {1, 2}}, Part: []int{4, 6}}))
		if err := apply(8, proto.Apply{Part: []int{9}}); err == nil {
			t.Error("a port that the job does not have was taken")
		}
		now--
		if err := apply(9, proto.Apply{ID: "11"}); !errors.As(err, &refusal) || refusal.Code != proto.Stale {
			t.Errorf("an epoch that is over: %v", err)
		}
		compare(t, "rail", steady(recorded.said()))
	})
}
