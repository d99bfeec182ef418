package scpiswitch_test

import (
	"errors"
	"maps"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/ocslab/ocslab/drivers/internal/drivertest"
	"github.com/ocslab/ocslab/drivers/scpiswitch"
	"github.com/ocslab/ocslab/ocs"
	"github.com/ocslab/ocslab/wire/scpi"
)

func TestOpenWithoutDialer(t *testing.T) {
	if _, err := scpiswitch.Open(t.Context(), scpiswitch.Config{}); err == nil {
		t.Error("no error")
	}
}

func TestIdentify(t *testing.T) {
	const undefined = `-113, "Undefined header"`
	for _, tt := range []struct {
		name, idn, size string
		want            ocs.Identity
		err             error
		again           bool // asks again next time
	}{
		{name: "both", idn: "Polatis,I-OST-24x24-LU1-DMHNS,002414,6.5.2.18", size: "24,24",
			want: ocs.Identity{Vendor: "Polatis", Model: "I-OST-24x24-LU1-DMHNS", Serial: "002414", Firmware: "6.5.2.18", Geometry: ocs.TwoSided(24, 24)}},
		{name: "blanks", idn: "Polatis, X, 1, 2", size: "16, 8",
			want: ocs.Identity{Vendor: "Polatis", Model: "X", Serial: "1", Firmware: "2", Geometry: ocs.TwoSided(16, 8)}},
		{name: "single-sided", idn: "Polatis,N-VST-48xCC-LU1,1,2", size: "not asked",
			want: ocs.Identity{Vendor: "Polatis", Model: "N-VST-48xCC-LU1", Serial: "1", Firmware: "2", Geometry: ocs.SingleSided(48)}},
		{name: "single-sided by size", idn: "Polatis,X,1,2", size: "48,0",
			want: ocs.Identity{Vendor: "Polatis", Model: "X", Serial: "1", Firmware: "2", Geometry: ocs.SingleSided(48)}},
		{name: "size by product code", idn: "Polatis,N-VST-192x192-LU1-DMHNV-801,1,2", size: "",
			want: ocs.Identity{Vendor: "Polatis", Model: "N-VST-192x192-LU1-DMHNV-801", Serial: "1", Firmware: "2", Geometry: ocs.TwoSided(192, 192)}},
		{name: "no size", idn: "Polatis,X,1,2", size: "", want: ocs.Identity{Vendor: "Polatis", Model: "X", Serial: "1", Firmware: "2"}, again: true},
		{name: "size refused", idn: "Polatis,X-16x16,1,2", size: "-", err: ocs.ErrDenied},
		{name: "nothing", err: ocs.ErrNotSupported},
		{name: "odd identity", idn: "who knows", err: drivertest.ErrAny},
		{name: "odd size", idn: "Polatis,X,1,2", size: "sixteen", err: drivertest.ErrAny},
		{name: "three sizes", idn: "Polatis,X,1,2", size: "1,2,3", err: drivertest.ErrAny},
		{name: "no ports", idn: "Polatis,X,1,2", size: "0,16", err: drivertest.ErrAny},
	} {
		t.Run(tt.name, func(t *testing.T) {
			answer := func(l *line, query, reply string) {
				switch reply {
				case "":
					l.fail(query, undefined)
				case "-":
					l.fail(query, `-200, "Execution error"`)
				default:
					l.ask(query, reply)
				}
			}
			talk(t, func(t *testing.T, sw *scpiswitch.Switch) {
				for range 2 {
					id, err := sw.Identify(t.Context())
					if !matches(err, tt.err) || id != tt.want {
						t.Errorf("got %+v, %v", id, err)
					}
				}
			}, func(l *line) {
				for i := range 2 {
					if i > 0 && tt.err == nil && !tt.again {
						break
					}
					answer(l, "*IDN?", tt.idn)
					if strings.Contains(tt.idn, ",") && !strings.Contains(tt.idn, "CC") {
						answer(l, ":OXC:SWIT:SIZE?", tt.size)
					}
				}
			})
		})
	}
}

