package netconfswitch_test

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
	"github.com/ocslab/ocslab/drivers/netconfswitch"
	"github.com/ocslab/ocslab/ocs"
	"github.com/ocslab/ocslab/wire/netconf"
)

var ctx = context.Background()

var readMap = asks("cross-connects", "")

// run runs a test in a bubble.
func run(t *testing.T, scripts []func(*line), f func(t *testing.T, sw *netconfswitch.Switch)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		p := newPeer(t, scripts...)
		sw := p.open()
		f(t, sw)
		if err := sw.Close(); err != nil {
			t.Error(err)
		}
		p.Finish()
	})
}

func one(script func(*line)) []func(*line) { return []func(*line){script} }

const pair1 = `<pair><ingress>1</ingress><egress>33</egress></pair>`

// TestPieces reads replies that come in every size of piece and chunk, with
// both framings.
func TestPieces(t *testing.T) {
	for _, base := range []string{base10, base11} {
		for size := 0; size <= 7; size++ {
			t.Run(fmt.Sprintf("%s/%d", base[len(base)-3:], size), func(t *testing.T) {
				run(t, one(func(l *line) {
					l.size = size
					l.hello(base10, base, optical)
					for range 2 {
						l.ask(readMap, data("cross-connects", pair1))
					}
				}), func(t *testing.T, sw *netconfswitch.Switch) {
					for range 2 {
						if m, err := sw.CrossConnects(ctx); err != nil || m.String() != "1>33" {
							t.Errorf("got %v, %v", m, err)
						}
					}
				})
			})
		}
	}
}

const alarm = `<notification xmlns="urn:ietf:params:xml:ns:netconf:notification:1.0">
  <eventTime>2018-03-14T12:24:46Z</eventTime>
  <port-power-alarm xmlns="http://www.polatis.com/yang/polatis-switch">
    <port-id>53</port-id>
    <port-label>gpu1</port-label>
  </port-power-alarm>
</notification>`

// TestRouting takes the right message for the reply, whatever comes around it.
func TestRouting(t *testing.T) {
	good := data("cross-connects", pair1)
	for _, tc := range []struct {
		name string
		send func(l *line)
	}{
		{"notification first", func(l *line) { l.raw(l.frame(alarm) + l.reply(good)) }},
		{"notification behind", func(l *line) { l.raw(l.reply(good) + l.frame(alarm)) }},
		{"foreign message-id first", func(l *line) {
			l.raw(l.frame(replyTo("101", data("cross-connects", strings.ReplaceAll(pair1, "33", "34")))) + l.reply(good))
		}},
		{"twice", func(l *line) { l.raw(l.reply(good) + l.reply(good)) }},
		{"half with the next read", func(l *line) {
			all := l.frame(alarm) + l.reply(good)
			l.raw(all[:40])
			l.raw(all[40:])
		}},
		{"split delimiter", func(l *line) {
			all := l.reply(good)
			l.raw(all[:len(all)-2])
			l.raw(all[len(all)-2:] + l.frame(alarm))
		}},
		{"after a while", func(l *line) {
			time.Sleep(time.Second)
			l.raw(l.reply(good))
		}},
		{"warning", func(l *line) {
			l.raw(l.reply(strings.ReplaceAll(rpcError("operation-failed", "", "old"), ">error<", ">warning<") + good))
		}},
		{"error about OpenFlow next to data", func(l *line) {
			l.raw(l.reply(rpcError("operation-failed", "/system-config/openflow", "no OpenFlow") + good))
		}},
		{"declaration and comment", func(l *line) {
			l.raw(l.frame(`<?xml version="1.0" encoding="UTF-8"?>` + "\n<!-- hi -->" + replyTo(l.id, good)))
		}},
	} {
		for _, base := range []string{base10, base11} {
			t.Run(tc.name+"/"+base[len(base)-3:], func(t *testing.T) {
				run(t, one(func(l *line) {
					l.hello(base10, base, optical)
					l.expect(readMap)
					tc.send(l)
					l.ask(readMap, good)
				}), func(t *testing.T, sw *netconfswitch.Switch) {
					for range 2 {
						if m, err := sw.CrossConnects(ctx); err != nil || m.String() != "1>33" {
							t.Errorf("got %v, %v", m, err)
						}
					}
				})
			})
		}
	}
}

