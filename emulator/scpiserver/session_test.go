package scpiserver_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ocslab/ocslab/emulator"
	"github.com/ocslab/ocslab/timeline"
)

func TestFaults(t *testing.T) {
	const add, stat = ":OXC:SWIT:CONN:ADD (@1),(@17)\n", ":OXC:SWIT:CONN:STAT?\n"
	for _, test := range []struct {
		fault, send, reply string
		made               int  // cross-connects after
		closed             bool // the session ends
		after              string
	}{
		{"deny:OXC.SWIT.CONN.ADD:1", add, "", 0, false, `-200, "Execution error;refused"`},
		{"deny:OXC.SWIT.CONN.STAT:1", add + stat, "", 1, false, `-200, "Execution error;refused"`},
		{"deny:*:1", "FOO\n", "", 0, false, `-200, "Execution error;refused"`},
		{"lose:OXC.SWIT.CONN.ADD:1", add + stat, "(@),(@)\r\n", 0, false, `0, "No error"`},
		{"lose:*OPC:1", add + "*OPC?;:OXC:SWIT:SIZE?\n", "16,16\r\n", 1, false, `0, "No error"`},
		{"hang:OXC.SWIT.CONN.STAT:1", add + stat, "", 1, false, `0, "No error"`},
		{"hang:OXC.SWIT.CONN.ADD:1", add + stat, "(@1),(@17)\r\n", 1, false, `0, "No error"`},
		{"close:OXC.SWIT.CONN.ADD", add, "", 1, true, ""},
		{"close:OXC.SWIT.CONN.STAT", add + ":OXC:SWIT:CONN:STAT?;ADD (@2),(@18)\n", "(@1),(", 1, true, ""},
		{"twice:OXC.SWIT.CONN.STAT:1", add + stat, "(@1),(@17)\r\n(@1),(@17)\r\n", 1, false, `0, "No error"`},
		{"shred:OXC.SWIT.CONN.STAT:1", add + stat, "(@1),(@17)\r\n", 1, false, `0, "No error"`},
		{"ctag:OXC.SWIT.CONN.STAT:1", add + stat, "(@1),(@17)\r\n", 1, false, `0, "No error"`},
		{"lose:oxc.swit.conn.add:1:1", add + ":OXC:SWIT:CONN:ADD (@2),(@18)\n" + stat, "(@1),(@17)\r\n", 1, false, `0, "No error"`},
	} {
		synctest.Test(t, func(t *testing.T) {
			s := newServer(t, personality())
			f, err := emulator.ParseFault(test.fault)
			if err != nil {
				t.Fatal(err)
			}
			s.Faults.Add(f)
			c := dial(t, s)
			for line := range strings.Lines(test.send) {
				c.Send(line)
			}
			time.Sleep(time.Second)
			if got := c.Hear(); got != test.reply {
				t.Errorf("%s: got %q, want %q", test.fault, got, test.reply)
			}
			if n := s.Device.CrossConnects().Len(); n != test.made || c.Closed() != test.closed {
				t.Errorf("%s: %d cross-connects, closed %v", test.fault, n, c.Closed())
			}
			if !test.closed {
				c.want(":SYST:ERR?\n", test.after+"\r\n")
			}
		})
	}
}

func TestFaults_Shred(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t, personality())
		s.Faults.Add(emulator.Fault{Kind: emulator.FaultShred, Verb: "*"})
		c := dial(t, s)
		c.Send(":OXC:SWIT:PORT:STAT?\n")
		synctest.Wait()
		var sizes []string
		for len(c.Got) > 0 {
			sizes = append(sizes, fmt.Sprint(len(<-c.Got)))
		}
		if got := strings.Join(sizes, " "); got != "1 2 3 4 5 6 7 1 2 3 4 5 6 7 1 2 3 4 1" { // 67 bytes
			t.Errorf("pieces of %s", got)
		}
	})
}

func TestFaults_Flood(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t, personality())
		s.Faults.Add(emulator.Fault{Kind: emulator.FaultFlood, Verb: "OXC.SWIT.SIZE", Times: 1})
		c := dial(t, s)
		got := c.Do(":OXC:SWIT:SIZE?;*OPC?\n")
		if len(got) < 10<<20 || !strings.HasPrefix(got, "16,16(@1,2)") || strings.ContainsAny(got, "\r\n") {
			t.Errorf("%d bytes that begin with %.40q", len(got), got)
		}
		c.want("*OPC?\n", "1\r\n")
	})
}