func TestCrossConnects(t *testing.T) {
	for _, tt := range []struct{ reply, want, err string }{
		{reply: "(@1,2,3),(@19,18,22)", want: "1>19,2>18,3>22"},
		{reply: "(@),(@)", want: ""},
		{reply: "(@1:3),(@19:17)", want: "1>19,2>18,3>17"},
		{reply: " (@1) , (@17) ", want: "1>17"},
		{reply: "(@1,2),(@17)", err: "names 2 ingress but 1 egress ports"},
		{reply: "(@1,1),(@17,18)", err: "contradicts itself"},
		{reply: "(@1,2),(@17,17)", err: "contradicts itself"},
		{reply: "(@0),(@17)", err: "contradicts itself"},
		{reply: "(@1)", err: "cannot understand"},
		{reply: "(@1),(@17),(@18)", err: "cannot understand"},
		{reply: "1,17", err: "cannot understand"},
		{reply: "(@1:99999999),(@1)", err: "cannot understand"},
	} {
		t.Run(tt.reply, func(t *testing.T) {
			talk(t, func(t *testing.T, sw *scpiswitch.Switch) {
				m, err := sw.CrossConnects(t.Context())
				if tt.err == "" && (err != nil || m.String() != drivertest.Map(t, tt.want).String()) {
					t.Errorf("got %v, %v", m, err)
				}
				var op *ocs.OpError
				if tt.err != "" && (!errors.As(err, &op) || !strings.Contains(op.Error(), tt.err) || op.Reply != strings.TrimSpace(tt.reply) || errors.Is(err, ocs.ErrConflict)) {
					t.Errorf("got %v", err)
				}
			}, func(l *line) { l.ask(":OXC:SWIT:CONN:STAT?", tt.reply) })
		})
	}
}

// TestErrors is what the errors of a device match.
func TestErrors(t *testing.T) {
	for _, tt := range []struct {
		said string
		code int
		want error
		port bool
	}{
		{`-113, "Undefined header"`, -113, ocs.ErrNotSupported, false},
		{`-221,"Settings conflict;port 17"`, -221, ocs.ErrConflict, false},
		{`-222, "Data out of range"`, -222, ocs.ErrDenied, true},
		{`-224, "Illegal parameter value"`, -224, ocs.ErrDenied, true},
		{`-200, "Execution error"`, -200, ocs.ErrDenied, false},
		{`101, "Mirror ""7"" is stuck"`, 101, ocs.ErrDenied, false},
	} {
		talk(t, func(t *testing.T, sw *scpiswitch.Switch) {
			r, err := sw.Apply(t.Context(), ocs.Change{Add: drivertest.Map(t, "1>17")})
			var e *scpi.Error
			if !errors.Is(err, tt.want) || errors.Is(err, ocs.ErrPort) != tt.port || !errors.As(err, &e) || e.Code != tt.code {
				t.Errorf("%s: got %v", tt.said, err)
			}
			var op *ocs.OpError
			if !errors.As(err, &op) || op.Request != ":OXC:SWIT:CONN:ADD (@1),(@17)\r\n" || !strings.Contains(op.Reply, tt.said) || r.Requests != 1 {
				t.Errorf("%s: got %+v in %d requests", tt.said, op, r.Requests)
			}
		}, func(l *line) { l.refuse(":OXC:SWIT:CONN:ADD (@1),(@17)", tt.said) })
	}
}

func TestShutters(t *testing.T) {
	talk(t, func(t *testing.T, sw *scpiswitch.Switch) {
		ctx := t.Context()
		got, err := sw.Shutters(ctx)
		if want := map[ocs.Port]bool{1: true, 2: false}; err != nil || !maps.Equal(got, want) {
			t.Errorf("got %v, %v", got, err)
		}
		got, err = sw.Shutters(ctx, 17, 5)
		if want := map[ocs.Port]bool{17: true, 5: false}; err != nil || !maps.Equal(got, want) {
			t.Errorf("got %v, %v", got, err)
		}
		for range 3 {
			if _, err := sw.Shutters(ctx, 1, 2); err == nil {
				t.Error("no error")
			}
		}
		if err := sw.SetShutters(ctx, true); err != nil {
			t.Error(err)
		}
		if err := sw.SetShutters(ctx, true, 2, 4, 6); err != nil {
			t.Error(err)
		}
		if err := sw.SetShutters(ctx, false, 2); err != nil {
			t.Error(err)
		}
		for _, want := range []string{"port 4 is open", "port 4 has failed"} {
			if err := sw.SetShutters(ctx, true, 2, 4); !errors.Is(err, ocs.ErrVerify) || !strings.Contains(err.Error(), want) {
				t.Errorf("got %v, want %s", err, want)
			}
		}
		if err := sw.SetShutters(ctx, true, 2); err == nil || errors.Is(err, ocs.ErrVerify) {
			t.Errorf("got %v", err)
		}
		if err := sw.SetShutters(ctx, false, 99); !errors.Is(err, ocs.ErrPort) {
			t.Errorf("got %v", err)
		}
	}, func(l *line) {
		l.ask(":OXC:SWIT:PORT:STAT?", "(D,E,F)")
		l.ask(":OXC:SWIT:PORT:STAT? (@17,5)", "(d,e)")
		for _, odd := range []string{"(D)", "(D,X)", "(DE)"} {
			l.ask(":OXC:SWIT:PORT:STAT? (@1,2)", odd)
		}
		set := func(command, ports, states string) {
			l.expect(":OXC:SWIT:PORT:"+command+" "+ports, "*OPC?", ":OXC:SWIT:PORT:STAT? "+ports, ":SYST:ERR?")
			l.Send("1\r\n" + states + "\r\n" + fine)
		}
		set("DIS", "(@2,4,6)", "(D,D,D)")
		set("ENAB", "(@2)", "(E)")
		set("DIS", "(@2,4)", "(D,E)")
		set("DIS", "(@2,4)", "(D,F)")
		set("DIS", "(@2)", "(?)")
		l.expect(":OXC:SWIT:PORT:ENAB (@99)", "*OPC?", ":OXC:SWIT:PORT:STAT? (@99)", ":SYST:ERR?")
		l.Send("1\r\n-222, \"Data out of range\"\r\n")
		l.expect(":SYST:ERR?")
		l.Send("-222, \"Data out of range\"\r\n")
		l.empty()
	})
}

