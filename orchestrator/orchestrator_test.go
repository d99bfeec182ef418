package orchestrator_test

import (
	"bufio"
	"context"
	"errors"
	"net"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ocslab/ocslab/lab"
	"github.com/ocslab/ocslab/lab/history"
	"github.com/ocslab/ocslab/lab/lease"
	"github.com/ocslab/ocslab/ocs"
	"github.com/ocslab/ocslab/orchestrator"
	"github.com/ocslab/ocslab/orchestrator/job"
	"github.com/ocslab/ocslab/orchestrator/plane"
	"github.com/ocslab/ocslab/orchestrator/proto"
	"github.com/ocslab/ocslab/orchestrator/replay"
	"github.com/ocslab/ocslab/orchestrator/shim"
	"github.com/ocslab/ocslab/orchestrator/trace"
)

// labJob opens the lab and the job of the examples, emulated, without a switching time.
func labJob(t *testing.T, dir string) (*lab.Lab, *job.File) {
	t.Helper()
	in, err := lab.Load("../examples/opus-rails.yaml")
	if err != nil {
		t.Fatal(err)
	}
	*in.Switches[0].Emulate.Switching = 0
	f, err := job.Load("../examples/lab-job.yaml", in)
	if err != nil {
		t.Fatal(err)
	}
	l := lab.New(in, lab.Options{Emulated: true, Authority: lab.Files(dir), Command: "test"})
	t.Cleanup(func() {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	})
	return l, f
}

const giantRings = "1>38,2>35,3>34,4>39,5>40,6>33,7>36,8>37,9>46,10>43,11>42,12>47,13>48,14>41,15>44,16>45"

// Ensure a job takes its ports and no others, says so in the history, keeps others off, and gives back what it found.
func TestOpen(t *testing.T) {
	dir := t.TempDir()
	l, f := labJob(t, dir)
	log, err := history.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	sw, err := l.Switch(t.Context(), "ocs1")
	if err != nil {
		t.Fatal(err)
	}
	before := ocs.MustMap(ocs.CrossConnect{Ingress: 1, Egress: 33}, ocs.CrossConnect{Ingress: 20, Egress: 60})
	if _, err := sw.Apply(t.Context(), ocs.Change{Add: before}); err != nil {
		t.Fatal(err)
	}
	opt := orchestrator.Options{Lab: l, Job: f, StateDir: dir, Restore: true}
	s, err := orchestrator.Open(t.Context(), opt)
	if err != nil {
		t.Fatal(err)
	}
	held, err := sw.CrossConnects(t.Context())
	if want := giantRings + ",20>60"; err != nil || held.String() != want {
		t.Errorf("it holds %v, %v; want %s", held, err, want)
	}
	all, err := lease.InForce(dir, sw.Device)
	if err != nil || len(all) != 1 || ocs.FormatPorts(all[0].Ports) != "1-16,33-48" || all[0].Holder != "job lab-job" {
		t.Errorf("leases: %v, %v", all, err)
	}
	if second, err := orchestrator.Open(t.Context(), opt); !errors.Is(err, lease.ErrLeased) {
		t.Errorf("a second time: %v, %v", second, err)
	}
	if err := s.Close(t.Context()); err != nil {
		t.Error(err)
	}
	if held, err = sw.CrossConnects(t.Context()); err != nil || !held.Equal(before) {
		t.Errorf("afterwards it holds %v, %v; want %v", held, err, before)
	}
	if all, err = lease.InForce(dir, ""); err != nil || len(all) > 0 {
		t.Errorf("leases afterwards: %v, %v", all, err)
	}
	entries, problems, err := log.Entries()
	if err != nil || len(problems) > 0 || len(entries) != 2 || entries[0].State != history.Done || entries[0].UndoneBy != entries[1].ID {
		t.Errorf("history: %+v, %v, %v", entries, problems, err)
	}
}

// Ensure what Open cannot do leaves nothing behind: no lease, and no circuits.
func TestOpen_Fails(t *testing.T) {
	dir := t.TempDir()
	l, f := labJob(t, dir)
	sw, err := l.Switch(t.Context(), "ocs1")
	if err != nil {
		t.Fatal(err)
	}
	foreign := ocs.MustMap(ocs.CrossConnect{Ingress: 20, Egress: 33}) // light of somebody else, into a port of rank 0
	if _, err := sw.Apply(t.Context(), ocs.Change{Add: foreign}); err != nil {
		t.Fatal(err)
	}
	for name, opt := range map[string]orchestrator.Options{
		`rail "rail7"`: {Rails: []string{"rail7"}},
		"20>33":        {},
	} {
		opt.Lab, opt.Job, opt.StateDir = l, f, dir
		if _, err := orchestrator.Open(t.Context(), opt); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%v; want an error about %s", err, name)
		}
		if all, err := lease.InForce(dir, ""); err != nil || len(all) > 0 {
			t.Errorf("leases: %v, %v", all, err)
		}
		if held, err := sw.CrossConnects(t.Context()); err != nil || !held.Equal(foreign) {
			t.Errorf("it holds %v, %v", held, err)
		}
	}
	if files, _ := filepath.Glob(filepath.Join(dir, "leases", "*.json")); len(files) > 0 {
		t.Error(files)
	}
}