// TestHelloWithMore takes what comes together with the hello.
func TestHelloWithMore(t *testing.T) {
	run(t, one(func(l *line) {
		l.chunked = true
		l.raw(helloText(modern...) + "]]>]]>\n" + l.frame(alarm))
		l.takeHello()
		l.first()
		l.ask(readMap, data("cross-connects", pair1))
	}), func(t *testing.T, sw *netconfswitch.Switch) {
		if m, err := sw.CrossConnects(ctx); err != nil || m.String() != "1>33" {
			t.Errorf("got %v, %v", m, err)
		}
	})
}

// TestBadHello is an error of Open that says what is wrong.
func TestBadHello(t *testing.T) {
	for _, tc := range []struct {
		name   string
		script func(*line)
		want   error
		text   string
	}{
		{"closed", func(l *line) { l.Close() }, io.ErrUnexpectedEOF, "before its hello"},
		{"closed in the middle", func(l *line) { l.raw("<hello"); l.Close() }, io.ErrUnexpectedEOF, `(reply "<hello")`},
		{"silent", func(l *line) {}, context.DeadlineExceeded, "no hello"},
		{"not XML", func(l *line) { l.raw("login: ]]>]]>") }, nil, "cannot be read"},
		{"no hello", func(l *line) { l.raw(replyTo("1", ok) + "]]>]]>") }, nil, "does not begin with a hello"},
		{"bomb", func(l *line) {
			l.raw(`<!DOCTYPE lolz [<!ENTITY lol "lol"><!ENTITY lol2 "&lol;&lol;">]><hello>&lol2;</hello>]]>]]>`)
		}, nil, "cannot be read"},
		{"another device", func(l *line) {
			l.raw(helloText(base10, base11, "http://openconfig.net/yang/interfaces?module=openconfig-interfaces&amp;revision=2021-04-06") + "]]>]]>")
			l.takeHello()
		},
			ocs.ErrNotSupported, "openconfig-interfaces"},
		{"nothing", func(l *line) { l.raw(helloText() + "]]>]]>"); l.takeHello() }, ocs.ErrNotSupported, "optical-switch"},
		{"endless", func(l *line) {
			for range 40 {
				if _, err := l.Write([]byte(strings.Repeat("x", 32<<10))); err != nil {
					return
				}
			}
		}, nil, "longer than"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := newPeer(t, func(l *line) {
					tc.script(l)
					_, _ = io.Copy(io.Discard, l.In)
				})
				cfg := p.config()
				cfg.MaxMessage = 1 << 20
				sw, err := netconfswitch.Open(ctx, cfg)
				var op *ocs.OpError
				if sw != nil || !errors.As(err, &op) || tc.want != nil && !errors.Is(err, tc.want) || !strings.Contains(err.Error(), tc.text) {
					t.Errorf("got %v, %v", sw, err)
				}
				p.Finish()
			})
		})
	}
}

