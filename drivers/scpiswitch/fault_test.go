package scpiswitch_test

import (
	"context"
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
	"github.com/ocslab/ocslab/drivers/scpiswitch"
	"github.com/ocslab/ocslab/ocs"
	"github.com/ocslab/ocslab/wire/scpi"
)

// method is a public method of Switch and the lines that it sends of which one
// is struck.
type method struct {
	name  string
	heads []string
	read  bool // is repeated when the session broke
	ports bool // names ports
	call  func(ctx context.Context, sw *scpiswitch.Switch) error
}

var change = ocs.Change{Add: ocs.MustMap(ocs.CrossConnect{Ingress: 1, Egress: 17})}

var methods = []method{
	{"Identify", []string{"*IDN?", ":OXC:SWIT:SIZE?"}, true, false, func(ctx context.Context, sw *scpiswitch.Switch) error {
		id, err := sw.Identify(ctx)
		return drivertest.Checked(err, id.Serial == "100123" && id.Geometry == ocs.TwoSided(16, 16) && id.Vendor == "Polatis" && id.Firmware == "6.7", id)
	}},
	{"CrossConnects", []string{":OXC:SWIT:CONN:STAT?"}, true, false, func(ctx context.Context, sw *scpiswitch.Switch) error {
		m, err := sw.CrossConnects(ctx)
		return drivertest.Checked(err, m.String() == "1>17,2>18", m)
	}},
	{"Apply", []string{":OXC:SWIT:CONN:ADD"}, false, true, func(ctx context.Context, sw *scpiswitch.Switch) error {
		r, err := sw.Apply(ctx, change)
		if err == nil && (r.Requests != 1 || r.SendStart.IsZero() || r.Sent.Before(r.SendStart) || r.FirstByte.Before(r.SendStart) || r.Acked.Before(r.FirstByte)) {
			return fmt.Errorf("receipt %+v", r)
		}
		return err
	}},
	{"Power", []string{":PMON:POW?"}, true, true, func(ctx context.Context, sw *scpiswitch.Switch) error {
		r, err := sw.Power(ctx, 1, 17)
		return drivertest.Checked(err, r.Ports[1] == -12.05 && len(r.Ports) == 2 && !r.Latest.Before(r.Earliest), r)
	}},
	{"Shutters", []string{":OXC:SWIT:PORT:STAT?"}, true, true, func(ctx context.Context, sw *scpiswitch.Switch) error {
		m, err := sw.Shutters(ctx)
		return drivertest.Checked(err, m[1] && !m[2] && len(m) == 2, m)
	}},
	{"SetShutters", []string{":OXC:SWIT:PORT:DIS"}, false, true, func(ctx context.Context, sw *scpiswitch.Switch) error {
		return sw.SetShutters(ctx, true, 1)
	}},
	{"BootMode", []string{":OXC:BOOT:MODE?"}, true, false, func(ctx context.Context, sw *scpiswitch.Switch) error {
		m, err := sw.BootMode(ctx)
		return drivertest.Checked(err, m == ocs.BootDark, m)
	}},
	{"SetBootMode", []string{":OXC:BOOT:MODE"}, false, false, func(ctx context.Context, sw *scpiswitch.Switch) error {
		return sw.SetBootMode(ctx, ocs.BootRestore)
	}},
	{"Restart", []string{"*RST"}, false, false, func(ctx context.Context, sw *scpiswitch.Switch) error {
		return sw.Restart(ctx)
	}},
}

// device answers every line like a healthy one, but for what strike does.
type device struct {
	*peer
	mu     sync.Mutex // guards what follows
	heads  []string   // are struck
	strike func(l *line, d *device) (goOn bool)
	boot   string
	errs   []string
}

func newDevice(t testing.TB) *device {
	d := &device{peer: newPeer(t), boot: "DARK"}
	d.Add(8, d.serve)
	return d
}

func (d *device) serve(l *line) {
	for s := l.next(); s != ""; s = l.next() {
		head, rest, _ := strings.Cut(s, " ")
		d.mu.Lock()
		var strike func(*line, *device) bool
		if slices.Contains(d.heads, head) {
			strike = d.strike
		}
		d.mu.Unlock()
		switch {
		case strike == nil:
			d.reply(l, head, rest)
		case !strike(l, d):
			return
		}
	}
}

