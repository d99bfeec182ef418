package tl1switch_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/ocslab/ocslab/drivers/tl1switch"
	"github.com/ocslab/ocslab/ocs"
)

// What follows are the bytes of public transcripts of the devices, with line ends as
// on the wire, and what the devices must be told.

const calientHeader = "\r\n\n   CALIENT01TS 16-10-31 15:01:34\r\n"

// calientSays is a reply in blocks; each is a message of its own.
func calientSays(ctag string, blocks ...[]string) string {
	var b strings.Builder
	for _, lines := range blocks {
		b.WriteString(calientHeader + "M  " + ctag + " COMPLD\r\n")
		for _, l := range lines {
			b.WriteString("   " + l + "\r\n")
		}
		b.WriteString(";")
	}
	return b.String() + "\r\nagent>"
}

func calientDenies(ctag, code, text string) string {
	return calientHeader + "M  " + ctag + " DENY\r\n   " + code + "\r\n   /* " + text + " */\r\n;\r\nagent>"
}

// says answers one command, which must be want, with text.
func (l *line) says(want, text string) {
	l.expect(want)
	l.Send(text)
}

// calientLogin also answers the fence of a long reply.
func (l *line) calientLogin() {
	l.says(`ACT-USER::admin:1::"`+password+`";`, calientSays("1", []string{
		`"zpollock:zpollock,2"`, "/* NOTICE This is a private computer system. Unauthorized access or use may lead to prosecution.*/",
	}))
}

// calientPorts answers what is asked first: the ports, in two blocks.
func (l *line) calientPorts(tag string, next string) {
	const state = `:WX,NONE,NONE:INAS=OOS-NP,INOS=OOS,INOC=OK,INRS=NPR,OUTAS=OOS-NP,OUTOS=OOS,OUTOC=OK,OUTRS=NPR"`
	l.says("RTRV-PORT::0:"+tag+":;", calientSays(tag, []string{`"2.3.6` + state, `"3.2.5` + state}, []string{`"2.8.5` + state, `"2.3.3` + state}))
	l.says("RTRV-HDR:::"+next+":;", calientSays(next, nil))
}

func (l *line) calientCircuits(tag, next string, circuits ...string) {
	l.says("RTRV-CRS:::"+tag+"::ALL;", calientSays(tag, circuits))
	l.says("RTRV-HDR:::"+next+":;", calientSays(next, nil))
}

// Of the ports 2.3.6, 3.2.5, 2.8.5 and 2.3.3 the inputs are 1 to 4 and the outputs 5 to 8.
const (
	twoWay  = `"2.3.6-3.2.5:SRCPORT=2.3.6,DSTPORT=3.2.5,GRPNAME=DSTRAUB,CONNNAME=2.3.6-3.2.5,CONNTYPE=2WAY,AS=UMA,OS=RDY,OC=OK,PS=UPR,AL=CL"`
	failing = `"2.8.5>2.3.3:SRCPORT=2.8.5,DSTPORT=2.3.3,GRPNAME=DSTRAUB,CONNNAME=2.8.5>2.3.3,CONNTYPE=1WAY,AS=UMA,OS=RDY,OC=FAIL,PS=UPR,AL=CL"`
	looped  = `"2.3.3-2.3.3:SRCPORT=2.3.3,DSTPORT=2.3.3,GRPNAME=DSTRAUB,CONNNAME=2.3.3-2.3.3,CONNTYPE=2WAY,AS=UMA,OS=RDY,OC=OK,PS=UPR,AL=CL"`
	oneWay  = `"2.8.5>2.3.3:SRCPORT=2.8.5,DSTPORT=2.3.3,GRPNAME=DSTRAUB,CONNNAME=2.8.5>2.3.3,CONNTYPE=1WAY,AS=UMA,OS=RDY,OC=OK,PS=UPR,AL=CL"`
)

