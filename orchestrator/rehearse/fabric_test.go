package rehearse_test

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/ocslab/ocslab/emulator/fabric"
	"github.com/ocslab/ocslab/examples"
	"github.com/ocslab/ocslab/lab"
	"github.com/ocslab/ocslab/orchestrator/job"
	"github.com/ocslab/ocslab/orchestrator/plane"
	"github.com/ocslab/ocslab/orchestrator/rehearse"
	"github.com/ocslab/ocslab/orchestrator/shim"
	"github.com/ocslab/ocslab/orchestrator/trace"
)

// testbed is the two-rail testbed of the example files with a fast switch and fast NICs.
func testbed(t *testing.T) (*lab.File, *job.File, *trace.Trace) {
	t.Helper()
	text := bytes.Replace(examples.OpusRails, []byte("switching: 200ms"), []byte("switching: 5ms"), 1)
	f, err := lab.Parse("opus-rails.yaml", text)
	if err != nil {
		t.Fatal(err)
	}
	j, err := job.Parse("lab-job.yaml", examples.LabJob, f)
	if err != nil {
		t.Fatal(err)
	}
	g, err := trace.Find("lab-job")
	if err != nil {
		t.Fatal(err)
	}
	tr, err := g.Generate(trace.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return f, j, tr
}

// Ensure a job runs on datagrams, with the first steps modelled if that is wanted, and that nothing is left when it has ended.
func TestRun_Packets(t *testing.T) {
	for _, x := range []struct {
		name     string
		rung     fabric.Rung
		modelled int
	}{{"in memory", fabric.Memory, 0}, {"in memory, modelled first", fabric.Memory, 3}, {"network devices", 0, 3}} {
		t.Run(x.name, func(t *testing.T) {
			defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
			f, j, tr := testbed(t)
			l := lab.New(f, lab.Options{Emulated: true})
			defer func() {
				if err := l.Close(); err != nil {
					t.Error(err)
				}
			}()
			parts := 0
			opt := rehearse.Options{Trace: tr, Lab: l, Job: j, Packets: &rehearse.Packets{
				Hosts: lab.FabricOptions{Firmware: lab.DefaultFirmware, Rung: x.rung}, Modelled: x.modelled,
				Plane: plane.PacketsOptions{Datagrams: 2},
				Log: func(_ plane.Transfer, o plane.Outcome) {
					if parts++; o.EndNS < o.BeginNS || o.Lost != 0 {
						t.Errorf("outcome %+v", o)
					}
				},
			}}
			opt.Replay.Mode, opt.Replay.Profile, opt.Replay.WarmUp, opt.Replay.Steps = shim.ModeProvision, 3, 3, 1
			out, err := rehearse.Run(t.Context(), opt)
			if err != nil {
				t.Fatal(err)
			}
			if !out.Verdict.OK() || out.Result.Lost != 0 {
				t.Errorf("the observer: %v", out.Verdict)
			}
			if want := out.Result.Ops * (4 - x.modelled) / 4; out.Datagrams.Parts != want || parts != want {
				t.Errorf("%d parts of operations were datagrams and %d logged, want %d", out.Datagrams.Parts, parts, want)
			}
			if d := out.Datagrams; d.Sent < 2*int64(d.Parts) || d.Repeated > d.Sent || d.Dark > d.Sent {
				t.Errorf("counted %+v", d)
			}
		})
	}
}

// Ensure what cannot be had is said.
func TestRun_PacketsRefused(t *testing.T) {
	f, j, tr := testbed(t)
	run := func(p rehearse.Packets) error {
		l := lab.New(f, lab.Options{Emulated: true})
		defer l.Close()
		_, err := rehearse.Run(t.Context(), rehearse.Options{Trace: tr, Lab: l, Job: j, Packets: &p})
		return err
	}
	err := run(rehearse.Packets{Hosts: lab.FabricOptions{Firmware: "abacus"}})
	if err == nil || !strings.Contains(err.Error(), "datagrams need NICs") {
		t.Errorf("unknown firmware: %v", err)
	}
	hosts := lab.FabricOptions{Rung: fabric.Memory}
	err = run(rehearse.Packets{Hosts: hosts, Plane: plane.PacketsOptions{Repeat: time.Nanosecond}})
	if !errors.Is(err, plane.ErrTransfer) {
		t.Errorf("too many datagrams: %v", err)
	}
}

func TestNIC(t *testing.T) {
	f, j, _ := testbed(t)
	for _, x := range []struct {
		rail string
		port int
		want string
	}{
		{"rail0", 0, "gpu1/ens1f0"}, {"rail0", 3, "gpu2/ens1f1"}, {"rail1", 7, "gpu4/ens2f1"},
		{"rail1", 8, ""}, {"rail1", -1, ""}, {"rail7", 0, ""},
	} {
		host, name, err := rehearse.NIC(j, f, x.rail, x.port)
		switch {
		case x.want == "" && (err == nil || !strings.Contains(err.Error(), x.rail)):
			t.Errorf("%s port %d: %s/%s, %v", x.rail, x.port, host, name, err)
		case x.want != "" && (err != nil || host+"/"+name != x.want):
			t.Errorf("%s port %d: %s/%s, %v; want %s", x.rail, x.port, host, name, err, x.want)
		}
	}
}