// Ensure that a reply confirms what was asked for before it, and nothing else.
func TestTruth(t *testing.T) {
	const step = 10 * time.Millisecond
	for _, test := range []struct{ name, fault, send, want string }{
		{"Reply", "", ":OXC:SWIT:CONN:ADD (@1),(@17)\n*OPC?\n", "command 1 at 0, ack 1 at 2"},
		{"Error", "", ":OXC:SWIT:CONN:ADD (@1),(@17)\n:SYST:ERR?\n", "command 1 at 0, ack 1 at 2"},
		{"Line", "", ":OXC:SWIT:CONN:ADD (@1),(@17);STAT?\n", "command 1 at 0, ack 1 at 2"},
		{"Two", "", ":OXC:SWIT:CONN:ADD (@1),(@17)\n:OXC:SWIT:CONN:ADD (@2),(@18)\n*OPC?\n", "command 1 at 0, command 2 at 0, ack 1 at 4, ack 2 at 4"},
		{"Before", "", ":OXC:SWIT:CONN:STAT?;ADD (@1),(@17)\n", "command 1 at 0"},
		{"Removal", "", ":OXC:SWIT:DISC:ALL;*OPC?\n", "command 1 at 0, ack 1 at 0"},
		{"Silence", "", ":OXC:SWIT:DISC:ALL\n", "command 1 at 0"},
		{"Hang", "hang:*OPC:1", ":OXC:SWIT:DISC:ALL;*OPC?\n", "command 1 at 0"},
		{"HangThenReply", "hang:*OPC:1", ":OXC:SWIT:CONN:ADD (@1),(@17);*OPC?\n*OPC?\n", "command 1 at 0, ack 1 at 2"},
		{"Close", "close:*OPC", ":OXC:SWIT:DISC:ALL;*OPC?\n", "command 1 at 0"},
		{"Flood", "flood:*OPC:1", ":OXC:SWIT:DISC:ALL;*OPC?\n", "command 1 at 0"},
		{"Twice", "twice:*OPC", ":OXC:SWIT:DISC:ALL;*OPC?\n", "command 1 at 0, ack 1 at 0"},
		{"Denied", "", ":OXC:SWIT:CONN:ADD (@99),(@17);*OPC?\n", ""},
		{"Nothing", "", ":OXC:SWIT:CONN:ADD (@),(@);SUB (@1),(@17);*OPC?\n", ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newServer(t, personality())
				if test.fault != "" {
					f, err := emulator.ParseFault(test.fault)
					if err != nil {
						t.Fatal(err)
					}
					s.Faults.Add(f)
				}
				c := dial(t, s)
				begin := timeline.HostAxis().NS(time.Now())
				for line := range strings.Lines(test.send) {
					c.Send(line)
				}
				time.Sleep(time.Second)
				marks, _ := s.Device.Truth(0)
				var got []string
				for _, m := range marks {
					if m.Stage != timeline.Command && m.Stage != timeline.Ack {
						continue
					}
					at := (time.Duration(m.Earliest-begin) + step/2) / step
					got = append(got, fmt.Sprintf("%s %d at %d", m.Stage, m.Reconfiguration, at))
				}
				if all := strings.Join(got, ", "); all != test.want {
					t.Errorf("got  %s\nwant %s", all, test.want)
				}
			})
		})
	}
}

// Ensure that a client which never asks does not fill the memory, and that the
// newest commands are still confirmed.
func TestTruth_NeverAsks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t, personality())
		c := dial(t, s)
		const n = 3000
		for range n {
			c.Send(":OXC:SWIT:DISC:ALL\n")
		}
		c.want("*OPC?\n", "1\r\n")
		marks, _ := s.Device.Truth(n)
		if len(marks) == 0 || len(marks) > 1024 || marks[len(marks)-1].Reconfiguration != n || marks[0].Stage != timeline.Ack {
			t.Errorf("%d acknowledgements, the last %+v", len(marks), marks[len(marks)-1])
		}
	})
}

// Ensure that this holds within a line, too: its reply confirms nothing that was
// done behind the query.
func TestTruth_LongLine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t, personality())
		c := dial(t, s)
		const disconnect = ":OXC:SWIT:DISC:ALL;"
		c.want(disconnect+"*OPC?;"+strings.Repeat(disconnect, 1500)+"\n", "1\r\n")
		marks, _ := s.Device.Truth(0)
		for _, m := range marks {
			if m.Stage == timeline.Ack && m.Reconfiguration > 1 {
				t.Errorf("%+v", m)
			}
		}
	})
}

