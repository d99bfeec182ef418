package ocstrx

import (
	"bytes"
	"context"
	"encoding/binary"
	"io"
	"math/rand/v2"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ocslab/ocslab/emulator"
	"github.com/ocslab/ocslab/wire/cmis"
	"github.com/ocslab/ocslab/wire/cmis/ocst"
	"github.com/ocslab/ocslab/wire/trxlink"
)

// host is a host at the line of a board.
type host struct {
	testing.TB
	board *Board
	clock *VirtualClock
	conn  net.Conn
	in    trxlink.Decoder
	seq   uint8
}

// newHost returns a host at a new board of a model with all modules ready.
func newHost(t testing.TB, model string) *host {
	t.Helper()
	p, err := LoadPersonality(model)
	if err != nil {
		t.Fatal(err)
	}
	clock := new(VirtualClock)
	board, err := NewBoard(p, Options{Seed: 1, Clock: clock, Wall: testWall})
	if err != nil {
		t.Fatal(err)
	}
	clock.Advance(20 * time.Millisecond)
	here, there := net.Pipe()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		board.ServeSession(context.Background(), there, emulator.SessionInfo{})
	}()
	t.Cleanup(func() { here.Close(); <-ended })
	h := &host{TB: t, board: board, clock: clock, conn: here}
	if code, _ := h.ask(trxlink.Read, 0, trxlink.AppendRead(nil, cmis.Address{}, 1)); code != trxlink.CodeHello {
		t.Fatalf("before hello: %v", code)
	}
	if code, _ := h.ask(trxlink.Hello, trxlink.Board, []byte("host")); code != trxlink.CodeOK {
		t.Fatal(code)
	}
	h.seq = 0
	return h
}

func (h *host) send(p []byte) {
	h.Helper()
	if _, err := h.conn.Write(p); err != nil {
		h.Fatal(err)
	}
}

func (h *host) hear() trxlink.Frame {
	h.Helper()
	buf := make([]byte, 512)
	for {
		if f, ok := h.in.Next(); ok {
			return f
		}
		n, err := h.conn.Read(buf)
		if err != nil {
			h.Fatal(err)
		}
		h.in.Feed(buf[:n])
	}
}

func (h *host) frame(k trxlink.Kind, slot uint8, payload []byte) trxlink.Frame {
	h.seq++
	return trxlink.Frame{Version: trxlink.Version, Kind: k, Slot: slot, Seq: h.seq, Payload: payload}
}

// ask sends a request and returns the code and the rest of the reply.
func (h *host) ask(k trxlink.Kind, slot uint8, payload []byte) (trxlink.Code, []byte) {
	h.Helper()
	f := h.frame(k, slot, payload)
	h.send(f.Append(nil))
	r := h.hear()
	if r.Kind != k|trxlink.Reply || r.Slot != slot || r.Seq != f.Seq || len(r.Payload) == 0 {
		h.Fatalf("asked %v, reply %v", f, r)
	}
	return trxlink.Code(r.Payload[0]), r.Payload[1:]
}

func commitFrame(path ocst.Path, lanes uint8, c ocst.Commit) []byte {
	return trxlink.AppendWrite(nil, ocst.At(ocst.RegStaged), []byte{byte(path), lanes, byte(c)})
}

func (h *host) status(slot uint8) ocst.Status {
	h.Helper()
	code, p := h.ask(trxlink.Read, slot, trxlink.AppendRead(nil, ocst.StatusSpan.Address, ocst.StatusSpan.Length))
	if code != trxlink.CodeOK {
		h.Fatal(code)
	}
	s, err := ocst.DecodeStatus(p)
	if err != nil {
		h.Fatal(err)
	}
	return s
}

