package scpiserver_test

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/ocslab/ocslab/emulator"
	"github.com/ocslab/ocslab/emulator/internal/servertest"
	"github.com/ocslab/ocslab/emulator/scpiserver"
)

// These tests send what public clients of such switches send, and cut the
// replies as they do.

func connect(t *testing.T, p emulator.Personality) (*scpiserver.Server, *tcp) {
	t.Helper()
	s := newServer(t, p)
	addr, _ := servertest.Serve(t, s.Serve)
	c, err := dialTCP(addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return s, c
}

func (c *tcp) must(t *testing.T, text string) string {
	t.Helper()
	got, err := c.ask(text)
	if err != nil {
		t.Fatalf("%q: %v", text, err)
	}
	return got
}

func (c *tcp) tell(t *testing.T, text string) {
	t.Helper()
	if _, err := c.Write([]byte(text)); err != nil {
		t.Fatal(err)
	}
}

// A client that ends each line with ";\n" and cuts two characters off replies.
func TestClient_CutsTwo(t *testing.T) {
	_, c := connect(t, personality())
	query := func(text string) string {
		reply := c.must(t, text+";\n")
		return reply[:len(reply)-2]
	}
	c.tell(t, "*CLS;\n")
	c.tell(t, "*RST;\n")
	if got := query("*IDN?"); !regexp.MustCompile(`^Polatis,[\w-]+,\d+,[\d.]+$`).MatchString(got) {
		t.Error(got)
	}
	c.tell(t, ":OXC:SWITch:CONNect:ADD (@1,2,3),(@17,18,19);\n")
	if got := query(":OXC:SWITch:CONNect:STATe?"); got != "(@1,2,3),(@17,18,19)" {
		t.Error(got)
	}
	c.tell(t, ":OXC:SWITch:CONNect:SUB (@1,2,3),(@);\n")
	if got := query(":OXC:SWITch:CONNect:STATe?") + query("*STB?"); got != "(@),(@)0" {
		t.Error(got)
	}
}

// A client that reads a reply as one quoted number, though its line has another
// query: on units that answer each on a line of its own.
func TestClient_OneNumber(t *testing.T) {
	p := personality()
	p.Size = "192x192"
	p.SCPI.Apart = true
	_, c := connect(t, p)
	c.tell(t, ":OXC:SWITch:CONNect:ADD (@2),(@361)\r\n")
	reply := c.must(t, "*CLS;:OXC:SWITch:CONNect:PORT? 2;*OPC?\r\n")
	if reply != "\"361\"\r\n" {
		t.Errorf("got %q", reply)
	}
	if n, err := strconv.Atoi(strings.Trim(reply, "\"\r\n")); n != 361 || err != nil {
		t.Error(n, err)
	}
	if done, err := c.R.ReadString('\n'); done != "1\r\n" || err != nil {
		t.Error(done, err)
	}
}

// A client that adds an error query to every command, and looks for a pattern.
func TestClient_AddsErrorQuery(t *testing.T) {
	_, c := connect(t, personality())
	pattern := regexp.MustCompile(`([-0-9]+), "(.*)"`)
	for _, test := range []struct{ command, output, code string }{
		{"*IDN?", "Polatis,", "0"},
		{":oxc:swit:conn:add (@1),(@17)", "", "0"},
		{":oxc:swit:conn:add (@1),(@18);", "", "0"},
		{":oxc:swit:conn:stat?", "(@1),(@18);", "0"},
		{"oxc:swit:conn:port? 1", "\"18\";", "0"},
		{":oxc:swit:conn:stat", "", "-113"},
		{"oxc:swit:conn:add (@1),(@99)", "", "-222"},
		{"oxc:swit:conn:add (@1", "", "-171"},
		{"oxc:swit:disc:all", "", "0"},
	} {
		reply := c.must(t, test.command+";:system:error?\n")
		m := pattern.FindStringSubmatch(reply)
		if m == nil || m[1] != test.code || m[2] == "" || !strings.HasPrefix(reply, test.output) {
			t.Errorf("%s: %q is read as %q", test.command, reply, m)
		}
	}
}

// A client that learns the size, sorts each pair, and asks for power in lots of
// 256 ports.
func TestClient_SortsAndSplits(t *testing.T) {
	p := personality()
	p.Size = "192x192"
	_, c := connect(t, p)
	size := strings.Split(strings.TrimSpace(c.must(t, ":OXC:SWITch:SIZE?\r\n")), ",")
	n, _ := strconv.Atoi(size[0])
	m, err := strconv.Atoi(size[1])
	if n != 192 || m != 192 || err != nil {
		t.Fatal(size)
	}
	for _, pair := range [][2]int{{200, 5}, {6, 193}} {
		c.tell(t, fmt.Sprintf(":OXC:SWITch:CONNect:ADD (@%d),(@%d)\r\n", min(pair[0], pair[1]), max(pair[0], pair[1])))
	}
	if got := c.must(t, ":OXC:SWITch:CONNect:STATe?\r\n"); got != "(@5,6),(@200,193)\r\n" {
		t.Error(got)
	}
	var power []float64
	for first := 1; first <= n+m; first += 256 {
		var ports []string
		for i := first; i < first+256 && i <= n+m; i++ {
			ports = append(ports, strconv.Itoa(i))
		}
		reply := strings.TrimSpace(c.must(t, ":PMON:POWer? (@"+strings.Join(ports, ",")+")\r\n"))
		for _, s := range strings.Split(reply[1:len(reply)-1], ",") {
			x, err := strconv.ParseFloat(s, 64)
			if err != nil {
				t.Fatal(err)
			}
			power = append(power, x)
		}
	}
	if len(power) != 384 || power[4] < -5 || power[200] > -50 {
		t.Errorf("%d readings", len(power))
	}
	if got := c.must(t, ":PMON:POWer? (@1:257);:SYST:ERR?\r\n"); !strings.HasPrefix(got, "-223, ") {
		t.Error(got)
	}
}

// A client that sets, waits, and asks port by port whether that has helped, as
// old firmware loses commands. It does not care how the reply is quoted.
func TestClient_ChecksPorts(t *testing.T) {
	s, c := connect(t, personality())
	s.Faults.Add(emulator.Fault{Kind: emulator.FaultLose, Verb: "OXC.SWIT.CONN.ADD", Times: 2})
	for try := 1; ; try++ {
		c.tell(t, "oxc:swit:conn:add (@1),(@17)\r\n")
		got := strings.Trim(c.must(t, "oxc:swit:conn:port? 1\r\n"), "\"\r\n")
		if got == "17" && try == 3 {
			return
		}
		if got != "" || try == 3 {
			t.Fatalf("try %d: %q", try, got)
		}
	}
}

// A client on a serial line, which reads up to CR and drops blanks.
func TestClient_ReadsToCR(t *testing.T) {
	for _, crOnly := range []bool{false, true} {
		p := personality()
		p.SCPI.CROnly = crOnly
		_, c := connect(t, p)
		query := func(text string) string {
			c.tell(t, text+"\r\n")
			reply, err := c.R.ReadString('\r')
			if err != nil {
				t.Fatal(err)
			}
			return strings.TrimSpace(reply)
		}
		c.tell(t, ":OXC:SWIT:CONN:ONLY (@1,2),(@17,18)\r\n")
		if got := query(":OXC:SWIT:CONN:STAT?"); got != "(@1,2),(@17,18)" {
			t.Errorf("%q", got)
		}
		c.tell(t, ":OXC:SWIT:DISC:ALL\r\n")
		if got := query(":OXC:SWIT:CONN:STAT?"); got != "(@),(@)" {
			t.Errorf("%q", got)
		}
	}
}