// dialectTalk runs f with a Switch whose device follows script.
func dialectTalk(t *testing.T, cfg tl1switch.Config, script func(*line), f func(*testing.T, *tl1switch.Switch)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		p := newPeer(t, script)
		c := p.config()
		c.Dialect, c.TwoStep, c.Group, c.Async, c.MaxPairs = cfg.Dialect, cfg.TwoStep, cfg.Group, cfg.Async, cfg.MaxPairs
		sw, err := tl1switch.Open(t.Context(), c)
		if err != nil {
			t.Fatal(err)
		}
		f(t, sw)
		sw.Close()
		p.Finish()
	})
}

func TestCalient_Reads(t *testing.T) {
	dialectTalk(t, tl1switch.Config{Dialect: tl1switch.Calient}, func(l *line) {
		l.calientLogin()
		l.says("RTRV-NE:::2:;", calientSays("2", []string{`"CALIENT01TS:SERIALNUMBER=C00002227,SWPACKAGE=6.0-3,STATUS=OK,CHASSISTYPE=S162,PLATFORM=VERSION2"`}))
		l.calientPorts("3", "4")
		// The two blocks come one by one, with time between them.
		l.expect("RTRV-CRS:::5::ALL;")
		l.Send(strings.TrimSuffix(calientSays("5", []string{twoWay}), "\r\nagent>"))
		l.expect("RTRV-HDR:::6:;")
		time.Sleep(time.Second)
		l.Send(calientSays("5", []string{failing, looped}) + calientSays("6", nil))
		l.says("RTRV-PORT-SUM::0:7:;", calientSays("7",
			[]string{`"2.3.6:ALIAS=NONE,INPWR=-1.25,OUTPWR=NONE,CONNNAME1=2.3.6>3.2.5,CONNSTATE1=ACT,CONNNAME2=NONE,CONNSTATE2=NONE"`},
			[]string{`"3.2.5:ALIAS=spine,INPWR=NONE,OUTPWR=-3.5,CONNNAME1=NONE,CONNSTATE1=NONE,CONNNAME2=NONE,CONNSTATE2=NONE"`}))
		l.says("RTRV-HDR:::8:;", calientDenies("8", "IICM", "Invalid command")) // does as well
		l.says("RTRV-PORT-SUM::3.2.5:9:;", calientSays("9",
			[]string{`"3.2.5:ALIAS=spine,INPWR=NONE,OUTPWR=-3.5,CONNNAME1=NONE,CONNSTATE1=NONE,CONNNAME2=NONE,CONNSTATE2=NONE"`}))
	}, func(t *testing.T, sw *tl1switch.Switch) {
		id, err := sw.Identify(t.Context())
		want := ocs.Identity{Vendor: "Calient", Model: "S162", Serial: "C00002227", Firmware: "6.0-3", Geometry: ocs.TwoSided(4, 4)}
		if err != nil || id != want {
			t.Errorf("got %+v, %v", id, err)
		}
		// Both directions of the first, nothing of the second, which fails, and the one direction
		// that the third has.
		m, err := sw.CrossConnects(t.Context())
		if err != nil || m.String() != "1>6,2>5,4>8" {
			t.Errorf("got %v, %v", m, err)
		}
		r, err := sw.Power(t.Context())
		if diff := cmp.Diff(map[ocs.Port]ocs.DBm{1: -1.25, 6: -3.5}, r.Ports); diff != "" || err != nil {
			t.Errorf("%v %s", err, diff)
		}
		labels, err := sw.Labels(t.Context(), 6)
		if diff := cmp.Diff(map[ocs.Port]string{6: "spine"}, labels); diff != "" || err != nil {
			t.Errorf("%v %s", err, diff)
		}
		if _, err := sw.Power(t.Context(), 9); !errors.Is(err, ocs.ErrPort) {
			t.Errorf("got %v", err)
		}
		// The device has no such commands: nothing is sent.
		for op, err := range map[string]error{
			"SetLabel": sw.SetLabel(t.Context(), 1, "x"), "SetShutters": sw.SetShutters(t.Context(), true, 1), "Restart": sw.Restart(t.Context()),
			"SetMonitor": sw.SetMonitor(t.Context(), ocs.Monitor{Port: 1}), "Notify": sw.Notify(t.Context(), func(ocs.Event) {}),
		} {
			if !errors.Is(err, ocs.ErrNotSupported) {
				t.Errorf("%s: got %v", op, err)
			}
		}
	})
}

