package tl1switch_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ocslab/ocslab/drivers/tl1switch"
	"github.com/ocslab/ocslab/ocs"
)

// fibers is a reply in blocks: each but the last ends with >, and a prompt follows each. The
// command is echoed behind the prompt.
func fibers(command, ctag string, blocks ...[]string) string {
	var b strings.Builder
	b.WriteString(command)
	for i, lines := range blocks {
		b.WriteString("\r\n\n   BD0472 16-06-09 17:13:36\r\nM  " + ctag + " COMPLD\r\n")
		for _, l := range lines {
			b.WriteString("   \"" + l + "\"\r\n")
		}
		if i < len(blocks)-1 {
			b.WriteString(">\r\n<")
		}
	}
	return b.String() + ";\r\n<"
}

// fiber answers one command, which is echoed.
func (l *line) fiber(want string, blocks ...[]string) {
	if len(blocks) == 0 {
		blocks = [][]string{nil}
	}
	l.says(want, fibers(want, tag(want), blocks...))
}

func (l *line) fiberLogin() {
	l.Send("\r\n<")
	l.says(`ACT-USER::admin:1::"`+password+`";`, fibers("", "1", nil))
}

func (l *line) fiberSystem() {
	l.fiber("RTRV-SYSTEM-INFO:::2:;", []string{"GGN:SerialNumber=BD0472", "GGN:SystemType=S500", "GGN:ChassisType=100", "GGN:LicensedPortMatrix=48x48", "GGN:SoftwareActiveVersion=4.1.2"})
}

// Lines of the public transcript, and one of an older unit that orders them otherwise and
// gives a number where there is no reading.
const (
	fiberSteady = "GGN:IPORTID=10001,IPORTGROUP=OpenGroup,IPORTNAME=IN1,IPORTCOMMENT=,INPWR=-12.05,OPORTID=20008,OPORTGROUP=OpenGroup,OPORTNAME=OUT8,OPORTCOMMENT=,OUTPWR=-13.63,SIGBAND=1550,PWRLOSS=1.57,CONNID=0,CONNNAME=IN1,CONNSTATE=steady,CONNCAUSE=none,CONNLOCK=0,CONNLOCKUSER=admin"
	fiberInput  = "GGN:IPORTID=10002,IPORTGROUP=OpenGroup,IPORTNAME=IN2,IPORTCOMMENT=,INPWR=-12.50,OPORTID=0,OPORTGROUP=,OPORTNAME=,OPORTCOMMENT=,OUTPWR=NA,SIGBAND=1550,PWRLOSS=NA,CONNID=0,CONNNAME=,CONNSTATE=single,CONNCAUSE=none,CONNLOCK=0,CONNLOCKUSER="
	fiberOutput = "GGN:IPORTID=0,IPORTGROUP=,IPORTNAME=,IPORTCOMMENT=,INPWR=NA,OPORTID=20009,OPORTGROUP=OpenGroup,OPORTNAME=OUT9,OPORTCOMMENT=,OUTPWR=-51.25,SIGBAND=1550,PWRLOSS=NA,CONNID=0,CONNNAME=,CONNSTATE=single,CONNCAUSE=none,CONNLOCK=0,CONNLOCKUSER="
	fiberSpare  = "GGN:IPORTID=0,IPORTGROUP=,IPORTNAME=,IPORTCOMMENT=,INPWR=NA,OPORTID=20049,OPORTGROUP=OpenGroup,OPORTNAME=MC-1,OPORTCOMMENT=,OUTPWR=-50.66,SIGBAND=1550,PWRLOSS=NA,CONNID=0,CONNNAME=,CONNSTATE=single,CONNCAUSE=none,CONNLOCK=0,CONNLOCKUSER="
	fiberOld    = "GGN:IPORTID=10001,IPORTNAME=,OPORTID=0,OPORTNAME=,CONNID=0,CONNSTATE=single,CONNCAUSE=none,INPWR=-49.162,OUTPWR=0.000,PWRLOSS=0.000,CONNLOCK=0,CONNLOCKUSER="
	fiberFault  = "GGN:IPORTID=10002,IPORTNAME=,OPORTID=20015,OPORTNAME=,CONNID=0,CONNSTATE=fault,CONNCAUSE=initial_connection_timer_expired,INPWR=-48.549,OUTPWR=-49.354,PWRLOSS=0.836,CONNLOCK=0,CONNLOCKUSER=admin"
	fiberLocked = "GGN:IPORTID=10003,IPORTNAME=,OPORTID=20003,OPORTNAME=,CONNID=0,CONNSTATE=steady,CONNCAUSE=none,INPWR=-3.1,OUTPWR=-4.2,PWRLOSS=1.1,CONNLOCK=1,CONNLOCKUSER=bob"
)

