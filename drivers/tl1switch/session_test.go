package tl1switch_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ocslab/ocslab/drivers/internal/drivertest"
	"github.com/ocslab/ocslab/drivers/internal/link"
	"github.com/ocslab/ocslab/drivers/tl1switch"
	"github.com/ocslab/ocslab/drivers/transport"
	"github.com/ocslab/ocslab/internal/secret"
	"github.com/ocslab/ocslab/ocs"
)

// talk runs f on a Switch whose device follows scripts, one a connection, in a
// bubble where time costs nothing.
func talk(t *testing.T, f func(t *testing.T, sw *tl1switch.Switch), scripts ...func(*line)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		p := newPeer(t, scripts...)
		sw := p.open()
		f(t, sw)
		sw.Close()
		p.Finish()
	})
}

// TestGoldenSession is every byte that the driver sends in a session that uses
// all of it.
func TestGoldenSession(t *testing.T) {
	talk(t, func(t *testing.T, sw *tl1switch.Switch) {
		ctx := t.Context()
		check := func(err error) {
			t.Helper()
			if err != nil {
				t.Error(err)
			}
		}
		for range 2 { // asked once
			id, err := sw.Identify(ctx)
			check(err)
			want := ocs.Identity{Vendor: "Polatis", Model: "N-VST-16x16", Serial: "100123", Firmware: "6.7", Geometry: ocs.TwoSided(16, 16)}
			if id != want {
				t.Errorf("got %+v, want %+v", id, want)
			}
		}
		r, err := ocs.Reconcile(ctx, sw, drivertest.Map(t, "1>17,2>18"), ocs.Safe)
		check(err)
		if r.Receipt.Requests != 1 {
			t.Errorf("got %d requests, want 1", r.Receipt.Requests)
		}
		_, err = sw.Power(ctx, 1, 17)
		check(err)
		_, err = sw.Power(ctx)
		check(err)
		_, err = sw.Monitors(ctx, 3)
		check(err)
		check(sw.SetMonitor(ctx, ocs.Monitor{Port: 3, WavelengthNM: 1310.5, Offset: -1.5, Averaging: 15 * time.Millisecond}))
		check(sw.SetMonitor(ctx, ocs.Monitor{Port: 3, Averaging: time.Hour}))
		_, err = sw.Shutters(ctx, 1, 2)
		check(err)
		check(sw.SetShutters(ctx, true, 1, 2))
		check(sw.SetShutters(ctx, false, 1))
		check(sw.SetShutters(ctx, true)) // nothing to do
		check(sw.SetLabel(ctx, 4, `rack 7/"left"; up`))
		check(sw.SetLabel(ctx, 4, "gpu_1"))
		check(sw.SetLabel(ctx, 4, ""))
		labels, err := sw.Labels(ctx)
		check(err)
		if labels[4] != `a;"b"` || len(labels) != 1 {
			t.Errorf("got labels %q", labels)
		}
		mode, err := sw.BootMode(ctx)
		check(err)
		if mode != ocs.BootRestore {
			t.Errorf("got boot mode %s", mode)
		}
		check(sw.SetBootMode(ctx, ocs.BootDark))
		if err := sw.SetBootMode(ctx, "bright"); err == nil {
			t.Error("boot mode bright: no error")
		}
		check(sw.Restart(ctx))
		_, err = sw.Apply(ctx, ocs.Change{Remove: drivertest.Map(t, "1>17,2>18,3>19"), Add: drivertest.Map(t, "1>18,4>20")})
		check(err)
		_, err = sw.Apply(ctx, ocs.Change{})
		check(err)
	}, func(l *line) {
		l.ask(`ACT-USER::admin:1::"hunter2-secret";`)
		l.ask("OPR-ARC-EQPT::REPMGR:2::IND;")
		l.ask("RTRV-NETYPE:::3:;", "Polatis,N-VST-16x16,OCS,6.7")
		l.ask("RTRV-INV::OCS:4:;", "OCS:SN=100123")
		l.ask("RTRV-EQPT::SYSTEM:5:::PARAMETER=SIZE;", "SYSTEM:SIZE=16x16")
		l.ask("RTRV-PATCH:::6:;")
		l.ask("ENT-PATCH::1&2,17&18:7:;")
		l.ask("RTRV-PATCH:::8:;", "1,17", "2,18")
		l.ask("RTRV-PORT-POWER::1&17:9:;", "1:-12.05")
		l.ask("RTRV-PORT-POWER:::10:;")
		l.ask("RTRV-PORT-PMON::3:11:;")
		l.ask("SET-PORT-PMON::3:12:::WAVE=1310.5,OFFSET=(-1.5),ATIME=2;")
		l.ask("SET-PORT-PMON::3:13:::OFFSET=0,ATIME=8;")
		l.ask("RTRV-PORT-SHUTTER::1&2:14:;", "1:OPEN", "2:CLOSED")
		l.ask("OPR-PORT-SHUTTER::1&2:15:;")
		l.ask("RLS-PORT-SHUTTER::1:16:;")
		if got, want := l.next()+";"+l.next()+";", `ED-PORT-LABEL::4:17:::LABEL="rack 7/\"left\"; up";`; got != want {
			l.T.Errorf("got %q, want %q", got, want)
		}
		l.Send(completed("17"))
		l.ask("ED-PORT-LABEL::4:18:::LABEL=gpu_1;")
		l.ask("DLT-PORT-LABEL::4:19:;")
		l.ask("RTRV-PORT-LABEL:::20:;", `4:a;\"b\"`)
		l.ask("RTRV-EQPT::BOOT:21:::PARAMETER=MODE;", "BOOT:MODE=RESTORE")
		l.ask("ED-EQPT::BOOT:22:::MODE=DARK;")
		l.ask("INIT-SYS::SYSTEM:23::1;")
		l.ask("DLT-PATCH::3:24:;")
		l.ask("ENT-PATCH::1&4,18&20:25:;")
	})
}