func TestCalient_Apply(t *testing.T) {
	for name, test := range map[string]struct {
		cfg    tl1switch.Config
		have   []string
		change ocs.Change
		early  bool        // refused before the connections are read
		script func(*line) // from tag 6 on
		want   string      // error, "" for none
		is     error
		n      int // requests
	}{
		"learns that one step is enough": {
			change: ocs.Change{Add: ocs.MustMap(ocs.CrossConnect{Ingress: 1, Egress: 6}, ocs.CrossConnect{Ingress: 2, Egress: 5})},
			script: func(l *line) {
				l.says("ENT-CRS::2.3.6,3.2.5:6::admin,1WAY;", calientSays("6", nil))
				l.says("RTRV-PORT-SUM::2.3.6:7:;", calientSays("7", []string{`"2.3.6:ALIAS=NONE,INPWR=NONE,OUTPWR=NONE,CONNNAME1=2.3.6>3.2.5,CONNSTATE1=ACT,CONNNAME2=NONE,CONNSTATE2=NONE"`}))
				l.says("ENT-CRS::3.2.5,2.3.6:8::admin,1WAY;", calientSays("8", nil))
			},
			n: 2,
		},
		"learns that two steps are needed": {
			change: ocs.Change{Add: ocs.MustMap(ocs.CrossConnect{Ingress: 1, Egress: 6}, ocs.CrossConnect{Ingress: 2, Egress: 5})},
			script: func(l *line) {
				l.says("ENT-CRS::2.3.6,3.2.5:6::admin,1WAY;", calientSays("6", nil))
				l.says("RTRV-PORT-SUM::2.3.6:7:;", calientSays("7", []string{`"2.3.6:ALIAS=NONE,INPWR=NONE,OUTPWR=NONE,CONNNAME1=other,CONNSTATE1=ACT,CONNNAME2=2.3.6>3.2.5,CONNSTATE2=NONE"`}))
				l.says("ACT-CRS::2.3.6,3.2.5:8::2.3.6>3.2.5,admin;", calientSays("8", nil))
				l.says("ENT-CRS::3.2.5,2.3.6:9::admin,1WAY;", calientSays("9", nil))
				l.says("ACT-CRS::3.2.5,2.3.6:10::3.2.5>2.3.6,admin;", calientSays("10", nil))
			},
			n: 4,
		},
		"removes both directions at once": {
			have:   []string{twoWay},
			change: ocs.Change{Remove: ocs.MustMap(ocs.CrossConnect{Ingress: 1, Egress: 6}, ocs.CrossConnect{Ingress: 2, Egress: 5})},
			script: func(l *line) {
				l.says("CANC-CRS:::6::2.3.6-3.2.5;", calientSays("6", nil))
				l.says("DLT-CRS:::7::2.3.6-3.2.5;", calientSays("7", nil))
			},
			n: 2,
		},
		"does not darken the other direction": {
			have:   []string{twoWay},
			change: ocs.Change{Remove: ocs.MustMap(ocs.CrossConnect{Ingress: 2, Egress: 5})},
			want:   "would darken 1>6, too", is: ocs.ErrConflict,
		},
		"a port is busy": {
			have:   []string{oneWay},
			change: ocs.Change{Add: ocs.MustMap(ocs.CrossConnect{Ingress: 3, Egress: 5})},
			want:   "ingress 3 is busy with 3>8", is: ocs.ErrConflict,
		},
		"what is there stays": {have: []string{oneWay}, change: ocs.Change{Add: ocs.MustMap(ocs.CrossConnect{Ingress: 3, Egress: 8})}},
		"what is not there is no error": {
			change: ocs.Change{Remove: ocs.MustMap(ocs.CrossConnect{Ingress: 3, Egress: 8})},
		},
		"the failed connection of another": {
			have: []string{failing}, change: ocs.Change{Add: ocs.MustMap(ocs.CrossConnect{Ingress: 3, Egress: 8})},
			want: `which has failed but belongs to "DSTRAUB"`, is: ocs.ErrConflict,
		},
		"our own failed connection": {
			cfg:  tl1switch.Config{Group: "DSTRAUB", TwoStep: tl1switch.TwoStepAlways},
			have: []string{failing}, change: ocs.Change{Add: ocs.MustMap(ocs.CrossConnect{Ingress: 3, Egress: 8})},
			script: func(l *line) {
				l.says("CANC-CRS:::6::2.8.5>2.3.3;", calientDenies("6", "SNVS", "Invalid state"))
				l.says("DLT-CRS:::7::2.8.5>2.3.3;", calientSays("7", nil))
				l.says("ENT-CRS::2.8.5,2.3.3:8::DSTRAUB,1WAY;", calientSays("8", nil))
				l.says("ACT-CRS::2.8.5,2.3.3:9::2.8.5>2.3.3,DSTRAUB;", calientSays("9", nil))
			},
			n: 4,
		},
		"no such port": {
			change: ocs.Change{Add: ocs.MustMap(ocs.CrossConnect{Ingress: 3, Egress: 9})},
			want:   "port 9 is not an egress port", is: ocs.ErrPort, early: true,
		},
		"refused at first": {
			cfg:    tl1switch.Config{TwoStep: tl1switch.TwoStepNever},
			change: ocs.Change{Add: ocs.MustMap(ocs.CrossConnect{Ingress: 1, Egress: 6})},
			script: func(l *line) {
				l.says("ENT-CRS::2.3.6,3.2.5:6::admin,1WAY;", calientDenies("6", "IDNC", "Failed, in use"))
			},
			want: "in use", is: ocs.ErrConflict, n: 1,
		},
		"completed, and said to have failed": {
			cfg:    tl1switch.Config{TwoStep: tl1switch.TwoStepNever},
			change: ocs.Change{Add: ocs.MustMap(ocs.CrossConnect{Ingress: 1, Egress: 6})},
			script: func(l *line) {
				l.says("ENT-CRS::2.3.6,3.2.5:6::admin,1WAY;", calientSays("6", []string{"/* Connection setup failed */"}))
			},
			want: `COMPLD "Connection setup failed"`, n: 1,
		},
		"refused when something has changed": {
			cfg: tl1switch.Config{TwoStep: tl1switch.TwoStepNever}, have: []string{oneWay},
			change: ocs.Change{Remove: ocs.MustMap(ocs.CrossConnect{Ingress: 3, Egress: 8}), Add: ocs.MustMap(ocs.CrossConnect{Ingress: 1, Egress: 6})},
			script: func(l *line) {
				l.says("DLT-CRS:::6::2.8.5>2.3.3;", calientSays("6", nil))
				l.says("ENT-CRS::2.3.6,3.2.5:7::admin,1WAY;", calientDenies("7", "IDNC", "Failed, in use"))
			},
			want: "carried out before: 1", n: 2,
		},
	} {
		t.Run(name, func(t *testing.T) {
			test.cfg.Dialect = tl1switch.Calient
			dialectTalk(t, test.cfg, func(l *line) {
				l.calientLogin()
				l.calientPorts("2", "3")
				if !test.early {
					l.calientCircuits("4", "5", test.have...)
				}
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
				case test.want != "" && test.is == nil && (errors.Is(err, ocs.ErrConflict) || errors.Is(err, ocs.ErrDenied)):
					t.Errorf("%v says that nothing was changed", err)
				}
				var op *ocs.OpError
				if err != nil && !errors.As(err, &op) {
					t.Errorf("%v is no OpError", err)
				}
			})
		})
	}
}

