package netconf_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ocslab/ocslab/wire/netconf"
)

// pairs returns n <pair> elements.
func pairs(n int) string {
	var b strings.Builder
	for p := 1; p <= n; p++ {
		fmt.Fprintf(&b, "<pair><ingress>%d</ingress><egress>%d</egress></pair>", p, n+p)
	}
	return b.String()
}

func editOf(pairs string) string {
	return `<rpc xmlns="` + netconf.Base + `" message-id="101"><edit-config><target><running/></target><config>` +
		`<cross-connects xmlns="` + opsw + `">` + pairs + `</cross-connects></config></edit-config></rpc>`
}

func replyOf(pairs string) string {
	return `<rpc-reply xmlns="` + netconf.Base + `" message-id="101"><data>` +
		`<cross-connects xmlns="` + opsw + `">` + pairs + `</cross-connects></data></rpc-reply>`
}

// BenchmarkParse decodes and parses messages and, in turns with that, parses
// the same with encoding/xml. The ratio of the medians is xml-x.
func BenchmarkParse(b *testing.B) {
	for _, bb := range []struct{ name, text string }{
		{"edit-1", editOf(pairs(1))},
		{"edit-192", editOf(pairs(192))},
		{"reply-192", replyOf(pairs(192))},
	} {
		b.Run(bb.name, func(b *testing.B) {
			stream := netconf.AppendMessage(nil, []byte(bb.text), netconf.Chunked)
			var d netconf.Decoder
			d.SetFraming(netconf.Chunked)
			ours := func() {
				d.Feed(stream)
				msg, ok, err := d.Next()
				if !ok || err != nil {
					b.Fatal(ok, err)
				}
				if _, err := netconf.Parse(msg); err != nil {
					b.Fatal(err)
				}
			}
			b.SetBytes(int64(len(stream)))
			b.ReportAllocs()
			for b.Loop() {
				ours()
			}

			var our, their []time.Duration
			for range 100 {
				start := time.Now()
				ours()
				our = append(our, time.Since(start))
				start = time.Now()
				if _, err := oracle([]byte(bb.text)); err != nil {
					b.Fatal(err)
				}
				their = append(their, time.Since(start))
			}
			slices.Sort(our)
			slices.Sort(their)
			b.ReportMetric(float64(their[50])/float64(our[50]), "xml-x")
		})
	}
}

func BenchmarkAppendReply(b *testing.B) {
	reply := parse(b, replyOf(pairs(192)))
	rpc := netconf.RPC{Attrs: reply.Attrs}
	var dst []byte
	b.ReportAllocs()
	for b.Loop() {
		dst = netconf.AppendReply(dst[:0], rpc, reply.Children...)
	}
	b.SetBytes(int64(len(dst)))
}

// BenchmarkEdit applies edits to a map of 192 pairs: one pair moved, and all
// replaced.
func BenchmarkEdit(b *testing.B) {
	config := parse(b, replyOf(pairs(192))).Children[0].Children
	for _, bb := range []struct {
		name, edit string
		changes    int
	}{
		{"move-1", `<pair><ingress>100</ingress><egress>999</egress></pair>`, 1},
		{"same-192", pairs(192), 0},
		{"move-192", strings.ReplaceAll(pairs(192), "</egress>", "0</egress>"), 192},
	} {
		b.Run(bb.name, func(b *testing.B) {
			rpc, rerr := netconf.ParseRPC(parse(b, editOf(bb.edit)))
			if rerr != nil {
				b.Fatal(rerr)
			}
			b.ReportAllocs()
			for b.Loop() {
				e, err := netconf.ParseEditConfig(rpc.Operation)
				if err != nil {
					b.Fatal(err)
				}
				if _, changes, err := netconf.Edit(config, e, model); err != nil || len(changes) != bb.changes {
					b.Fatal(len(changes), err)
				}
			}
		})
	}
}

func BenchmarkFilter(b *testing.B) {
	data := parse(b, replyOf(pairs(192))).Children[0].Children
	filter := parse(b, `<filter><cross-connects xmlns="`+opsw+`"><pair><ingress>100</ingress></pair></cross-connects></filter>`)
	b.ReportAllocs()
	for b.Loop() {
		if got := netconf.Filter(filter, data); len(got) != 1 || len(got[0].Children) != 1 {
			b.Fatal(got)
		}
	}
}
