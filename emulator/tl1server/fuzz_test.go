package tl1server_test

import (
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/ocslab/ocslab/emulator"
	"github.com/ocslab/ocslab/emulator/internal/servertest"
	"github.com/ocslab/ocslab/ocs"
	"github.com/ocslab/ocslab/wire/tl1"
)

// FuzzSession sends arbitrary bytes to a session that is logged in. It must
// not panic or wedge, whatever it says must be TL1, and the matrix must hold
// what its replies have promised.
func FuzzSession(f *testing.F) {
	for _, session := range servertest.Sent(f, "*", servertest.SentLine) {
		f.Add([]byte(session))
	}
	p := personality()
	p.Switching = emulator.Switching{Ack: emulator.AckBefore}
	f.Fuzz(func(t *testing.T, data []byte) {
		synctest.Test(t, func(t *testing.T) {
			s := newServer(t, p)
			// It fails when the session reboots the card.
			out, _ := servertest.Converse(t, s.ServeConn, "ACT-USER::admin:1::root;", string(data))
			checkSession(t, s.Device.CrossConnects(), data, []byte(out))
		})
	})
}

func checkSession(t *testing.T, got ocs.Map, sent, received []byte) {
	var replies []tl1.Message
	var d tl1.Decoder
	d.Feed(received)
	for {
		m, ok, err := d.Next()
		if !ok {
			break
		}
		if err != nil {
			t.Fatalf("%v in %q", err, received)
		}
		if m.Kind == tl1.Response {
			replies = append(replies, m)
		}
	}
	if d.Pending() {
		t.Fatalf("the output ends within a message: %q", received)
	}

	replies = replies[1:] // of the login
	var in tl1.CommandDecoder
	in.Feed(sent)
	model := map[ocs.Port]ocs.Port{} // by ingress
	dark := false
	for len(replies) > 0 {
		raw, ok, tooLong := in.Next()
		if !ok {
			t.Fatalf("more replies than commands: %v", replies)
		}
		reply := replies[0]
		replies = replies[1:]
		if tooLong != nil || reply.Completion != tl1.COMPLD {
			continue
		}
		c, err := tl1.ParseCommand(raw)
		if err != nil {
			t.Fatalf("%q completes: %v", raw, err)
		}
		switch aid := c.AID.Text(); c.Code + " " + strings.ToUpper(aid) + " " + c.Block(0).Text() {
		case "INIT-SYS SYSTEM 1", "INIT-SYS SYSTEM 10":
			if dark {
				clear(model)
			}
			continue
		default:
			apply(t, model, &dark, &c)
		}
	}
	var ccs []ocs.CrossConnect
	for in, out := range model {
		ccs = append(ccs, ocs.CrossConnect{Ingress: in, Egress: out})
	}
	if want := ocs.MustMap(ccs...); !got.Equal(want) {
		t.Fatalf("the matrix holds %v, the replies say %v\nsent %q\nreceived %q", got, want, sent, received)
	}
}

// apply does to a model what a command has done that completed.
func apply(t *testing.T, model map[ocs.Port]ocs.Port, dark *bool, c *tl1.Command) {
	aid := c.AID.Text()
	switch c.Code {
	case "ED-EQPT":
		if mode, ok := c.Block(1).Value("MODE"); ok {
			*dark = strings.EqualFold(mode, "DARK")
		}
	case "ENT-PATCH":
		in, out, _ := strings.Cut(aid, ",")
		ins, outs := expand(t, in), expand(t, out)
		for i, n := range ins {
			for k, v := range model {
				if v == outs[i] {
					delete(model, k)
				}
			}
			model[n] = outs[i]
		}
	case "DLT-PATCH":
		if aid == "" || strings.EqualFold(aid, "ALL") {
			clear(model)
			return
		}
		gone := expand(t, aid)
		for k, v := range model {
			if slices.Contains(gone, k) || slices.Contains(gone, v) {
				delete(model, k)
			}
		}
	}
}

