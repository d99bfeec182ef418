package netconfserver_test

import (
	"io"
	"net"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ocslab/ocslab/emulator"
	"github.com/ocslab/ocslab/emulator/internal/servertest"
	"github.com/ocslab/ocslab/ocs"
	"github.com/ocslab/ocslab/timeline"
)

func TestSession_Hellos(t *testing.T) {
	for name, test := range map[string]struct {
		vary  func(*emulator.Personality)
		send  string
		close bool
	}{
		"1.0":            {send: hello + eom},
		"ExtraNewline":   {send: hello + eom + "\n"},
		"Declaration":    {send: `<?xml version="1.0" encoding="UTF-8"?>` + hello + eom},
		"None":           {send: `<rpc message-id="1" ` + base + `><get/></rpc>` + eom, close: true},
		"SessionID":      {send: strings.Replace(hello, "</hello>", "<session-id>3</session-id></hello>", 1) + eom, close: true},
		"NoBase":         {send: strings.Replace(hello, "base:1.0</cap", "base:9.9</cap", 1) + eom, close: true},
		"NotXML":         {send: "hello" + eom, close: true},
		"WrongNamespace": {send: "<hello/>" + eom, close: true},
		"11NotOffered":   {vary: func(p *emulator.Personality) { p.NETCONF.Base10 = true }, send: hello1 + eom, close: true},
		"NoFraming":      {send: strings.Repeat("x", 17<<20), close: true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := personality()
				if test.vary != nil {
					test.vary(&p)
				}
				c := dial(t, newServer(t, p), "admin")
				c.Write([]byte(test.send)) // fails when it is hung up on before the end
				if got := c.Hear(); !strings.Contains(got, "<session-id>1</session-id>") {
					t.Errorf("got %q", got)
				}
				if c.Closed() != test.close {
					t.Errorf("closed: %v", !test.close)
				}
				if !test.close {
					c.want("<get><filter/></get>", "<data/>")
				}
			})
		})
	}
}

func TestSession_Chunked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t, personality())
		c := dial(t, s, "admin")
		rpc := `<rpc message-id="7" ` + base + `><get><filter/></get></rpc>`
		c.Send(hello1 + eom + "\n#4\n" + rpc[:4] + "\n#1\n" + rpc[4:5] + "\n#" + strconv.Itoa(len(rpc)-5) + "\n" + rpc[5:] + "\n##\n")
		_, got, _ := strings.Cut(c.Hear(), eom)
		const want = `<rpc-reply xmlns="urn:ietf:params:xml:ns:netconf:base:1.0" message-id="7"><data/></rpc-reply>`
		if got != "\n#"+strconv.Itoa(len(want))+"\n"+want+"\n##\n" {
			t.Errorf("got %q", got)
		}
		// What is no XML is answered, what has no framing is not.
		c.Send("\n#3\n<a>\n##\n")
		if got := c.Hear(); !strings.Contains(got, "<error-tag>malformed-message</error-tag>") || c.Closed() {
			t.Errorf("malformed: got %q", got)
		}
		c.Send(`<rpc message-id="1"/>` + eom)
		if got := c.Hear(); got != "" || !c.Closed() {
			t.Errorf("wrong framing: got %q", got)
		}
	})
}

func TestSession_BadMessages(t *testing.T) {
	bomb := `<!DOCTYPE a [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;">]><rpc message-id="1" ` + base + `><get/>&b;</rpc>`
	for name, msg := range map[string]string{
		"NotXML": "<rpc", "Bomb": bomb, "Deep": strings.Repeat("<a>", 1e5), "Empty": " ",
		"Long": `<rpc message-id="1" ` + base + `><get/>` + strings.Repeat(" ", 17<<20),
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := login(t, newServer(t, personality()), "admin")
				c.Write([]byte(msg + eom))
				if got := c.Hear(); got != "" || !c.Closed() {
					t.Errorf("got %.200q, closed %v", got, c.Closed())
				}
			})
		})
	}
	synctest.Test(t, func(t *testing.T) {
		c := login(t, newServer(t, personality()), "admin")
		for msg, want := range map[string]string{
			`<rpc message-id="1" ` + base + `/>`:                     "missing-element",
			`<rpc message-id="1" ` + base + `><get/><get/></rpc>`:    "bad-element",
			`<rpc message-id="1"><get/></rpc>`:                       "<rpc-error>",
			hello:                                                    "operation-not-supported",
			`<rpc message-id="1" ` + base + `><edit-config/></rpc>`:  "missing-element",
			`<rpc message-id="1" ` + base + `><get-config/></rpc>`:   "missing-element",
			`<rpc message-id="1" ` + base + `><kill-session/></rpc>`: "missing-element",
			`<rpc message-id="1" ` + base + `><lock/></rpc>`:         "missing-element",
		} {
			c.Send(msg + eom)
			if got := c.Hear(); !strings.Contains(got, want) || c.Closed() {
				t.Errorf("%s: got %s", msg, got)
			}
		}
	})
}

