package tl1server_test

import (
	"fmt"
	"io"
	"net"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ocslab/ocslab/emulator"
	"github.com/ocslab/ocslab/emulator/internal/servertest"
	"github.com/ocslab/ocslab/ocs"
	"github.com/ocslab/ocslab/wire/tl1"
)

// until sends text and returns what comes until the end of it matches.
func until(t *testing.T, c net.Conn, text string, end *regexp.Regexp) string {
	t.Helper()
	if _, err := io.WriteString(c, text); err != nil {
		t.Fatal(err)
	}
	got, err := servertest.ReadUntil(c, end.MatchString)
	if err != nil {
		t.Fatalf("%.60q: %v after %q", text, err, got)
	}
	return got
}

// connected serves a personality on a loopback port.
func connected(t *testing.T, change func(*emulator.Personality)) (*emulator.Device, net.Conn) {
	t.Helper()
	p := personality()
	change(&p)
	p.Switching.Single, p.Switching.Bulk = time.Millisecond, time.Millisecond
	p.TL1.Block = 300
	s := newServer(t, p)
	addr, _ := servertest.Serve(t, s.Serve)
	c, err := servertest.DialTCP(addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return s.Device, c
}

// Ensure that a public client that waits for the prompt, looks for words of trouble anywhere in a reply, and
// picks it apart with expressions, finds what it looks for.
func TestCalient_PublicClient(t *testing.T) {
	dev, c := connected(t, calientTwoStep)
	prompt := regexp.MustCompile(`agent>$`)
	trouble := regexp.MustCompile(`[Ii]nvalid|[Ll]ogin [Nn]ot [Aa]ctive|[Ff]ailed`)
	send := func(text string) string {
		t.Helper()
		reply := until(t, c, text, prompt)
		if trouble.MatchString(reply) {
			t.Errorf("%s: got %q", text, reply)
		}
		return reply
	}
	find := func(reply, re string, want ...string) {
		t.Helper()
		found := regexp.MustCompile(`(?is)`+re).FindAllStringSubmatch(reply, -1)
		var got []string
		for _, f := range found {
			got = append(got, strings.Join(f[1:], " "))
		}
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("%s: got %q, want %q in %q", re, got, want, reply)
		}
	}
	login := send("ACT-USER::admin:1::root;")
	find(login, `(COMPLD)`, "COMPLD")
	find(login, `\s+(\S+)\s.+M`, "CALIENT01TS")
	find(send("RTRV-NE;"), `SERIALNUMBER=(\S+),SWPACKAGE=(\S+),STATUS=.+,CHASSISTYPE=([\w.-]+).*"`, dev.Serial()+" 6.0-3 S162")
	find(send("RTRV-PORT::0;"), `"([\w.-]+):([\w.-]+),`, "1.1.1 WX", "1.1.2 WX", "1.2.1 WX", "1.2.2 WX")
	for _, text := range []string{
		"ENT-CRS::1.1.1,1.1.2:1::Quali,2WAY;", "ACT-CRS::1.1.1,1.1.2:1::1.1.1-1.1.2,Quali;",
		"ENT-CRS::1.2.1,1.2.2:1::Quali,1WAY;", "ACT-CRS::1.2.1,1.2.2:1::1.2.1>1.2.2,Quali;",
	} {
		find(send(text), `(COMPLD)`, "COMPLD")
	}
	find(send("RTRV-CRS:::::ALL;"), `SRCPORT=(\S+),DSTPORT=(\S+),GRPNAME=(\S+),CONNNAME=(\S+),CONNTYPE=(\w+)`,
		"1.1.1 1.1.2 Quali 1.1.1-1.1.2 2WAY", "1.2.1 1.2.2 Quali 1.2.1>1.2.2 1WAY")
	find(send("RTRV-PORT-SUM::1.2.1;"), `CONNNAME1=(\S+),CONNSTATE1=(\w+)`, "1.2.1>1.2.2 ACT")
	for _, text := range []string{
		"CANC-CRS::1.2.1,1.2.2:1::,Quali,1.2.1>1.2.2;", "DLT-CRS::1.2.1,1.2.2:1::,Quali,1.2.1>1.2.2;", "CANC-USER::admin:1;",
	} {
		find(send(text), `(COMPLD)`, "COMPLD")
	}
	if got := dev.CrossConnects().String(); got != "1>6,2>5" {
		t.Errorf("the device holds %s", got)
	}
}