func TestLogin(t *testing.T) {
	quiet := func(l *line) { l.ask("OPR-ARC-EQPT::REPMGR:2::IND;") }
	for _, tt := range []struct {
		name, user, password string
		script               func(*line)
		want                 error
	}{
		{"no password", "root", "", func(l *line) { l.ask("ACT-USER::root:1::;"); quiet(l) }, nil},
		{"odd user", "lab:1;", "x", func(l *line) {
			l.next()
			l.expect(`":1::x;`)
			l.Send(completed("1"))
			quiet(l)
		}, nil},
		{"already logged in", "", "root", func(l *line) {
			l.expect("ACT-USER::admin:1::root;")
			l.Send(denied("1", "SNVS", "Already logged in"))
			quiet(l)
		}, nil},
		{"denied", "", "root", func(l *line) {
			l.expect("ACT-USER::admin:1::root;")
			l.Send(denied("1", "PICC", "Permission denied"))
		}, ocs.ErrDenied},
		{"no ARC", "", "root", func(l *line) {
			l.ask("ACT-USER::admin:1::root;")
			l.expect("OPR-ARC-EQPT::REPMGR:2::IND;")
			l.Send(denied("2", "IICM", "Unknown command"))
		}, nil},
		{"too many sessions", "", "root", func(l *line) { l.expect("ACT-USER::admin:1::root;"); l.Close() }, io.EOF},
		{"refused", "", "root", nil, syscall.ECONNREFUSED},
		{"silent", "", "root", func(l *line) { l.expect("ACT-USER::admin:1::root;") }, context.DeadlineExceeded},
		{"silent about ARC", "", "root", func(l *line) {
			l.ask("ACT-USER::admin:1::root;")
			l.expect("OPR-ARC-EQPT::REPMGR:2::IND;")
		}, context.DeadlineExceeded},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := newPeer(t, tt.script)
				sw, err := tl1switch.Open(t.Context(), tl1switch.Config{Dialer: p, User: tt.user, Password: secret.New(tt.password)})
				if !drivertest.Is(err, tt.want) {
					t.Errorf("got %v, want %v", err, tt.want)
				}
				if err == nil {
					sw.Close()
				} else if !strings.HasPrefix(err.Error(), "in memory: ") {
					t.Errorf("does not name the device: %v", err)
				}
				p.Finish()
			})
		})
	}
	if _, err := tl1switch.Open(t.Context(), tl1switch.Config{}); err == nil {
		t.Error("without a Dialer: no error")
	}
}