// TestBoard ensures each kind of request, and what is said to those that make no sense.
func TestBoard(t *testing.T) {
	t.Parallel()
	h := newHost(t, "ocstrx-8x112g-x8")
	code, p := h.ask(trxlink.Hello, trxlink.Board, []byte{1, 2, 3, 4})
	info, nonce, err := trxlink.ParseInfo(p)
	if code != trxlink.CodeOK || err != nil || nonce != (trxlink.Nonce{1, 2, 3, 4}) || info.Slots != 8 || info.Features != trxlink.HasTrigger|trxlink.HasPlate || info.Serial != h.board.serial {
		t.Errorf("hello: %v, %+v, %v", code, info, err)
	}
	for i, m := range h.board.Modules() {
		if want := info.Serial + "-0" + string(rune('1'+i)); m.Serial() != want {
			t.Errorf("module %d has the serial number %q, want %q", i+1, m.Serial(), want)
		}
	}
	for _, c := range []struct {
		kind    trxlink.Kind
		slot    uint8
		payload []byte
		want    trxlink.Code
	}{
		{trxlink.Read, 8, trxlink.AppendRead(nil, cmis.Address{}, 1), trxlink.CodeSlot},
		{trxlink.Read, trxlink.Board, trxlink.AppendRead(nil, cmis.Address{}, 1), trxlink.CodeSlot},
		{trxlink.Read, 0, []byte{0, 0, 0}, trxlink.CodeArgument},
		{trxlink.Read, 0, []byte{0, 0, 0, 0}, trxlink.CodeArgument},
		{trxlink.Read, 0, []byte{0, 0, 100, 100}, trxlink.CodeArgument},
		{trxlink.Read, 0, []byte{0, 0x44, 128, 1}, trxlink.CodeArgument},
		{trxlink.Write, 0, []byte{0, 0, 128}, trxlink.CodeArgument},
		{trxlink.Write, 0, []byte{9, 0xb0, 128, 1}, trxlink.CodeArgument},
		{trxlink.Write, 0, []byte{0, 0xb0, 136, 1}, trxlink.CodeOK},
		{trxlink.CDB, 0, []byte{1}, trxlink.CodeArgument},
		{trxlink.Trigger, 0, trxlink.AppendTrigger(nil, 1), trxlink.CodeSlot},
		{trxlink.Trigger, trxlink.Board, trxlink.AppendTrigger(nil, 0), trxlink.CodeArgument},
		{trxlink.Trigger, trxlink.Board, trxlink.AppendTrigger(nil, 0x100), trxlink.CodeSlot},
		{trxlink.Trigger, trxlink.Board, []byte{1}, trxlink.CodeArgument},
		{trxlink.Hello, trxlink.Board, nil, trxlink.CodeArgument},
		{trxlink.Plate, trxlink.Board, nil, trxlink.CodeArgument},
		{0x33, 0, nil, trxlink.CodeKind},
	} {
		if code, _ := h.ask(c.kind, c.slot, c.payload); code != c.want {
			t.Errorf("%v of slot %d: % x: %v, want %v", c.kind, c.slot, c.payload, code, c.want)
		}
	}
	f := h.frame(trxlink.Read, 0, trxlink.AppendRead(nil, cmis.Address{}, 1))
	f.Version = 2
	h.send(f.Append(nil))
	if r := h.hear(); trxlink.Code(r.Payload[0]) != trxlink.CodeVersion {
		t.Errorf("version 2: %v", r)
	}
	code, p = h.ask(trxlink.CDB, 2, trxlink.AppendCDB(nil, ocst.CDBVerification, nil))
	if code != trxlink.CodeOK || cmis.CDBStatus(p[0]) != cmis.CDBSuccess || len(p) != 38 {
		t.Errorf("CDB: %v, % x", code, p)
	}
	code, p = h.ask(trxlink.CDB, 2, trxlink.AppendCDB(nil, ocst.CDBHeaterTest, nil))
	if code != trxlink.CodeOK || cmis.CDBStatus(p[0]) != cmis.CDBPassword {
		t.Errorf("CDB without password: %v, % x", code, p)
	}
}

