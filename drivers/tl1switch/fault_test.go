package tl1switch_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ocslab/ocslab/drivers/internal/drivertest"
	"github.com/ocslab/ocslab/drivers/tl1switch"
	"github.com/ocslab/ocslab/ocs"
	"github.com/ocslab/ocslab/wire/tl1"
)

// method is a public method of Switch and the commands that it sends.
type method struct {
	name  string
	codes []string
	read  bool // is repeated when the session broke
	once  bool // is not repeated after a new login
	call  func(ctx context.Context, sw *tl1switch.Switch) error
}

var change = ocs.Change{Add: ocs.MustMap(ocs.CrossConnect{Ingress: 1, Egress: 17})}

var methods = []method{
	{"Identify", []string{"RTRV-NETYPE", "RTRV-INV", "RTRV-EQPT"}, true, false, func(ctx context.Context, sw *tl1switch.Switch) error {
		id, err := sw.Identify(ctx)
		return drivertest.Checked(err, id.Serial == "100123" && id.Geometry == ocs.TwoSided(16, 16) && id.Vendor == "Polatis" && id.Firmware == "6.7", id)
	}},
	{"CrossConnects", []string{"RTRV-PATCH"}, true, false, func(ctx context.Context, sw *tl1switch.Switch) error {
		m, err := sw.CrossConnects(ctx)
		return drivertest.Checked(err, m.String() == "1>17,2>18", m)
	}},
	{"Apply", []string{"ENT-PATCH"}, false, false, func(ctx context.Context, sw *tl1switch.Switch) error {
		r, err := sw.Apply(ctx, change)
		if err == nil && (r.Requests < 1 || r.SendStart.IsZero() || r.Sent.Before(r.SendStart) || r.FirstByte.Before(r.SendStart) || r.Acked.Before(r.FirstByte)) {
			return fmt.Errorf("receipt %+v", r)
		}
		return err
	}},
	{"Power", []string{"RTRV-PORT-POWER"}, true, false, func(ctx context.Context, sw *tl1switch.Switch) error {
		r, err := sw.Power(ctx, 1, 17)
		return drivertest.Checked(err, r.Ports[1] == -12.05 && len(r.Ports) == 2 && !r.Latest.Before(r.Earliest), r)
	}},
	{"Monitors", []string{"RTRV-PORT-PMON"}, true, false, func(ctx context.Context, sw *tl1switch.Switch) error {
		ms, err := sw.Monitors(ctx)
		return drivertest.Checked(err, slices.Equal(ms, []ocs.Monitor{{Port: 1, WavelengthNM: 1550, Offset: -0.5, Averaging: 100 * time.Millisecond}}), ms)
	}},
	{"SetMonitor", []string{"SET-PORT-PMON"}, false, false, func(ctx context.Context, sw *tl1switch.Switch) error {
		return sw.SetMonitor(ctx, ocs.Monitor{Port: 1, WavelengthNM: 1310})
	}},
	{"Shutters", []string{"RTRV-PORT-SHUTTER"}, true, false, func(ctx context.Context, sw *tl1switch.Switch) error {
		m, err := sw.Shutters(ctx)
		return drivertest.Checked(err, m[1] && !m[2] && len(m) == 2, m)
	}},
	{"SetShutters", []string{"OPR-PORT-SHUTTER"}, false, false, func(ctx context.Context, sw *tl1switch.Switch) error {
		return sw.SetShutters(ctx, true, 1)
	}},
	{"Labels", []string{"RTRV-PORT-LABEL"}, true, false, func(ctx context.Context, sw *tl1switch.Switch) error {
		m, err := sw.Labels(ctx)
		return drivertest.Checked(err, m[1] == "gpu1: tx; rx" && len(m) == 1, m)
	}},
	{"SetLabel", []string{"ED-PORT-LABEL"}, false, false, func(ctx context.Context, sw *tl1switch.Switch) error {
		return sw.SetLabel(ctx, 1, "gpu1")
	}},
	{"BootMode", []string{"RTRV-EQPT"}, true, false, func(ctx context.Context, sw *tl1switch.Switch) error {
		m, err := sw.BootMode(ctx)
		return drivertest.Checked(err, m == ocs.BootDark, m)
	}},
	{"SetBootMode", []string{"ED-EQPT"}, false, false, func(ctx context.Context, sw *tl1switch.Switch) error {
		return sw.SetBootMode(ctx, ocs.BootRestore)
	}},
	{"Restart", []string{"INIT-SYS"}, false, true, func(ctx context.Context, sw *tl1switch.Switch) error {
		return sw.Restart(ctx)
	}},
	{"Notify", []string{"RLS-ARC-EQPT"}, false, false, func(ctx context.Context, sw *tl1switch.Switch) error {
		enough, cancel := context.WithTimeout(ctx, time.Minute)
		defer cancel()
		err := sw.Notify(enough, func(ocs.Event) {})
		if enough.Err() != nil && ctx.Err() == nil {
			return nil
		}
		return err
	}},
}