func TestGlimmerglass_Reads(t *testing.T) {
	dialectTalk(t, tl1switch.Config{Dialect: tl1switch.Glimmerglass}, func(l *line) {
		l.fiberLogin()
		l.fiberSystem()
		l.fiber("RTRV-CRS-FIBER::all:3:;", []string{fiberSteady, fiberInput}, []string{fiberOutput, fiberSpare}, []string{fiberFault})
		l.fiber("RTRV-CRS-FIBER::all:4:;", []string{fiberSteady, fiberInput, fiberOutput}, []string{fiberSpare})
		l.fiber("RTRV-CRS-FIBER::10001&20008:5:;", []string{fiberOld})
		l.fiber("RTRV-CFG-FIBER::10001&20008:6:;",
			[]string{"GGN:PORTID=10001,PORTGROUP=OpenGroup,PORTNAME=IN1,SIGBAND=1550,SIGTHRESH=1550,PORTHEALTH=good,PORTCAT=nor,PORTCOMMENT=,STMINSEV=DI,STMAXSEV=DI"},
			[]string{"GGN:PORTID=20008,PORTGROUP=OpenGroup,PORTNAME=OUT8,SIGBAND=1550,SIGTHRESH=1550,PORTHEALTH=good,PORTCAT=nor,PORTCOMMENT=,STMINSEV=DI,STMAXSEV=DI,CSFLTSEV=CR"})
	}, func(t *testing.T, sw *tl1switch.Switch) {
		id, err := sw.Identify(t.Context())
		want := ocs.Identity{Vendor: "Glimmerglass", Model: "100", Serial: "BD0472", Firmware: "4.1.2", Geometry: ocs.TwoSided(48, 48)}
		if err != nil || id != want {
			t.Errorf("got %+v, %v", id, err)
		}
		if m, err := sw.CrossConnects(t.Context()); err != nil || m.String() != "1>56" {
			t.Errorf("got %v, %v", m, err)
		}
		for _, test := range []struct {
			ports []ocs.Port
			want  map[ocs.Port]ocs.DBm
		}{
			{nil, map[ocs.Port]ocs.DBm{1: -12.05, 2: -12.5, 56: -13.63, 57: -51.25}},
			{[]ocs.Port{1, 56}, map[ocs.Port]ocs.DBm{1: -49.162}},
		} {
			r, err := sw.Power(t.Context(), test.ports...)
			if diff := cmp.Diff(test.want, r.Ports); diff != "" || err != nil {
				t.Errorf("%v %s", err, diff)
			}
		}
		labels, err := sw.Labels(t.Context(), 1, 56)
		if diff := cmp.Diff(map[ocs.Port]string{1: "IN1", 56: "OUT8"}, labels); diff != "" || err != nil {
			t.Errorf("%v %s", err, diff)
		}
		_, err1 := sw.Power(t.Context(), 97)
		_, err2 := sw.Labels(t.Context(), 1, 97)
		if !errors.Is(err1, ocs.ErrPort) || !errors.Is(err2, ocs.ErrPort) {
			t.Errorf("got %v, %v", err1, err2)
		}
		if err := sw.SetLabel(t.Context(), 1, "x"); !errors.Is(err, ocs.ErrNotSupported) {
			t.Errorf("got %v", err)
		}
	})
}

