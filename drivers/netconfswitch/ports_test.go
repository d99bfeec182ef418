package netconfswitch_test

import (
	"context"
	"errors"
	"maps"
	"math"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ocslab/ocslab/drivers/netconfswitch"
	"github.com/ocslab/ocslab/ocs"
)

// entry is a port in a container.
func entry(port, leaves string) string {
	return "<port><port-id>" + port + "</port-id>" + leaves + "</port>"
}

func some[K comparable, V any](got map[K]V, want map[K]V, err error, equal func(map[K]V, map[K]V) bool) bool {
	return err == nil && equal(got, want)
}

// TestPortsBytes is everything that concerns ports, byte by byte.
func TestPortsBytes(t *testing.T) {
	const all = "<port><port-id/>"
	run(t, one(func(l *line) {
		l.hello()
		l.ask(asks("opm-power", entry("1", "<power/>")+entry("53", "<power/>")), data("opm-power", entry("1", "<power>-3.25</power>")+entry("53", "")))
		l.ask(asks("opm-power", all+"<power/></port>"), data("opm-power", ""))
		l.ask(asks("opm-config", entry("1", "<wavelength/><offset/><averaging-time/>")+entry("2", "<wavelength/><offset/><averaging-time/>")),
			data("opm-config", entry("1", "<wavelength>1310.0</wavelength><offset>-0.50</offset><averaging-time>8</averaging-time>")+entry("2", "")))
		l.ask(edits("opm-config", entry("1", "<wavelength>1310.50</wavelength><offset>-0.50</offset><averaging-time>2</averaging-time>")), ok)
		l.ask(edits("opm-config", entry("1", "<offset>0.00</offset>")), ok)
		l.ask(edits("opm-config", entry("1", "<offset>0.00</offset><averaging-time>8</averaging-time>")), ok)
		l.ask(asks("port-config", all+"<status/></port>"), data("port-config", entry("1", "<status>ENABLED</status>")+
			entry("2", "<status>DISABLED</status>")+entry("3", "<status>FAILED</status>")+entry("4", "<status>UNSUPPORTED</status>")+entry("5", "")))
		l.ask(`<port-set-state xmlns="http://www.polatis.com/yang/optical-switch"><port-disab>1</port-disab><port-disab>2</port-disab></port-set-state>`, ok)
		l.ask(`<port-set-state xmlns="http://www.polatis.com/yang/optical-switch"><port-enab>1</port-enab></port-set-state>`, ok)
		l.ask(asks("port-config", entry("7", "<label/>")), data("port-config", entry("7", "<label> a&lt;b&amp;c </label>")+entry("8", "<label/>")))
		l.ask(edits("port-config", entry("7", "<label> a&lt;b&gt;]]&gt;]]&gt;&amp;&#34;&#39; </label>")), ok)
		l.ask(edits("port-config", entry("7", "<label></label>")), ok)
		l.ask(asks("voa", entry("53", "<atten-mode/><atten-level/><reference-port/>")),
			data("voa", entry("53", "<atten-mode>VOA_MODE_RELATIVE</atten-mode><atten-level>-7.50</atten-level><reference-port>0</reference-port>")))
		l.ask(edits("voa", entry("53", "<atten-mode>VOA_MODE_RELATIVE</atten-mode><atten-level>-7.50</atten-level><reference-port>0</reference-port>")), ok)
		l.ask(edits("voa", entry("53", "<atten-mode>VOA_MODE_NONE</atten-mode>")), ok)
		l.ask(asks("system-config", `<startup-mode xmlns="http://www.polatis.com/yang/polatis-switch"/>`),
			data("system-config", `<startup-mode xmlns="http://www.polatis.com/yang/polatis-switch">MODE_VOLATILE</startup-mode>`))
		l.ask(edits("system-config", `<startup-mode xmlns="http://www.polatis.com/yang/polatis-switch">MODE_PRESERVE</startup-mode>`), ok)
		l.ask(asks("product-information", ""), data("product-information", "<manufacturer>Polatis</manufacturer><serial-number>2000</serial-number>"+
			"<model-name>N-VST-512x512-LA1-DMHNV-701</model-name><software-version>6.7.3.9</software-version>"))
	}), func(t *testing.T, sw *netconfswitch.Switch) {
		if r, err := sw.Power(ctx, 1, 53); !some(r.Ports, map[ocs.Port]ocs.DBm{1: -3.25}, err, maps.Equal) || r.Earliest.IsZero() || r.Latest.Before(r.Earliest) {
			t.Errorf("got %v, %v", r, err)
		}
		if r, err := sw.Power(ctx); err != nil || len(r.Ports) != 0 {
			t.Errorf("got %v, %v", r, err)
		}
		want := []ocs.Monitor{{Port: 1, WavelengthNM: 1310, Offset: -0.5, Averaging: 2 * time.Second}, {Port: 2, WavelengthNM: 1550, Averaging: 100 * time.Millisecond}}
		if ms, err := sw.Monitors(ctx, 1, 2); err != nil || !reflect.DeepEqual(ms, want) {
			t.Errorf("got %v, %v", ms, err)
		}
		for _, m := range []ocs.Monitor{
			{Port: 1, WavelengthNM: 1310.5, Offset: -0.5, Averaging: 15 * time.Millisecond},
			{Port: 1, Offset: -0.001},
			{Port: 1, Averaging: time.Hour},
		} {
			if err := sw.SetMonitor(ctx, m); err != nil {
				t.Error(err)
			}
		}
		if m, err := sw.Shutters(ctx); !some(m, map[ocs.Port]bool{1: false, 2: true}, err, maps.Equal) {
			t.Errorf("got %v, %v", m, err)
		}
		if err := errors.Join(sw.SetShutters(ctx, true, 1, 2), sw.SetShutters(ctx, false, 1), sw.SetShutters(ctx, true)); err != nil {
			t.Error(err)
		}
		if m, err := sw.Labels(ctx, 7); !some(m, map[ocs.Port]string{7: " a<b&c "}, err, maps.Equal) {
			t.Errorf("got %q, %v", m, err)
		}
		if err := errors.Join(sw.SetLabel(ctx, 7, ` a<b>]]>]]>&"' `), sw.SetLabel(ctx, 7, "")); err != nil {
			t.Error(err)
		}
		if loss, err := sw.Attenuation(ctx, 53); err != nil || loss != 7.5 {
			t.Errorf("got %v, %v", loss, err)
		}
		if err := errors.Join(sw.SetAttenuation(ctx, 53, 7.5), sw.SetAttenuation(ctx, 53, 0)); err != nil {
			t.Error(err)
		}
		if m, err := sw.BootMode(ctx); err != nil || m != ocs.BootDark {
			t.Errorf("got %v, %v", m, err)
		}
		if err := sw.SetBootMode(ctx, ocs.BootRestore); err != nil {
			t.Error(err)
		}
		for range 2 { // the second is answered without asking
			id, err := sw.Identify(ctx)
			if err != nil || id != (ocs.Identity{Vendor: "Polatis", Model: "N-VST-512x512-LA1-DMHNV-701", Serial: "2000", Firmware: "6.7.3.9", Geometry: ocs.TwoSided(512, 512)}) {
				t.Errorf("got %+v, %v", id, err)
			}
		}
		late, cancel := context.WithCancel(ctx)
		cancel()
		if _, err := sw.Identify(late); !errors.Is(err, context.Canceled) {
			t.Errorf("got %v", err)
		}
	})
}

