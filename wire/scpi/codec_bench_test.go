package scpi_test

import (
	"fmt"
	"testing"

	"github.com/ocslab/ocslab/wire/scpi"
)

// BenchmarkDevice measures how long a device needs to understand a command, and
// BenchmarkClient how long a client needs for the reply.
func BenchmarkDevice(b *testing.B) {
	tree := polatis()
	for _, n := range []int{1, 192} {
		ports := channels(n)
		line := append([]byte(":OXC:SWIT:CONN:ADD "), scpi.AppendChannelList(nil, ports)...)
		line = append(scpi.AppendChannelList(append(line, ','), ports), '\n')
		b.Run(fmt.Sprintf("pairs=%d", n), func(b *testing.B) {
			b.ReportAllocs()
			b.SetBytes(int64(len(line)))
			var d scpi.Decoder
			for b.Loop() {
				d.Feed(line)
				raw, _, _ := d.Next()
				m, err := scpi.ParseMessage(raw)
				if err != nil {
					b.Fatal(err)
				}
				if _, _, _, err := tree.Find(scpi.Path{}, m.Units[0]); err != nil {
					b.Fatal(err)
				}
				for _, p := range m.Units[0].Params {
					if list, err := scpi.ParseChannelList(p.Raw); err != nil || len(list) != n {
						b.Fatal(err)
					}
				}
			}
		})
	}
}

func BenchmarkClient(b *testing.B) {
	for _, n := range []int{1, 192} {
		ports := channels(n)
		reply := append(scpi.AppendChannelList(nil, ports), ',')
		reply = append(scpi.AppendChannelList(reply, ports), "\r\n"...)
		b.Run(fmt.Sprintf("pairs=%d", n), func(b *testing.B) {
			b.ReportAllocs()
			b.SetBytes(int64(len(reply)))
			var d scpi.ReplyDecoder
			for b.Loop() {
				d.Feed(reply)
				raw, _, _ := d.Next()
				if lists, err := scpi.ParseLists(string(raw)); err != nil || len(lists) != 2 {
					b.Fatal(err)
				}
			}
		})
	}
}

func channels(n int) []uint32 {
	list := make([]uint32, n)
	for i := range list {
		list[i] = uint32(i + 1)
	}
	return list
}
