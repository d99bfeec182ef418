package tl1switch_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"reflect"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ocslab/ocslab/drivers/internal/drivertest"
	"github.com/ocslab/ocslab/drivers/tl1switch"
	"github.com/ocslab/ocslab/ocs"
)

// inbox collects events.
type inbox struct {
	mu     sync.Mutex // guards events
	events []ocs.Event
}

func (b *inbox) put(e ocs.Event) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.events = append(b.events, e)
}

func TestNotify(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		say := make(chan string)
		p := newPeer(t, func(l *line) {
			l.login(1)
			l.ask("RLS-ARC-EQPT::REPMGR:3:;")
			for s := range say {
				l.Send(s)
			}
			l.ask("OPR-ARC-EQPT::REPMGR:4::IND;")
		})
		sw := p.open()
		ctx, cancel := context.WithCancelCause(t.Context())
		var box inbox
		ended := make(chan error)
		go func() { ended <- sw.Notify(ctx, box.put) }()
		synctest.Wait()
		time.Sleep(time.Second)
		came := time.Now()
		raws := []string{
			autonomous(7, `5:PORT,SC,,,,:\"Port 5 disabled\"`),
			header + "*C 8 REPT ALM EQPT\r\n   \"17:LOS,SA,,,,\"\r\n;",
			header + "** 9 REPT ALM ENV\r\n   \"fan: power on port 12 is low\"\r\n;",
			header + "*  10 REPT ALM COM\r\n;",
			autonomous(11, "a user said "+password),
		}
		say <- strings.Join(raws, "")
		close(say)
		synctest.Wait()
		want := []ocs.Event{
			{Received: came, Severity: "event", Port: 5, Text: `REPT EVT EQPT: 5:PORT,SC,,,,:"Port 5 disabled"`, Raw: raws[0]},
			{Received: came, Severity: "critical", Port: 17, Text: "REPT ALM EQPT: 17:LOS,SA,,,,", Raw: raws[1]},
			{Received: came, Severity: "major", Port: 12, Text: "REPT ALM ENV: fan: power on port 12 is low", Raw: raws[2]},
			{Received: came, Severity: "minor", Text: "REPT ALM COM", Raw: raws[3]},
			{Received: came, Severity: "event", Text: "REPT EVT EQPT: a user said ***", Raw: raws[4]},
		}
		for i := range want {
			want[i].Raw = strings.TrimLeft(strings.ReplaceAll(want[i].Raw, password, "***"), "\r\n")
		}
		for i := range box.events {
			box.events[i].Raw = strings.TrimLeft(box.events[i].Raw, "\r\n")
		}
		if !reflect.DeepEqual(box.events, want) {
			t.Errorf("got\n%+v, want\n%+v", box.events, want)
		}
		cancel(drivertest.ErrEnough)
		if err := <-ended; !errors.Is(err, drivertest.ErrEnough) {
			t.Errorf("got %v", err)
		}
		sw.Close()
		p.Finish()
	})
}

// Events that a listener is too slow for are counted; others do not wait for it.
func TestNotifyLoss(t *testing.T) {
	const sent, queue = 300, 256
	talk(t, func(t *testing.T, sw *tl1switch.Switch) {
		ctx, cancel := context.WithCancel(t.Context())
		free := make(chan struct{})
		var slow, quick inbox
		var both sync.WaitGroup
		both.Go(func() { sw.Notify(ctx, func(e ocs.Event) { <-free; slow.put(e) }) })
		both.Go(func() { sw.Notify(ctx, quick.put) })
		synctest.Wait()
		if _, err := sw.CrossConnects(t.Context()); err != nil { // behind the events
			t.Error(err)
		}
		synctest.Wait()
		close(free)
		synctest.Wait()
		if _, err := sw.CrossConnects(t.Context()); err != nil { // one more event
			t.Error(err)
		}
		synctest.Wait()
		if got, want := len(slow.events), queue+2; got != want { // one was in hand, one came later
			t.Fatalf("slow: got %d events, want %d", got, want)
		}
		lost := 0
		for i, e := range slow.events {
			lost += e.Lost
			if i < queue+1 && e.Lost != 0 {
				t.Errorf("event %d: lost %d", i, e.Lost)
			}
		}
		if lost != sent-queue-1 {
			t.Errorf("lost %d, want %d", lost, sent-queue-1)
		}
		if len(quick.events) != sent+1 || quick.events[sent].Lost != 0 {
			t.Errorf("quick: got %d events", len(quick.events))
		}
		cancel()
		both.Wait()
	}, func(l *line) {
		l.login(1)
		l.ask("RLS-ARC-EQPT::REPMGR:3:;") // once for both
		l.expect("RTRV-PATCH:::4:;")
		for i := range sent {
			l.Send(autonomous(i, "x"))
			time.Sleep(time.Millisecond)
		}
		l.Send(completed("4"))
		l.expect("RTRV-PATCH:::5:;")
		l.Send(autonomous(sent, "x") + completed("5"))
		l.ask("OPR-ARC-EQPT::REPMGR:6::IND;")
	})
}