// reply sends what a healthy device says, in one piece.
func (d *device) reply(l *line, head, rest string) {
	if reply := d.healthy(head, rest); reply != "" {
		l.Send(reply + "\r\n")
	}
}

// healthy is what a healthy device says. Lines of a session that was given up may
// still be carried out while those of the next one come.
func (d *device) healthy(head, rest string) string {
	d.mu.Lock()
	defer d.mu.Unlock()
	switch head {
	case "*OPC?":
		return "1"
	case ":SYST:ERR?":
		if len(d.errs) == 0 {
			return `0, "No error"`
		}
		e := d.errs[0]
		d.errs = d.errs[1:]
		return e
	case "*IDN?":
		return "Polatis,N-VST-16x16,100123,6.7"
	case ":OXC:SWIT:SIZE?":
		return "16,16"
	case ":OXC:SWIT:CONN:STAT?":
		return "(@1,2),(@17,18)"
	case ":PMON:POW?":
		return "(-12.05,-13.50)"
	case ":OXC:SWIT:PORT:STAT?":
		if rest == "" {
			return "(D,E)"
		}
		return "(D)"
	case ":OXC:BOOT:MODE?":
		return d.boot
	case ":OXC:BOOT:MODE":
		d.boot = rest
	case ":OXC:SWIT:CONN:ADD", ":OXC:SWIT:PORT:DIS", "*RST":
	default:
		d.errs = append(d.errs, `-113, "Undefined header"`)
	}
	return ""
}

func (d *device) set(heads []string, strike func(*line, *device) bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.heads, d.strike = heads, strike
}

// fault is what goes wrong with a line.
type fault struct {
	name   string
	strike func(l *line, d *device) (goOn bool)
	want   func(m method) error // matches the error; nil is success
	reply  string               // the reply kept in the error holds this
	takes  time.Duration        // no longer than this
	during func(sw *scpiswitch.Switch, d *device, cancel context.CancelCauseFunc)
	closed bool // the Switch is closed afterwards
}

// giveUp ends the call with an error after a time.
func giveUp(after time.Duration, why error) func(*scpiswitch.Switch, *device, context.CancelCauseFunc) {
	return func(_ *scpiswitch.Switch, _ *device, cancel context.CancelCauseFunc) {
		time.Sleep(after)
		cancel(why)
	}
}

var always = drivertest.Always[method]

// queue makes the device refuse.
func queue(errs ...string) func(*line, *device) bool {
	return func(_ *line, d *device) bool {
		d.mu.Lock()
		defer d.mu.Unlock()
		d.errs = append(d.errs, errs...)
		return true
	}
}

func say(s string) func(*line, *device) bool {
	return func(l *line, _ *device) bool {
		l.Send(s)
		return true
	}
}

// mute is a device that takes all and says no more.
func mute(l *line, _ *device) bool {
	for l.next() != "" {
	}
	return false
}