func TestCalient_Garbled(t *testing.T) {
	for name, script := range map[string]func(*line){
		"NoPorts": func(l *line) {
			l.says("RTRV-PORT::0:2:;", calientSays("2", nil))
			l.says("RTRV-HDR:::3:;", calientSays("3", nil))
		},
		"SamePort": func(l *line) {
			l.says("RTRV-PORT::0:2:;", calientSays("2", []string{`"1:A"`, `"1:A"`}))
			l.says("RTRV-HDR:::3:;", calientSays("3", nil))
		},
		"UnknownPort": func(l *line) { l.calientPorts("2", "3"); l.calientCircuits("4", "5", `"1>9:SRCPORT=1,DSTPORT=9"`) },
		"Contradicts": func(l *line) { l.calientPorts("2", "3"); l.calientCircuits("4", "5", oneWay, oneWay) },
		"DeniedLate": func(l *line) {
			l.says("RTRV-PORT::0:2:;", calientSays("2", []string{`"1:A"`}))
			l.says("RTRV-HDR:::3:;", calientDenies("2", "SROF", "Failed")+calientSays("3", nil))
		},
		"DeniedAtOnce": func(l *line) { l.says("RTRV-PORT::0:2:;", calientDenies("2", "SROF", "Failed")) },
		"Silent": func(l *line) {
			l.says("RTRV-PORT::0:2:;", calientSays("2", []string{`"1:A"`}))
			l.expect("RTRV-HDR:::3:;")
		},
	} {
		t.Run(name, func(t *testing.T) {
			dialectTalk(t, tl1switch.Config{Dialect: tl1switch.Calient}, func(l *line) {
				l.calientLogin()
				script(l)
			}, func(t *testing.T, sw *tl1switch.Switch) {
				m, err := sw.CrossConnects(t.Context())
				var op *ocs.OpError
				if !errors.As(err, &op) || m.Len() > 0 || errors.Is(err, ocs.ErrConflict) {
					t.Errorf("got %v, %v", m, err)
				}
			})
		})
	}
}

