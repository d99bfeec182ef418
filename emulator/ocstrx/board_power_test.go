package ocstrx

import (
	"context"
	"errors"
	"io"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ocslab/ocslab/emulator"
	"github.com/ocslab/ocslab/wire/cmis/ocst"
	"github.com/ocslab/ocslab/wire/trxlink"
)

// The power goes from all modules at one moment: nobody is answered, and the other ends of the
// cables lose their light. It comes back to modules that start anew.
func TestBoardPower(t *testing.T) {
	t.Parallel()
	clock := new(VirtualClock)
	dies, lives := testBoard(t, "ocstrx-8x112g-x8", clock), testBoard(t, "ocstrx-8x112g-x8", clock)
	if _, err := JoinBoards(dies, 1, lives, 0, 1); err != nil {
		t.Fatal(err)
	}
	clock.Advance(20 * time.Millisecond)
	var far []*bench
	for i, m := range lives.Modules() {
		far = append(far, &bench{t, m, clock})
		far[i].switchTo(ocst.Path1, 0xff)
		near := &bench{t, dies.Modules()[i], clock}
		near.switchTo(ocst.Path2, 0xff)
	}
	for _, m := range far {
		m.clock.Advance(time.Millisecond)
		if l := m.locks(); l != ocst.Locked {
			t.Fatalf("receivers are %v", l)
		}
	}
	first := &bench{t, dies.Modules()[0], clock}
	wear := first.status().Switches
	first.order(ocst.LoopPath, 0xff, ocst.CommitNow)
	clock.Advance(30 * time.Microsecond)

	dies.SetPower(false)
	dies.SetPower(false)
	if dies.Powered() {
		t.Error("the board has power")
	}
	for _, m := range far {
		if l := m.locks(); l != ocst.NoLight {
			t.Errorf("receivers at the other end are %v", l)
		}
		m.wantState(ocst.StateReady)
	}
	if err := first.Read(t.Context(), ocst.StatusSpan.Address, make([]byte, 1)); !errors.Is(err, ErrNoPower) {
		t.Errorf("reading: %v", err)
	}
	if err := first.Write(t.Context(), ocst.At(ocst.RegStaged), []byte{1, 0xff, 1}); !errors.Is(err, ErrNoPower) {
		t.Errorf("writing: %v", err)
	}
	first.Trigger()
	first.BrownOut()
	clock.Advance(time.Hour)
	first.chip.refresh(clock.Now())
	if w := first.chip.power(clock.Now()); w != 0 {
		t.Errorf("a module without power takes %g W", w)
	}

	dies.SetPower(true)
	first.wantState(ocst.StateReset)
	clock.Advance(20 * time.Millisecond)
	first.wantState(ocst.StateReady)
	if s := first.status(); s.Switches != wear || s.Sequence != 0 || s.Result != ocst.FaultBrownOut {
		t.Errorf("after the start %d switches, sequence number %d, %v; want %d, 0, brown-out", s.Switches, s.Sequence, s.Result, wear)
	}
	if log := first.entries(); len(log) != 2 || log[0].Result != ocst.FaultBrownOut {
		t.Errorf("log %+v", log)
	}
	first.switchTo(ocst.Path2, 0xff)
	clock.Advance(time.Millisecond)
	if l := far[0].locks(); l != ocst.Locked {
		t.Errorf("receivers at the other end are %v", l)
	}
}

// Without power every connection breaks, and so does each new one.
func TestBoardPowerLink(t *testing.T) {
	t.Parallel()
	b := testBoard(t, "ocstrx-8x112g", nil)
	connect := func() (net.Conn, chan struct{}) {
		near, far := net.Pipe()
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			b.ServeSession(context.Background(), far, emulator.SessionInfo{})
		}()
		return near, ended
	}
	old, ended := connect()
	defer old.Close()
	hello := trxlink.Frame{Kind: trxlink.Hello, Slot: trxlink.Board, Payload: make([]byte, 4)}.Append(nil)
	if _, err := old.Write(hello); err != nil {
		t.Fatal(err)
	}
	if _, err := old.Read(make([]byte, 256)); err != nil { // it is served
		t.Fatal(err)
	}
	for range 2 {
		b.SetPower(false)
		<-ended
		if _, err := old.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
			t.Errorf("reading: %v", err)
		}
		old, ended = connect()
	}
	<-ended
	b.SetPower(true)
	again, over := connect()
	again.Close()
	<-over
}

func TestParsePowerFault(t *testing.T) {
	t.Parallel()
	off, err := ParseFault("power-off")
	if err != nil {
		t.Fatal(err)
	}
	b := testBoard(t, "ocstrx-8x112g", nil)
	if err := off(b); err != nil || b.Powered() {
		t.Errorf("power is on, %v", err)
	}
	later, err := ParseFault("power-off:5s")
	if err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		b := testBoard(t, "ocstrx-8x112g", nil)
		if err := later(b); err != nil {
			t.Fatal(err)
		}
		for _, on := range []bool{true, false} {
			if b.Powered() != on {
				t.Errorf("power %v, want %v", !on, on)
			}
			time.Sleep(5 * time.Second) // of the bubble
			synctest.Wait()
		}
	})
	for _, s := range []string{"power-off:", "power-off:soon", "power-off:-1s", "power-off:5", "1/power-off"} {
		if _, err := ParseFault(s); err == nil || !strings.Contains(err.Error(), "want") {
			t.Errorf("%s: %v", s, err)
		}
	}
}