// TestCDBBusy ensures that the board waits for a command of a module, and not for ever.
func TestCDBBusy(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := newHost(t, "ocstrx-8x112g") // whose clock stands still
		code, _ := h.ask(trxlink.CDB, 0, trxlink.AppendCDB(nil, ocst.CDBSwitch, []byte{3, 0xff, 1}))
		if code != trxlink.CodeBusy {
			t.Errorf("%v, want %v", code, trxlink.CodeBusy)
		}
		h.clock.Advance(time.Millisecond)
		h.send(h.frame(trxlink.CDB, 0, trxlink.AppendCDB(nil, ocst.CDBSwitch, []byte{1, 0xff, 1})).Append(nil))
		time.Sleep(trxlink.CDBTime / 2)
		h.clock.Advance(time.Millisecond)
		if r := h.hear(); !bytes.Equal(r.Payload, []byte{0, byte(cmis.CDBSuccess), 0, 0, 0, 0, 2}) {
			t.Errorf("reply % x", r.Payload)
		}
	})
}

// TestTrigger ensures that a trigger is of all modules or of none, and at one moment.
func TestTrigger(t *testing.T) {
	t.Parallel()
	h := newHost(t, "ocstrx-8x112g-x8")
	for slot := range uint8(8) {
		if slot != 5 {
			h.ask(trxlink.Write, slot, commitFrame(ocst.LoopPath, 0xff, ocst.CommitArm))
		}
	}
	code, p := h.ask(trxlink.Trigger, trxlink.Board, trxlink.AppendTrigger(nil, 0xff))
	if code != trxlink.CodeNotArmed || !bytes.Equal(p, []byte{5}) {
		t.Errorf("half-armed: %v, % x", code, p)
	}
	for slot := range uint8(8) {
		if s := h.status(slot); s.State == ocst.StateBreak || s.Sequence != 0 {
			t.Errorf("half-armed, and slot %d is in %v", slot, s.State)
		}
	}
	h.ask(trxlink.Write, 5, commitFrame(ocst.LoopPath, 0xff, ocst.CommitArm))
	if code, _ := h.ask(trxlink.Trigger, trxlink.Board, trxlink.AppendTrigger(nil, 0xff)); code != trxlink.CodeOK {
		t.Errorf("all armed: %v", code)
	}
	h.clock.Advance(time.Millisecond)
	for slot, m := range h.board.Modules() {
		if s := h.status(uint8(slot)); s.Sequence != 1 || s.Path != ocst.LoopPath || m.log[0].At != 20000 {
			t.Errorf("slot %d: %+v, log %+v", slot, s, m.log[0])
		}
	}
}

// TestOnce ensures that a request which comes again is answered again and not done again, as
// long as the board remembers it, and that HELLO makes it forget.
func TestOnce(t *testing.T) {
	t.Parallel()
	h := newHost(t, "ocstrx-8x112g")
	commit := h.frame(trxlink.Write, 0, commitFrame(ocst.Dark, 0xff, ocst.CommitNow)).Append(nil)
	again := func() uint32 {
		h.send(commit)
		h.hear()
		h.clock.Advance(time.Millisecond)
		return h.board.modules[0].sequence
	}
	for range 3 {
		again()
		h.board.modules[0].Armed() // catches up
		if got := h.board.modules[0].sequence; got != 1 {
			t.Fatalf("%d switches, want 1", got)
		}
	}
	for range trxlink.Window - 1 {
		h.status(0)
	}
	if again(); h.status(0).Sequence != 1 {
		t.Errorf("done again within the window")
	}
	for range trxlink.Window {
		h.status(0)
	}
	if again(); h.status(0).Sequence != 2 {
		t.Errorf("not done, outside of the window")
	}
	hello := h.frame(trxlink.Hello, trxlink.Board, []byte("abcd")).Append(nil)
	h.send(hello)
	h.hear()
	if again(); h.status(0).Sequence != 3 {
		t.Errorf("not done after hello")
	}
	h.send(hello) // late, as a line may have it: it is not a new one
	h.hear()
	if again(); h.status(0).Sequence != 3 {
		t.Errorf("the same hello has made the board forget")
	}
}

// TestChunks ensures that requests are found in chunks of any size, several in one too, and
// between noise, and that replies come in the order of requests.
func TestChunks(t *testing.T) {
	t.Parallel()
	// The gap between chunks counts in the time of the test, which stands still while
	// anything goes on: a machine under load makes none.
	synctest.Test(t, testChunks)
}