// Ensure the same of clients that wait for the end of the last block of their CTAG, and of one that
// expects the prompt before the reply to its login.
func TestGlimmerglass_PublicClient(t *testing.T) {
	dev, c := connected(t, glimmerglassLike)
	end := regexp.MustCompile(`(?s)M\s+\d+\s+([A-Z ]+)[^;]*;\s*<$`)
	login := until(t, c, "ACT-USER::admin:1::root;", end)
	if host := regexp.MustCompile(`<\s+(\S+)\s+\d+`).FindStringSubmatch(login); host == nil || host[1] != "BD0472" {
		t.Errorf("login %q", login)
	}
	system := until(t, c, "rtrv-system-info:::2;", regexp.MustCompile(`(?s)COMPLD.*\n;\s*<$`))
	for _, re := range []string{`LicensedPortMatrix=(\d+)x(\d+)`, `(?s)SerialNumber=(\S+)".*SystemType=(\S+)".*"(\S+):ChassisType=(\S+)".*SoftwareActiveVersion=(\S+)"`} {
		if !regexp.MustCompile(re).MatchString(system) {
			t.Errorf("%s is not in %q", re, system)
		}
	}
	whole := regexp.MustCompile(`(?s)COMPLD.*\n;\s*<$`)
	ports := until(t, c, "RTRV-CFG-FIBER::10001&&10004&20001&&20004:3;", whole)
	if n := len(regexp.MustCompile(`PORTID=(\d+).*PORTNAME=((?:IN|OUT)\d+).*PORTHEALTH=(good|bad)`).FindAllString(ports, -1)); n != 8 || strings.Count(ports, "COMPLD") < 2 {
		t.Errorf("%d ports in %q", n, ports)
	}
	until(t, c, "ent-crs-fiber::10001&10002,20002&20001:4;", whole)
	circuits := until(t, c, "rtrv-crs-fiber::all:5;", whole)
	// It takes a connection for one when both have a name.
	found := regexp.MustCompile(`IPORTID=(\d+).*IPORTNAME=(\S+),IP.*OPORTID=(\d+).*OPORTNAME=(\S+),OP.*`).FindAllStringSubmatch(circuits, -1)
	if len(found) < 2 || found[0][1] != "10001" || found[0][3] != "20002" {
		t.Errorf("got %q in %q", found, circuits)
	}
	until(t, c, "dlt-crs-fiber::10001&10002:6;", whole)
	if dev.CrossConnects().Len() != 0 {
		t.Errorf("the device holds %v", dev.CrossConnects())
	}
}

// Ensure that long replies are cut as in the public transcript.
func TestGlimmerglass_Blocks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, err := emulator.LoadPersonality("glimmerglass-48x48")
		if err != nil {
			t.Fatal(err)
		}
		p.TL1.SID = "BD0472"
		c := login(t, newServer(t, p))
		var got []int
		reply := c.Do("RTRV-CFG-FIBER::10001&&10048&20001&&20048:1;")
		for _, block := range strings.Split(reply, "\r\n>\r\n<\r\n\n   BD0472 ") {
			got = append(got, strings.Count(block, "PORTID="))
		}
		if fmt.Sprint(got) != "[26 26 24 20]" || !strings.HasSuffix(reply, "\r\n;\r\n<") {
			t.Errorf("blocks of %v ports: %.200q", got, reply)
		}
	})
}