// TestRepeats is which commands are sent again, and which are not.
func TestRepeats(t *testing.T) {
	read := func(ctx context.Context, sw *tl1switch.Switch) (int, error) {
		_, err := sw.CrossConnects(ctx)
		return 0, err
	}
	apply := func(ctx context.Context, sw *tl1switch.Switch) (int, error) {
		r, err := sw.Apply(ctx, change)
		return r.Requests, err
	}
	restart := func(ctx context.Context, sw *tl1switch.Switch) (int, error) { return 0, sw.Restart(ctx) }
	loggedOut := func(l *line, command string) {
		l.expect(command)
		l.Send(denied(tag(command), "PLNA", "Not logged in"))
	}
	for _, tt := range []struct {
		name     string
		call     func(context.Context, *tl1switch.Switch) (int, error)
		requests int
		want     error
		scripts  []func(*line)
	}{
		{"write after logout", apply, 2, nil, []func(*line){func(l *line) {
			l.login(1)
			loggedOut(l, "ENT-PATCH::1,17:3:;")
			l.login(4)
			l.ask("ENT-PATCH::1,17:6:;")
		}}},
		{"write after logout by text alone", apply, 2, nil, []func(*line){func(l *line) {
			l.login(1)
			l.expect("ENT-PATCH::1,17:3:;")
			l.Send(denied("3", "SROF", "User is not logged in"))
			l.login(4)
			l.ask("ENT-PATCH::1,17:6:;")
		}}},
		{"logged out twice", apply, 2, ocs.ErrDenied, []func(*line){func(l *line) {
			l.login(1)
			loggedOut(l, "ENT-PATCH::1,17:3:;")
			l.login(4)
			loggedOut(l, "ENT-PATCH::1,17:6:;")
		}}},
		{"login refused after logout", apply, 1, ocs.ErrDenied, []func(*line){func(l *line) {
			l.login(1)
			loggedOut(l, "ENT-PATCH::1,17:3:;")
			l.next()
			l.Send(denied("4", "PICC", "Permission denied"))
		}}},
		{"restart after logout", restart, 0, ocs.ErrDenied, []func(*line){func(l *line) {
			l.login(1)
			loggedOut(l, "INIT-SYS::SYSTEM:3::1;")
			l.login(4)
		}}},
		{"read after lost reply", read, 0, nil, []func(*line){func(l *line) {
			l.login(1)
			l.expect("RTRV-PATCH:::3:;")
			l.Close()
		}, func(l *line) {
			l.login(4)
			l.ask("RTRV-PATCH:::6:;")
		}}},
		{"read whose reply is lost twice", read, 0, io.EOF, []func(*line){func(l *line) {
			l.login(1)
			l.expect("RTRV-PATCH:::3:;")
			l.Close()
		}, func(l *line) {
			l.login(4)
			l.expect("RTRV-PATCH:::6:;")
			l.Close()
		}}},
		// It may have taken effect.
		{"write after lost reply", apply, 1, io.EOF, []func(*line){func(l *line) {
			l.login(1)
			l.expect("ENT-PATCH::1,17:3:;")
			l.Close()
		}}},
		{"write after half a reply", apply, 1, io.ErrUnexpectedEOF, []func(*line){func(l *line) {
			l.login(1)
			l.expect("ENT-PATCH::1,17:3:;")
			l.Send(completed("3")[:30])
			l.Close()
		}}},
		{"restart after lost reply", restart, 0, io.EOF, []func(*line){func(l *line) {
			l.login(1)
			l.expect("INIT-SYS::SYSTEM:3::1;")
			l.Close()
		}}},
		// The device hung up while nobody asked it anything.
		{"write on a closed session", apply, 1, nil, []func(*line){func(l *line) {
			l.login(1)
			l.Close()
		}, func(l *line) {
			l.login(3)
			l.ask("ENT-PATCH::1,17:5:;")
		}}},
		{"cannot connect again", apply, 0, syscall.ECONNREFUSED, []func(*line){func(l *line) {
			l.login(1)
			l.Close()
		}, nil}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			talk(t, func(t *testing.T, sw *tl1switch.Switch) {
				drivertest.Idle()
				requests, err := tt.call(t.Context(), sw)
				if !drivertest.Is(err, tt.want) || requests != tt.requests {
					t.Errorf("got %d requests and %v, want %d and %v", requests, err, tt.requests, tt.want)
				}
			}, tt.scripts...)
		})
	}
}