// TestOldPorts is the same on a device with the old container.
func TestOldPorts(t *testing.T) {
	const plts = ` xmlns="http://www.polatis.com/yang/polatis-switch"`
	run(t, one(func(l *line) {
		l.hello(base10, base11, oldOptical, oldPolatis)
		l.ask(asks("ports", entry("1", "<opm><power/></opm>")), data("ports", entry("1", "<opm><power>-3.25</power></opm>")+entry("2", "<opm/>")+entry("3", "")))
		l.ask(asks("ports", entry("1", "<opm><lambda/><offset"+plts+"/><averaging-time-select"+plts+"/></opm>")),
			data("ports", entry("1", "<opm><lambda>1310.0</lambda><offset"+plts+">1</offset></opm>")+entry("2", "")))
		l.ask(edits("ports", entry("1", "<opm><lambda>1310.00</lambda><offset"+plts+">1.00</offset><averaging-time-select"+plts+">1</averaging-time-select></opm>")), ok)
		l.ask(asks("ports", "<port><port-id/><port-status/></port>"), data("ports", entry("1", "<port-status>PO_ENABLED</port-status>")+
			entry("2", "<port-status>PO_DISABLED</port-status>")+entry("3", "<port-status>PO_FAILED</port-status>")))
		l.ask(asks("ports", "<port><port-id/><port-label/></port>"), data("ports", entry("7", "<port-label>x</port-label>")))
		l.ask(edits("ports", entry("7", "<port-label>x</port-label>")), ok)
	}), func(t *testing.T, sw *netconfswitch.Switch) {
		if r, err := sw.Power(ctx, 1); !some(r.Ports, map[ocs.Port]ocs.DBm{1: -3.25}, err, maps.Equal) {
			t.Errorf("got %v, %v", r, err)
		}
		want := ocs.Monitor{Port: 1, WavelengthNM: 1310, Offset: 1, Averaging: 100 * time.Millisecond}
		if ms, err := sw.Monitors(ctx, 1); err != nil || len(ms) != 1 || ms[0] != want {
			t.Errorf("got %v, %v", ms, err)
		}
		want.Averaging = time.Millisecond
		if err := sw.SetMonitor(ctx, want); err != nil {
			t.Error(err)
		}
		if m, err := sw.Shutters(ctx); !some(m, map[ocs.Port]bool{1: false, 2: true}, err, maps.Equal) {
			t.Errorf("got %v, %v", m, err)
		}
		if m, err := sw.Labels(ctx); !some(m, map[ocs.Port]string{7: "x"}, err, maps.Equal) {
			t.Errorf("got %q, %v", m, err)
		}
		if err := sw.SetLabel(ctx, 7, "x"); err != nil {
			t.Error(err)
		}
		if _, err := sw.Attenuation(ctx, 33); !errors.Is(err, ocs.ErrNotSupported) {
			t.Errorf("got %v", err)
		}
		if err := sw.SetAttenuation(ctx, 33, 1); !errors.Is(err, ocs.ErrNotSupported) {
			t.Errorf("got %v", err)
		}
	})
}