// Ensure that OPMODE says when the device acknowledges, whatever it does without.
func TestGlimmerglass_OpMode(t *testing.T) {
	for _, ack := range []emulator.AckMode{emulator.AckBefore, emulator.AckAfter} {
		for mode, want := range map[string]time.Duration{":::OPMODE=sync": 20 * time.Millisecond, ":::OPMODE=async": 0} {
			synctest.Test(t, func(t *testing.T) {
				p := personality()
				glimmerglassLike(&p)
				p.Switching.Ack = ack
				c := login(t, newServer(t, p))
				began := time.Now()
				c.Send("ent-crs-fiber::10001,20001:2" + mode + ";")
				for !strings.Contains(c.Hear(), "COMPLD") {
					time.Sleep(time.Millisecond)
				}
				if took := time.Since(began); took != want {
					t.Errorf("%s, %s: acknowledged after %v, want %v", ack, mode, took, want)
				}
			})
		}
	}
}

// Ensure that the table of connections is as durable as the connections, and follows what
// else changes them.
func TestCalient_Table(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := personality()
		calientLike(&p)
		s := newServer(t, p)
		c := login(t, s)
		c.want("ENT-CRS::1,2:2::Quali,2WAY;", "COMPLD")
		if _, err := s.Device.Connect([]ocs.CrossConnect{{Ingress: 3, Egress: 8}}); err != nil {
			t.Fatal(err)
		}
		c.want("RTRV-CRS:::3::ALL;", "1-2:SRC", "CONNTYPE=2WAY", "3>4:SRC", "GRPNAME=NONE")
		// One direction of the two-way connection is taken away behind its back.
		if _, err := s.Device.Disconnect(1); err != nil {
			t.Fatal(err)
		}
		c.want("RTRV-CRS:::4::ALL;", "2>1:SRC", "3>4:SRC")
		notes := "something else"
		if _, err := s.Device.Edit(nil, emulator.Edit{Notes: &notes}); err != nil {
			t.Fatal(err)
		}
		c.want("DLT-CRS:::5::2>1;", "COMPLD")
		c.want("RTRV-CRS:::6::ALL;", "3>4:SRC")
	})
}

// Ensure that the device lists who is connected, and reports what one client does to circuits to the others only.
func TestSessions_ListedAndReported(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t, personality())
		one, other := login(t, s), login(t, s)
		who := s.Device.Sessions()
		if len(who) != 2 || who[0].User != "admin" || who[0].Protocol != "TL1" {
			t.Errorf("got %+v", who)
		}
		one.want("ENT-PATCH::1,17:2:;", "COMPLD") // and nothing else
		if got := other.Hear(); !strings.Contains(got, `PORT-1:OXC,TC:\"Port 1,17 connected by admin\"`) {
			t.Errorf("got %q", got)
		}
		if !s.Device.EndSession(who[1].ID) || !other.Closed() || len(s.Device.Sessions()) != 1 {
			t.Errorf("after the end of one: %+v", s.Device.Sessions())
		}
	})
}

// Ensure that a lost command has no effect, and that a shredded reply is whole.
func TestFaults_LoseAndShred(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t, personality())
		s.Faults.Add(emulator.Fault{Kind: emulator.FaultLose, Verb: "ENT-PATCH", Times: 1})
		s.Faults.Add(emulator.Fault{Kind: emulator.FaultShred, Verb: "RTRV-PATCH"})
		c := login(t, s)
		if got := c.Do("ENT-PATCH::1,17:2:;"); got != "" || s.Device.CrossConnects().Len() != 0 {
			t.Errorf("got %q, %v", got, s.Device.CrossConnects())
		}
		c.want("ENT-PATCH::1,17:3:;", "COMPLD")
		c.Send("RTRV-PATCH:::4:;")
		synctest.Wait()
		var d tl1.Decoder
		pieces := 0
		for more := true; more; {
			select {
			case p := <-c.Got:
				if pieces++; len(p) > 7 {
					t.Errorf("a piece of %d bytes", len(p))
				}
				d.Feed(p)
				synctest.Wait()
			default:
				more = false
			}
		}
		if m, ok, err := d.Next(); !ok || err != nil || len(m.Text) != 1 || m.Text[0] != "1,17" || pieces < 10 {
			t.Errorf("got %v, %v, %v in %d pieces", m, ok, err, pieces)
		}
	})
}