// unwritten is a connection whose next Write fails before anything was written,
// as that of a session does which has ended a moment ago.
type unwritten struct {
	transport.Conn
	fail *bool
}

func (c unwritten) Write(p []byte) (int, error) {
	if *c.fail {
		*c.fail = false
		return 0, syscall.EPIPE
	}
	return c.Conn.Write(p)
}

type dialer struct {
	*peer
	wrap func(transport.Conn) transport.Conn
}

func (d dialer) Dial(ctx context.Context) (transport.Conn, error) {
	c, err := d.peer.Dial(ctx)
	if err == nil {
		c = d.wrap(c)
	}
	return c, err
}

// What was not sent had no effect, so it is sent on a new session.
func TestUnsentIsSentAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPeer(t, func(l *line) { l.login(1) }, func(l *line) {
			l.login(4)
			l.ask("ENT-PATCH::1,17:6:;")
		})
		fail := false
		cfg := p.config()
		cfg.Dialer = dialer{p, func(c transport.Conn) transport.Conn { return unwritten{c, &fail} }}
		sw, err := tl1switch.Open(t.Context(), cfg)
		if err != nil {
			t.Fatal(err)
		}
		fail = true
		r, err := sw.Apply(t.Context(), change)
		if err != nil || r.Requests != 1 {
			t.Errorf("got %d requests, %v", r.Requests, err)
		}
		sw.Close()
		p.Finish()
	})
}

// A reply may come in any pieces, and in several blocks; the receipt says when
// its first and its last byte came, those of other messages do not count.
func TestReceipt(t *testing.T) {
	const pause = time.Millisecond
	dribble := func(l *line, s string) {
		for i := range len(s) {
			time.Sleep(pause)
			l.Send(s[i : i+1])
		}
	}
	block := strings.TrimSuffix(completed("4", "1,17"), ";") + ">"
	alarm := autonomous(1, "5:PORT,SC: Port 5 disabled")
	short := "\r\n   26-11-20 10:00:00\r\nM 4 COMPLD\r\n;"
	for _, tt := range []struct {
		name, before, reply, after string
	}{
		{"whole", "", completed("4"), ""},
		{"no SID", "", short, ""},
		{"SID is nil", "", strings.Replace(short, "26-", "( nil ) 26-", 1), ""},
		{"blocks", "", block + block + completed("4", "2,18"), ""},
		{"alarm first", alarm, completed("4"), ""},
		{"stale reply first", completed("3"), completed("4"), ""},
		{"with a prompt behind", "", completed("4"), "\r\nagent> "},
		{"acknowledged", "IP 4\r\n<", completed("4"), ""},
		{"echo", "ENT-PATCH::1,17:4:;", completed("4"), ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			talk(t, func(t *testing.T, sw *tl1switch.Switch) {
				if err := sw.SetShutters(t.Context(), true, 1); err != nil {
					t.Fatal(err)
				}
				time.Sleep(time.Second)
				begun := time.Now()
				r, err := sw.Apply(t.Context(), change)
				if err != nil {
					t.Fatal(err)
				}
				if !r.SendStart.Equal(begun) || !r.Sent.Equal(begun) {
					t.Errorf("sent from %v to %v", r.SendStart.Sub(begun), r.Sent.Sub(begun))
				}
				first := time.Duration(len(tt.before)+1) * pause
				if got := r.FirstByte.Sub(begun); got != first {
					t.Errorf("first byte after %v, want %v", got, first)
				}
				if got, want := r.Acked.Sub(begun), first+time.Duration(len(tt.reply)-1)*pause; got != want {
					t.Errorf("acknowledged after %v, want %v", got, want)
				}
				if r.Requests != 1 {
					t.Errorf("got %d requests", r.Requests)
				}
			}, func(l *line) {
				l.login(1)
				l.ask("OPR-PORT-SHUTTER::1:3:;")
				l.Send("\r\n") // line end behind the terminator
				l.expect("ENT-PATCH::1,17:4:;")
				dribble(l, tt.before+tt.reply+tt.after)
			})
		})
	}
}

