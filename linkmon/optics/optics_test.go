package optics_test

import (
	"context"
	"errors"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/ocslab/ocslab/linkmon/optics"
	"github.com/ocslab/ocslab/ocs"
	"github.com/ocslab/ocslab/timeline"
	"github.com/ocslab/ocslab/wire/cmis"
)

var _ optics.Reader = (*optics.Ethtool)(nil)
var _ optics.Reader = (*optics.File)(nil)

// image is the memory of a QSFP28 whose lanes get the powers given, in µW.
func image(t testing.TB, powers ...float64) cmis.Image {
	t.Helper()
	m := cmis.Module{Identity: cmis.Identity{Identifier: cmis.QSFP28, Vendor: "ACME", Serial: "1"}}
	for i, p := range powers {
		m.Monitors = append(m.Monitors, cmis.Lane{Number: i + 1, RxPower: cmis.PowerOf(p), RxLOS: p == 0, TxLOS: i == 0})
	}
	im, err := cmis.Encode(m)
	if err != nil {
		t.Fatal(err)
	}
	return im
}

// memory is a module that takes a while to read, and can be pulled.
type memory struct {
	image cmis.Image
	takes time.Duration
	err   error
	reads []cmis.Span
}

func (m *memory) ReadPage(ctx context.Context, a cmis.Address, buf []byte) error {
	m.reads = append(m.reads, cmis.Span{Address: a, Length: len(buf)})
	time.Sleep(m.takes)
	if m.err != nil {
		return m.err
	}
	return m.image.Read(a, buf)
}

func (m *memory) Close() error { return nil }

func write(t testing.TB, im []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "eeprom")
	if err := os.WriteFile(path, im, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestFile(t *testing.T) {
	path := write(t, image(t, 500, 400, 300, 200))
	r, err := optics.OpenFile(path)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if r.DisturbsLinkTiming() {
		t.Error("a file holds the RTNL lock")
	}
	s := optics.Sampler{Reader: r}
	sample, err := s.Sample(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	want := []ocs.DBm{ocs.Milliwatts(.5), ocs.Milliwatts(.4), ocs.Milliwatts(.3), ocs.Milliwatts(.2)}
	if diff := cmp.Diff(want, sample.Lanes); diff != "" || sample.Power != want[3] {
		t.Errorf("power %v, lanes -want +got\n%s", sample.Power, diff)
	}
	if got, want := sample.String(), "-6.99 dBm (-3.0 -4.0 -5.2 -7.0)"; got != want {
		t.Errorf("String = %q, want %q", got, want)
	}
	if got := (optics.Sample{Power: -3, Lanes: []ocs.DBm{-3}}).String(); got != "-3.00 dBm" {
		t.Errorf("String = %q", got)
	}

	// The file stays open and what is written into it is seen.
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.WriteAt(make([]byte, 2), 34); err != nil {
		t.Fatal(err)
	}
	if sample, err = s.Sample(context.Background()); err != nil || !math.IsInf(float64(sample.Power), -1) {
		t.Errorf("after the light went: %v, %v", sample, err)
	}

	// Truncated meanwhile, as a program that is stopped may leave it.
	if err := f.Truncate(36); err != nil {
		t.Fatal(err)
	}
	if sample, err = s.Sample(context.Background()); err == nil || !strings.Contains(err.Error(), "ends before the 8 bytes at 00h:34") {
		t.Errorf("truncated: %v, %v", sample, err)
	}
}

func TestFile_Errors(t *testing.T) {
	ctx := context.Background()
	dir := t.TempDir()
	if _, err := optics.OpenFile(filepath.Join(dir, "none")); !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), "none") {
		t.Errorf("missing: %v", err)
	}
	if _, err := optics.OpenFile(dir); err == nil || !strings.Contains(err.Error(), "not a regular file") {
		t.Errorf("directory: %v", err)
	}
	if _, err := optics.OpenFile(dir + "/\x00"); err == nil {
		t.Error("a path that cannot be was opened")
	}
	if os.Geteuid() != 0 {
		path := write(t, nil)
		if err := os.Chmod(path, 0); err != nil {
			t.Fatal(err)
		}
		if _, err := optics.OpenFile(path); !errors.Is(err, fs.ErrPermission) {
			t.Errorf("not readable: %v", err)
		}
	}

	r, err := optics.OpenFile(write(t, image(t, 1)))
	if err != nil {
		t.Fatal(err)
	}
	buf := make([]byte, 16)
	ended, cancel := context.WithCancel(ctx)
	cancel()
	for _, tt := range []struct {
		name string
		ctx  context.Context
		a    cmis.Address
		want string
	}{
		{"half page", ctx, cmis.Address{Offset: 120}, "cannot be read at once"},
		{"bank", ctx, cmis.Address{Page: 0x11, Bank: 1, Offset: 186}, "bank that images do not have"},
		{"page", ctx, cmis.Address{Page: 0x20, Offset: 128}, "ends before the 16 bytes at 20h:128"},
		{"context", ended, cmis.Address{}, context.Canceled.Error()},
	} {
		if err := r.ReadPage(tt.ctx, tt.a, buf); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, want %q in it", tt.name, err, tt.want)
		}
	}
	r.Close()
	if err := r.ReadPage(ctx, cmis.Address{}, buf); !errors.Is(err, os.ErrClosed) {
		t.Errorf("closed: %v", err)
	}
}