// Notifications are inhibited when the last listener has gone, not before, and
// stay allowed for one who comes at that moment.
func TestNotifyTwo(t *testing.T) {
	talk(t, func(t *testing.T, sw *tl1switch.Switch) {
		listen := func() (stop func()) {
			ctx, cancel := context.WithCancel(t.Context())
			ended := make(chan error, 1)
			go func() { ended <- sw.Notify(ctx, func(ocs.Event) {}) }()
			synctest.Wait()
			return func() {
				cancel()
				if err := <-ended; !errors.Is(err, context.Canceled) {
					t.Error(err)
				}
			}
		}
		stop1 := listen()
		stop2 := listen()
		stop1()
		if _, err := sw.CrossConnects(t.Context()); err != nil {
			t.Error(err)
		}
		stop2()
		stop3 := listen()
		var both sync.WaitGroup
		both.Go(func() { sw.CrossConnects(t.Context()) }) // holds the turn
		synctest.Wait()
		both.Go(stop3) // waits for it to inhibit
		synctest.Wait()
		stop4 := listen() // waits, too
		both.Wait()
		stop4()
	}, func(l *line) {
		l.login(1)
		l.ask("RLS-ARC-EQPT::REPMGR:3:;")
		l.ask("RTRV-PATCH:::4:;")
		l.ask("OPR-ARC-EQPT::REPMGR:5::IND;")
		l.ask("RLS-ARC-EQPT::REPMGR:6:;")
		l.expect("RTRV-PATCH:::7:;")
		time.Sleep(100 * time.Millisecond)
		l.Send(completed("7"))
		l.ask("OPR-ARC-EQPT::REPMGR:8::IND;")
	})
}

// The end of the session ends Notify, after all that came before it.
func TestNotifySessionLost(t *testing.T) {
	for _, closed := range []bool{false, true} {
		t.Run(fmt.Sprintf("closed=%v", closed), func(t *testing.T) {
			talk(t, func(t *testing.T, sw *tl1switch.Switch) {
				var box inbox
				ended := make(chan error)
				go func() {
					ended <- sw.Notify(t.Context(), func(e ocs.Event) { time.Sleep(time.Second); box.put(e) })
				}()
				synctest.Wait()
				want := io.EOF
				if closed {
					sw.Close()
					want = net.ErrClosed
				}
				if err := <-ended; !errors.Is(err, want) || !strings.HasPrefix(err.Error(), "rail0: listen: ") {
					t.Errorf("got %v, want %v", err, want)
				}
				if len(box.events) != 3 {
					t.Errorf("got %d events", len(box.events))
				}
			}, func(l *line) {
				l.login(1)
				l.ask("RLS-ARC-EQPT::REPMGR:3:;")
				l.Send(autonomous(1, "x") + autonomous(2, "x") + autonomous(3, "x"))
				if !closed {
					l.Close()
				}
			})
		})
	}
}

// A listener on a session that has ended opens one, and a new login tells the
// device again.
func TestNotifyAfterReconnect(t *testing.T) {
	talk(t, func(t *testing.T, sw *tl1switch.Switch) {
		drivertest.Idle()
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- sw.Notify(ctx, func(ocs.Event) {}) }()
		synctest.Wait()
		if _, err := sw.CrossConnects(t.Context()); err != nil {
			t.Error(err)
		}
		cancel()
		<-ended
	}, func(l *line) {
		l.login(1)
		l.Close()
	}, func(l *line) {
		l.next()
		l.Send(completed("3"))
		l.ask("RLS-ARC-EQPT::REPMGR:4:;")
		l.expect("RTRV-PATCH:::5:;")
		l.Send(denied("5", "PLNA", "Not logged in"))
		l.next()
		l.Send(completed("6"))
		l.ask("RLS-ARC-EQPT::REPMGR:7:;")
		l.ask("RTRV-PATCH:::8:;")
		l.expect("OPR-ARC-EQPT::REPMGR:9::IND;") // a device that is silent does not hold Notify up for long
	})
}