// TestRefusedHere is what is not even sent.
func TestRefusedHere(t *testing.T) {
	run(t, one(func(l *line) { l.hello(base10, optical) }), func(t *testing.T, sw *netconfswitch.Switch) {
		for name, err := range map[string]error{
			"label":       sw.SetLabel(ctx, 1, "a\x00b"),
			"label UTF-8": sw.SetLabel(ctx, 1, "a\xffb"),
			"offset":      sw.SetMonitor(ctx, ocs.Monitor{Port: 1, Offset: ocs.DB(math.NaN())}),
			"wavelength":  sw.SetMonitor(ctx, ocs.Monitor{Port: 1, WavelengthNM: math.Inf(1)}),
			"gain":        sw.SetAttenuation(ctx, 33, -1),
			"loss":        sw.SetAttenuation(ctx, 33, ocs.DB(math.Inf(1))),
			"boot mode":   sw.SetBootMode(ctx, ocs.BootAutosave),
		} {
			var op *ocs.OpError
			if !errors.As(err, &op) || op.Request != "" {
				t.Errorf("%s: got %v", name, err)
			}
		}
		if _, err := sw.BootMode(ctx); !errors.Is(err, ocs.ErrNotSupported) {
			t.Errorf("no polatis-switch: got %v", err)
		}
		if err := sw.SetBootMode(ctx, ocs.BootDark); !errors.Is(err, ocs.ErrNotSupported) {
			t.Errorf("no polatis-switch: got %v", err)
		}
		if err := sw.Notify(ctx, func(ocs.Event) {}); !errors.Is(err, ocs.ErrNotSupported) {
			t.Errorf("no notifications: got %v", err)
		}
	})
}