func expand(t *testing.T, list string) (ps []ocs.Port) {
	number := func(s string) ocs.Port {
		n, err := strconv.Atoi(tl1.Unquote(strings.Trim(s, " \t\r\n")))
		if err != nil {
			t.Fatalf("list %q was accepted", list)
		}
		return ocs.Port(n)
	}
	parts := strings.Split(list, "&")
	for i := 0; i < len(parts); i++ {
		n := number(parts[i])
		ps = append(ps, n)
		if i+2 < len(parts) && parts[i+1] == "" {
			for last := number(parts[i+2]); n < last; {
				n++
				ps = append(ps, n)
			}
			i += 2
		}
	}
	return ps
}

// FuzzDialects is FuzzSession for the other dialects: the output must be TL1, and
// what the session lists last must be what the matrix holds.
func FuzzDialects(f *testing.F) {
	for i, pattern := range []string{"calient*", "calient-two*", "glimmerglass*"} {
		for _, session := range servertest.Sent(f, pattern, servertest.SentLine) {
			f.Add(uint8(i), []byte(session))
		}
	}
	changes := []func(*emulator.Personality){calientLike, calientTwoStep, glimmerglassLike}
	f.Fuzz(func(t *testing.T, which uint8, data []byte) {
		p := personality()
		changes[int(which)%len(changes)](&p)
		p.Switching, p.TL1.Block, p.TL1.Echo = emulator.Switching{Ack: emulator.AckBefore}, 150, false
		synctest.Test(t, func(t *testing.T) {
			s := newServer(t, p)
			// Whatever came before is ended, logged in or not.
			out, _ := servertest.Converse(t, s.ServeConn, "ACT-USER::admin:1::root;", string(data),
				"\r\n;ACT-USER::admin:1::root;RTRV-CRS:::theVeryLast::ALL;RTRV-CRS-FIBER::all:theVeryLast;")
			checkListed(t, s.Device.CrossConnects(), []byte(out))
		})
	})
}

// checkListed reads what the last replies of a session list, in either dialect.
func checkListed(t *testing.T, got ocs.Map, received []byte) {
	var d tl1.Decoder
	d.Feed(received)
	var ccs []ocs.CrossConnect
	number := func(s string, names []string, base int) ocs.Port {
		if i := slices.Index(names, s); i >= 0 {
			return ocs.Port(base + i + 1)
		}
		n, err := strconv.Atoi(s)
		if err != nil || n%10000 < 0 || n%10000 > 4 {
			t.Fatalf("port %q in %q", s, received)
		}
		if n%10000 == 0 {
			return 0
		}
		return ocs.Port(base + n%10000)
	}
	names := []string{"1.1.1", "1.1.2", "1.2.1", "1.2.2"}
	for {
		m, ok, err := d.Next()
		if !ok {
			break
		}
		if err != nil {
			t.Fatalf("%v in %q", err, received)
		}
		if m.CTAG != "theVeryLast" || m.Completion != tl1.COMPLD {
			continue
		}
		for _, line := range m.Text {
			v := map[string]string{}
			for _, p := range strings.FieldsFunc(line, func(c rune) bool { return c == ',' || c == ':' }) {
				k, x, _ := strings.Cut(p, "=")
				v[k] = x
			}
			cc := ocs.CrossConnect{Ingress: number(v["SRCPORT"]+v["IPORTID"], names, 0), Egress: number(v["DSTPORT"]+v["OPORTID"], names, 4)}
			if v["OC"] == "FAIL" || cc.Ingress == 0 || cc.Egress == 0 {
				continue
			}
			ccs = append(ccs, cc)
			if v["CONNTYPE"] == "2WAY" && cc.Ingress != cc.Egress-4 {
				ccs = append(ccs, ocs.CrossConnect{Ingress: cc.Egress - 4, Egress: cc.Ingress + 4})
			}
		}
	}
	if d.Pending() {
		t.Fatalf("the output ends within a message: %q", received)
	}
	if want, err := ocs.NewMap(ccs...); err != nil || !got.Equal(want) {
		t.Fatalf("the matrix holds %v, the session lists %v, %v\n%q", got, want, err, received)
	}
}