func TestBlocks(t *testing.T) {
	talk(t, func(t *testing.T, sw *tl1switch.Switch) {
		for range 2 {
			m, err := sw.CrossConnects(t.Context())
			if err != nil || !m.Equal(drivertest.Map(t, "1>17,2>18,3>19")) {
				t.Errorf("got %v, %v", m, err)
			}
		}
		_, err := sw.CrossConnects(t.Context())
		var op *ocs.OpError
		if !errors.As(err, &op) || !strings.Contains(op.Reply, "1,17") {
			t.Errorf("got %v, want an error with the first block", err)
		}
	}, func(l *line) {
		l.login(1)
		more := func(ctag, s string) string { return strings.TrimSuffix(completed(ctag, s), ";") + ">" }
		l.expect("RTRV-PATCH:::3:;")
		l.Send(more("3", "1,17") + more("3", "2,18") + autonomous(1, "x") + completed("3", "3,19"))
		l.expect("RTRV-PATCH:::4:;") // RTRV instead of '>'
		l.Send(strings.ReplaceAll(completed("4", "1,17"), "COMPLD", "RTRV"))
		l.Send(strings.ReplaceAll(completed("4", "2,18"), "COMPLD", "RTRV"))
		l.Send(completed("4", "3,19"))
		l.expect("RTRV-PATCH:::5:;")
		l.Send(more("5", "1,17"))
	})
}

// The password must not be seen however a device gives it back.
func TestPasswordIsHidden(t *testing.T) {
	for _, pw := range []string{"root", "hunter2", "two words", `q"uo\te`, "abc", "1", "ACT-USER"} {
		t.Run(pw, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var errs strings.Builder
				var trace [2]strings.Builder // by direction, as the pieces come
				p := newPeer(t, func(l *line) {
					var raw strings.Builder
					for end := false; !end; { // up to the last ';' of the login
						b, _ := l.In.ReadByte()
						raw.WriteByte(b)
						end = b == ';'
					}
					for i := range raw.Len() { // echo as one types
						l.Send(raw.String()[i : i+1])
					}
					l.Send("\r\n" + denied("1", "PICC", "bad login :"+pw+";"))
				})
				cfg := p.config()
				cfg.Password = secret.New(pw)
				cfg.Trace = func(d tl1switch.Direction, b []byte) {
					i := 0
					if d == tl1switch.Received {
						i = 1
					}
					trace[i].Write(b)
				}
				_, err := tl1switch.Open(t.Context(), cfg)
				var op *ocs.OpError
				if !errors.As(err, &op) || !errors.Is(err, ocs.ErrDenied) {
					t.Fatalf("got %v", err)
				}
				fmt.Fprintf(&errs, "%v %+v %+v", err, op, errors.Unwrap(err))
				p.Finish()
				secrets := []string{pw}
				if len(pw) < 4 { // a digit may be anywhere, a login may not
					secrets = []string{":" + pw + ";"}
				}
				for where, text := range map[string]string{"errors": errs.String(), "sent": trace[0].String(), "received": trace[1].String()} {
					for _, s := range secrets {
						if strings.Contains(text, s) {
							t.Errorf("%s leak: %q", where, text)
						}
					}
					if !strings.Contains(text, "***") {
						t.Errorf("%s: nothing is masked in %q", where, text)
					}
				}
			})
		})
	}
}