var faults = []fault{
	{name: "deny", strike: queue(`-200, "Execution error"`), want: always(ocs.ErrDenied), reply: "-200"},
	{name: "unknown command", strike: queue(`-113, "Undefined header"`), want: always(ocs.ErrNotSupported), reply: "-113"},
	{name: "no such port", strike: queue(`-222, "Data out of range"`), want: func(m method) error {
		if m.ports {
			return ocs.ErrPort
		}
		return ocs.ErrDenied
	}, reply: "-222"},
	{name: "in use", strike: queue(`-221, "Settings conflict"`), want: always(ocs.ErrConflict), reply: "-221"},
	{name: "several errors", strike: queue(`-221, "Settings conflict"`, `-350, "Queue overflow"`), want: always(ocs.ErrDenied), reply: "-350"},
	{name: "odd error", strike: queue(`7,"a"x`), want: always(drivertest.ErrAny), reply: `7,"a"x`},
	{name: "hang until deadline", strike: mute, want: always(context.DeadlineExceeded), takes: 3 * time.Second,
		during: giveUp(3*time.Second, context.DeadlineExceeded)},
	{name: "hang until cancelled", strike: mute, want: always(drivertest.ErrEnough), takes: time.Second,
		during: giveUp(time.Second, drivertest.ErrEnough)},
	{name: "hang for ever", strike: mute, want: always(context.DeadlineExceeded), takes: scpiswitch.DefaultTimeout},
	{name: "hang in mid-reply", strike: func(l *line, d *device) bool {
		l.Send("(@1,2")
		return mute(l, d)
	}, want: always(context.DeadlineExceeded), reply: "(@1,2", takes: scpiswitch.DefaultTimeout},
	{name: "close in mid-reply", strike: func(l *line, _ *device) bool {
		l.Send("(@1,2")
		l.Close()
		return false
	}, want: always(io.ErrUnexpectedEOF), reply: "(@1,2"},
	{name: "close before reply", strike: func(l *line, _ *device) bool {
		l.Close()
		return false
	}, want: always(io.EOF)},
	{name: "flood", strike: func(l *line, _ *device) bool {
		more := strings.Repeat("0123456789", 1024)
		for n := 0; n < 10<<20; n += len(more) {
			if _, err := l.Write([]byte(more)); err != nil {
				break
			}
		}
		l.Close()
		return false
	}, want: always(drivertest.ErrTooLong), reply: "0123456789"},
	{name: "repeats itself for ever", strike: func(l *line, _ *device) bool {
		for {
			if _, err := l.Write([]byte(fine)); err != nil {
				l.Close()
				return false
			}
		}
	}, want: always(drivertest.ErrAny), reply: "No error"},
	{name: "blank lines for ever", strike: func(l *line, _ *device) bool {
		for {
			if _, err := l.Write([]byte("\r\n\r\n")); err != nil {
				l.Close()
				return false
			}
		}
	}, want: always(drivertest.ErrAny)},
	{name: "garbage", strike: say("\x00\xff\r\n\x1b[2J;\r\n(\r\n"), want: always(drivertest.ErrAny), reply: "\xff"},
	{name: "reply and hang up", strike: func(l *line, d *device) bool {
		return false // see below: all but this is healthy
	}, want: always(nil)},
	{name: "refused when connecting again", strike: func(l *line, _ *device) bool {
		l.Close()
		return false
	}, want: func(m method) error {
		if m.read {
			return syscall.ECONNREFUSED
		}
		return io.EOF
	}, during: func(_ *scpiswitch.Switch, d *device, _ context.CancelCauseFunc) {
		d.RefuseNext()
	}},
	{name: "Close during the call", strike: mute, want: always(net.ErrClosed), takes: time.Second, closed: true,
		during: func(sw *scpiswitch.Switch, _ *device, _ context.CancelCauseFunc) {
			time.Sleep(time.Second)
			sw.Close()
		}},
}

// matches is drivertest.Matches where ErrTooLong is a *scpi.TooLongError.
func matches(err, want error) bool { return drivertest.Matches[*scpi.TooLongError](err, want) }

// TestFaults is every method under every fault: the class of the error, what it
// says, how soon it comes, and that the next call works.
func TestFaults(t *testing.T) {
	for _, f := range faults {
		for _, m := range methods {
			if m.name == "Power" && (f.name == "no such port" || f.name == "in use") {
				continue // means that there is no monitor: see TestPower
			}
			t.Run(f.name+"/"+m.name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) { testFault(t, f, m) })
			})
		}
	}
}

func testFault(t *testing.T, f fault, m method) {
	d := newDevice(t)
	cfg := d.config()
	cfg.MaxReply = 64 << 10
	sw, err := scpiswitch.Open(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	if f.name == "reply and hang up" {
		d.set([]string{":SYST:ERR?"}, func(l *line, d *device) bool {
			d.set(nil, nil)
			l.Send(fine)
			l.Close()
			return false
		})
	} else {
		d.set(m.heads, f.strike)
	}
	var during func(context.CancelCauseFunc)
	if f.during != nil {
		during = func(cancel context.CancelCauseFunc) { f.during(sw, d, cancel) }
	}
	want := f.want(m)
	_ = drivertest.Outcome{
		Matches: func(err error) bool { return matches(err, want) },
		Want:    want, Reply: f.reply, Takes: f.takes, Closed: f.closed,
		Refused: f.name == "refused when connecting again" && !m.read,
	}.Check(t, func(ctx context.Context) error { return m.call(ctx, sw) }, during, func() { d.set(nil, nil) })
	sw.Close()
	d.Wait()
}
