package scpi_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/ocslab/ocslab/wire/scpi"
)

func TestTree(t *testing.T) {
	tree := polatis()
	tree.Add("SOURce:CHANnel4[:LEVel][:FINE]:SET", "set")
	for _, test := range []struct {
		line string
		want string // canonical names; a number is an error
	}{
		{"*IDN?", "*IDN"}, {"*idn?", "*IDN"}, {"*IDN", "-113"}, {"*XYZ?", "-113"}, {"*", "-113"},
		{":OXC:SWITCH:CONNECT:ADD 1", "OXC.SWIT.CONN.ADD"}, {"oxc:swit:connect:add", "OXC.SWIT.CONN.ADD"}, {"OXC:SWITc:CONN:ADD", "-113"},
		{"OXC:SWIT:CONN", "-113"}, {"OXC:SWIT:CONN:ADD?", "-113"}, {"OXC:BOOT:MODE?;MODE 1", "OXC.BOOT.MODE OXC.BOOT.MODE"},
		{"SYST:ERR?;:SYST:ERR:NEXT?;COUN?;NEXT?", "SYST.ERR SYST.ERR SYST.ERR.COUN SYST.ERR"},
		{"SYST:ERR?;COUN?", "SYST.ERR -113"},
		{":OXC:SWIT:CONN:ONLY;STAT?;*OPC?;ADD;:STAT?", "OXC.SWIT.CONN.ONLY OXC.SWIT.CONN.STAT *OPC OXC.SWIT.CONN.ADD -113"},
		{":OXC:SWIT:CONN:WRONG;ADD", "-113 OXC.SWIT.CONN.ADD"},
		{":OXC:WRONG:CONN:ADD;ADD;BOOT:MODE?;:OXC:BOOT:MODE?", "-113 -113 -113 OXC.BOOT.MODE"},
		{"SYST:COMM:NETW:ADDR 1;ADDR?", "SYST.COMM.NETW.ADDR -113"}, {"SYST:COMM:NETWORK1:ADDR", "SYST.COMM.NETW.ADDR"}, {"SYST:COMM:NETW01:ADDR", "SYST.COMM.NETW.ADDR"},
		{"SYST:COMM:NETW2:ADDR?", "SYST.COMM.NETW2.ADDR"}, {"SYST:COMM:network02:ADDR?", "SYST.COMM.NETW2.ADDR"}, {"SYST:COMM:NETW3:ADDR?", "-114"}, {"SYST:COMM:NETW0:ADDR?", "-114"},
		{"SYST:COMM:NETW99999999:ADDR?", "-114"}, {"SYSTEM99:ERR?", "-114"}, {"SYSTE9:ERR?", "-113"},
		{"SOUR:CHAN4:SET", "SOUR.CHAN4.SET"}, {"SOUR:CHAN4:LEV:FINE:SET;SET", "SOUR.CHAN4.SET SOUR.CHAN4.SET"}, {"SOUR:CHAN4:FINE:SET", "SOUR.CHAN4.SET"}, {"SOUR:CHAN:SET", "-113"}, {"SOUR:CHAN1:SET", "-114"},
	} {
		m, _ := scpi.ParseMessage([]byte(test.line))
		var path scpi.Path
		var got []string
		for _, u := range m.Units {
			h, canonical, next, err := tree.Find(path, u)
			path = next
			var s *scpi.SyntaxError
			if errors.As(err, &s) {
				if canonical != "" || h != "" || !strings.Contains(s.Text, u.Header.String()) {
					t.Errorf("%s: %q, %v", u.Raw, h, s)
				}
				canonical = fmt.Sprint(s.Code)
			}
			got = append(got, canonical)
		}
		if s := strings.Join(got, " "); s != test.want {
			t.Errorf("%s:\n got %s\nwant %s", test.line, s, test.want)
		}
	}
	for _, pattern := range []string{"*IDN?", "OXC:SWITch:SIZE?", "A::B", "", "lower:X", "A[:B", "OXC:SWITCHes", "OXC SIZE"} {
		func() {
			defer func() {
				if r := recover(); r == nil || !strings.Contains(fmt.Sprint(r), pattern) {
					t.Errorf("%q is accepted: %v", pattern, r)
				}
			}()
			tree.Add(pattern, "again")
		}()
	}
	if !scpi.Matches("RESTore", "rest") || !scpi.Matches("RESTore", "Restore") || scpi.Matches("RESTore", "resto") || scpi.Short("RESTore") != "REST" {
		t.Error("short and long forms")
	}
}

func TestStatus(t *testing.T) {
	var s scpi.Status
	if s.Byte(false) != 0 || s.Events() != 0 || s.Errors == nil {
		t.Error("the zero value is not clear")
	}
	for code, bit := range map[int]byte{
		scpi.UndefinedHeader: scpi.CommandErrorEvent, scpi.DataOutOfRange: scpi.ExecutionErrorEvent, scpi.QueueOverflow: scpi.DeviceErrorEvent,
		scpi.QueryError: scpi.QueryErrorEvent, 7: scpi.DeviceErrorEvent,
	} {
		if s.Fail(scpi.NewError(code, "")); s.Events() != bit || s.Events() != 0 {
			t.Errorf("%d: want event %d", code, bit)
		}
	}
	if n := s.Errors.Len(); n != 5 || s.Byte(true) != scpi.ErrorAvailable|scpi.MessageAvailable {
		t.Errorf("%d errors, status %d", n, s.Byte(true))
	}
	s.EnableEvents(scpi.OperationComplete)
	s.EnableService(0xff)
	s.Fail(scpi.NewError(scpi.BadSyntax, ""))
	if b := s.Byte(false); b != scpi.ErrorAvailable|scpi.MasterSummary || s.EventEnable() != 1 || s.ServiceEnable() != 0xbf {
		t.Errorf("status %d", b)
	}
	s.Complete()
	if b := s.Byte(false); b != scpi.ErrorAvailable|scpi.EventSummary|scpi.MasterSummary {
		t.Errorf("status %d", b)
	}
	s.Clear()
	if s.Byte(false) != 0 || s.EventEnable() != 1 || s.Events() != 0 {
		t.Error("clear does not clear, or too much")
	}
}

func TestQueue(t *testing.T) {
	q := scpi.Queue{Max: 3}
	if e := q.Pop(); e.Code != 0 || e.Text != "No error" {
		t.Error(e)
	}
	for i := range 5 {
		q.Push(scpi.Error{Code: i + 1})
	}
	if q.Len() != 3 || q.Pop().Code != 1 || q.Pop().Code != 2 || q.Pop() != scpi.NewError(scpi.QueueOverflow, "") || q.Pop().Code != 0 {
		t.Error("not first in, first out, with the overflow last")
	}
	q.Push(scpi.Error{Code: 9})
	if all := q.Drain(); len(all) != 1 || all[0].Code != 9 || q.Len() != 0 {
		t.Error(all)
	}
}