func TestBootMode(t *testing.T) {
	talk(t, func(t *testing.T, sw *scpiswitch.Switch) {
		ctx := t.Context()
		for _, want := range []ocs.BootMode{ocs.BootDark, ocs.BootRestore, ocs.BootRestore, ocs.BootAutosave} {
			if m, err := sw.BootMode(ctx); err != nil || m != want {
				t.Errorf("got %v, %v, want %v", m, err, want)
			}
		}
		if _, err := sw.BootMode(ctx); err == nil {
			t.Error("no error")
		}
		for _, m := range []ocs.BootMode{ocs.BootDark, ocs.BootRestore, ocs.BootAutosave} {
			if err := sw.SetBootMode(ctx, m); err != nil {
				t.Error(err)
			}
		}
		if err := sw.SetBootMode(ctx, ocs.BootDark); !errors.Is(err, ocs.ErrVerify) {
			t.Errorf("got %v", err)
		}
		if err := sw.SetBootMode(ctx, "bright"); err == nil {
			t.Error("no error")
		}
	}, func(l *line) {
		for _, reply := range []string{"DARK", "REST", "Restore", "AUTOSAVE", "BRIGHT"} {
			l.ask(":OXC:BOOT:MODE?", reply)
		}
		for _, pair := range [][2]string{{"DARK", "DARK"}, {"RESTORE", "REST"}, {"AUTOSAVE", "AUT"}, {"DARK", "AUT"}} {
			l.expect(":OXC:BOOT:MODE "+pair[0], "*OPC?", ":OXC:BOOT:MODE?", ":SYST:ERR?")
			l.Send("1\r\n" + pair[1] + "\r\n" + fine)
		}
	})
}

// *RST drops all circuits, which is not what boot mode restore promises.
func TestRestart(t *testing.T) {
	talk(t, func(t *testing.T, sw *scpiswitch.Switch) {
		if err := sw.Restart(t.Context()); err != nil {
			t.Error(err)
		}
		if err := sw.Restart(t.Context()); !errors.Is(err, ocs.ErrNotSupported) {
			t.Errorf("got %v", err)
		}
	}, func(l *line) {
		l.ask(":OXC:BOOT:MODE?", "DARK")
		l.change("*RST")
		l.ask(":OXC:BOOT:MODE?", "REST")
	})
}

func TestMonitorSettings(t *testing.T) {
	talk(t, func(t *testing.T, sw *scpiswitch.Switch) {
		_, err := sw.Monitors(t.Context())
		for _, err := range []error{err, sw.SetMonitor(t.Context(), ocs.Monitor{Port: 1})} {
			var op *ocs.OpError
			if !errors.Is(err, ocs.ErrNotSupported) || !errors.As(err, &op) {
				t.Errorf("got %v", err)
			}
		}
	}, func(*line) {})
}

const monitorless = `-224, "Illegal parameter value"`

