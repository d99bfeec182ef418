package scpiserver_test

import (
	"context"
	"io"
	"testing"
	"time"

	"github.com/ocslab/ocslab/emulator"
	"github.com/ocslab/ocslab/emulator/internal/servertest"
	"github.com/ocslab/ocslab/emulator/scpiserver"
	"github.com/ocslab/ocslab/ocs"
)

// personality is a small unit with exact timing.
func personality() emulator.Personality {
	return emulator.Personality{
		Model: "test", Vendor: "Polatis", Product: "N-VST-16x16-LU1-DMHNV-801", Firmware: "6.5.2.18", Size: "16x16",
		Switching: emulator.Switching{Single: 20 * time.Millisecond, Bulk: 40 * time.Millisecond, Rise: time.Millisecond, Ack: emulator.AckAfter},
		Optics:    emulator.Optics{Loss: 1.5, LossMax: 2.7, LossSpread: 0.3, Launch: -1, LaunchSpread: 0.8},
		Monitors:  emulator.Monitors{Sides: emulator.MonitorsBoth, Floor: -60, Accuracy: 0.5, Default: 4},
		Control: emulator.Control{
			Busy: emulator.Takeover, Boot: ocs.BootRestore, Reboot: time.Minute,
			Users: []emulator.User{{Name: "admin", Password: "root", Group: emulator.Admin}},
		},
	}
}

func newServer(t testing.TB, p emulator.Personality) *scpiserver.Server {
	t.Helper()
	d, err := emulator.New(p, emulator.Options{Name: "OCS1", Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	return &scpiserver.Server{Device: d}
}

// client is one end of a session inside a synctest bubble.
type client struct{ *servertest.Client }

// dial begins a session that ends with the test.
func dial(t testing.TB, s *scpiserver.Server) *client {
	t.Helper()
	return &client{servertest.Dial(t, session(s))}
}

// session is one of a client whose address is known.
func session(s *scpiserver.Server) servertest.Session {
	return func(ctx context.Context, conn io.ReadWriteCloser) {
		s.ServeSession(ctx, conn, emulator.SessionInfo{Client: "192.0.2.1", User: "nobody"})
	}
}

// want does text and wants exactly reply.
func (c *client) want(text, reply string) {
	c.T.Helper()
	if got := c.Do(text); got != reply {
		c.T.Errorf("%.80q: got %.300q, want %q", text, got, reply)
	}
}