// healthy is what a device says to the commands of the methods.
func healthy(command string) []string {
	switch code, rest, _ := strings.Cut(command, ":"); code {
	case "RTRV-NETYPE":
		return []string{"Polatis,N-VST-16x16,OCS,6.7"}
	case "RTRV-INV":
		return []string{"OCS:SN=100123,X"}
	case "RTRV-PATCH":
		return []string{"1,17", "2,18"}
	case "RTRV-PORT-POWER":
		return []string{"1:-12.05", "17:-13.5"}
	case "RTRV-PORT-PMON":
		return []string{"1:1550,-0.5,4"}
	case "RTRV-PORT-SHUTTER":
		return []string{"1:CLOSED", "2:OPEN"}
	case "RTRV-PORT-LABEL":
		return []string{"1:gpu1: tx; rx", "2:"}
	case "RTRV-EQPT":
		if strings.Contains(rest, "BOOT") {
			return []string{"BOOT:MODE=DARK"}
		}
		return []string{"SYSTEM:SIZE=16x16"}
	}
	return nil
}

// device answers every command like a healthy one, but for what strike does.
type device struct {
	*peer
	mu     sync.Mutex // guards what follows
	codes  []string   // are struck
	strike func(l *line, command, ctag string) (goOn bool)
	count  map[string]int // of commands by code
}

func (d *device) serve(l *line) {
	for {
		command := l.next()
		if command == "" {
			return
		}
		code, _, _ := strings.Cut(command, ":")
		d.mu.Lock()
		d.count[code]++
		strike := d.strike
		if !slices.Contains(d.codes, code) {
			strike = nil
		}
		d.mu.Unlock()
		if strike == nil {
			l.Send(completed(tag(command), healthy(command)...))
		} else if !strike(l, command, tag(command)) {
			return
		}
	}
}

func (d *device) set(codes []string, strike func(l *line, command, ctag string) bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.codes, d.strike = codes, strike
}

func newDevice(t testing.TB) *device {
	d := &device{peer: newPeer(t), count: map[string]int{}}
	d.Add(8, d.serve)
	return d
}

// fault is what goes wrong with a command.
type fault struct {
	name   string
	strike func(l *line, command, ctag string) (goOn bool)
	want   func(m method) error // matches the error; nil is success
	reply  string               // the reply kept in the error holds this
	takes  time.Duration        // no longer than this
	during func(sw *tl1switch.Switch, d *device, cancel context.CancelCauseFunc)
	closed bool // the Switch is closed afterwards
}

// giveUp ends the call with an error after a time.
func giveUp(after time.Duration, why error) func(*tl1switch.Switch, *device, context.CancelCauseFunc) {
	return func(_ *tl1switch.Switch, _ *device, cancel context.CancelCauseFunc) {
		time.Sleep(after)
		cancel(why)
	}
}

var always = drivertest.Always[method]

func say(s string) func(*line, string, string) bool {
	return func(l *line, command, ctag string) bool {
		l.Send(strings.ReplaceAll(s, "CTAG", ctag))
		return true
	}
}

