package fabric

import (
	"sync/atomic"
	"testing"

	"golang.org/x/sys/unix"
)

// TestPump_Flush: when flush returns, every frame that had been sent has been handed on, also
// one that the goroutine of the pump had read.
func TestPump_Flush(t *testing.T) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fds[1])
	var passed atomic.Int64
	p := newPump(fds[0], "pair", func([]byte) { passed.Add(1) })
	defer p.close()
	sent := int64(0)
	for range 2000 {
		for range 3 {
			if _, err := unix.Write(fds[1], []byte("frame")); err != nil {
				t.Fatal(err)
			}
			sent++
		}
		p.flush()
		if got := passed.Load(); got != sent {
			t.Fatalf("%d frames of %d were handed on when flush returned", got, sent)
		}
	}
}