func TestSession_Refused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := personality()
		p.NETCONF.MaxSessions = 1
		s := newServer(t, p)
		if c := dial(t, s, "nobody"); c.Hear() != "" || !c.Closed() {
			t.Error("a client without an account is served")
		}
		first := login(t, s, "admin")
		if c := dial(t, s, "admin"); c.Hear() != "" || !c.Closed() {
			t.Error("a session too many is served")
		}
		first.want("<close-session/>", "<ok/>")
		second := login(t, s, "admin")
		s.Device.Reboot()
		if !second.Closed() {
			t.Error("a session outlives the network card")
		}
		if c := dial(t, s, "admin"); c.Hear() != "" || !c.Closed() {
			t.Error("a session begins during a reboot")
		}
		time.Sleep(p.Control.Reboot)
		login(t, s, "admin").want(`<get><filter><system-config `+opsw+`><boot-datetime/></system-config></filter></get>`, "<boot-datetime>2000-01-01T00:01:0")
	})
}

func TestSession_Locks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t, personality())
		a, b := login(t, s, "admin"), login(t, s, "admin")
		const lock, unlock = "<lock><target><running/></target></lock>", "<unlock><target><running/></target></unlock>"
		a.want(lock, "<ok/>")
		a.want(lock, "lock-denied", "<session-id>1</session-id>")
		b.want(lock, "lock-denied", "<session-id>1</session-id>")
		b.want(unlock, "operation-failed")
		b.wantEdit(pairs(ocs.CrossConnect{Ingress: 1, Egress: 17}), "in-use", "session 1")
		b.want(`<port-set-state `+opsw+`><port-disab>1</port-disab></port-set-state>`, "in-use")
		b.want(`<lock><target><candidate/></target></lock>`, "operation-not-supported")
		b.want(`<unlock><target><startup/></target></unlock>`, "operation-not-supported")
		a.wantEdit(pairs(ocs.CrossConnect{Ingress: 1, Egress: 17}), "<ok/>")
		a.want(unlock, "<ok/>")
		b.want(lock, "<ok/>")
		// The lock goes with the session.
		a.want(`<kill-session><session-id>1</session-id></kill-session>`, "invalid-value")
		a.want(`<kill-session><session-id>9</session-id></kill-session>`, "invalid-value")
		a.want(`<kill-session><session-id>2</session-id></kill-session>`, "<ok/>")
		if !b.Closed() {
			t.Error("the session lives")
		}
		a.want(lock, "<ok/>")
		a.Close()
		if !a.Closed() {
			t.Error("the session lives")
		}
		login(t, s, "admin").want(lock, "<ok/>")
	})
}

func TestSession_Disconnect(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t, personality())
		a, b := login(t, s, "admin"), login(t, s, "view")
		a.want(`<get><filter><sessions `+plts+`/></filter></get>`,
			"<session><session-id>1</session-id><protocol-name>NETCONF</protocol-name><protocol-port>830</protocol-port><client-address>192.0.2.1</client-address><user-name>admin</user-name></session>",
			"<user-name>view</user-name>")
		ended := false
		other := s.Device.Enter(emulator.SessionInfo{Protocol: "TL1"}, func() { ended = true })
		defer other.Leave()
		a.want(`<kill-session><session-id>3</session-id></kill-session>`, "invalid-value") // not of NETCONF
		a.want(`<disconnect-session `+plts+`><session-id>3</session-id></disconnect-session>`, "<ok/>")
		a.want(`<disconnect-session `+plts+`><session-id>2</session-id></disconnect-session>`, "<ok/>")
		a.want(`<disconnect-session `+plts+`><session-id>2</session-id></disconnect-session>`, "invalid-value")
		a.want(`<disconnect-session `+plts+`/>`, "missing-element")
		if !ended || !b.Closed() {
			t.Error("the others live")
		}
		a.want(`<disconnect-session `+plts+`><session-id>1</session-id></disconnect-session>`, "<ok/>")
		if !a.Closed() {
			t.Error("the session lives")
		}
	})
}

