package tl1server_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/ocslab/ocslab/emulator"
	"github.com/ocslab/ocslab/emulator/tl1server"
	"github.com/ocslab/ocslab/wire/tl1"
)

func TestSession_OneByteAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := dial(t, newServer(t, personality()))
		for _, b := range []byte("\r\nACT-USER::admin:1::root;\r\nENT-PATCH::1,17:2:;") {
			c.Send(string(b))
		}
		time.Sleep(time.Second)
		if got := c.Hear(); !strings.Contains(got, "M  1 COMPLD") || !strings.Contains(got, "M  2 COMPLD") {
			t.Errorf("got %q", got)
		}
	})
}

func TestSession_Garbage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := login(t, newServer(t, personality()))
		c.want(strings.Repeat("\x00\xff", 1000)+";", "M  0 DENY", "IICM")
		// 10 MB without a terminator: one refusal, and then as if nothing was.
		for range 160 {
			c.Send(strings.Repeat("x", 64<<10))
		}
		if got := c.Do(""); strings.Count(got, "SSRE") != 1 {
			t.Errorf("got %q, want one refusal", got)
		}
		if got := c.Do(";"); got != "" {
			t.Errorf("got %q for the end of it", got)
		}
		c.want("RTRV-HDR:::2:;", "M  2 COMPLD")
		c.want("RTRV-PORT-POWER::"+strings.Repeat("1&&32&", 8000)+"1:3:;", "M  3 DENY", "SSRE", "Too many ports")
		c.Send("ENT-PATCH::1,1") // disconnect in mid-command
		c.Close()
		if !c.Closed() {
			t.Error("the session goes on")
		}
	})
}

func TestSession_AckAndTruth(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t, personality())
		c := login(t, s)
		c.Send("ENT-PATCH::1&2,17&18:2:;")
		time.Sleep(40*time.Millisecond - 1)
		if got := c.Hear(); got != "" {
			t.Errorf("got %q before the light has settled", got)
		}
		time.Sleep(time.Nanosecond)
		if got := c.Hear(); !strings.Contains(got, "M  2 COMPLD") {
			t.Errorf("got %q when the light has settled", got)
		}
		c.want("DLT-PATCH::1:3:;", "COMPLD")
		var got []string
		marks, _ := s.Device.Truth(0)
		for _, m := range marks {
			got = append(got, fmt.Sprintf("%s %s %d", m.Stage, m.Subject, m.Reconfiguration))
		}
		want := []string{
			"command POLATIS1 1", "light POLATIS1/17 1", "light POLATIS1/18 1", "ack POLATIS1 1",
			"dark POLATIS1/17 2", "command POLATIS1 2", "ack POLATIS1 2",
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error(diff)
		}
	})
}

// Ensure that the end of the server, or of the card, does not wait for an
// acknowledgement or for a client that does not read.
func TestSession_EndsPromptly(t *testing.T) {
	p := personality()
	p.Switching.Single = time.Hour
	for name, end := range map[string]func(*tl1server.Server, context.CancelFunc){
		"Context": func(_ *tl1server.Server, cancel context.CancelFunc) { cancel() },
		"Reboot":  func(s *tl1server.Server, _ context.CancelFunc) { s.Device.Reboot() },
	} {
		for _, text := range []string{"ENT-PATCH::1,17:2:;", "RTRV-PORT-SHUTTER:::2:;"} {
			synctest.Test(t, func(t *testing.T) {
				s := newServer(t, p)
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				ours, theirs := net.Pipe()
				ended := make(chan struct{})
				go func() {
					defer close(ended)
					s.ServeConn(ctx, theirs)
				}()
				io.WriteString(ours, "ACT-USER::admin:1::root;")
				ours.Read(make([]byte, 100))
				io.WriteString(ours, text)
				for range 100 {
					s.Device.SetShutters(true, 1) // reports that nobody reads
					s.Device.SetShutters(false, 1)
				}
				synctest.Wait()
				start := time.Now()
				end(s, cancel)
				<-ended
				if d := time.Since(start); d != 0 {
					t.Errorf("%s, %s: took %v", name, text, d)
				}
			})
		}
	}
}

// Ensure that a client that does not read stops neither the device nor others.
func TestSession_SlowReader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t, personality())
		slow, theirs := net.Pipe()
		go s.ServeConn(t.Context(), theirs)
		io.WriteString(slow, "ACT-USER::admin:1::root;")
		slow.Read(make([]byte, 100))
		c := login(t, s)
		c.want("OPR-ARC-EQPT::REPMGR:2::IND;", "COMPLD")
		for range 200 {
			c.want("OPR-PORT-SHUTTER::1:3:;", "COMPLD")
			c.want("RLS-PORT-SHUTTER::1:3:;", "COMPLD")
		}
		slow.Close()
	})
}