// Ensure that an idle session is kept alive, and that a login that the device has is good.
func TestCalient_KeepAlive(t *testing.T) {
	dialectTalk(t, tl1switch.Config{Dialect: tl1switch.Calient}, func(l *line) {
		l.says(`ACT-USER::admin:1::"`+password+`";`, calientDenies("1", "SNVS", "Already logged in"))
		l.calientPorts("2", "3")
		l.calientCircuits("4", "5")
		began := time.Now()
		l.says("RTRV-HDR:::6:;", calientSays("6", nil))
		l.says("RTRV-HDR:::7:;", calientDenies("7", "PLNA", "Login Not Active"))
		if idle := time.Since(began); idle < 2*time.Minute || idle > 2*time.Minute+time.Second {
			l.T.Errorf("after %v", idle)
		}
		// The next request finds out, and logs in.
		l.says("RTRV-CRS:::8::ALL;", calientDenies("8", "PLNA", "Login Not Active"))
		l.says(`ACT-USER::admin:9::"`+password+`";`, calientSays("9", nil))
		l.calientCircuits("10", "11", oneWay)
	}, func(t *testing.T, sw *tl1switch.Switch) {
		if _, err := sw.CrossConnects(t.Context()); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2*time.Minute + time.Second)
		if m, err := sw.CrossConnects(t.Context()); err != nil || m.Len() != 1 {
			t.Errorf("got %v, %v", m, err)
		}
	})
}

func TestOpen_BadDialect(t *testing.T) {
	for _, cfg := range []tl1switch.Config{{Dialect: "klingon"}, {Dialect: tl1switch.Calient, TwoStep: "maybe"}} {
		cfg.Dialer = newPeer(t)
		if _, err := tl1switch.Open(context.Background(), cfg); err == nil || !strings.Contains(err.Error(), "want") {
			t.Errorf("%+v: got %v", cfg, err)
		}
	}
}