// What came late, or for another, is never taken for a reply.
func TestStaleReplies(t *testing.T) {
	talk(t, func(t *testing.T, sw *tl1switch.Switch) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := sw.CrossConnects(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v", err)
		}
		for range 3 {
			m, err := sw.CrossConnects(t.Context())
			if err != nil || m.String() != "2>18" {
				t.Errorf("got %v, %v", m, err)
			}
		}
	}, func(l *line) {
		l.login(1)
		l.expect("RTRV-PATCH:::3:;")
		time.Sleep(2 * time.Second)
		l.Send(completed("3", "1,17"))
		l.expect("RTRV-PATCH:::4:;")
		l.Send(denied("0", "IISP", "about the request before") + completed("4", "2,18") + completed("4", "9,99"))
		l.ask("RTRV-PATCH:::5:;", "2,18")
		l.Send("\r\n" + completed("5", "9,99"))
		l.ask("RTRV-PATCH:::6:;", "2,18")
	})
}

// A device that stopped in the middle of a reply would have the next one taken
// for the rest of it: the session is not used again unless the rest has come.
func TestHalfReply(t *testing.T) {
	for _, rest := range []bool{true, false} {
		second := func(l *line) { l.login(4); l.ask("RTRV-PATCH:::6:;", "2,18") }
		scripts := []func(*line){func(l *line) {
			l.login(1)
			l.expect("RTRV-PATCH:::3:;")
			whole := completed("3", "1,17")
			l.Send(whole[:50])
			if rest {
				time.Sleep(2 * time.Second)
				l.Send(whole[50:])
				l.ask("RTRV-PATCH:::4:;", "2,18")
			}
		}, second}
		if rest {
			scripts = scripts[:1]
		}
		talk(t, func(t *testing.T, sw *tl1switch.Switch) {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			if _, err := sw.CrossConnects(ctx); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("got %v", err)
			}
			time.Sleep(5 * time.Second)
			m, err := sw.CrossConnects(t.Context())
			if err != nil || m.String() != "2>18" {
				t.Errorf("got %v, %v", m, err)
			}
		}, scripts...)
	}
}

// The reply that an error shows is what came for the request, not what came
// before it in the same piece.
func TestTailAfterWholeMessage(t *testing.T) {
	talk(t, func(t *testing.T, sw *tl1switch.Switch) {
		_, err := sw.Apply(t.Context(), change)
		var op *ocs.OpError
		if !errors.As(err, &op) || op.Reply != completed("3")[:30] {
			t.Errorf("got %+v", op)
		}
	}, func(l *line) {
		l.login(1)
		l.expect("ENT-PATCH::1,17:3:;")
		alarm := autonomous(1, "x")
		l.Send(alarm[:20])
		time.Sleep(time.Second)
		l.Send(alarm[20:] + autonomous(2, "y") + completed("3")[:10])
		l.Send(completed("3")[10:30])
		l.Close()
	})
}

// A device that does not read blocks the write; a call returns soon all the
// same. What was begun to be sent cannot be taken back but by a new session.
func TestBlockedWrite(t *testing.T) {
	for _, tt := range []struct {
		name  string
		read  int // bytes of the command that the device takes
		limit time.Duration
		want  error
		takes time.Duration
		again bool // a new session is needed
	}{
		{"cancelled", 0, time.Second, drivertest.ErrEnough, time.Second, false},
		{"cancelled half way", 5, time.Second, drivertest.ErrEnough, time.Second, true},
		{"for ever", 0, 0, context.DeadlineExceeded, tl1switch.DefaultTimeout, false},
		{"half way for ever", 5, 0, context.DeadlineExceeded, tl1switch.DefaultTimeout, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			scripts := []func(*line){func(l *line) {
				l.login(1)
				_, _ = io.ReadFull(l.Conn, make([]byte, tt.read))
				time.Sleep(time.Minute)
				if !tt.again {
					l.ask("RTRV-PATCH:::4:;")
				}
			}}
			if tt.again {
				scripts = append(scripts, func(l *line) { l.login(4); l.ask("RTRV-PATCH:::6:;") })
			}
			talk(t, func(t *testing.T, sw *tl1switch.Switch) {
				ctx, cancel := context.WithCancelCause(t.Context())
				defer cancel(nil)
				if tt.limit > 0 {
					time.AfterFunc(tt.limit, func() { cancel(drivertest.ErrEnough) })
				}
				begun := time.Now()
				r, err := sw.Apply(ctx, change)
				took := time.Since(begun)
				if !errors.Is(err, tt.want) || !strings.Contains(err.Error(), "not sent") {
					t.Errorf("got %v, want %v", err, tt.want)
				}
				if got, want := r.Requests, min(tt.read, 1); got != want {
					t.Errorf("got %d requests, want %d", got, want)
				}
				if took > tt.takes+50*time.Millisecond {
					t.Errorf("took %v", took)
				}
				time.Sleep(time.Minute)
				if _, err := sw.CrossConnects(t.Context()); err != nil {
					t.Error(err)
				}
			}, scripts...)
		})
	}
}