func TestSession_Reports(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t, personality())
		a, b, stranger := login(t, s), login(t, s), dial(t, s)
		a.Send("ENT-PATCH::1,17:2:;") // acknowledged in 20 ms
		time.Sleep(10 * time.Millisecond)
		b.Send("OPR-PORT-SHUTTER::1:2:;")
		time.Sleep(time.Second)
		var d tl1.Decoder
		d.Feed([]byte(a.Hear()))
		var kinds []tl1.Kind
		for {
			m, ok, err := d.Next()
			if !ok {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			kinds = append(kinds, m.Kind)
		}
		if diff := cmp.Diff([]tl1.Kind{tl1.Autonomous, tl1.Response}, kinds); diff != "" {
			t.Errorf("between command and reply: %s", diff)
		}
		if got := b.Hear(); !strings.Contains(got, "Port 1 disabled") {
			t.Errorf("got %q", got)
		}
		a.want("OPR-ARC-EQPT::REPMGR:3::IND;", "COMPLD")
		b.want("CANC-USER::admin:3:;", "COMPLD")
		s.Device.SetShutters(false, 1)
		for name, c := range map[string]*client{"inhibited": a, "logged out": b, "not logged in": stranger} {
			if got := c.Hear(); got != "" {
				t.Errorf("%s: got %q", name, got)
			}
		}
		b.want("ACT-USER::admin:4::root;", "COMPLD") // what came meanwhile is not reported
		a.want("RLS-ARC-EQPT::REPMGR:5:;", "COMPLD")
		s.Device.SetShutters(true, 1)
		for _, c := range []*client{a, b} {
			if got := c.Hear(); strings.Count(got, "Port 1 disabled") != 1 {
				t.Errorf("got %q", got)
			}
		}
	})
}

func TestSession_Idle(t *testing.T) {
	for _, closes := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			p := personality()
			p.TL1.Idle, p.TL1.IdleCloses = time.Minute, closes
			p.Switching.Single = 2 * time.Minute
			c := login(t, newServer(t, p))
			for range 5 { // commands keep it alive
				time.Sleep(58 * time.Second)
				c.want("RTRV-HDR:::2:;", "COMPLD")
			}
			c.Send("ENT-PATCH::1,17:3:;") // longer than the time-out, but not idle
			time.Sleep(150 * time.Second)
			if got := c.Hear(); !strings.Contains(got, "COMPLD") {
				t.Errorf("got %q", got)
			}
			c.want("RTRV-HDR:::4:;", "COMPLD")
			time.Sleep(2 * time.Minute)
			if got := c.Closed(); got != closes {
				t.Fatalf("closed=%v, want %v", got, closes)
			}
			if !closes {
				c.want("RTRV-HDR:::5:;", "Not logged in")
				time.Sleep(time.Hour)
				c.want("ACT-USER::admin:6::root;", "COMPLD")
				c.want("ED-EQPT::TIMEOUT:7:::ADMIN=0;", "COMPLD")
				time.Sleep(24 * time.Hour)
				c.want("RTRV-HDR:::8:;", "COMPLD")
			}
		})
	}
}

func TestServer_MaxSessions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := personality()
		p.TL1.MaxSessions = 2
		s := newServer(t, p)
		a, b := login(t, s), login(t, s)
		if c := dial(t, s); !c.Closed() {
			t.Error("a third session is served")
		}
		a.Close()
		if !a.Closed() {
			t.Error("the session goes on")
		}
		login(t, s)
		b.want("RTRV-HDR:::2:;", "COMPLD")
	})
}

func TestServer_Reboot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t, personality())
		a, other := login(t, s), dial(t, s)
		a.want("ENT-PATCH::1,17:2:;", "COMPLD")
		a.want("INIT-SYS::SYSTEM:3::10;", "M  3 COMPLD")
		if !a.Closed() || !other.Closed() {
			t.Error("sessions outlive the reboot")
		}
		time.Sleep(55 * time.Second)
		if c := dial(t, s); !c.Closed() {
			t.Error("a session begins during the reboot")
		}
		time.Sleep(10 * time.Second)
		login(t, s).want("RTRV-PATCH:::1:;", `"1,17"`)
	})
}