func testChunks(t *testing.T) {
	h := newHost(t, "ocstrx-8x112g")
	rng := rand.New(rand.NewPCG(1, 1))
	var stream []byte
	for i := range 300 {
		if i%7 == 0 {
			stream = append(stream, "noise\xa5\x5a"...)
		}
		stream = h.frame(trxlink.Read, 0, trxlink.AppendRead(nil, ocst.At(uint8(128+i%100)), 1)).Append(stream)
	}
	go func() {
		for len(stream) > 0 {
			n := min(1+rng.IntN(40), len(stream))
			if _, err := h.conn.Write(stream[:n]); err != nil {
				return
			}
			stream = stream[n:]
		}
	}()
	for i := range 300 {
		if r := h.hear(); r.Seq != uint8(i+1) || r.Payload[0] != 0 {
			t.Fatalf("reply %d: %v", i, r)
		}
	}
}

// TestGap ensures that a frame which does not go on holds up what follows for no longer than
// the gap, and that our own replies, echoed, are not answered.
func TestGap(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := newHost(t, "ocstrx-8x112g")
		good := h.frame(trxlink.Read, 0, trxlink.AppendRead(nil, cmis.Address{}, 1)).Append(nil)
		long := h.frame(trxlink.Write, 0, make([]byte, 100)).Append(nil)
		begun := time.Now()
		h.send(append(long[:30:30], good...)) // seems to be inside of the long one
		if r := h.hear(); r.Payload[1] != byte(cmis.QSFPDD) {
			t.Errorf("reply %v", r)
		}
		if waited := time.Since(begun); waited != trxlink.Gap {
			t.Errorf("after %v, want %v", waited, trxlink.Gap)
		}
		h.send(trxlink.Frame{Kind: trxlink.Read | trxlink.Reply, Seq: 9, Payload: []byte{0}}.Append(nil))
		if code, _ := h.ask(trxlink.Read, 0, trxlink.AppendRead(nil, cmis.Address{}, 1)); code != trxlink.CodeOK {
			t.Error(code)
		}
		// Begun, and the host is gone.
		h.send(long[:20])
		h.conn.Close()
	})
}

// TestPlate ensures that the plate takes the modules to a temperature in seconds, and that
// the board says so.
func TestPlate(t *testing.T) {
	t.Parallel()
	h := newHost(t, "ocstrx-8x112g-x8")
	ask := func(s trxlink.PlateSetting) trxlink.PlateStatus {
		t.Helper()
		code, p := h.ask(trxlink.Plate, trxlink.Board, s.Append(nil))
		status, err := trxlink.ParsePlateStatus(p)
		if code != trxlink.CodeOK || err != nil {
			t.Fatalf("%v, %v", code, err)
		}
		return status
	}
	if s := ask(trxlink.PlateLeave); s.Set != trxlink.PlateOff || s.Now != 25 {
		t.Errorf("at first: %+v", s)
	}
	h.clock.Advance(time.Minute)
	before := h.board.modules[7].Truth().Celsius
	if s := ask(trxlink.PlateAt(45)); s.Set != trxlink.PlateAt(45) || s.Now != 25 {
		t.Errorf("switched on: %+v", s)
	}
	h.clock.Advance(plateTime)
	if s := ask(trxlink.PlateLeave); s.Set != trxlink.PlateAt(45) || s.Now < 37 || s.Now > 38 {
		t.Errorf("after one time constant: %+v", s)
	}
	h.clock.Advance(time.Minute)
	if s := ask(trxlink.PlateOff); s.Set != trxlink.PlateOff || s.Now < 44.9 {
		t.Errorf("after a minute: %+v", s)
	}
	if got := h.board.modules[7].Truth().Celsius - before; got < 19.5 || got > 20.5 {
		t.Errorf("the module is %.2f K warmer, want 20", got)
	}
	h.clock.Advance(time.Minute)
	if s := ask(trxlink.PlateLeave); s.Now > 25.1 {
		t.Errorf("a minute after it was switched off: %+v", s)
	}
}

