package ocstrx_test

import (
	"context"
	"errors"
	"net"
	"testing"
	"time"

	"github.com/ocslab/ocslab/drivers/ocstrx"
	"github.com/ocslab/ocslab/emulator"
	emulated "github.com/ocslab/ocslab/emulator/ocstrx"
	"github.com/ocslab/ocslab/ocs"
	"github.com/ocslab/ocslab/wire/cmis"
	"github.com/ocslab/ocslab/wire/cmis/ocst"
)

// linkEmulated makes an emulated board whose clock stands at a moment when all modules are
// ready.
func linkEmulated(t testing.TB, model string) (*emulated.Board, *emulated.VirtualClock) {
	t.Helper()
	p, err := emulated.LoadPersonality(model)
	if err != nil {
		t.Fatal(err)
	}
	clock := new(emulated.VirtualClock)
	b, err := emulated.NewBoard(p, emulated.Options{Name: "board", Serial: "B1", Seed: 1, Clock: clock})
	if err != nil {
		t.Fatal(err)
	}
	clock.Advance(time.Second)
	return b, clock
}

func serveEmulated(b *emulated.Board) func(net.Conn) {
	return func(conn net.Conn) { b.ServeSession(context.Background(), conn, emulator.SessionInfo{}) }
}

// linkStatus reads the status of modules.
func linkStatus(t testing.TB, b ocstrx.Bus, slots int) []ocst.Status {
	t.Helper()
	var requests []ocstrx.Request
	for slot := range slots {
		requests = append(requests, ocstrx.Request{Slot: slot, At: ocst.StatusSpan.Address, Data: make([]byte, ocst.StatusSpan.Length)})
	}
	if _, err := b.Do(t.Context(), requests...); err != nil {
		t.Fatal(err)
	}
	all := make([]ocst.Status, slots)
	for i, r := range requests {
		var err error
		if all[i], err = ocst.DecodeStatus(r.Data); err != nil {
			t.Fatal(err)
		}
	}
	return all
}

// TestLinkEmulated arms a bundle of the emulated board over one link, and triggers it.
func TestLinkEmulated(t *testing.T) {
	t.Parallel()
	board, clock := linkEmulated(t, "ocstrx-8x112g-x8")
	n := len(board.Modules())
	l, _ := openLink(t, ocstrx.LinkConfig{}, serveEmulated(board))
	if l.Slots() != n || !l.HasTrigger() {
		t.Fatalf("got %+v", l.Info())
	}
	var arm []ocstrx.Request
	for slot := range n {
		arm = append(arm, ocstrx.Request{Op: ocstrx.OpWrite, Slot: slot, At: ocst.At(ocst.RegStaged), Data: []byte{byte(ocst.Path2), 0xff, byte(ocst.CommitArm)}})
	}
	trigger := ocstrx.Request{Op: ocstrx.OpTrigger, Mask: 1<<n - 1}
	if _, err := l.Do(t.Context(), arm[1:]...); err != nil {
		t.Fatal(err)
	}
	var which *ocstrx.NotArmedError
	if _, err := l.Do(t.Context(), trigger); !errors.As(err, &which) || which.Slot != 0 || !errors.Is(err, ocs.ErrDenied) {
		t.Errorf("half-armed: got %v", err)
	}
	if r, err := l.Do(t.Context(), arm[0], trigger); err != nil || r.Requests != 2 {
		t.Fatal(r, err)
	}
	clock.Advance(time.Millisecond)
	for i, s := range linkStatus(t, l, n) {
		if s.Path != ocst.Path2 || s.Sequence != 1 || s.Result != ocst.NoFault {
			t.Errorf("module %d: got %+v", i+1, s)
		}
	}
	// The same over CDB: the board waits while the module works, so the clock has to go on.
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	go func() {
		for ctx.Err() == nil {
			clock.Advance(100 * time.Microsecond)
			time.Sleep(100 * time.Microsecond)
		}
	}()
	if reply, err := l.CDB(t.Context(), 1, ocst.CDBSwitch, []byte{byte(ocst.Path1), 0xff, byte(ocst.CommitNow)}); err != nil || len(reply) == 0 || reply[0] != 0 {
		t.Errorf("got % x, %v", reply, err)
	}
	clock.Advance(time.Millisecond)
	if s := linkStatus(t, l, 2)[1]; s.Path != ocst.Path1 || s.Sequence != 2 {
		t.Errorf("got %+v", s)
	}
	var refused *cmis.CDBError
	if _, err := l.CDB(t.Context(), 0, ocst.CDBCalibrate, []byte{1}); !errors.As(err, &refused) || refused.Status != cmis.CDBPassword {
		t.Errorf("without a password: got %v", err)
	}
}

// TestLinkEmulatedNoise switches the emulated modules to and fro over a bad line: commands
// that succeed have raised the number of switches by one, and those whose fate is not
// known by one or none.
func TestLinkEmulatedNoise(t *testing.T) {
	t.Parallel()
	board, clock := linkEmulated(t, "ocstrx-8x112g-x8")
	n := len(board.Modules())
	d := &linkDialer{serve: serveEmulated(board), near: noisy(1e-3, 1e-3, 3)}
	l, err := ocstrx.OpenLink(t.Context(), ocstrx.LinkConfig{Dialer: d, Timeout: 50 * time.Millisecond, Retries: 10})
	if err != nil {
		t.Fatal(err)
	}
	defer d.wg.Wait()
	defer l.Close()
	was := make([]uint32, n)
	for round := range 40 {
		path := ocst.Path1 + ocst.Path(round%2)
		var requests []ocstrx.Request
		for slot := range n {
			requests = append(requests, ocstrx.Request{Op: ocstrx.OpWrite, Slot: slot, At: ocst.At(ocst.RegStaged), Data: []byte{byte(path), 0xff, byte(ocst.CommitNow)}})
		}
		_, failed := l.Do(t.Context(), requests...)
		clock.Advance(2 * time.Millisecond)
		for i, m := range board.Modules() {
			p := make([]byte, ocst.StatusSpan.Length)
			if err := m.Read(t.Context(), ocst.StatusSpan.Address, p); err != nil {
				t.Fatal(err)
			}
			s, err := ocst.DecodeStatus(p)
			if err != nil || s.Sequence > was[i]+1 || failed == nil && (s.Sequence != was[i]+1 || s.Path != path || s.Result != ocst.NoFault) {
				t.Fatalf("round %d, module %d: got %+v after %d switches; %v, %v", round, i+1, s, was[i], failed, err)
			}
			was[i] = s.Sequence
		}
	}
	for i, s := range linkStatus(t, l, n) {
		if s.Sequence != was[i] {
			t.Errorf("module %d: got %+v over the line, and %d from itself", i+1, s, was[i])
		}
	}
}