func hang(*line, string, string) bool { return true }

var faults = []fault{
	{name: "deny", strike: say(denied("CTAG", "SROF", "no: "+password)), want: always(ocs.ErrDenied), reply: "SROF"},
	{name: "unknown command", strike: say(denied("CTAG", "IICM", "what?")), want: always(ocs.ErrNotSupported), reply: "IICM"},
	{name: "no such port", strike: say(denied("CTAG", "IDNV", "Invalid OXC port: 1")), want: always(ocs.ErrPort), reply: "IDNV"},
	{name: "in use", strike: say(denied("CTAG", "SROF", "Port 1 is in use by 1,18")), want: always(ocs.ErrConflict), reply: "in use"},
	{name: "done in part", strike: say(header + "M  CTAG PRTL\r\n   SROF\r\n   /* in use */\r\n;"), want: always(ocs.ErrDenied), reply: "PRTL"},
	{name: "put off", strike: say(header + "M  CTAG DELAY\r\n;"), want: always(drivertest.ErrAny), reply: "DELAY"},
	{name: "no good", strike: say("NG CTAG\r\n<"), want: always(ocs.ErrDenied), reply: "NG"},
	{name: "in progress first", strike: func(l *line, command, ctag string) bool {
		l.Send("IP " + ctag + "\r\n<")
		time.Sleep(3 * time.Second)
		l.Send(completed(ctag, healthy(command)...))
		return true
	}, want: always(nil), takes: 9 * time.Second}, // three times three in Identify
	{name: "all right without data", strike: say("OK CTAG\r\n<"), want: func(m method) error {
		if m.read {
			return ocs.ErrDenied
		}
		return nil
	}, reply: "OK"},
	{name: "lost tag", strike: say(denied("0", "IISP", "Parse error")), want: always(ocs.ErrDenied), reply: "IISP"},
	{name: "hang until deadline", strike: hang, want: always(context.DeadlineExceeded), takes: 3 * time.Second,
		during: giveUp(3*time.Second, context.DeadlineExceeded)},
	{name: "hang until cancelled", strike: hang, want: always(drivertest.ErrEnough), takes: time.Second,
		during: giveUp(time.Second, drivertest.ErrEnough)},
	{name: "hang for ever", strike: hang, want: always(context.DeadlineExceeded), takes: tl1switch.DefaultTimeout},
	{name: "hang in mid-reply", strike: func(l *line, _, ctag string) bool {
		l.Send(completed(ctag, password)[:60])
		return true
	}, want: always(context.DeadlineExceeded), reply: "COMPLD", takes: tl1switch.DefaultTimeout},
	{name: "close in mid-reply", strike: func(l *line, _, ctag string) bool {
		l.Send(completed(ctag, "1,17")[:45])
		l.Close()
		return false
	}, want: always(io.ErrUnexpectedEOF), reply: "rail0"},
	{name: "close before reply", strike: func(l *line, _, _ string) bool {
		l.Close()
		return false
	}, want: always(io.EOF)},
	{name: "foreign tag", strike: say(completed("SOMEBODY", "1,99")), want: always(context.DeadlineExceeded), reply: "SOMEBODY", takes: tl1switch.DefaultTimeout},
	{name: "flood", strike: func(l *line, _, ctag string) bool {
		more := strings.Repeat("   \""+password+"\"\r\n", 1024)
		for n, s := 0, strings.TrimSuffix(completed(ctag), ";"); n < 10<<20; n, s = n+len(s), more {
			if _, err := l.Write([]byte(s)); err != nil {
				return false
			}
		}
		return true
	}, want: always(drivertest.ErrTooLong), reply: "rail0"},
	{name: "garbage", strike: say("\x00\xff\r\n" + password + "\r\n\x1b[2J;\r\n"), want: always(context.DeadlineExceeded), reply: "\x00", takes: tl1switch.DefaultTimeout},
	{name: "reply twice", strike: func(l *line, command, ctag string) bool {
		l.Send(completed(ctag, healthy(command)...))
		l.Send(completed(ctag, healthy(command)...))
		return true
		// The pipe has no buffer: the second one is taken in before the next
		// request goes out.
	}, want: always(nil), takes: 100 * time.Millisecond},
	{name: "reply and hang up", strike: func(l *line, command, ctag string) bool {
		l.Send(completed(ctag, healthy(command)...))
		l.Close()
		return false
	}, want: func(m method) error {
		if m.name == "Notify" {
			return io.EOF
		}
		return nil
	}},
	{name: "not logged in", strike: func() func(l *line, command, ctag string) bool {
		return func(l *line, command, ctag string) bool {
			l.Send(denied(ctag, "PLNA", "Not logged in"))
			l.ask(fmt.Sprintf("ACT-USER::admin:%d::\"%s\";", number(ctag)+1, password))
			if strings.HasPrefix(command, "RLS-ARC") {
				l.ask(fmt.Sprintf("RLS-ARC-EQPT::REPMGR:%d:;", number(ctag)+2))
				return true
			}
			l.ask(fmt.Sprintf("OPR-ARC-EQPT::REPMGR:%d::IND;", number(ctag)+2))
			if !strings.HasPrefix(command, "INIT-SYS") {
				l.ask(strings.Replace(command, ":"+ctag+":", fmt.Sprintf(":%d:", number(ctag)+3), 1)+";", healthy(command)...)
			}
			return true
		}
	}(), want: func(m method) error {
		if m.once {
			return ocs.ErrDenied
		}
		return nil
	}, reply: "PLNA"},
	{name: "refused when connecting again", strike: func(l *line, _, _ string) bool {
		l.Close()
		return false
	}, want: func(m method) error {
		if m.read {
			return syscall.ECONNREFUSED
		}
		return io.EOF
	}, during: func(_ *tl1switch.Switch, d *device, _ context.CancelCauseFunc) {
		d.RefuseNext()
	}},
	{name: "Close during the call", strike: hang, want: always(net.ErrClosed), takes: time.Second, closed: true,
		during: func(sw *tl1switch.Switch, _ *device, _ context.CancelCauseFunc) {
			time.Sleep(time.Second)
			sw.Close()
		}},
}

