package ocstrx_test

import (
	"io"
	"testing"
	"time"

	"github.com/ocslab/ocslab/drivers/internal/drivertest"
	"github.com/ocslab/ocslab/drivers/ocstrx"
	"github.com/ocslab/ocslab/drivers/transport"
	"github.com/ocslab/ocslab/ocs"
	"github.com/ocslab/ocslab/wire/cmis"
	"github.com/ocslab/ocslab/wire/cmis/ocst"
	"github.com/ocslab/ocslab/wire/trxlink"
)

// dialers are what the benchmarks use for a terminal: the line as the program opens it, and
// a bare file.
var dialers = map[string]func(path string) transport.Dialer{
	"serial": func(path string) transport.Dialer { return transport.Serial{Path: path} },
	"file":   func(path string) transport.Dialer { return linkFile(path) },
}

// openLine opens a Switch on an emulated board behind a pseudo-terminal, in real time.
func openLine(b *testing.B, model string, dial func(string) transport.Dialer) *ocstrx.Switch {
	b.Helper()
	l, err := ocstrx.OpenLink(b.Context(), ocstrx.LinkConfig{Dialer: dial(linkLine(b, newRig(b, model, 0, 0).Board))})
	if err != nil {
		b.Fatal(err)
	}
	sw, err := ocstrx.Open(b.Context(), ocstrx.Config{Bus: l})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { sw.Close() })
	return sw
}

// bareHost is the least a host can be that makes the same change with the same bytes: it
// reads the lanes, commits, and reads until the module is done, and checks nothing but the
// state.
type bareHost struct {
	io.ReadWriter
	seq     uint8
	replies [2 * (11 + 1 + 20)]byte
}

func (h *bareHost) frame(into []byte, kind trxlink.Kind, payload []byte) []byte {
	h.seq++
	return trxlink.Frame{Kind: kind, Seq: h.seq, Payload: payload}.Append(into)
}

func (h *bareHost) look(p []byte) []byte {
	for _, s := range []cmis.Span{ocst.StatusSpan, ocst.LanesSpan} {
		p = h.frame(p, trxlink.Read, trxlink.AppendRead(nil, s.Address, s.Length))
	}
	return p
}

func (h *bareHost) ask(b *testing.B, p []byte, reply int) {
	if _, err := h.Write(p); err != nil {
		b.Fatal(err)
	}
	if _, err := io.ReadFull(h, h.replies[:reply]); err != nil {
		b.Fatal(err)
	}
}

func (h *bareHost) greet(b *testing.B) {
	h.ask(b, trxlink.Frame{Kind: trxlink.Hello, Slot: trxlink.Board, Payload: []byte("bare")}.Append(nil), 11+1+3+16+8+4)
}

// change switches lane 1 and returns how long that took. What it sends is made before.
func (h *bareHost) change(b *testing.B, path ocst.Path) time.Duration {
	const state = 9 + 1 // of the first frame, behind its head and code
	const looks = 64
	first := h.look(nil)
	commit := h.frame(nil, trxlink.Write, trxlink.AppendWrite(nil, ocst.At(ocst.RegStaged), []byte{byte(path), 1, byte(ocst.CommitNow)}))
	var later [looks][]byte
	for i := range later {
		later[i] = h.look(nil)
	}
	begun := time.Now()
	h.ask(b, first, len(h.replies))
	h.ask(b, commit, 11+1)
	for _, p := range later {
		h.ask(b, p, len(h.replies))
		if !ocst.State(h.replies[state]).Busy() {
			return time.Since(begun)
		}
	}
	b.Fatal("the module is busy")
	return 0
}

// BenchmarkApplyVsRaw switches one lane to and fro between its fibres, with Apply and with a
// bare host on another board, in turns: what the machine does to one it does to the other.
func BenchmarkApplyVsRaw(b *testing.B) {
	for name, dial := range dialers {
		b.Run(name, func(b *testing.B) {
			sw := openLine(b, single, dial)
			conn, err := dial(linkLine(b, newRig(b, single, 0, 0).Board)).Dial(b.Context())
			if err != nil {
				b.Fatal(err)
			}
			defer conn.Close()
			bare := &bareHost{ReadWriter: conn}
			bare.greet(b)
			time.Sleep(20 * time.Millisecond) // until its module is ready
			maps := []ocs.Map{ocs.MustMap(ocs.CrossConnect{Ingress: 1, Egress: 9}), ocs.MustMap(ocs.CrossConnect{Ingress: 1, Egress: 17})}
			if _, err := sw.Apply(b.Context(), ocs.Change{Add: maps[1]}); err != nil {
				b.Fatal(err)
			}
			bare.change(b, ocst.Path2)
			var applied, raw, module []time.Duration
			apply := func(i int) {
				change := ocs.Diff(maps[(i+1)%2], maps[i%2])
				begun := time.Now()
				r, err := sw.Apply(b.Context(), change)
				applied = append(applied, time.Since(begun))
				if err != nil || r.Requests != 1 || len(r.Parts) != 1 {
					b.Fatal(r, err)
				}
				module = append(module, r.Parts[0].Took)
			}
			ask := func(i int) { raw = append(raw, bare.change(b, ocst.Path1+ocst.Path(i%2))) }
			for i := 0; b.Loop(); i++ {
				if i%4 < 2 { // who goes first alternates
					apply(i)
					ask(i)
				} else {
					ask(i)
					apply(i)
				}
			}
			drivertest.Report(b, applied, "apply")
			drivertest.Report(b, raw, "raw")
			drivertest.Report(b, module, "module")
			drivertest.Ratio(b, applied, raw, "x-raw")
		})
	}
}

// BenchmarkBundle switches all 64 lanes of eight modules to and fro between their fibres.
func BenchmarkBundle(b *testing.B) {
	sw := openLine(b, eight, dialers["serial"])
	maps := fibres(64)
	if _, err := sw.Apply(b.Context(), ocs.Change{Add: maps[1]}); err != nil {
		b.Fatal(err)
	}
	var applied, triggered, modules []time.Duration
	for i := 0; b.Loop(); i++ {
		begun := time.Now()
		r, err := sw.Apply(b.Context(), ocs.Diff(maps[(i+1)%2], maps[i%2]))
		if err != nil {
			b.Fatal(err)
		}
		applied = append(applied, time.Since(begun))
		triggered = append(triggered, r.Acked.Sub(r.SendStart))
		for _, p := range r.Parts {
			modules = append(modules, p.Took)
		}
	}
	drivertest.Report(b, applied, "apply")
	drivertest.Report(b, triggered, "trigger-to-ack")
	drivertest.Report(b, modules, "module")
}