func TestSession_Restart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := personality()
		s := newServer(t, p)
		c := login(t, s, "admin")
		restart := func(n string) string { return `<system-restart ` + opsw + `>` + n + `</system-restart>` }
		const cancel = `<system-restart-cancel ` + opsw + `/>`
		c.want(cancel, "operation-failed")
		c.want(restart("<seconds>5</seconds>"), "<ok/>")
		c.want(cancel, "<ok/>")
		c.want(restart("<seconds>-5</seconds>"), "invalid-value")
		time.Sleep(10 * time.Second)
		if c.Closed() {
			t.Fatal("restarted in spite of it")
		}
		c.want(restart("<seconds>5</seconds>"), "<ok/>")
		time.Sleep(5 * time.Second)
		if !c.Closed() || !s.Device.Rebooting() {
			t.Fatal("not restarted")
		}
		time.Sleep(p.Control.Reboot)
		c = login(t, s, "admin")
		if got := c.do(restart("")); got != "" || !c.Closed() {
			t.Errorf("got %q", got)
		}
	})
}

// Ensure that an acknowledgement waits for the mirrors, the map does not, and
// the truth log has both.
func TestSession_Ack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t, personality())
		c := login(t, s, "admin")
		begin := time.Now()
		c.Send(`<rpc message-id="1" ` + base + `><edit-config><target><running/></target><config>` + pairs(ocs.CrossConnect{Ingress: 1, Egress: 17}, ocs.CrossConnect{Ingress: 2, Egress: 18}) +
			`</config></edit-config></rpc>` + eom)
		if got := c.Hear(); got != "" || s.Device.CrossConnects().Len() != 2 {
			t.Fatalf("got %q, map %v", got, s.Device.CrossConnects())
		}
		if got := string(<-c.Got); !strings.Contains(got, "<ok/>") || time.Since(begin) != 40*time.Millisecond {
			t.Errorf("%v: %s", time.Since(begin), got)
		}
		synctest.Wait()
		marks, _ := s.Device.Truth(0)
		seen := map[timeline.Stage]int{}
		for _, m := range marks {
			seen[m.Stage]++
		}
		if seen[timeline.Command] != 1 || seen[timeline.Ack] != 1 || seen[timeline.Light] != 2 {
			t.Errorf("marks %v", marks)
		}
		// A session that is killed while it waits has made its change.
		c.Send(`<rpc message-id="2" ` + base + `><edit-config><target><running/></target><config>` + pairs(ocs.CrossConnect{Ingress: 3, Egress: 19}) + `</config></edit-config></rpc>` + eom)
		synctest.Wait()
		s.Device.EndSession(1)
		if !c.Closed() || s.Device.CrossConnects().Len() != 3 {
			t.Errorf("map %v", s.Device.CrossConnects())
		}
	})
}

// Ensure that a client which never reads delays nobody, and ends when it is
// told to.
func TestSession_NeverReads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t, personality())
		mute, theirs := net.Pipe()
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			s.ServeSession(t.Context(), theirs, emulator.SessionInfo{User: "admin"})
		}()
		defer mute.Close()
		for _, msg := range []string{hello, `<rpc message-id="1" ` + base + `><create-subscription xmlns="urn:ietf:params:xml:ns:netconf:notification:1.0"/></rpc>`} {
			io.WriteString(mute, msg+eom)
			if got, err := servertest.ReadUntil(mute, whole); err != nil {
				t.Fatalf("%v after %q", err, got)
			}
		}
		c := login(t, s, "admin")
		for i := range 200 {
			p := strconv.Itoa(i%8 + 1)
			c.want(`<port-set-state `+opsw+`><port-disab>`+p+`</port-disab></port-set-state>`, "<ok/>")
			c.want(`<port-set-state `+opsw+`><port-enab>`+p+`</port-enab></port-set-state>`, "<ok/>")
		}
		c.want(`<kill-session><session-id>1</session-id></kill-session>`, "<ok/>")
		<-ended
	})
}