func TestGlimmerglass_Apply(t *testing.T) {
	cc := func(pairs ...ocs.Port) ocs.Map {
		var ccs []ocs.CrossConnect
		for i := 0; i < len(pairs); i += 2 {
			ccs = append(ccs, ocs.CrossConnect{Ingress: pairs[i], Egress: pairs[i+1]})
		}
		return ocs.MustMap(ccs...)
	}
	for name, test := range map[string]struct {
		cfg    tl1switch.Config
		change ocs.Change
		script func(*line) // from tag 3 on
		want   string
		is     error
		n      int
	}{
		"bulk": {
			change: ocs.Change{Add: cc(1, 56, 2, 57)},
			script: func(l *line) {
				l.fiber("RTRV-CRS-FIBER::10001&10002&20008&20009:3:;", []string{fiberInput, fiberOutput})
				l.fiber("ENT-CRS-FIBER::10001&10002,20008&20009:4:::OPMODE=sync;")
			},
			n: 1,
		},
		"async and in parts": {
			cfg:    tl1switch.Config{Async: true, MaxPairs: 1},
			change: ocs.Change{Add: cc(1, 56, 2, 57)},
			script: func(l *line) {
				l.fiber("RTRV-CRS-FIBER::10001&10002&20008&20009:3:;", []string{fiberInput, fiberOutput})
				l.fiber("ENT-CRS-FIBER::10001,20008:4:::OPMODE=async;")
				l.fiber("ENT-CRS-FIBER::10002,20009:5:::OPMODE=async;")
			},
			n: 2,
		},
		"move": {
			change: ocs.Change{Remove: cc(1, 56), Add: cc(1, 57)},
			script: func(l *line) {
				l.fiber("RTRV-CRS-FIBER::10001&20008&20009:3:;", []string{fiberSteady, fiberSteady, fiberOutput})
				l.fiber("DLT-CRS-FIBER::10001:4:;")
				l.fiber("ENT-CRS-FIBER::10001,20009:5:::OPMODE=sync;")
			},
			n: 2,
		},
		"locked by another": {
			change: ocs.Change{Remove: cc(3, 51)},
			script: func(l *line) { l.fiber("RTRV-CRS-FIBER::10003&20003:3:;", []string{fiberLocked}) },
			want:   `3>51 is locked by "bob"`, is: ocs.ErrInterlock,
		},
		"the device says that it is locked": {
			change: ocs.Change{Remove: cc(1, 56)},
			script: func(l *line) {
				l.fiber("RTRV-CRS-FIBER::10001&20008:3:;", []string{fiberSteady})
				l.says("DLT-CRS-FIBER::10001:4:;", denied("4", "SNVS", "Connection locked"))
			},
			want: "locked", is: ocs.ErrInterlock, n: 1,
		},
		"our own fault is replaced": {
			change: ocs.Change{Add: cc(2, 63)},
			script: func(l *line) {
				l.fiber("RTRV-CRS-FIBER::10002&20015:3:;", []string{fiberFault})
				l.fiber("DLT-CRS-FIBER::10002:4:;")
				l.fiber("ENT-CRS-FIBER::10002,20015:5:::OPMODE=sync;")
			},
			n: 2,
		},
		"busy": {
			change: ocs.Change{Add: cc(1, 57)},
			script: func(l *line) {
				l.fiber("RTRV-CRS-FIBER::10001&20009:3:;", []string{fiberSteady, fiberOutput})
			},
			want: "ingress 1 is busy with 1>56", is: ocs.ErrConflict,
		},
		"no such port": {change: ocs.Change{Add: cc(1, 97)}, want: "port 97 is not an egress port", is: ocs.ErrPort},
		"refused when something has changed": {
			change: ocs.Change{Remove: cc(1, 56), Add: cc(1, 57)},
			script: func(l *line) {
				l.fiber("RTRV-CRS-FIBER::10001&20008&20009:3:;", []string{fiberSteady, fiberOutput})
				l.fiber("DLT-CRS-FIBER::10001:4:;")
				l.says("ENT-CRS-FIBER::10001,20009:5:::OPMODE=sync;", denied("5", "IDNC", "Failed, in use"))
			},
			want: "carried out before: 1", n: 2,
		},
	} {
		t.Run(name, func(t *testing.T) {
			test.cfg.Dialect = tl1switch.Glimmerglass
			dialectTalk(t, test.cfg, func(l *line) {
				l.fiberLogin()
				l.fiberSystem()
				if test.script != nil {
					test.script(l)
				}
			}, func(t *testing.T, sw *tl1switch.Switch) {
				r, err := sw.Apply(t.Context(), test.change)
				if r.Requests != test.n {
					t.Errorf("%d requests", r.Requests)
				}
				switch {
				case test.want == "" && err != nil, test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)):
					t.Errorf("got %v, want %q", err, test.want)
				case test.is != nil && !errors.Is(err, test.is):
					t.Errorf("%v does not match %v", err, test.is)
				case test.want != "" && test.is == nil && errors.Is(err, ocs.ErrConflict):
					t.Errorf("%v says that nothing was changed", err)
				}
			})
		})
	}
}

func TestGlimmerglass_Garbled(t *testing.T) {
	for i, lines := range [][]string{
		{"GGN:IPORTID=1,OPORTID=20001"}, {"GGN:IPORTID=10001,OPORTID=-1"}, {"hello"},
		{fiberSteady, strings.Replace(fiberSteady, "20008", "20009", 1)},
	} {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			dialectTalk(t, tl1switch.Config{Dialect: tl1switch.Glimmerglass}, func(l *line) {
				l.fiberLogin()
				l.fiberSystem()
				l.fiber("RTRV-CRS-FIBER::all:3:;", lines)
			}, func(t *testing.T, sw *tl1switch.Switch) {
				m, err := sw.CrossConnects(t.Context())
				var op *ocs.OpError
				if !errors.As(err, &op) || m.Len() > 0 || errors.Is(err, ocs.ErrConflict) {
					t.Errorf("got %v, %v", m, err)
				}
			})
		})
	}
	dialectTalk(t, tl1switch.Config{Dialect: tl1switch.Glimmerglass}, func(l *line) {
		l.fiberLogin()
		l.fiber("RTRV-SYSTEM-INFO:::2:;", []string{"GGN:SerialNumber=BD0472"})
	}, func(t *testing.T, sw *tl1switch.Switch) {
		if _, err := sw.Identify(t.Context()); err == nil || !strings.Contains(err.Error(), "LicensedPortMatrix") {
			t.Errorf("got %v", err)
		}
	})
}
