package mzi_test

import (
	"context"
	"encoding/binary"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/ocslab/ocslab/calibration/mzi"
	"github.com/ocslab/ocslab/ocs"
	"github.com/ocslab/ocslab/wire/cmis"
	"github.com/ocslab/ocslab/wire/cmis/ocst"
)

var errSilent = errors.New("the module does not answer")

// goneAfter is a memory that answers a number of requests, and then no more.
type goneAfter struct {
	cmis.Memory
	left int
}

func (v *goneAfter) Read(ctx context.Context, a cmis.Address, buf []byte) error {
	if v.left--; v.left < 0 {
		return errSilent
	}
	return v.Memory.Read(ctx, a, buf)
}

func (v *goneAfter) Write(ctx context.Context, a cmis.Address, data []byte) error {
	if v.left--; v.left < 0 {
		return errSilent
	}
	return v.Memory.Write(ctx, a, data)
}

// state reads the state of a module, and which paths its lanes are on.
func state(t testing.TB, m cmis.Memory) ocst.LaneStatus {
	t.Helper()
	buf := make([]byte, ocst.LanesSpan.Length)
	if err := m.Read(t.Context(), ocst.LanesSpan.Address, buf); err != nil {
		t.Fatal(err)
	}
	s, err := ocst.DecodeLanes(buf)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// Ensure that two calibrations do not work on one module: the second is refused, by name, and
// leaves the session of the first alone.
func TestBegin_session(t *testing.T) {
	t.Parallel()
	b := newRig(1)
	first, err := mzi.Begin(t.Context(), b.cfg)
	if err != nil {
		t.Fatal(err)
	}
	if err := first.Light(t.Context(), 0x10); err != nil {
		t.Fatal(err)
	}
	if _, err := mzi.Begin(t.Context(), b.cfg); !errors.Is(err, mzi.ErrSession) || !errors.Is(err, ocs.ErrDenied) {
		t.Errorf("a second session: %v", err)
	}
	p, err := first.Powers(t.Context(), 4)
	if err != nil {
		t.Fatal(err)
	}
	if lit := p[ocst.PDLaunched][4]; lit < 1000 {
		t.Errorf("the second one has put out the light of the first: %v µW", lit)
	}
	if err := first.End(t.Context()); err != nil {
		t.Error(err)
	}
	b.clock.Advance(time.Second) // the heaters go where the table wants them
	second, err := mzi.Begin(t.Context(), b.cfg)
	if err != nil {
		t.Fatal(err)
	}
	if err := second.End(t.Context()); err != nil {
		t.Error(err)
	}
}

// Ensure that a module that carries light is not darkened unless that is allowed.
func TestBegin_inUse(t *testing.T) {
	t.Parallel()
	b := newRig(1)
	for reg, v := range map[uint8]byte{ocst.RegStaged: byte(ocst.Path1), ocst.RegMask: 0x04} {
		if err := b.module.Write(t.Context(), ocst.At(reg), []byte{v}); err != nil {
			t.Fatal(err)
		}
	}
	if err := b.module.Write(t.Context(), ocst.At(ocst.RegCommit), []byte{byte(ocst.CommitNow)}); err != nil {
		t.Fatal(err)
	}
	b.clock.Advance(time.Second)
	_, err := mzi.Begin(t.Context(), b.cfg)
	if !errors.Is(err, mzi.ErrInUse) || !strings.Contains(err.Error(), "lane 3") {
		t.Errorf("error is %v, want one that matches ErrInUse and names lane 3", err)
	}
	if s := state(t, b.module); s.Path[2] != ocst.Path1 || s.State != ocst.StateReady {
		t.Errorf("after the refusal lane 3 is on %v, in state %v", s.Path[2], s.State)
	}
	b.cfg.AllowDark = true
	s, err := mzi.Begin(t.Context(), b.cfg)
	if err != nil {
		t.Fatal(err)
	}
	if got := state(t, b.module).State; got != ocst.StateCal {
		t.Errorf("state is %v, want cal", got)
	}
	if err := s.End(t.Context()); err != nil {
		t.Error(err)
	}
	b.clock.Advance(time.Second)
	if got := state(t, b.module).State; got != ocst.StateReady {
		t.Errorf("state is %v after the end, want ready", got)
	}
}

// Ensure that a wrong password, a memory of something else and no memory are errors, with
// nothing left behind.
func TestBegin_errors(t *testing.T) {
	t.Parallel()
	if _, err := mzi.Begin(t.Context(), mzi.Config{}); err == nil {
		t.Error("no memory is no error")
	}
	b := newRig(1)
	b.cfg.Password = 1
	if _, err := mzi.Begin(t.Context(), b.cfg); err == nil || !strings.Contains(err.Error(), "password") {
		t.Errorf("wrong password: %v", err)
	}
	if got := state(t, b.module).State; got != ocst.StateReady {
		t.Errorf("state is %v, want ready", got)
	}
	b.cfg.Memory = blank{}
	if _, err := mzi.Begin(t.Context(), b.cfg); err == nil || !strings.Contains(err.Error(), "OCST") {
		t.Errorf("memory of something else: %v", err)
	}
}

// blank is a memory of zeros.
type blank struct{}

func (blank) Read(_ context.Context, _ cmis.Address, buf []byte) error { clear(buf); return nil }
func (blank) Write(context.Context, cmis.Address, []byte) error        { return nil }

// Ensure that a session lives through a wait that is longer than the module's patience.
func TestSession_wait(t *testing.T) {
	t.Parallel()
	b := newRig(1)
	s, err := mzi.Begin(t.Context(), b.cfg)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Wait(t.Context(), 5*ocst.CalTimeout); err != nil {
		t.Fatal(err)
	}
	if got := state(t, b.module).State; got != ocst.StateCal {
		t.Errorf("state is %v, want cal", got)
	}
	b.clock.Advance(2 * ocst.CalTimeout) // the host was stopped
	if err := s.End(t.Context()); err != nil {
		t.Errorf("the end of a session that the module gave up: %v", err)
	}
}

// Ensure that drives arrive at the heaters, one arm at a time, and that currents are theirs.
func TestSession_heat(t *testing.T) {
	t.Parallel()
	b := newRig(1)
	s, err := mzi.Begin(t.Context(), b.cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.End(context.Background()) }()
	e := ocst.Loop(2, 1)
	for _, d := range []ocst.Drive{ocst.DriveOf(2, false), ocst.DriveOf(3, true), 0, ocst.DriveOf(1, false)} {
		if err := s.Heat(t.Context(), e, d); err != nil {
			t.Fatal(err)
		}
		if got := s.Drives(); got[e] != d {
			t.Errorf("drive is %04x, want %04x", got[e], d)
		}
		var currents [2]float64
		for arm := range currents {
			var i [2]byte
			at := cmis.Address{Page: ocst.PageCurrents, Bank: uint8(arm), Offset: uint8(ocst.RegCodes + 2*int(e))}
			if err := b.cfg.Memory.Read(t.Context(), at, i[:]); err != nil {
				t.Fatal(err)
			}
			currents[arm] = float64(binary.BigEndian.Uint16(i[:]))
		}
		_, armB := d.Code()
		for arm, i := range currents {
			want := d.Volts() / 400 * 1e6
			if (arm == 1) != armB {
				want = 0
			}
			if i < 0.8*want || i > 1.2*want+30 {
				t.Errorf("drive %04x: current of arm %c is %.0f µA, want about %.0f", d, 'A'+arm, i, want)
			}
		}
	}
	if err := s.Heat(t.Context(), ocst.Elements, 0); err == nil {
		t.Error("an element that is not there is no error")
	}
	var all [ocst.Elements]ocst.Drive
	for i := range all {
		all[i] = ocst.DriveOf(3.3, i%2 == 0)
	}
	before := s.Drives()
	switch err := s.HeatAll(t.Context(), all); {
	case err == nil:
	case !errors.Is(err, mzi.ErrPower):
		t.Errorf("all heaters at full power: %v", err)
	case s.Drives() == all:
		t.Errorf("refused, and the session believes in it: %v", before)
	}
}

// Ensure that dark readings are taken off the powers.
func TestSession_dark(t *testing.T) {
	t.Parallel()
	b := newRig(1)
	s, err := mzi.Begin(t.Context(), b.cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.End(context.Background()) }()
	dark, err := s.DarkReadings(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	truth := b.module.Truth()
	for array := range dark {
		for lane, got := range dark[array] {
			if want := truth.Dark[array][lane]; float64(got) < want-8 || float64(got) > want+8 {
				t.Errorf("%d, lane %d: dark reading %d, want %.1f", array, lane+1, got, want)
			}
		}
	}
	p, err := s.Powers(t.Context(), 64)
	if err != nil {
		t.Fatal(err)
	}
	for array := range p {
		for lane, y := range p[array] {
			if y < -1 || y > 1 {
				t.Errorf("array %d, lane %d: %.2f µW in the dark", array, lane+1, y)
			}
		}
	}
}

// Ensure that a module which is restarted in the middle of a calibration is what is told, and
// not that all of its heaters are open, as they seem to be outside of a session.
func TestCalibrate_lost(t *testing.T) {
	t.Parallel()
	b := newRig(1)
	waits := 0
	b.later = func() {
		if waits++; waits != 100 {
			return
		}
		if err := b.module.Write(t.Context(), cmis.Address{Offset: 26}, []byte{byte(cmis.SoftwareReset)}); err != nil {
			t.Error(err)
		}
		b.clock.Advance(5 * time.Second)
	}
	r, err := mzi.Calibrate(t.Context(), b.cfg, mzi.Options{Scope: mzi.Sweep})
	if !errors.Is(err, mzi.ErrLost) || strings.Contains(err.Error(), "open") {
		t.Errorf("after %d waits: error is %v, want one that matches ErrLost", waits, err)
	}
	if len(r.Fits) != 0 {
		t.Errorf("it reports %d fits of a module that was not in the session", len(r.Fits))
	}
	if s := state(t, b.module).State; s != ocst.StateReady {
		t.Errorf("the module is left in state %v", s)
	}
}