func TestSessions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := personality()
		p.SCPI.MaxSessions = 2
		s := newServer(t, p)
		a := dial(t, s)
		synctest.Wait()
		b := dial(t, s)
		synctest.Wait()
		who := s.Device.Sessions()
		if len(who) != 2 || who[0].Protocol != "SCPI" || who[0].User != "" || who[0].Client != "192.0.2.1" {
			t.Errorf("%+v", who)
		}
		if c := dial(t, s); !c.Closed() {
			t.Error("a third session is let in")
		}
		// What one waits for does not hold up the other.
		a.Send(":OXC:SWIT:CONN:ADD (@1),(@17)\n")
		a.Send("*OPC?\n")
		b.Send(":OXC:SWIT:CONN:STAT?\n")
		if got := a.Hear() + b.Hear(); got != "(@1),(@17)\r\n" {
			t.Errorf("got %q", got)
		}
		// Errors are its own.
		b.Send("FOO\n")
		a.want(":SYST:ERR:COUN?\n", "1\r\n0\r\n")
		b.want(":SYST:ERR:COUN?\n", "1\r\n")

		if !s.Device.EndSession(who[0].ID) || !a.Closed() {
			t.Error("a session cannot be ended")
		}
		s.Device.Reboot()
		if !b.Closed() || len(s.Device.Sessions()) != 0 {
			t.Error("a session survives a reboot")
		}
		if c := dial(t, s); !c.Closed() {
			t.Error("a session begins during a reboot")
		}
		time.Sleep(2 * p.Control.Reboot)
		dial(t, s).want("*OPC?\n", "1\r\n")
	})
}

func TestSharedErrors(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := personality()
		p.SCPI.SharedErrors = true
		s := newServer(t, p)
		a, b := dial(t, s), dial(t, s)
		a.Send("FOO\n")
		a.Send("BAR\n")
		synctest.Wait() // the server has them
		b.want("*ESR?;*STB?;:SYST:ERR?\n", "0;20;-113, \"Undefined header;FOO\"\r\n")
		a.want("*ESR?;:SYST:ERR?;ERR?\n", "32;-113, \"Undefined header;BAR\";0, \"No error\"\r\n")
		a.Send("FOO;*CLS\n")
		synctest.Wait()
		b.want(":SYST:ERR:COUN?\n", "0\r\n")
	})
}

func TestEndOfSession(t *testing.T) {
	// A client that goes while the matrix works takes nothing back.
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t, personality())
		c := dial(t, s)
		c.Send(":OXC:SWIT:CONN:ADD (@1),(@17)\n")
		c.Send("*OPC?\n")
		c.Close()
		time.Sleep(time.Second)
		if !c.Closed() || s.Device.CrossConnects().Len() != 1 || len(s.Device.Sessions()) != 0 {
			t.Error("the session is not over, or its cross-connect is")
		}
		marks, _ := s.Device.Truth(0)
		for _, m := range marks {
			if m.Stage == timeline.Ack {
				t.Errorf("nobody was told, but there is %+v", m)
			}
		}
	})
	// The end of the server does not wait for the matrix.
	synctest.Test(t, func(t *testing.T) {
		p := personality()
		p.Switching.Single = time.Hour
		s := newServer(t, p)
		c := dial(t, s)
		c.Send(":OXC:SWIT:CONN:ADD (@1),(@17)\n")
		c.Send("*OPC?;*OPC?\n")
		synctest.Wait()
		s.Device.EndSession(s.Device.Sessions()[0].ID)
		if !c.Closed() {
			t.Error("the session waits for the matrix")
		}
	})
	// Nor do the lines that have come already.
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t, personality())
		s.Faults.Add(emulator.Fault{Kind: emulator.FaultClose, Verb: "*IDN"})
		c := dial(t, s)
		c.Send("*IDN?\n:OXC:SWIT:CONN:ADD (@1),(@17)\n")
		if !c.Closed() || s.Device.CrossConnects().Len() != 0 {
			t.Error("a line behind the end is carried out")
		}
	})
}

func TestBadInput(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := dial(t, newServer(t, personality()))
		block := strings.Repeat("x", 1<<20)
		for range 10 {
			c.Send(block)
		}
		c.want("\n:SYST:ERR:ALL?\n", "-363, \"Input buffer overrun\"\r\n")
		c.want(strings.Repeat("\x00", 1000)+"*OPC?\n", "1\r\n")
		c.want(strings.Repeat(";", 60000)+"*OPC?\n", "1\r\n")
		c.want(":OXC:SWIT:CONN:ADD (@"+strings.Repeat("1,", 30000)+"1),(@17);:SYST:ERR?\n", "-226, \"Lists not same length;30001 ingress, 1 egress\"\r\n")
		c.want(":PMON:POW? (@1:33);:SYST:ERR?\n", "-222, \"Data out of range;port 33 is not a port of this 16x16 switch (ingress 1-16, egress 17-32)\"\r\n")
		c.want(strings.Repeat("(", 60000)+"\n:SYST:ERR:COUN?\n", "1\r\n")
		c.want(":SYST:ERR "+strings.Repeat("(", 60000)+"\n:SYST:ERR:COUN?\n", "2\r\n")
		c.want("*CLS\n"+strings.Repeat("FOO\n", 100)+":SYST:ERR:COUN?\n", "20\r\n")
		c.want("*ESE 255;*CLS;FOO \"\n\";*STB?\n", "36\r\n") // the string goes on in the next line
	})
}