// TestFirstRequest opens sessions with servers that lose what comes together with
// our hello, or are slow, or do not want to say who they are.
func TestFirstRequest(t *testing.T) {
	who := asks("product-information", "")
	known := data("product-information", "<model-name>N-VST-32x32-LU1-DMHNV</model-name>")
	for _, tc := range []struct {
		name   string
		script func(*line)
		want   error
		text   string
		took   time.Duration
	}{
		{"told", func(l *line) { l.ask(who, known) }, nil, "", 0},
		{"refused", func(l *line) { l.ask(who, rpcError("access-denied", "", "no")); l.ask(who, known) }, nil, "", 0},
		{"a reply without message-id", func(l *line) {
			l.expect(who)
			l.raw(l.frame(strings.Replace(replyTo("", rpcError("malformed-message", "", "what?")), ` message-id=""`, "", 1)))
			l.ask(who, known)
		}, nil, "", 0},
		{"lost", func(l *line) { l.expect(who); l.ask(who, known) }, nil, "", 250 * time.Millisecond},
		{"lost three times", func(l *line) { l.expect(who); l.expect(who); l.expect(who); l.ask(who, known) }, nil, "", 1750 * time.Millisecond},
		{"notification", func(l *line) { l.expect(who); l.raw(l.frame(alarm)); l.ask(who, known) }, nil, "", 250 * time.Millisecond},
		{"wrong message-id", func(l *line) {
			l.expect(who)
			l.raw(l.frame(replyTo("101", known)))
			l.ask(who, known)
		}, nil, "", 250 * time.Millisecond},
		{"slow", func(l *line) {
			l.expect(who)
			first := l.reply(known)
			l.expect(who)
			time.Sleep(50 * time.Millisecond)
			l.raw(first)
			time.Sleep(300 * time.Millisecond)
			l.raw(l.reply(known))
		}, nil, "", 300 * time.Millisecond},
		{"closed", func(l *line) { l.expect(who); l.Close() }, io.EOF, "closed the session", 0},
		{"closed in the middle", func(l *line) { l.expect(who); l.raw(l.reply(known)[:30]); l.Close() }, io.ErrUnexpectedEOF, "<rpc-reply", 0},
		{"another message", func(l *line) { l.expect(who); l.raw(l.frame("<hello/>")) }, nil, "<hello>", 0},
		{"silent", func(l *line) {
			for range 6 { // at 0, 0.25, 0.75, 1.75, 3.75 and 7.75 seconds
				l.expect(who)
			}
		}, context.DeadlineExceeded, "first request", netconfswitch.DefaultTimeout},
		{"takes nothing", func(*line) { time.Sleep(2 * netconfswitch.DefaultTimeout) }, context.DeadlineExceeded, "first request", netconfswitch.DefaultTimeout},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := newPeer(t, func(l *line) {
					l.chunked = true
					l.raw(helloText(modern...) + "]]>]]>")
					l.takeHello()
					tc.script(l)
					if tc.text == "" {
						l.ask(readMap, data("cross-connects", pair1))
					}
				})
				begun := time.Now()
				sw, err := netconfswitch.Open(ctx, p.config())
				if took := time.Since(begun); took != tc.took {
					t.Errorf("took %v, want %v", took, tc.took)
				}
				if tc.text != "" {
					if err == nil || tc.want != nil && !errors.Is(err, tc.want) || !strings.Contains(err.Error(), tc.text) {
						t.Errorf("got %v", err)
					}
					p.Finish()
					return
				}
				if err != nil {
					t.Fatal(err)
				}
				if id, err := sw.Identify(ctx); err != nil || id.Geometry != ocs.TwoSided(32, 32) {
					t.Errorf("got %+v, %v", id, err)
				}
				if m, err := sw.CrossConnects(ctx); err != nil || m.String() != "1>33" {
					t.Errorf("got %v, %v", m, err)
				}
				sw.Close()
				p.Finish()
			})
		})
	}
}

func TestOpenRefused(t *testing.T) {
	if _, err := netconfswitch.Open(ctx, netconfswitch.Config{}); err == nil {
		t.Error("no error without a Dialer")
	}
	synctest.Test(t, func(t *testing.T) {
		p := newPeer(t, nil)
		cfg := p.config()
		cfg.Device = ""
		if _, err := netconfswitch.Open(ctx, cfg); !errors.Is(err, syscall.ECONNREFUSED) || !strings.HasPrefix(err.Error(), "in memory: connect:") {
			t.Errorf("got %v", err)
		}
		late, cancel := context.WithCancelCause(ctx)
		cancel(io.ErrNoProgress)
		if _, err := netconfswitch.Open(late, cfg); !errors.Is(err, io.ErrNoProgress) {
			t.Errorf("got %v", err)
		}
	})
}

// TestManyAtOnce has 200 calls under way on one session, answered in disorder.
func TestManyAtOnce(t *testing.T) {
	const n = 200
	for _, base := range []string{base10, base11} {
		t.Run(base[len(base)-3:], func(t *testing.T) {
			run(t, one(func(l *line) {
				l.hello(base10, base, optical)
				var replies []string
				for range n {
					body := l.next()
					_, port, _ := strings.Cut(body, "<port-id>")
					port, _, _ = strings.Cut(port, "<")
					replies = append(replies, l.reply(data("port-config", "<port><port-id>"+port+"</port-id><label>label "+port+"</label></port>")))
				}
				l.size = 100
				for i := range n {
					l.raw(replies[(i*77+5)%n]) // 77 and 200 have no common factor
				}
			}), func(t *testing.T, sw *netconfswitch.Switch) {
				var calls sync.WaitGroup
				for i := 1; i <= n; i++ {
					calls.Go(func() {
						labels, err := sw.Labels(ctx, ocs.Port(i))
						if err != nil || len(labels) != 1 || labels[ocs.Port(i)] != fmt.Sprintf("label %d", i) {
							t.Errorf("port %d: got %v, %v", i, labels, err)
						}
					})
				}
				calls.Wait()
			})
		})
	}
}

