package netconfserver_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ocslab/ocslab/emulator"
	"github.com/ocslab/ocslab/ocs"
)

const getLog = `<get><filter><notification-log ` + plts + `/></filter></get>`

// Ensure that the log and the list of alarms cover the time without a client, and
// what clients of other protocols do.
func TestLogWithoutClient(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t, personality())
		s.Record()
		d := s.Device
		other := d.Enter(emulator.SessionInfo{Protocol: "TL1", User: "user"}, func() {})
		label := func(text string) {
			if _, err := d.Edit(other, emulator.Edit{Labels: map[ocs.Port]string{3: text}}); err != nil {
				t.Fatal(err)
			}
		}
		label("before")
		alarm := emulator.Alarm{Mode: emulator.AlarmContinuous, Edge: emulator.EdgeLow, Low: -20}
		if err := d.SetAlarms(emulator.Forward, emulator.LossOfSignal, map[ocs.Port]emulator.Alarm{1: alarm}); err != nil {
			t.Fatal(err)
		}
		if err := d.SetInput(1, -50); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		c := login(t, s, "admin")
		c.want(getLog, "Label of port 3 changed</notif-message>", "<notif-count>1</notif-count>", "port-power-alarm")
		c.want(`<get><filter><system-alarms `+plts+`/></filter></get>`, "<alarm-message>Port 1 power alarm")
		c.Close()
		synctest.Wait()
		label("between")
		c = login(t, s, "admin")
		c.want(getLog, "<notif-count>2</notif-count>")
	})
}

// Ensure that a client that does not say hello, or does not read ours, is hung up
// on, and one that does is not.
func TestHelloTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := personality()
		p.NETCONF.Hello = 10 * time.Second
		s := newServer(t, p)
		silent, greeted, slow := dial(t, s, "admin"), login(t, s, "admin"), dial(t, s, "admin")
		slow.Send(strings.TrimSuffix(hello, "</hello>")) // and no end
		time.Sleep(10*time.Second - 1)
		if silent.Closed() || slow.Closed() {
			t.Error("hung up on too early")
		}
		time.Sleep(2 * time.Nanosecond)
		if !silent.Closed() || !slow.Closed() {
			t.Error("not hung up on")
		}
		time.Sleep(time.Hour)
		if greeted.Closed() || len(s.Device.Sessions()) != 1 {
			t.Errorf("sessions %v", s.Device.Sessions())
		}
	})
}