// TestNoise ensures that noise and losses on the line lose replies, and never give a wrong
// one, nor do a request twice.
func TestNoise(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := newHost(t, "ocstrx-8x112g")
		for _, s := range []string{"noise:0.005", "drop:0.005"} {
			f, err := ParseFault(s)
			if err != nil {
				t.Fatal(err)
			}
			if err := f(h.board); err != nil {
				t.Fatal(err)
			}
		}
		heard := make(chan []byte, 1000)
		go func() {
			defer close(heard)
			for {
				buf := make([]byte, 512)
				n, err := h.conn.Read(buf)
				if err != nil {
					return
				}
				heard <- buf[:n]
			}
		}()
		lost, commits := 0, uint32(0)
		for i := range 400 {
			var f trxlink.Frame
			if i%4 == 0 {
				f = h.frame(trxlink.Write, 0, commitFrame(ocst.Dark, 0xff, ocst.CommitNow))
				commits++
			} else {
				f = h.frame(trxlink.Read, 0, trxlink.AppendRead(nil, ocst.At(ocst.RegMagic), 4))
			}
			for try := 0; ; try++ {
				if try == 20 {
					t.Fatal("no reply at all")
				}
				h.send(f.Append(nil))
				r, ok := h.reply(heard)
				if ok && r.Seq == f.Seq {
					if r.Payload[0] != 0 || r.Kind == trxlink.Read|trxlink.Reply && string(r.Payload[1:]) != ocst.Magic {
						t.Fatalf("asked %v, reply %v", f, r)
					}
					break
				}
				lost++
			}
			h.clock.Advance(time.Millisecond)
		}
		h.board.Noise(Noise{})
		h.board.modules[0].Armed()
		if got := h.board.modules[0].sequence; got != commits || lost == 0 {
			t.Errorf("%d switches of %d commits, %d replies lost", got, commits, lost)
		}
		h.conn.Close()
		for range heard {
		}
	})
}

// reply waits for a reply for as long as a host would.
func (h *host) reply(heard <-chan []byte) (trxlink.Frame, bool) {
	for {
		if f, ok := h.in.Next(); ok {
			return f, true
		}
		select {
		case p := <-heard:
			h.in.Feed(p)
		case <-time.After(50 * time.Millisecond):
			for h.in.Pending() {
				h.in.Expire()
				if f, ok := h.in.Next(); ok {
					return f, true
				}
			}
			return trxlink.Frame{}, false
		}
	}
}

// TestParseFault ensures which faults are understood, and what is said about others.
func TestParseFault(t *testing.T) {
	t.Parallel()
	h := newHost(t, "ocstrx-8x112g")
	for _, s := range []string{"", "noise:", "noise:2", "drop:-1", "noise:NaN", "nothing", "0/hot", "17/hot", "x/hot", "1/", "1/noise:0.1"} {
		if _, err := ParseFault(s); err == nil || strings.Contains(err.Error(), "\n") {
			t.Errorf("fault %q: error %v", s, err)
		}
	}
	f, err := ParseFault("2/hot")
	if err != nil {
		t.Fatal(err)
	}
	if f(h.board) == nil {
		t.Error("slot 2 of a board with one module: no error")
	}
	for _, s := range []string{"1/laser-low", "laser-low"} {
		f, err := ParseFault(s)
		if err != nil || f(h.board) != nil {
			t.Errorf("fault %q: %v", s, err)
		}
	}
	if got := h.board.modules[0].chip.dimmed; got > 0.011 {
		t.Errorf("the laser has %.3f of its power after losing 20 dB", got)
	}
}

// TestNewBoard ensures that boards which cannot be are errors.
func TestNewBoard(t *testing.T) {
	t.Parallel()
	good := Personality{Model: "m", Modules: 1, Params: DefaultParams()}
	if _, err := NewBoard(good, Options{}); err != nil {
		t.Error(err)
	}
	for _, c := range []struct {
		change func(*Personality)
		opt    Options
	}{
		{func(p *Personality) { p.Modules = 0 }, Options{}},
		{func(p *Personality) { p.Modules = 17 }, Options{}},
		{func(p *Personality) { p.Tau = 0 }, Options{}},
		{func(*Personality) {}, Options{Table: "old"}},
		{func(*Personality) {}, Options{Serial: "has blanks"}},
		{func(*Personality) {}, Options{Serial: strings.Repeat("x", 14)}},
	} {
		p := good
		c.change(&p)
		if _, err := NewBoard(p, c.opt); err == nil {
			t.Errorf("%+v, %+v: no error", p.Modules, c.opt)
		}
	}
}