// A slow but living device gets a long command in pieces.
func TestSlowWrite(t *testing.T) {
	talk(t, func(t *testing.T, sw *tl1switch.Switch) {
		r, err := sw.Apply(t.Context(), change)
		if err != nil || r.Requests != 1 || r.Acked.Before(r.Sent) {
			t.Errorf("got %+v, %v", r, err)
		}
	}, func(l *line) {
		l.login(1)
		var got []byte
		for b := make([]byte, 1); len(got) < len("ENT-PATCH::1,17:3:;"); got = append(got, b...) {
			time.Sleep(30 * time.Millisecond)
			_, _ = l.Read(b)
		}
		if string(got) != "ENT-PATCH::1,17:3:;" {
			l.T.Errorf("got %q", got)
		}
		l.Send(completed("3"))
	})
}

// slowDialer connects so many times, and then not before it is told to stop.
type slowDialer struct {
	*peer
	fast int
}

func (d *slowDialer) Dial(ctx context.Context) (transport.Conn, error) {
	if d.fast--; d.fast >= 0 {
		return d.peer.Dial(ctx)
	}
	<-ctx.Done()
	return nil, fmt.Errorf("dial: %w", ctx.Err())
}

// TestGivingUp is a call that is cancelled, or the Switch closed, while it waits
// for its turn or for a connection.
func TestGivingUp(t *testing.T) {
	for _, tt := range []struct {
		name string
		stop func(sw *tl1switch.Switch, cancel context.CancelCauseFunc)
		want error
	}{
		{"cancelled", func(_ *tl1switch.Switch, cancel context.CancelCauseFunc) { cancel(drivertest.ErrEnough) }, drivertest.ErrEnough},
		{"closed", func(sw *tl1switch.Switch, _ context.CancelCauseFunc) { sw.Close() }, net.ErrClosed},
	} {
		t.Run("turn, "+tt.name, func(t *testing.T) {
			talk(t, func(t *testing.T, sw *tl1switch.Switch) {
				var other sync.WaitGroup
				other.Go(func() { sw.CrossConnects(t.Context()) })
				synctest.Wait()
				ctx, cancel := context.WithCancelCause(t.Context())
				defer cancel(nil)
				time.AfterFunc(time.Second, func() { tt.stop(sw, cancel) })
				begun := time.Now()
				_, err := sw.Power(ctx)
				if !errors.Is(err, tt.want) || time.Since(begun) != time.Second {
					t.Errorf("got %v after %v", err, time.Since(begun))
				}
				other.Wait()
			}, func(l *line) { l.login(1); l.expect("RTRV-PATCH:::3:;") })
		})
		t.Run("connection, "+tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := newPeer(t, func(l *line) { l.login(1); l.Close() })
				cfg := p.config()
				cfg.Dialer = &slowDialer{p, 1}
				sw, err := tl1switch.Open(t.Context(), cfg)
				if err != nil {
					t.Fatal(err)
				}
				synctest.Wait()
				ctx, cancel := context.WithCancelCause(t.Context())
				defer cancel(nil)
				time.AfterFunc(time.Second, func() { tt.stop(sw, cancel) })
				begun := time.Now()
				_, err = sw.Power(ctx)
				if !errors.Is(err, tt.want) || time.Since(begun) != time.Second {
					t.Errorf("got %v after %v", err, time.Since(begun))
				}
				sw.Close()
				p.Finish()
			})
		})
	}
	t.Run("connection, for ever", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			p := newPeer(t)
			cfg := p.config()
			cfg.Dialer = &slowDialer{peer: p}
			begun := time.Now()
			_, err := tl1switch.Open(t.Context(), cfg)
			if !errors.Is(err, context.DeadlineExceeded) || time.Since(begun) != tl1switch.DefaultTimeout {
				t.Errorf("got %v after %v", err, time.Since(begun))
			}
		})
	})
}