// TestGarbled is what makes no sense in a reply.
func TestGarbled(t *testing.T) {
	errOf := func(_ any, err error) error { return err }
	for _, tc := range []struct {
		reply string
		call  func(sw *netconfswitch.Switch) error
		want  error
	}{
		{data("opm-power", entry("x", "")), func(sw *netconfswitch.Switch) error { return errOf(sw.Power(ctx)) }, nil},
		{data("opm-power", entry("1", "<power>NaN</power>")), func(sw *netconfswitch.Switch) error { return errOf(sw.Power(ctx)) }, nil},
		{data("opm-config", entry("1", "<averaging-time>9</averaging-time>")), func(sw *netconfswitch.Switch) error { return errOf(sw.Monitors(ctx)) }, nil},
		{data("opm-config", entry("1", "<offset>-inf</offset>")), func(sw *netconfswitch.Switch) error { return errOf(sw.Monitors(ctx)) }, nil},
		{data("port-config", entry("1", "<status>BENT</status>")), func(sw *netconfswitch.Switch) error { return errOf(sw.Shutters(ctx)) }, nil},
		{data("port-config", entry("0", "")), func(sw *netconfswitch.Switch) error { return errOf(sw.Labels(ctx)) }, nil},
		{data("voa", entry("34", "")), func(sw *netconfswitch.Switch) error { return errOf(sw.Attenuation(ctx, 33)) }, nil},
		{data("voa", entry("33", "<atten-mode>VOA_MODE_RELATIVE</atten-mode><atten-level>x</atten-level>")),
			func(sw *netconfswitch.Switch) error { return errOf(sw.Attenuation(ctx, 33)) }, nil},
		{data("voa", entry("33", "<atten-mode>VOA_MODE_RELATIVE</atten-mode><reference-port>7</reference-port>")),
			func(sw *netconfswitch.Switch) error { return errOf(sw.Attenuation(ctx, 33)) }, ocs.ErrNotSupported},
		{data("voa", entry("33", "<atten-mode>VOA_MODE_ABSOLUTE</atten-mode>")),
			func(sw *netconfswitch.Switch) error { return errOf(sw.Attenuation(ctx, 33)) }, ocs.ErrNotSupported},
		{"<data/>", func(sw *netconfswitch.Switch) error { return errOf(sw.BootMode(ctx)) }, ocs.ErrDenied},
		{data("system-config", "<startup-mode>MODE_OTHER</startup-mode>"), func(sw *netconfswitch.Switch) error { return errOf(sw.BootMode(ctx)) }, nil},
	} {
		run(t, one(func(l *line) {
			l.hello()
			l.next()
			l.raw(l.reply(tc.reply))
		}), func(t *testing.T, sw *netconfswitch.Switch) {
			err := tc.call(sw)
			var op *ocs.OpError
			if !errors.As(err, &op) || op.Reply == "" || tc.want != nil && !errors.Is(err, tc.want) {
				t.Errorf("%s: got %v", tc.reply, err)
			}
		})
	}
}