// quiet is a line that takes what is given and gives what it has.
type quietLine struct {
	io.Reader
	io.Writer
}

func (quietLine) Close() error { return nil }

// FuzzSession ensures that no bytes from the line make the board panic or keep much memory.
func FuzzSession(f *testing.F) {
	p, err := LoadPersonality("ocstrx-8x112g")
	if err != nil {
		f.Fatal(err)
	}
	frame := func(k trxlink.Kind, slot byte, p []byte) []byte {
		return trxlink.Frame{Kind: k, Slot: slot, Payload: p}.Append(nil)
	}
	f.Add(frame(trxlink.Hello, trxlink.Board, []byte{1, 2, 3, 4}))
	f.Add(frame(trxlink.Read, 0, trxlink.AppendRead(nil, ocst.At(128), 128)))
	f.Add(frame(trxlink.Write, 0, commitFrame(ocst.LoopPath, 0xff, ocst.CommitNow)))
	f.Add(frame(trxlink.CDB, 0, trxlink.AppendCDB(nil, ocst.CDBPermute, []byte{9, 9, 9, 9, 9, 9, 9, 9})))
	f.Add(frame(trxlink.Plate, trxlink.Board, []byte{0x80, 0}))
	f.Add(frame(trxlink.Trigger, trxlink.Board, []byte{0, 1}))
	f.Fuzz(func(t *testing.T, stream []byte) {
		board, err := NewBoard(p, Options{Clock: new(VirtualClock), Wall: testWall})
		if err != nil {
			t.Fatal(err)
		}
		board.clock.(*VirtualClock).Advance(20 * time.Millisecond)
		// As it is, and as payloads of frames that are whole.
		var whole []byte
		for i := 0; i+4 < len(stream) && i < 2000; i += 5 + int(stream[i]%32) {
			end := min(i+5+int(stream[i]%32), len(stream))
			whole = trxlink.Frame{Kind: trxlink.Kind(stream[i+1] % 8), Slot: -(stream[i+2] & 1), Seq: stream[i+3], Payload: stream[i+4 : end]}.Append(whole)
		}
		hello := frame(trxlink.Hello, trxlink.Board, []byte{1, 2, 3, 4})
		for _, s := range [][]byte{stream, append(hello[:len(hello):len(hello)], stream...), append(hello, whole...)} {
			var out bytes.Buffer
			board.ServeSession(context.Background(), quietLine{bytes.NewReader(s), &out}, emulator.SessionInfo{})
			if out.Len() > 300*(1+len(s)/11) {
				t.Errorf("%d bytes in reply to %d", out.Len(), len(s))
			}
		}
		if s := board.modules[0]; s.chip.power(s.now) > maxPower {
			t.Errorf("more than 12 W")
		}
	})
}

// TestBoardPayloads ensures the bytes of a reply, once, digit by digit.
func TestBoardPayloads(t *testing.T) {
	t.Parallel()
	h := newHost(t, "ocstrx-8x112g")
	code, p := h.ask(trxlink.Read, 0, []byte{0, 0xb0, 128, 5})
	if code != trxlink.CodeOK || string(p) != "OCST\x01" {
		t.Errorf("%v, %q", code, p)
	}
	if code, p = h.ask(trxlink.Read, 0, []byte{0, 0, 166, 16}); string(p) != "OT0000000001-01 " {
		t.Errorf("%v, serial number %q", code, p)
	}
	if _, p = h.ask(trxlink.Read, 0, []byte{0, 0xb0, 148, 2}); binary.BigEndian.Uint16(p) != 200 {
		t.Errorf("settle timeout % x", p)
	}
}
