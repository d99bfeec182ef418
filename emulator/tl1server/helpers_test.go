package tl1server_test

import (
	"strings"
	"testing"
	"time"

	"github.com/ocslab/ocslab/emulator"
	"github.com/ocslab/ocslab/emulator/internal/servertest"
	"github.com/ocslab/ocslab/emulator/tl1server"
	"github.com/ocslab/ocslab/ocs"
)

// personality is a small unit with exact timing.
func personality() emulator.Personality {
	return emulator.Personality{
		Model: "test", Vendor: "Polatis", Product: "N-VST-16x16", Firmware: "6.7.3.9", Size: "16x16",
		Switching: emulator.Switching{Single: 20 * time.Millisecond, Bulk: 40 * time.Millisecond, Rise: time.Millisecond, Ack: emulator.AckAfter},
		Optics:    emulator.Optics{Loss: 1.5, LossMax: 2.7, LossSpread: 0.3, Launch: -1, LaunchSpread: 0.8},
		Monitors:  emulator.Monitors{Sides: emulator.MonitorsBoth, Floor: -60, Accuracy: 0.5, Noise: 0.02, Default: 4},
		Control: emulator.Control{
			Busy: emulator.Takeover, Boot: ocs.BootRestore, Reboot: time.Minute,
			Users: []emulator.User{
				{Name: "admin", Password: "root", Group: emulator.Admin}, {Name: "user", Password: "pw", Group: emulator.Operator},
				{Name: "view", Group: emulator.Viewer}, {Name: "odd", Password: "a=b,c", Group: emulator.Viewer},
			},
		},
	}
}

func newServer(t testing.TB, p emulator.Personality) *tl1server.Server {
	t.Helper()
	d, err := emulator.New(p, emulator.Options{Name: "POLATIS1", Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	return &tl1server.Server{Device: d}
}

// client is one end of a session inside a synctest bubble.
type client struct{ *servertest.Client }

// dial begins a session that ends with the test.
func dial(t *testing.T, s *tl1server.Server) *client {
	t.Helper()
	return &client{servertest.Dial(t, s.ServeConn)}
}

// login is dial and ACT-USER as the administrator.
func login(t *testing.T, s *tl1server.Server) *client {
	t.Helper()
	c := dial(t, s)
	c.want("ACT-USER::admin:1::root;", "M  1 COMPLD")
	return c
}

// want does text and wants one message with all of parts.
func (c *client) want(text string, parts ...string) {
	c.T.Helper()
	got := c.Do(text)
	for _, part := range parts {
		if !strings.Contains(got, part) {
			c.T.Errorf("%.80q: got %q, want %q in it", text, got, part)
		}
	}
	if n := strings.Count(got, "\r\n\n   "); n != 1 {
		c.T.Errorf("%.80q: got %d messages: %.300q", text, n, got)
	}
}
