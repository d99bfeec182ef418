package tl1switch_test

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/ocslab/ocslab/drivers/internal/drivertest"
	"github.com/ocslab/ocslab/drivers/tl1switch"
	"github.com/ocslab/ocslab/emulator"
	"github.com/ocslab/ocslab/ocs"
)

// TestAttenuator_Reads has replies as devices may write them; the port is 17.
func TestAttenuator_Reads(t *testing.T) {
	for _, test := range []struct {
		lines []string
		want  ocs.DB
		err   string // "" is none
		is    error
	}{
		{[]string{"17:NONE,,"}, 0, "", nil},
		{[]string{"17:,,"}, 0, "", nil},
		{[]string{"17:REL,-3.50,"}, 3.5, "", nil},
		{[]string{"17:rel,-3.5,0"}, 3.5, "", nil},
		{[]string{"17:REL,0.00,"}, 0, "", nil},
		{nil, 0, "port 17 has no attenuator", ocs.ErrNotSupported},
		{[]string{"17:REL,-3.50,4"}, 0, "relative to that of port 4", ocs.ErrUntold},
		{[]string{"17:ABS,-10.00,"}, 0, "mode ABS", ocs.ErrUntold},
		{[]string{"17:MAX,,"}, 0, "mode MAX", ocs.ErrUntold},
		{[]string{"17:REL,,"}, 0, "cannot understand", nil},
		{[]string{"17:REL,much,"}, 0, "cannot understand", nil},
		{[]string{"17:REL,-Inf,"}, 0, "cannot understand", nil},
		{[]string{"17:REL"}, 0, "cannot understand", nil},
	} {
		t.Run(fmt.Sprint(test.lines), func(t *testing.T) {
			talk(t, func(t *testing.T, sw *tl1switch.Switch) {
				got, err := sw.Attenuation(t.Context(), 17)
				if got != test.want || test.is != nil && !errors.Is(err, test.is) || (err == nil) != (test.err == "") || err != nil && !strings.Contains(err.Error(), test.err) {
					t.Errorf("got %v, %v, want %v, %q", got, err, test.want, test.err)
				}
			}, func(l *line) {
				l.login(1)
				l.ask("RTRV-PORT-ATTEN::17:3:;", test.lines...)
			})
		})
	}
}

func TestAttenuator_Sets(t *testing.T) {
	talk(t, func(t *testing.T, sw *tl1switch.Switch) {
		for _, loss := range []ocs.DB{3.5, 0} {
			if err := sw.SetAttenuation(t.Context(), 17, loss); err != nil {
				t.Errorf("%v: %v", loss, err)
			}
		}
		for _, loss := range []ocs.DB{-1, ocs.DB(math.NaN()), ocs.DB(math.Inf(1))} { // nothing is sent
			if err := sw.SetAttenuation(t.Context(), 17, loss); err == nil {
				t.Errorf("%v: no error", loss)
			}
		}
	}, func(l *line) {
		l.login(1)
		l.ask("SET-PORT-ATTEN::17:3:::MODE=REL,LEVEL=(-3.5);")
		l.ask("SET-PORT-ATTEN::17:4:::MODE=NONE;")
	})
}

// TestAttenuator_Emulated: what is set is read back, and takes the light away.
func TestAttenuator_Emulated(t *testing.T) {
	dev, cfg := emulated(t, "polatis-6000-voa-16x16", nil)
	sw, ctx := openWith(t, cfg), t.Context()
	if _, err := ocs.Reconcile(ctx, sw, drivertest.Map(t, "1>17"), ocs.Safe); err != nil {
		t.Fatal(err)
	}
	for _, loss := range []ocs.DB{12.5, 6, 0} {
		if err := sw.SetAttenuation(ctx, 17, loss); err != nil {
			t.Fatal(err)
		}
		if got, err := sw.Attenuation(ctx, 17); got != loss || err != nil {
			t.Errorf("got %v, %v, want %v", got, err, loss)
		}
		if v := dev.VOA(17); (v.Mode == emulator.VOARelative) != (loss > 0) || (dev.Attenuation(17) > 0) != (loss > 0) {
			t.Errorf("%v: the device has %+v, and takes %v", loss, v, dev.Attenuation(17))
		}
	}
	if _, err := sw.Attenuation(ctx, 1); !errors.Is(err, ocs.ErrNotSupported) {
		t.Errorf("an ingress port: error %v", err)
	}
	if err := sw.SetAttenuation(ctx, 1, 3); err == nil {
		t.Error("an ingress port: no error")
	}

	_, cfg = emulated(t, "polatis-6000-32x32", nil)
	plain := openWith(t, cfg)
	if _, err := plain.Attenuation(ctx, 33); !errors.Is(err, ocs.ErrNotSupported) {
		t.Errorf("without attenuators: error %v", err)
	}
	if err := plain.SetAttenuation(ctx, 33, 3); !errors.Is(err, ocs.ErrNotSupported) {
		t.Errorf("without attenuators: error %v", err)
	}
}