func TestFaults(t *testing.T) {
	const command = "ENT-PATCH::1,17:2:;"
	for kind, check := range map[string]func(t *testing.T, c *client){
		"deny": func(t *testing.T, c *client) { c.want(command, "M  2 DENY", "SROF") },
		"ctag": func(t *testing.T, c *client) { c.want(command, "M  SOMEBODY COMPLD") },
		"twice": func(t *testing.T, c *client) {
			if got := c.Do(command); strings.Count(got, "M  2 COMPLD") != 2 {
				t.Errorf("got %q", got)
			}
		},
		"hang": func(t *testing.T, c *client) {
			if got := c.Do(command); got != "" {
				t.Errorf("got %q", got)
			}
		},
		"close": func(t *testing.T, c *client) {
			got := c.Do(command)
			if !c.Closed() || !strings.HasPrefix(got, "\r\n\n   POLATIS1") || strings.Contains(got, ";") {
				t.Errorf("got %q", got)
			}
		},
		"flood": func(t *testing.T, c *client) {
			if got := c.Do(command); len(got) < 10<<20 || strings.Contains(got, ";") || !strings.Contains(got[:200], "M  2 COMPLD\r\n   \"") {
				t.Errorf("got %d bytes, %.200q", len(got), got)
			}
		},
	} {
		t.Run(kind, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newServer(t, personality())
				f, err := emulator.ParseFault(kind + ":ent-patch:1:1")
				if err != nil {
					t.Fatal(err)
				}
				s.Faults.Add(f)
				c := login(t, s)
				c.want("ENT-PATCH::2,18:1:;", "COMPLD") // spared
				check(t, c)
				done := s.Device.CrossConnects().Len() == 2
				if want := kind != "deny"; done != want {
					t.Errorf("took effect=%v, want %v", done, want)
				}
				if kind == "close" {
					c = login(t, s)
				}
				c.want("ENT-PATCH::3,19:9:;", "M  9 COMPLD")
				acks := 0
				marks, _ := s.Device.Truth(0)
				for _, m := range marks {
					if m.Stage == "ack" {
						acks++
					}
				}
				want := 2
				if kind == "twice" {
					want = 3
				}
				if acks != want {
					t.Errorf("%d acknowledgements in the truth log, want %d", acks, want)
				}
			})
		})
	}
}

// Ensure that a reply that is lost does not undo what it stands for.
func TestFaults_LoginAndReboot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t, personality())
		s.Faults.Add(emulator.Fault{Kind: emulator.FaultHang, Verb: "*", Times: 1})
		s.Faults.Add(emulator.Fault{Kind: emulator.FaultHang, Verb: "INIT-SYS"})
		c := dial(t, s)
		if got := c.Do("ACT-USER::admin:1::root;"); got != "" {
			t.Errorf("got %q", got)
		}
		c.want("RTRV-HDR:::2:;", "COMPLD")
		c.Do("INIT-SYS::SYSTEM:3::10;")
		if !c.Closed() || !s.Device.Rebooting() {
			t.Error("no reboot")
		}
	})
}

func TestParseFault(t *testing.T) {
	for text, want := range map[string]emulator.Fault{
		"deny:*":               {Kind: emulator.FaultDeny, Verb: "*"},
		"close:ent-patch:1":    {Kind: emulator.FaultClose, Verb: "ENT-PATCH", Times: 1},
		"hang:RTRV-PATCH:0:12": {Kind: emulator.FaultHang, Verb: "RTRV-PATCH", After: 12},
	} {
		if got, err := emulator.ParseFault(text); got != want || err != nil {
			t.Errorf("ParseFault(%q)=%v, %v", text, got, err)
		}
	}
	for _, text := range []string{"", "deny", "deny:", "melt:*", "deny:*:x", "deny:*:1:-1", "deny:*:1:1:1"} {
		if got, err := emulator.ParseFault(text); err == nil {
			t.Errorf("ParseFault(%q)=%v", text, got)
		}
	}
}

// writes counts the writes of a session.
type writes struct {
	net.Conn
	n *int
}

func (w writes) Write(p []byte) (int, error) { *w.n++; return w.Conn.Write(p) }

func TestSession_OneWriteAReply(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, err := emulator.LoadPersonality("polatis-7000-384x384")
		if err != nil {
			t.Fatal(err)
		}
		s := newServer(t, p)
		ours, theirs := net.Pipe()
		n := 0
		go s.ServeConn(t.Context(), writes{theirs, &n})
		buf := make([]byte, 64<<10)
		for i, text := range []string{"ACT-USER::admin:1::root;", "ENT-PATCH::1&&384,385&&768:2:;", "RTRV-PATCH:::3:;"} {
			io.WriteString(ours, text)
			size, err := ours.Read(buf)
			if err != nil || n != i+1 || buf[size-1] != ';' {
				t.Errorf("%s: %d bytes, %d writes, %v", text, size, n, err)
			}
		}
		if got := strings.Count(string(buf), "\r\n   \""); got != 384 {
			t.Errorf("%d lines", got)
		}
		ours.Close()
	})
}