// closingDialer closes the Switch between the dialing and the login.
type closingDialer struct {
	*peer
	sw *tl1switch.Switch
}

func (d *closingDialer) Dial(ctx context.Context) (transport.Conn, error) {
	c, err := d.peer.Dial(ctx)
	if d.sw != nil {
		d.sw.Close()
	}
	return c, err
}

func TestCloseBeforeLogin(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPeer(t, func(l *line) { l.login(1); l.Close() }, func(*line) {})
		d := &closingDialer{peer: p}
		cfg := p.config()
		cfg.Dialer = d
		sw, err := tl1switch.Open(t.Context(), cfg)
		if err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		d.sw = sw
		if _, err := sw.Power(t.Context()); !errors.Is(err, net.ErrClosed) {
			t.Errorf("got %v", err)
		}
		sw.Close()
		p.Finish()
	})
}

// A call whose context has ended before it begins sends nothing.
func TestEndedContext(t *testing.T) {
	talk(t, func(t *testing.T, sw *tl1switch.Switch) {
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(drivertest.ErrEnough)
		for _, m := range methods {
			if err := m.call(ctx, sw); !errors.Is(err, drivertest.ErrEnough) {
				t.Errorf("%s: got %v", m.name, err)
			}
		}
	}, func(l *line) { l.login(1) })
}

// TestConcurrency is many callers on one Switch, each of whom gets the reply to
// its own request.
func TestConcurrency(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPeer(t, func(l *line) {
			l.login(1)
			for {
				command := l.next()
				if command == "" {
					return
				}
				f := strings.Split(command, ":")
				time.Sleep(time.Millisecond)
				l.Send(autonomous(1, "3:PORT") + completed("SOMEBODY", "1:1") + completed(f[3], f[2]+":-"+f[2]+".5"))
			}
		})
		sw := p.open()
		var callers sync.WaitGroup
		for i := range 16 {
			port := ocs.Port(i + 1)
			callers.Go(func() {
				for k := range 20 {
					ctx, cancel := context.WithTimeout(t.Context(), time.Duration(k%4*3)*time.Millisecond+time.Microsecond)
					if k%4 == 0 {
						ctx = t.Context()
					}
					r, err := sw.Power(ctx, port)
					cancel()
					switch {
					case errors.Is(err, context.DeadlineExceeded) && k%4 != 0:
					case err != nil || len(r.Ports) != 1 || r.Ports[port] != -ocs.DBm(port)-0.5:
						t.Errorf("port %d: got %v, %v", port, r.Ports, err)
					}
				}
			})
		}
		callers.Wait()
		sw.Close()
		p.Finish()
	})
}

// Ensure a session that has been idle, and is read by its own goroutine then, holds up neither the next request nor the
// one after it: time stands still while each is answered.
func TestAfterIdle(t *testing.T) {
	const rounds, each = 300, 3
	talk(t, func(t *testing.T, sw *tl1switch.Switch) {
		for range rounds {
			time.Sleep(2*link.Patience + link.Patience/2) // the session's goroutine reads by now
			began := time.Now()
			for range each {
				if _, err := sw.CrossConnects(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
			if took := time.Since(began); took > 0 {
				t.Fatalf("%d requests took %v, want no time", each, took)
			}
		}
	}, func(l *line) {
		l.login(1)
		for i := range rounds * each {
			l.ask(fmt.Sprintf("RTRV-PATCH:::%d:;", i+3))
		}
	})
}