// TestHandover: who reads leaves that to others at once when it has its reply.
func TestHandover(t *testing.T) {
	run(t, one(func(l *line) {
		l.hello()
		l.expect(readMap)
		first := l.reply(data("cross-connects", ""))
		l.expect(readMap)
		time.Sleep(time.Millisecond)
		l.raw(first)
		time.Sleep(time.Millisecond)
		l.raw(l.reply(data("cross-connects", pair1)))
	}), func(t *testing.T, sw *netconfswitch.Switch) {
		begun := time.Now()
		ended := make(chan error)
		go func() {
			_, err := sw.CrossConnects(ctx)
			ended <- err
		}()
		synctest.Wait()
		m, err := sw.CrossConnects(ctx)
		if err != nil || m.Len() != 1 || time.Since(begun) != 2*time.Millisecond {
			t.Errorf("got %v, %v after %v", m, err, time.Since(begun))
		}
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

// TestFirstByte is not that of the message before the reply.
func TestFirstByte(t *testing.T) {
	run(t, one(func(l *line) {
		l.hello()
		l.next()
		all := l.frame(alarm) + l.reply(ok)
		l.raw(all[:40])
		time.Sleep(3 * time.Millisecond)
		l.raw(all[40:])
	}), func(t *testing.T, sw *netconfswitch.Switch) {
		begun := time.Now()
		r, err := sw.Apply(ctx, ocs.Change{Add: drivertest.Map(t, "1>33")})
		if err != nil || r.FirstByte.Sub(begun) != 3*time.Millisecond || r.Acked.Sub(begun) != 3*time.Millisecond {
			t.Errorf("got %+v, %v", r, err)
		}
	})
}

// TestGivenUp ends calls whose context ends, and drops their late replies.
func TestGivenUp(t *testing.T) {
	cause := errors.New("the user is gone")
	run(t, one(func(l *line) {
		l.hello()
		l.expect(readMap)
		late := l.reply(data("cross-connects", pair1))
		l.ask(readMap, data("cross-connects", ""))
		l.raw(late)
		l.ask(readMap, data("cross-connects", ""))
	}), func(t *testing.T, sw *netconfswitch.Switch) {
		short, cancel := context.WithCancelCause(ctx)
		time.AfterFunc(time.Second, func() { cancel(cause) })
		if _, err := sw.CrossConnects(short); !errors.Is(err, cause) {
			t.Errorf("got %v", err)
		}
		for range 2 {
			if m, err := sw.CrossConnects(ctx); err != nil || m.Len() != 0 {
				t.Errorf("got %v, %v", m, err)
			}
			drivertest.Idle()
		}
		if _, err := sw.CrossConnects(short); !errors.Is(err, cause) {
			t.Errorf("got %v", err)
		}
	})
}

// TestNoReply is the end of the time for one reply; other calls go on.
func TestNoReply(t *testing.T) {
	run(t, one(func(l *line) {
		l.hello()
		l.expect(readMap)
		time.Sleep(4 * time.Second)
		l.expect(readMap)
		time.Sleep(7 * time.Second) // the first is over, the second not
		l.raw(l.reply(data("cross-connects", pair1)))
		l.expect(readMap)
	}), func(t *testing.T, sw *netconfswitch.Switch) {
		begun := time.Now()
		var calls sync.WaitGroup
		calls.Go(func() {
			_, err := sw.CrossConnects(ctx)
			if !errors.Is(err, context.DeadlineExceeded) || time.Since(begun) != netconfswitch.DefaultTimeout {
				t.Errorf("got %v after %v", err, time.Since(begun))
			}
		})
		calls.Go(func() {
			time.Sleep(4 * time.Second)
			if m, err := sw.CrossConnects(ctx); err != nil || m.Len() != 1 {
				t.Errorf("got %v, %v", m, err)
			}
		})
		calls.Wait()
		hurry, cancel := context.WithTimeout(ctx, time.Millisecond)
		defer cancel()
		begun = time.Now()
		if _, err := sw.CrossConnects(hurry); !errors.Is(err, context.DeadlineExceeded) || time.Since(begun) != time.Millisecond {
			t.Errorf("got %v after %v", err, time.Since(begun))
		}
	})
}

// TestStopsInTheMiddle is a device that stops in a reply: the call that waits is
// over in time and shows what has come, and the next one has a new session.
func TestStopsInTheMiddle(t *testing.T) {
	run(t, []func(*line){
		func(l *line) {
			l.hello()
			l.expect(readMap)
			l.raw(l.frame(alarm) + l.reply(data("cross-connects", pair1))[:120])
		},
		func(l *line) {
			l.hello()
			l.ask(readMap, data("cross-connects", pair1))
		},
	}, func(t *testing.T, sw *netconfswitch.Switch) {
		_, err := sw.CrossConnects(ctx)
		var op *ocs.OpError
		if !errors.Is(err, context.DeadlineExceeded) || !errors.As(err, &op) || !strings.HasPrefix(op.Reply, "\n#") || !strings.Contains(op.Reply, "<rpc-reply") {
			t.Errorf("got %v", err)
		}
		if m, err := sw.CrossConnects(ctx); err != nil || m.Len() != 1 {
			t.Errorf("got %v, %v", m, err)
		}
	})
}

// TestBroken is all that ends a session: a read is repeated once on a new one,
// and a change is not.
func TestBroken(t *testing.T) {
	for _, tc := range []struct {
		name string
		send func(l *line)
		want error
		text string
	}{
		{"closed", func(l *line) { l.Close() }, io.EOF, "closed the session"},
		{"closed in the middle", func(l *line) { l.raw("\n#40\n<rpc"); l.Close() }, io.ErrUnexpectedEOF, "mid-message"},
		{"no XML", func(l *line) { l.raw(l.frame("hello?")) }, nil, "cannot be read"},
		{"bomb", func(l *line) {
			l.raw(l.frame(`<!DOCTYPE x [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;">]><rpc-reply>&b;</rpc-reply>`))
		}, nil, "cannot be read"},
		{"deep", func(l *line) { l.raw(l.frame(replyTo(l.id, strings.Repeat("<a>", 100000)))) }, nil, "cannot be read"},
		{"no framing", func(l *line) { l.raw("hello?") }, nil, "does not keep to the framing"},
		{"no namespace", func(l *line) { l.raw(l.frame(`<rpc-reply message-id="` + l.id + `"><ok/></rpc-reply>`)) }, nil, "cannot be read"},
		{"another message", func(l *line) { l.raw(l.frame(helloText(base11))) }, nil, "<hello>"},
		{"endless", func(l *line) { l.raw("\n#4294967295\n") }, nil, "longer than"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			broken := func(l *line) {
				l.hello()
				l.next()
				tc.send(l)
				_, _ = io.Copy(io.Discard, l.In)
			}
			check := func(t *testing.T, err error) {
				t.Helper()
				var op *ocs.OpError
				if !errors.As(err, &op) || tc.want != nil && !errors.Is(err, tc.want) || !strings.Contains(err.Error(), tc.text) {
					t.Errorf("got %v", err)
				}
			}
			run(t, []func(*line){broken, func(l *line) {
				l.hello()
				l.ask(readMap, data("cross-connects", pair1))
			}}, func(t *testing.T, sw *netconfswitch.Switch) {
				if m, err := sw.CrossConnects(ctx); err != nil || m.Len() != 1 {
					t.Errorf("got %v, %v", m, err)
				}
			})
			run(t, one(broken), func(t *testing.T, sw *netconfswitch.Switch) {
				_, err := sw.Apply(ctx, ocs.Change{Add: drivertest.Map(t, "1>33")})
				check(t, err)
			})
			run(t, []func(*line){broken, broken}, func(t *testing.T, sw *netconfswitch.Switch) {
				_, err := sw.CrossConnects(ctx)
				check(t, err)
			})
			run(t, []func(*line){broken, nil}, func(t *testing.T, sw *netconfswitch.Switch) {
				_, err := sw.CrossConnects(ctx)
				check(t, err)
				if !errors.Is(err, syscall.ECONNREFUSED) {
					t.Errorf("got %v", err)
				}
			})
		})
	}
}

// TestIdleEnd is a session that the device ends while nothing is asked: the next
// request, even a change, goes to a new one.
func TestIdleEnd(t *testing.T) {
	run(t, []func(*line){
		func(l *line) { l.hello(); l.Close() },
		func(l *line) {
			l.hello()
			l.ask(edits("cross-connects", `<pair nc:operation="merge"><ingress>1</ingress><egress>33</egress></pair>`), ok)
		},
	}, func(t *testing.T, sw *netconfswitch.Switch) {
		drivertest.Idle()
		if r, err := sw.Apply(ctx, ocs.Change{Add: drivertest.Map(t, "1>33")}); err != nil || r.Requests != 1 {
			t.Errorf("got %+v, %v", r, err)
		}
	})
}

// TestClose unblocks what is under way.
func TestClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPeer(t, func(l *line) {
			l.hello()
			for range 3 {
				l.next()
			}
		})
		sw := p.open()
		var calls sync.WaitGroup
		for range 2 {
			calls.Go(func() {
				if _, err := sw.CrossConnects(ctx); !errors.Is(err, net.ErrClosed) {
					t.Errorf("got %v", err)
				}
			})
		}
		calls.Go(func() {
			if err := sw.Notify(ctx, func(ocs.Event) {}); !errors.Is(err, net.ErrClosed) {
				t.Errorf("got %v", err)
			}
		})
		time.Sleep(time.Second)
		for range 2 {
			if err := sw.Close(); err != nil {
				t.Error(err)
			}
		}
		calls.Wait()
		if _, err := sw.Identify(ctx); !errors.Is(err, net.ErrClosed) {
			t.Errorf("got %v", err)
		}
		p.Finish()
	})
}