// TestPower: queries of three ports at most, of a 4x4 switch.
func TestPower(t *testing.T) {
	set := func(c *scpiswitch.Config) { c.MaxPorts = 3 }
	identify := func(l *line) {
		l.ask("*IDN?", "Polatis,X,1,2")
		l.ask(":OXC:SWIT:SIZE?", "4,4")
	}
	t.Run("all", func(t *testing.T) {
		talkWith(t, set, func(t *testing.T, sw *scpiswitch.Switch) {
			begun := time.Now()
			r, err := sw.Power(t.Context())
			want := map[ocs.Port]ocs.DBm{1: -1, 2: -2, 3: -3, 4: -4, 5: -5, 6: -6, 7: ocs.DBm(math.Inf(-1))}
			if err != nil || !maps.Equal(r.Ports, want) || r.Earliest.Sub(begun) != 0 || r.Latest.Sub(r.Earliest) != 3*time.Second {
				t.Errorf("got %+v, %v", r, err)
			}
		}, func(l *line) {
			identify(l)
			for _, q := range [][2]string{{"(@1,2,3)", "(-1,-2.00,-3e0)"}, {"(@4,5,6)", "-4, -5, -6"}, {"(@7,8)", "(-9.9E37,9.91E37)"}} {
				l.expect(":PMON:POW? "+q[0], ":SYST:ERR?")
				time.Sleep(time.Second)
				l.Send(q[1] + "\r\n" + fine)
			}
		})
	})
	t.Run("some without a monitor", func(t *testing.T) {
		talkWith(t, set, func(t *testing.T, sw *scpiswitch.Switch) {
			for range 2 {
				r, err := sw.Power(t.Context(), 1, 2, 3, 5, 6, 7)
				if want := map[ocs.Port]ocs.DBm{3: -3, 5: -5, 6: -6, 7: -7}; err != nil || !maps.Equal(r.Ports, want) {
					t.Errorf("got %+v, %v", r, err)
				}
			}
			if r, err := sw.Power(t.Context(), 1, 2); err != nil || len(r.Ports) != 0 {
				t.Errorf("got %+v, %v", r, err)
			}
		}, func(l *line) {
			l.fail(":PMON:POW? (@1,2,3)", monitorless)
			l.fail(":PMON:POW? (@1)", monitorless)
			identify(l)
			l.fail(":PMON:POW? (@2,3)", `-241, "Hardware missing"`)
			l.fail(":PMON:POW? (@2)", monitorless)
			l.ask(":PMON:POW? (@3)", "(-3)")
			l.ask(":PMON:POW? (@5,6,7)", "(-5,-6,-7)")
			l.ask(":PMON:POW? (@3,5,6)", "(-3,-5,-6)")
			l.ask(":PMON:POW? (@7)", "(-7)")
		})
	})
	t.Run("the second half is not asked as a whole", func(t *testing.T) {
		talkWith(t, func(c *scpiswitch.Config) { c.MaxPorts = 4 }, func(t *testing.T, sw *scpiswitch.Switch) {
			r, err := sw.Power(t.Context(), 1, 2, 3, 4)
			if want := map[ocs.Port]ocs.DBm{1: -1, 2: -2, 3: -3}; err != nil || !maps.Equal(r.Ports, want) {
				t.Errorf("got %+v, %v", r, err)
			}
		}, func(l *line) {
			l.fail(":PMON:POW? (@1,2,3,4)", monitorless)
			l.ask(":PMON:POW? (@1,2)", "(-1,-2)")
			l.ask(":PMON:POW? (@3)", "(-3)")
			l.fail(":PMON:POW? (@4)", monitorless)
			identify(l)
		})
	})
	t.Run("no such port", func(t *testing.T) {
		talk(t, func(t *testing.T, sw *scpiswitch.Switch) {
			for range 2 {
				if _, err := sw.Power(t.Context(), 9); !errors.Is(err, ocs.ErrPort) || !errors.Is(err, ocs.ErrDenied) {
					t.Errorf("got %v", err)
				}
			}
		}, func(l *line) {
			l.fail(":PMON:POW? (@9)", monitorless)
			identify(l)
			l.fail(":PMON:POW? (@9)", monitorless)
		})
	})
	t.Run("other errors", func(t *testing.T) {
		talk(t, func(t *testing.T, sw *scpiswitch.Switch) {
			if _, err := sw.Power(t.Context(), 1, 2); !errors.Is(err, ocs.ErrDenied) {
				t.Errorf("got %v", err)
			}
			if _, err := sw.Power(t.Context(), 1, 2); !errors.Is(err, ocs.ErrNotSupported) {
				t.Errorf("got %v", err)
			}
			for range 4 {
				if r, err := sw.Power(t.Context(), 1, 2); err == nil {
					t.Errorf("got %v", r)
				}
			}
		}, func(l *line) {
			l.fail(":PMON:POW? (@1,2)", `-240, "Hardware error"`)
			l.fail(":PMON:POW? (@1,2)", `-113, "Undefined header"`)
			for _, odd := range []string{"(-1)", "(-1,-2,-3)", "(-1,x)", "(-1,9.9E37)"} {
				l.ask(":PMON:POW? (@1,2)", odd)
			}
		})
	})
	t.Run("size unknown", func(t *testing.T) {
		talk(t, func(t *testing.T, sw *scpiswitch.Switch) {
			if _, err := sw.Power(t.Context()); err == nil || !strings.Contains(err.Error(), "size") {
				t.Errorf("got %v", err)
			}
		}, func(l *line) {
			l.ask("*IDN?", "Polatis,X,1,2")
			l.fail(":OXC:SWIT:SIZE?", `-113, "Undefined header"`)
		})
	})
}
