package netconfswitch_test

import (
	"bytes"
	"context"
	"errors"
	"maps"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ocslab/ocslab/drivers/internal/drivertest"
	"github.com/ocslab/ocslab/drivers/transport"
	"github.com/ocslab/ocslab/ocs"
	"github.com/ocslab/ocslab/wire/netconf"
)

// Programs of Yuma123, a NETCONF server that reads YANG modules; Debian
// packages netconfd and netconfd-module-ietf-interfaces.
const (
	netconfd  = "/usr/sbin/netconfd"
	subsystem = "/usr/sbin/netconf-subsystem"
)

// yuma runs netconfd with our YANG modules, and dials it without sshd in
// between, as sshd would.
type yuma struct {
	socket string
	log    *safeLog
}

// safeLog is what the server prints.
type safeLog struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *safeLog) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *safeLog) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

func startYuma(t *testing.T) yuma {
	for _, program := range []string{netconfd, subsystem} {
		if _, err := os.Stat(program); err != nil {
			t.Skipf("the Debian package netconfd is not installed: %v", err)
		}
	}
	yang, err := filepath.Abs("../../emulator/netconfserver/yang")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	y := yuma{filepath.Join(dir, "ncx.sock"), &safeLog{}}
	cmd := exec.Command(netconfd, "--superuser=root", "--ncxserver-sockname="+y.socket, "--no-startup", "--target=running",
		"--access-control=off", "--modpath="+yang+":/usr/share/yuma/modules", "--module=optical-switch", "--module=polatis-switch")
	cmd.Stdout, cmd.Stderr, cmd.Dir, cmd.Env = y.log, y.log, dir, append(os.Environ(), "HOME="+dir)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	t.Cleanup(func() {
		cmd.Process.Kill()
		<-ended
		if t.Failed() {
			t.Log(y.log.String())
		}
	})
	for { // until it listens
		c, err := net.Dial("unix", y.socket)
		if err == nil {
			c.Close()
			return y
		}
		select {
		case err := <-ended:
			ended <- err
			t.Fatalf("netconfd ended: %v", err)
		case <-t.Context().Done():
			t.Fatal(err)
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// subsystemConn is the subsystem's standard input and output.
type subsystemConn struct {
	in, out *os.File
	cmd     *exec.Cmd
}

func (y yuma) String() string { return "netconfd" }

func (y yuma) Dial(context.Context) (transport.Conn, error) {
	cmd := exec.Command(subsystem, "--ncxserver-sockname=830@"+y.socket)
	cmd.Env = []string{"SSH_CONNECTION=127.0.0.1 50000 127.0.0.1 830", "USER=root"}
	stdin, in, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	out, stdout, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	cmd.Stdin, cmd.Stdout = stdin, stdout
	defer stdin.Close()
	defer stdout.Close()
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	return &subsystemConn{in, out, cmd}, nil
}

func (c *subsystemConn) Read(p []byte) (int, error)         { return c.out.Read(p) }
func (c *subsystemConn) Write(p []byte) (int, error)        { return c.in.Write(p) }
func (c *subsystemConn) SetReadDeadline(t time.Time) error  { return c.out.SetReadDeadline(t) }
func (c *subsystemConn) SetWriteDeadline(t time.Time) error { return c.in.SetWriteDeadline(t) }

func (c *subsystemConn) Close() error {
	err := errors.Join(c.in.Close(), c.out.Close())
	if err == nil { // the first time
		c.cmd.Process.Kill()
		c.cmd.Wait()
	}
	return err
}

// TestYuma drives a NETCONF server that none of us has written. It has the
// modules, but no switch behind them.
func TestYuma(t *testing.T) {
	y := startYuma(t)
	sw := openOn(t, y)
	for _, text := range []string{"1>33,2>34,3>35", "1>34,2>33", "2>34", "", "5>37"} {
		want := drivertest.Map(t, text)
		have, err := sw.CrossConnects(ctx)
		if err != nil {
			t.Fatal(err)
		}
		if r, err := sw.Apply(ctx, ocs.Diff(have, want)); err != nil || r.Requests != 1 {
			t.Fatalf("%s: got %+v, %v", text, r, err)
		}
		if got, err := sw.CrossConnects(ctx); err != nil || !got.Equal(want) {
			t.Errorf("got %v, %v, want %v", got, err, want)
		}
	}
	if _, err := sw.Apply(ctx, ocs.Change{Remove: drivertest.Map(t, "9>40")}); err != nil {
		t.Errorf("what is not there: %v", err)
	}

	const label = `a <b> & "c" ]]>]]>'` // without blanks at its ends, which this server drops
	if err := sw.SetLabel(ctx, 7, label); err != nil {
		t.Error(err)
	}
	if labels, err := sw.Labels(ctx, 7, 8); err != nil || !maps.Equal(labels, map[ocs.Port]string{7: label}) {
		t.Errorf("got %q, %v", labels, err)
	}
	set := ocs.Monitor{Port: 33, WavelengthNM: 1310, Offset: -0.5, Averaging: 20 * time.Millisecond}
	if err := sw.SetMonitor(ctx, set); err != nil {
		t.Error(err)
	}
	if ms, err := sw.Monitors(ctx, 33); err != nil || len(ms) != 1 || ms[0] != set {
		t.Errorf("got %v, %v", ms, err)
	}
	set.WavelengthNM = 500
	var e *netconf.Error
	if err := sw.SetMonitor(ctx, set); !errors.Is(err, ocs.ErrDenied) || !errors.As(err, &e) || e.Tag != netconf.InvalidValue {
		t.Errorf("got %v", err)
	}
	if err := sw.SetAttenuation(ctx, 33, 7.5); err != nil {
		t.Error(err)
	}
	if loss, err := sw.Attenuation(ctx, 33); err != nil || loss != 7.5 {
		t.Errorf("got %v, %v", loss, err)
	}
	if err := sw.SetBootMode(ctx, ocs.BootDark); err != nil {
		t.Error(err)
	}
	if m, err := sw.BootMode(ctx); err != nil || m != ocs.BootDark {
		t.Errorf("got %v, %v", m, err)
	}
	if id, err := sw.Identify(ctx); err != nil || id.Geometry.Known() {
		t.Errorf("got %+v, %v", id, err)
	}
}

// TestYumaNotifies subscribes there.
func TestYumaNotifies(t *testing.T) {
	y := startYuma(t)
	sw, other := openOn(t, y), openOn(t, y)
	listening, stop := context.WithCancel(ctx)
	events, ended := make(chan ocs.Event, 100), make(chan error, 1)
	go func() { ended <- sw.Notify(listening, func(e ocs.Event) { events <- e }) }()
	for heard := false; !heard; {
		for _, c := range []ocs.Change{{Add: drivertest.Map(t, "1>33")}, {Remove: drivertest.Map(t, "1>33")}} {
			if _, err := other.Apply(ctx, c); err != nil {
				t.Fatal(err)
			}
		}
		// While notifications come, this session has requests of its own.
		if _, err := sw.CrossConnects(ctx); err != nil {
			t.Fatal(err)
		}
		select {
		case e := <-events:
			heard = strings.HasPrefix(e.Text, "netconf-config-change")
		case err := <-ended:
			t.Fatal(err)
		case <-time.After(10 * time.Millisecond):
		}
	}
	stop()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}