// TestLeftOut is what a device does not say of ports that were named.
func TestLeftOut(t *testing.T) {
	noVOA := asks("voa", entry("33", "<atten-mode/><atten-level/><reference-port/>"))
	product := func(l *line, reply string) { l.ask(asks("product-information", ""), reply) }
	run(t, one(func(l *line) {
		l.hello()
		l.next()
		l.raw(l.reply("<data/>"))
		product(l, rpcError("access-denied", "", "no"))
		l.next()
		l.raw(l.reply("<data/>"))
		product(l, data("product-information", "<model-name>N-VST-32x32-LA1</model-name>"))
		l.next()
		l.raw(l.reply("<data/>"))
		l.ask(noVOA, "<data/>")
		l.ask(edits("voa", entry("33", "<atten-mode>VOA_MODE_NONE</atten-mode>")), rpcError("invalid-value", "", "Invalid port: 33"))
		l.ask(noVOA, "<data/>")
	}), func(t *testing.T, sw *netconfswitch.Switch) {
		if _, err := sw.Power(ctx, 65); !errors.Is(err, ocs.ErrDenied) {
			t.Errorf("got %v", err)
		}
		if _, err := sw.Power(ctx, 64, 65); !errors.Is(err, ocs.ErrPort) || !strings.Contains(err.Error(), "port 65") {
			t.Errorf("got %v", err)
		}
		if r, err := sw.Power(ctx, 64); err != nil || len(r.Ports) != 0 {
			t.Errorf("got %v, %v", r, err)
		}
		if _, err := sw.Attenuation(ctx, 33); !errors.Is(err, ocs.ErrNotSupported) || errors.Is(err, ocs.ErrPort) {
			t.Errorf("got %v", err)
		}
		if err := sw.SetAttenuation(ctx, 33, 0); !errors.Is(err, ocs.ErrNotSupported) || errors.Is(err, ocs.ErrPort) {
			t.Errorf("got %v", err)
		}
	})
}

// TestNoGeometry asks again for as long as the model does not name a size.
func TestNoGeometry(t *testing.T) {
	run(t, one(func(l *line) {
		l.hello()
		for range 2 {
			l.ask(asks("product-information", ""), data("product-information", "<model-name>OST-X</model-name>"))
		}
	}), func(t *testing.T, sw *netconfswitch.Switch) {
		for range 2 {
			if id, err := sw.Identify(ctx); err != nil || id.Model != "OST-X" || id.Geometry.Known() {
				t.Errorf("got %+v, %v", id, err)
			}
		}
	})
}

const restartNow = `<system-restart xmlns="http://www.polatis.com/yang/optical-switch"><seconds>1</seconds></system-restart>`

// TestRestart returns when the session has ended, and the next call has a new
// one.
func TestRestart(t *testing.T) {
	run(t, []func(*line){
		func(l *line) {
			l.hello()
			l.ask(restartNow, ok)
			time.Sleep(time.Second)
			l.Close()
		},
		func(l *line) {
			l.hello()
			l.ask(readMap, data("cross-connects", ""))
		},
	}, func(t *testing.T, sw *netconfswitch.Switch) {
		begun := time.Now()
		if err := sw.Restart(ctx); err != nil || time.Since(begun) != time.Second {
			t.Errorf("got %v after %v", err, time.Since(begun))
		}
		if _, err := sw.CrossConnects(ctx); err != nil {
			t.Error(err)
		}
	})
	run(t, one(func(l *line) { // the device goes on
		l.hello()
		for range 3 {
			l.ask(restartNow, ok)
		}
		l.ask(restartNow, rpcError("access-denied", "", "no"))
	}), func(t *testing.T, sw *netconfswitch.Switch) {
		if err := sw.Restart(ctx); !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "acknowledged") {
			t.Errorf("got %v", err)
		}
		short, cancel := context.WithTimeout(ctx, time.Second)
		defer cancel()
		if err := sw.Restart(short); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v", err)
		}
		ended := make(chan error)
		go func() { ended <- sw.Restart(ctx) }()
		synctest.Wait()
		if err := sw.Restart(ctx); !errors.Is(err, ocs.ErrDenied) {
			t.Errorf("got %v", err)
		}
		sw.Close()
		if err := <-ended; err == nil {
			t.Error("no error of a Restart that Close ended")
		}
		if err := sw.Restart(ctx); err == nil {
			t.Error("no error after Close")
		}
	})
}
