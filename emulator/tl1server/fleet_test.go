package tl1server_test

import (
	"context"
	"errors"
	"io"
	"net"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/ocslab/ocslab/emulator"
	"github.com/ocslab/ocslab/emulator/tl1server"
)

// BenchmarkEmulatorFleet starts 1,000 switches of 384x384 ports, each with a TL1
// listener, and shows by 50 of them that they serve.
func BenchmarkEmulatorFleet(b *testing.B) {
	const switches = 1000
	p, err := emulator.LoadPersonality("polatis-7000-384x384")
	if err != nil {
		b.Fatal(err)
	}
	var start, bytes float64
	for b.Loop() {
		before := inUse()
		begin := time.Now()
		ctx, cancel := context.WithCancel(b.Context())
		addrs := make([]string, switches)
		var serving sync.WaitGroup
		for i := range addrs {
			d, err := emulator.New(p, emulator.Options{Seed: uint64(i)})
			if err != nil {
				b.Fatal(err)
			}
			l, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				b.Fatal(err)
			}
			addrs[i] = l.Addr().String()
			serving.Go(func() { (&tl1server.Server{Device: d}).Serve(ctx, l) })
		}
		start += time.Since(begin).Seconds()
		bytes += float64(inUse()-before) / switches
		var clients sync.WaitGroup
		for i := 0; i < switches; i += switches / 50 {
			clients.Go(func() {
				c, err := dialTCP(addrs[i])
				if err != nil {
					b.Error(err)
					return
				}
				defer c.Close()
				if err := errors.Join(c.want("ENT-PATCH::1&&384,385&&768:2:;", "2 COMPLD"), c.want("RTRV-PATCH::384:3:;", "3 COMPLD")); err != nil {
					b.Error(err)
				}
			})
		}
		clients.Wait()
		cancel()
		serving.Wait()
	}
	b.ReportMetric(start/float64(b.N), "start-s")
	b.ReportMetric(bytes/float64(b.N), "bytes/switch")
}

// inUse returns the memory of heap and stacks.
func inUse() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapInuse + m.StackInuse
}

// BenchmarkEntPatch is the cost of a command whose mirrors need no time.
func BenchmarkEntPatch(b *testing.B) {
	p := personality()
	p.Switching = emulator.Switching{Ack: emulator.AckBefore}
	s := newServer(b, p)
	conn := &script{text: []byte("ACT-USER::admin:1::root;")}
	for i := range b.N {
		conn.text = append(conn.text, "ENT-PATCH::1,17:2:;ENT-PATCH::2,17:2:;"[19*(i%2):][:19]...)
	}
	b.ReportAllocs()
	b.ResetTimer()
	s.ServeConn(b.Context(), conn)
	if conn.written < 40*b.N {
		b.Errorf("%d bytes of replies", conn.written)
	}
}

// script is a client that has said all it has to say.
type script struct {
	text    []byte
	written int
}

func (s *script) Read(p []byte) (int, error) {
	n := copy(p, s.text)
	if s.text = s.text[n:]; n == 0 {
		return 0, io.EOF
	}
	return n, nil
}

func (s *script) Write(p []byte) (int, error) { s.written += len(p); return len(p), nil }
func (s *script) Close() error                { return nil }