// TestPeerThatDoesNotRead blocks the writer; its context, its time and Close end
// that.
func TestPeerThatDoesNotRead(t *testing.T) {
	for _, part := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			block := func(l *line) {
				l.hello()
				if part {
					_, _ = l.Read(make([]byte, 1))
				}
				time.Sleep(time.Minute)
				l.Close()
				_, _ = io.Copy(io.Discard, l.In)
			}
			scripts := one(block)
			if part {
				scripts = append(scripts, block)
			}
			p := newPeer(t, scripts...)
			sw := p.open()
			short, cancel := context.WithTimeout(ctx, time.Second)
			defer cancel()
			begun := time.Now()
			if _, err := sw.CrossConnects(short); !errors.Is(err, context.DeadlineExceeded) || time.Since(begun) > time.Second+50*time.Millisecond {
				t.Errorf("got %v after %v", err, time.Since(begun))
			}
			r, err := sw.Apply(ctx, ocs.Change{Add: drivertest.Map(t, "1>33")})
			if !errors.Is(err, context.DeadlineExceeded) || part != (r.Requests == 1) || !strings.Contains(err.Error(), "not sent") {
				t.Errorf("got %+v, %v", r, err)
			}
			sw.Close()
			p.Finish()
		})
	}
}

// TestErrors maps what the device says to the sentinels.
func TestErrors(t *testing.T) {
	for _, tc := range []struct {
		name, reply string
		want        []error
		not         error
		text        string
	}{
		{"denied", rpcError("access-denied", "", "no"), []error{ocs.ErrDenied}, ocs.ErrConflict, "no"},
		{"in use", rpcError("in-use", "", "egress 33 is busy"), []error{ocs.ErrConflict}, nil, "egress 33 is busy"},
		{"locked", rpcError("lock-denied", "", "by session 7"), []error{ocs.ErrConflict}, nil, ""},
		{"not there", rpcError("data-missing", "", "gone"), []error{ocs.ErrNotConnected}, nil, ""},
		{"ingress", rpcError("invalid-value", "", "Invalid OXC port: 1000"), []error{ocs.ErrDenied, ocs.ErrPort}, nil, "Invalid OXC port: 1000"},
		{"egress", rpcError("invalid-value", "", "/cross-connects/pairs[ingress='1'] : Either the port is invalid or it does not have switching capability"),
			[]error{ocs.ErrDenied, ocs.ErrPort}, nil, ""},
		{"not supported", rpcError("operation-not-supported", "", "no"), []error{ocs.ErrNotSupported}, nil, ""},
		{"unknown", rpcError("unknown-element", "/x", "no"), []error{ocs.ErrNotSupported}, nil, ""},
		{"several", rpcError("operation-failed", "", "first") + rpcError("in-use", "", "second"), []error{ocs.ErrDenied, ocs.ErrConflict}, nil, "second"},
		{"nothing", "", nil, nil, "neither ok nor an error"},
		{"password", rpcError("operation-failed", "", "no") + "<password>hunter2</password>", []error{ocs.ErrDenied}, nil, "***"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			run(t, one(func(l *line) {
				l.hello()
				l.next()
				l.raw(l.reply(tc.reply))
			}), func(t *testing.T, sw *netconfswitch.Switch) {
				r, err := sw.Apply(ctx, ocs.Change{Add: drivertest.Map(t, "1>33")})
				if r.Requests != 1 || err == nil || !strings.Contains(err.Error()+errReply(err), tc.text) || strings.Contains(err.Error()+errReply(err), "hunter2") {
					t.Errorf("got %+v, %v", r, err)
				}
				for _, want := range tc.want {
					if !errors.Is(err, want) {
						t.Errorf("%v: does not match %q", err, want)
					}
				}
				if tc.not != nil && errors.Is(err, tc.not) {
					t.Errorf("%v: matches %q", err, tc.not)
				}
				var e *netconf.Error
				if errors.As(err, &e) != (tc.want != nil) {
					t.Errorf("got %#v", e)
				}
				var op *ocs.OpError
				if !errors.As(err, &op) || !strings.Contains(op.Reply, "<rpc-reply") || !strings.Contains(op.Request, "<edit-config>") {
					t.Errorf("got %#v", op)
				}
			})
		})
	}
}

