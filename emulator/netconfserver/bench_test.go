package netconfserver_test

import (
	"bufio"
	"io"
	"net"
	"strconv"
	"testing"

	"github.com/ocslab/ocslab/emulator"
	"github.com/ocslab/ocslab/ocs"
)

// BenchmarkEdit is one edit-config of one pair, from its bytes to those of its
// reply over net.Pipe, at a device that moves in no time: what the server costs.
// The device is empty or full.
func BenchmarkEdit(b *testing.B) {
	for _, held := range []int{0, 384} {
		b.Run(strconv.Itoa(held), func(b *testing.B) {
			p := personality()
			p.Size, p.Control.Failed = "400x400", nil
			p.Switching = emulator.Switching{Ack: emulator.AckBefore}
			s := newServer(b, p)
			for i := range held {
				if _, err := s.Device.Connect([]ocs.CrossConnect{{Ingress: ocs.Port(i + 10), Egress: ocs.Port(i + 410)}}); err != nil {
					b.Fatal(err)
				}
			}
			var requests [2][]byte
			for i := range requests {
				requests[i] = []byte(`<rpc message-id="1" ` + base + `><edit-config><target><running/></target><config><cross-connects ` + opsw + `><pair><ingress>1</ingress><egress>` +
					strconv.Itoa(401+i) + `</egress></pair></cross-connects></config></edit-config></rpc>` + eom)
			}
			benchmark(b, s, func(i int) []byte { return requests[i%2] })
		})
	}
}

// BenchmarkPower reads one monitor of 800.
func BenchmarkPower(b *testing.B) {
	p := personality()
	p.Size, p.Control.Failed = "400x400", nil
	request := []byte(`<rpc message-id="1" ` + base + `><get><filter><opm-power ` + opsw + `><port><port-id>5</port-id></port></opm-power></filter></get></rpc>` + eom)
	benchmark(b, newServer(b, p), func(int) []byte { return request })
}

func benchmark(b *testing.B, s emulator.FrontEnd, request func(int) []byte) {
	ours, theirs := net.Pipe()
	done := make(chan struct{})
	go func() {
		defer close(done)
		s.ServeSession(b.Context(), theirs, emulator.SessionInfo{User: "admin"})
	}()
	defer func() { ours.Close(); <-done }()
	in := bufio.NewReader(ours)
	reply := func() {
		for {
			line, err := in.ReadSlice('>')
			if err != nil {
				b.Fatal(err)
			}
			if string(line) == "]]>" { // twice is the delimiter
				if line, err = in.ReadSlice('>'); err != nil || string(line) != "]]>" {
					b.Fatalf("%q, error %v", line, err)
				}
				return
			}
		}
	}
	if _, err := io.WriteString(ours, hello+eom); err != nil {
		b.Fatal(err)
	}
	reply()
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		if _, err := ours.Write(request(i)); err != nil {
			b.Fatal(err)
		}
		reply()
	}
}