// A sample spans the read and nothing more, and one is taken each period.
func TestSampler_Period(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &memory{image: image(t, 500, 500, 500, 500), takes: 2 * time.Millisecond}
		s := optics.Sampler{Reader: m, Period: 10 * time.Millisecond}
		if _, err := s.Identify(t.Context()); err != nil {
			t.Fatal(err)
		}
		m.reads = nil
		axis := timeline.HostAxis()
		start := time.Now()
		for i := range 5 {
			at := start.Add(time.Duration(i) * s.Period)
			sample, err := s.Sample(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if want := axis.Span(at, at.Add(m.takes)); sample.Interval != want {
				t.Errorf("sample %d at %v, want %v", i, sample.Interval, want)
			}
		}
		if want := slices.Repeat([]cmis.Span{{Address: cmis.Address{Offset: 34}, Length: 8}}, 5); !slices.Equal(m.reads, want) {
			t.Errorf("reads %v, want %v", m.reads, want)
		}

		// A caller who was late gets one at once, and not all that it missed.
		time.Sleep(100 * time.Millisecond)
		late := time.Now()
		for range 2 {
			if _, err := s.Sample(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		if got := time.Since(late); got != s.Period+m.takes {
			t.Errorf("two samples after a pause took %v", got)
		}
		// Nor are samples that take longer than the period.
		m.takes = 25 * time.Millisecond
		slow := time.Now()
		for range 3 {
			if _, err := s.Sample(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		if got := time.Since(slow); got > 3*m.takes+s.Period {
			t.Errorf("three slow samples took %v", got)
		}

		m.takes, s.Period = 0, time.Hour
		if _, err := s.Sample(t.Context()); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		before := time.Now()
		if _, err := s.Sample(ctx); !errors.Is(err, context.DeadlineExceeded) || time.Since(before) != time.Second {
			t.Errorf("waiting ended with %v after %v", err, time.Since(before))
		}
	})
}

func TestSampler_Flags(t *testing.T) {
	m := &memory{image: image(t, 500, 0, 500, 500)}
	s := optics.Sampler{Reader: m, Flags: true}
	sample, err := s.Sample(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(sample.RxLOS, []bool{false, true, false, false}) || !slices.Equal(sample.TxLOS, []bool{true, false, false, false}) {
		t.Errorf("Rx LOS %v, Tx LOS %v", sample.RxLOS, sample.TxLOS)
	}
	if !math.IsInf(float64(sample.Power), -1) || len(sample.Lanes) != 4 {
		t.Errorf("%v with one dark lane", sample)
	}
	if got, want := m.reads[len(m.reads)-1], (cmis.Span{Address: cmis.Address{Offset: 3}, Length: 55}); got != want {
		t.Errorf("read %v, want %v", got, want)
	}
}

// A module that is pulled gives errors and no powers, and is identified when it is back.
func TestSampler_Pulled(t *testing.T) {
	for _, flags := range []bool{false, true} {
		m := &memory{image: image(t, 500, 500, 500, 500)}
		s := optics.Sampler{Reader: m, Flags: flags}
		if _, err := s.Sample(t.Context()); err != nil {
			t.Fatal(err)
		}
		pulled := slices.Repeat([]byte{0xff}, 2432)
		m.image = pulled
		for range 2 { // first of a module that is known, then of none
			if sample, err := s.Sample(t.Context()); !errors.Is(err, cmis.ErrNoModule) || len(sample.Lanes) != 0 {
				t.Errorf("pulled: %v, %v", sample, err)
			}
		}
		m.err = errors.New("input/output error")
		if _, err := s.Sample(t.Context()); !errors.Is(err, m.err) {
			t.Errorf("failing: %v", err)
		}
		m.err, m.image = nil, osfp(t)
		sample, err := s.Sample(t.Context())
		if err != nil || len(sample.Lanes) != 2 {
			t.Errorf("another module: %v, %v", sample, err)
		}
	}
}

// osfp has two of eight lanes.
func osfp(t *testing.T) cmis.Image {
	im, err := cmis.Encode(cmis.Module{
		Identity: cmis.Identity{Identifier: cmis.OSFP, Lanes: 0x03},
		Monitors: []cmis.Lane{{Number: 1, RxPower: 100}, {Number: 2, RxPower: 100}},
	})
	if err != nil {
		t.Fatal(err)
	}
	return im
}

func sample(from, to int64, p ocs.DBm) optics.Sample {
	return optics.Sample{Interval: timeline.Between(from, to), Power: p, Lanes: []ocs.DBm{p}}
}

func TestTracker(t *testing.T) {
	tr := optics.Tracker{Subject: "gpu1/ens1f0", Host: "gpu1", Lag: 50}
	off := ocs.DBm(math.Inf(-1))
	var got []timeline.Mark
	for _, s := range []optics.Sample{
		sample(100, 110, -3), // tells how things stand
		sample(200, 210, ocs.DBm(math.NaN())),
		sample(300, 310, -24.5), // within the hysteresis
		sample(400, 410, off),
		sample(500, 510, -30),
		sample(600, 610, -24.5),
		sample(700, 710, -24),
		sample(800, 810, -2),
	} {
		if m, ok := tr.Add(s); ok {
			got = append(got, m)
		}
	}
	want := []timeline.Mark{
		{Stage: timeline.Dark, Subject: "gpu1/ens1f0", Host: "gpu1", Source: "module", Detail: "no light", Interval: timeline.Between(50, 410)},
		{Stage: timeline.Light, Subject: "gpu1/ens1f0", Host: "gpu1", Source: "module", Detail: "-24.00 dBm", Interval: timeline.Between(450, 710)},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
}

func TestTracker_Level(t *testing.T) {
	tr := optics.Tracker{Threshold: -18, Hysteresis: 3}
	tr.Add(sample(0, 1, -17))
	for i, tt := range []struct {
		p     ocs.DBm
		stage timeline.Stage
	}{{-18.1, ""}, {-15.1, ""}, {-15, timeline.Light}, {-18, ""}, {-18.1, timeline.Dark}} {
		if m, _ := tr.Add(sample(int64(i)*10+10, int64(i)*10+11, tt.p)); m.Stage != tt.stage {
			t.Errorf("%v: stage %q, want %q", tt.p, m.Stage, tt.stage)
		}
	}
}

// Light that goes and comes, a module that brings its value up to date now and then, and
// reads that take a while: each mark holds the one moment at which the light moved, and
// none is missing.
func TestTracker_HoldsTruth(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		lag := rapid.Int64Range(1, 100).Draw(t, "refresh")
		phase := rapid.Int64Range(0, lag-1).Draw(t, "phase")
		period := rapid.Int64Range(1, 100).Draw(t, "period")
		var moved []int64
		at := int64(1000)
		for range rapid.IntRange(0, 6).Draw(t, "moves") {
			at += rapid.Int64Range(2*(lag+2*period), 10*(lag+period)).Draw(t, "apart")
			moved = append(moved, at)
		}
		end := at + 4*(lag+2*period)
		lit := func(at int64) bool { n, _ := slices.BinarySearch(moved, at+1); return n%2 == 0 }

		tr := optics.Tracker{Lag: time.Duration(lag)}
		var got []timeline.Mark
		for now := int64(1000); now < end; {
			took := rapid.Int64Range(0, period).Draw(t, "took")
			read := now + rapid.Int64Range(0, took).Draw(t, "read")
			value := read - (read+phase)%lag
			p := ocs.DBm(math.Inf(-1))
			if lit(value) {
				p = -3
			}
			if m, ok := tr.Add(sample(now, now+took, p)); ok {
				got = append(got, m)
			}
			now += max(took, period)
		}
		if len(got) != len(moved) {
			t.Fatalf("%d marks of %d moves: %v", len(got), len(moved), got)
		}
		for i, m := range got {
			want := []timeline.Stage{timeline.Dark, timeline.Light}[i%2]
			if m.Stage != want || !m.Contains(moved[i]) {
				t.Fatalf("move %d at %d: %v", i, moved[i], m)
			}
		}
	})
}

func TestOpenEthtool_BadName(t *testing.T) {
	if _, err := optics.OpenEthtool(nil, "no/name"); err == nil {
		t.Error("a name that cannot be was taken")
	}
}

// Ensure that what a module launches is read by lane, does not wait for the period, and
// that a module that was pulled is told.
func TestSampler_Transmit(t *testing.T) {
	module := cmis.Module{Identity: cmis.Identity{Identifier: cmis.QSFP28}}
	for i, p := range []float64{1000, 500, 0, 250} {
		module.Monitors = append(module.Monitors, cmis.Lane{Number: i + 1, TxPower: cmis.PowerOf(p), RxPower: cmis.PowerOf(1)})
	}
	im, err := cmis.Encode(module)
	if err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		m := &memory{image: im}
		s := optics.Sampler{Reader: m, Period: time.Hour}
		if _, err := s.Sample(t.Context()); err != nil {
			t.Fatal(err)
		}
		before := time.Now()
		got, err := s.Transmit(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if time.Since(before) != 0 {
			t.Errorf("waited %v", time.Since(before))
		}
		want := []ocs.DBm{0, ocs.Milliwatts(0.5), ocs.DBm(math.Inf(-1)), ocs.Milliwatts(0.25)}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("-want +got\n%s", diff)
		}
		m.err = cmis.ErrNoModule
		if got, err := s.Transmit(t.Context()); !errors.Is(err, cmis.ErrNoModule) || got != nil {
			t.Errorf("pulled: %v, %v", got, err)
		}
		// What is plugged in then may be another module.
		m.err = nil
		reads := len(m.reads)
		if _, err := s.Transmit(t.Context()); err != nil || len(m.reads) < reads+2 {
			t.Errorf("%d reads after it was pulled, want it identified again: %v", len(m.reads)-reads, err)
		}
	})
}