func errReply(err error) string {
	var op *ocs.OpError
	if errors.As(err, &op) {
		return op.Reply
	}
	return ""
}

// TestUnnamedError is what a device says to a request that it could not read.
func TestUnnamedError(t *testing.T) {
	run(t, one(func(l *line) {
		l.hello()
		l.next()
		l.raw(l.frame(`<rpc-reply xmlns="urn:ietf:params:xml:ns:netconf:base:1.0">` + rpcError("malformed-message", "", "what?") + `</rpc-reply>`))
	}), func(t *testing.T, sw *netconfswitch.Switch) {
		if _, err := sw.CrossConnects(ctx); !errors.Is(err, ocs.ErrDenied) || !strings.Contains(err.Error(), "what?") {
			t.Errorf("got %v", err)
		}
	})
}

// TestPartOfWhatWasAsked does not take data for good whose error is about the
// same container.
func TestPartOfWhatWasAsked(t *testing.T) {
	run(t, one(func(l *line) {
		l.hello()
		l.next()
		l.raw(l.reply(data("opm-power", "<port><port-id>1</port-id><power>-3.00</power></port>") +
			rpcError("invalid-value", "/opsw:opm-power/port{1000}", "Invalid OXC port: 1000")))
		l.next()
		l.raw(l.reply(ok))
	}), func(t *testing.T, sw *netconfswitch.Switch) {
		if r, err := sw.Power(ctx, 1, 1000); !errors.Is(err, ocs.ErrPort) || r.Ports != nil {
			t.Errorf("got %v, %v", r, err)
		}
		if _, err := sw.CrossConnects(ctx); err == nil || !strings.Contains(err.Error(), "without data") {
			t.Errorf("got %v", err)
		}
	})
}