// serve runs the control plane of the lab job until the test has ended.
func serve(t *testing.T) (s *orchestrator.System, f *job.File, address string) {
	t.Helper()
	l, f := labJob(t, t.TempDir())
	s, err := orchestrator.Open(t.Context(), orchestrator.Options{Lab: l, Job: f})
	if err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	served := make(chan error, 1)
	go func() { served <- s.Serve(ctx, listener) }()
	t.Cleanup(func() {
		cancel()
		if err := errors.Join(<-served, s.Close(context.Background())); err != nil {
			t.Error(err)
		}
	})
	return s, f, listener.Addr().String()
}

// Ensure a connection is given to whom it wants, and told what is wrong with it otherwise.
func TestServe(t *testing.T) {
	_, f, address := serve(t)
	frame := func(m proto.Message) []byte {
		b, err := proto.Append(nil, m)
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	j := f.Job()
	for _, x := range []struct {
		send []byte
		want string // the kind of the answer, and a part of its reason
	}{
		{frame(&proto.Hello{Version: proto.Version, Job: j.Name, Rail: "rail1", Rank: 2}), "welcome"},
		{frame(&proto.Hello{Version: proto.Version, Job: j.Name, Rail: "rail7", Rank: 2}), "bye"},
		{frame(&proto.Open{Version: proto.Version, Rail: "rail0", Controller: "test", Job: j, Policy: f.OpusPolicy()}), "opened"},
		{frame(&proto.Release{}), "bye begins with hello or open, not with release"},
		{[]byte("GET / HTTP/1.1\r\n\r\n"), "bye begins with hello or open"},
	} {
		c, err := net.Dial("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := c.Write(x.send); err != nil {
			t.Error(err)
		}
		m, err := proto.Read(bufio.NewReader(c))
		if err != nil {
			t.Errorf("%.40q: %v", x.send, err)
			continue
		}
		got := string(proto.KindOf(m))
		if b, ok := m.(*proto.Bye); ok {
			got += " " + b.Reason
		}
		kind, part, _ := strings.Cut(x.want, " ")
		if !strings.HasPrefix(got, kind) || !strings.Contains(got, part) {
			t.Errorf("%.40q: got %s, want %s", x.send, got, x.want)
		}
		c.Close()
	}
}

// Ensure a control plane serves one run of the job after the other, also when one was cut short.
func TestServe_Again(t *testing.T) {
	s, f, address := serve(t)
	g, err := trace.Find("lab-job")
	if err != nil {
		t.Fatal(err)
	}
	tr, err := g.Generate(trace.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for run := range 4 {
		p := plane.NewEmulated(plane.EmulatedOptions{})
		running, stop := context.WithCancelCause(t.Context())
		enough := errors.New("enough")
		result, err := replay.Run(running, replay.Options{
			Trace: tr, Job: f.Job(), Rails: []string{"rail0", "rail1"}, Plane: p, Mode: shim.ModeDemand, Steps: 7, WarmUp: -1, Compress: 1000,
			Dial: func(string, int) func(context.Context) (net.Conn, error) {
				return func(ctx context.Context) (net.Conn, error) {
					return new(net.Dialer).DialContext(ctx, "tcp", address)
				}
			},
			Progress: func(x replay.Step) {
				if run == 1 && x.Index == 2 {
					stop(enough)
				}
			},
		})
		if run == 1 {
			if !errors.Is(err, enough) {
				t.Errorf("run %d: %v", run, err)
			}
			for ranks := 1; ranks > 0; { // they have gone when the controller knows
				ranks = 0
				for _, r := range s.Controller.Status().Rails {
					ranks += r.Ranks + r.InFlight
				}
			}
		} else if err != nil || len(result.Steps) != 7 {
			t.Errorf("run %d: %d steps, %v", run, len(result.Steps), err)
		}
		stop(nil)
		p.Close()
	}
}