// matches is drivertest.Matches where ErrTooLong is a *tl1.TooLongError.
func matches(err, want error) bool { return drivertest.Matches[*tl1.TooLongError](err, want) }

func number(s string) (n int) {
	fmt.Sscan(s, &n)
	return n
}

// TestFaults is every method under every fault: the class of the error, what it
// says, how soon it comes, and that the next call works.
func TestFaults(t *testing.T) {
	for _, f := range faults {
		for _, m := range methods {
			t.Run(f.name+"/"+m.name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) { testFault(t, f, m) })
			})
		}
	}
}

func testFault(t *testing.T, f fault, m method) {
	d := newDevice(t)
	var trace strings.Builder
	cfg := d.config()
	cfg.MaxReply = 64 << 10
	cfg.Trace = func(_ tl1switch.Direction, p []byte) { trace.Write(p) }
	sw, err := tl1switch.Open(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	d.set(m.codes, f.strike)
	var during func(context.CancelCauseFunc)
	if f.during != nil {
		during = func(cancel context.CancelCauseFunc) { f.during(sw, d, cancel) }
	}
	want := f.want(m)
	err = drivertest.Outcome{
		Matches: func(err error) bool { return matches(err, want) },
		Want:    want, Reply: f.reply, Takes: f.takes, Closed: f.closed,
		Lasts:   m.name == "Notify",
		Refused: f.name == "refused when connecting again" && !m.read,
	}.Check(t, func(ctx context.Context) error { return m.call(ctx, sw) }, during, func() { d.set(nil, nil) })
	var op *ocs.OpError
	if errors.As(err, &op) && strings.Contains(fmt.Sprintf("%v %+v", err, op), password) {
		t.Errorf("the error leaks: %v", err)
	}
	sw.Close()
	d.Wait()
	if strings.Contains(trace.String(), password) {
		t.Error("the trace leaks")
	}
}