// TestTrace has no secrets.
func TestTrace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPeer(t, func(l *line) {
			l.size = 5
			l.hello()
			l.ask(readMap, data("cross-connects", pair1)+`<x><password>hunter2</password><a:secret xmlns:a="b" ><![CDATA[hunter2]]></a:secret><password/></x>`)
			l.next()
			l.raw(l.reply(`<password>hunter2hunter2hunter2`)[:270])
			l.Close()
		}, func(l *line) { l.hello(); l.next() })
		var sent, received strings.Builder
		cfg := p.config()
		cfg.Trace = func(out bool, p []byte) {
			if out {
				sent.Write(p)
			} else {
				received.Write(p)
			}
		}
		sw, err := netconfswitch.Open(ctx, cfg)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := sw.CrossConnects(ctx); err != nil {
			t.Error(err)
		}
		_, err = sw.CrossConnects(ctx)
		if err == nil || strings.Contains(fmt.Sprintf("%v %#v", err, err), "hunter") {
			t.Errorf("got %v", err)
		}
		sw.Close()
		p.Finish()
		if !strings.HasPrefix(sent.String(), ourHello+"\n#") || strings.Count(sent.String(), "\n##\n") != 5 {
			t.Errorf("sent %q", sent.String())
		}
		if got := received.String(); !strings.HasPrefix(got, "<?xml") || !strings.Contains(got, pair1) || strings.Contains(got, "hunter") ||
			!strings.Contains(got, "<password>***</password>") || !strings.Contains(got, "<password/>") {
			t.Errorf("received %q", got)
		}
	})
}
