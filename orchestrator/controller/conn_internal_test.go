package controller

import (
	"bufio"
	"net"
	"sync"
	"testing"

	"github.com/ocslab/ocslab/orchestrator/proto"
)

// TestConn_Order: a shim that does not read for a while makes nobody wait, and then gets everything in the order in which it was
// queued, whoever wrote it. Both a socket and what is none.
func TestConn_Order(t *testing.T) {
	socket := func() (net.Conn, net.Conn) {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		a, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		b, err := l.Accept()
		if err != nil {
			t.Fatal(err)
		}
		return a, b
	}
	for name, pair := range map[string]func() (net.Conn, net.Conn){"tcp": socket, "pipe": net.Pipe} {
		t.Run(name, func(t *testing.T) {
			ours, theirs := pair()
			defer theirs.Close()
			c := newConn(ours)
			var running sync.WaitGroup
			running.Go(c.run)
			const writers, each = 4, 10_000 // 12 MB: more than a socket takes
			var mu sync.Mutex
			var writing sync.WaitGroup
			n := uint64(0)
			queue := func() {
				mu.Lock() // as the rail's
				flush := c.queue(&proto.TopoNack{Req: n, Detail: string(make([]byte, 40))})
				n++
				mu.Unlock()
				if flush {
					c.flush()
				}
			}
			write := func() {
				for range writers {
					writing.Go(func() {
						for range each {
							queue()
						}
					})
				}
			}
			in := bufio.NewReader(theirs)
			read := func(from, to uint64) {
				for want := from; want < to; want++ {
					m, err := proto.Read(in)
					if nack, ok := m.(*proto.TopoNack); err != nil || !ok || nack.Req != want {
						t.Fatalf("got %+v, %v, want number %d", m, err, want)
					}
				}
			}
			write()
			writing.Wait() // and nobody reads
			write()        // and somebody does
			read(0, 2*writers*each)
			writing.Wait()
			for range 100 { // one at a time
				queue()
				read(n-1, n)
			}
			queue()
			c.finish()
			read(n-1, n)
			running.Wait()
			if c.queue(&proto.Bye{}) {
				t.Error("something is queued for a connection that has ended")
			}
		})
	}
}
