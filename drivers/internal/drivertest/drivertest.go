// Package drivertest is what the tests of the drivers have in common: a device
// made by hand at the far end of a pipe, what a call under a fault must come to,
// properties of Apply, and benchmarks. Only tests import it. The bytes of a
// protocol are for the tests of its driver.
package drivertest

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ocslab/ocslab/ocs"
)

// Main runs the tests of a package and returns the exit code. It fails when,
// two seconds after them, a goroutine is left whose stack has the text left in
// it, such as "tl1switch.(*".
func Main(m *testing.M, left string) int {
	code := m.Run()
	stacks := make([]byte, 1<<20)
	for deadline := time.Now().Add(2 * time.Second); code == 0; time.Sleep(10 * time.Millisecond) {
		all := string(stacks[:runtime.Stack(stacks, true)])
		if !strings.Contains(all, left) {
			break
		}
		if time.Now().After(deadline) {
			fmt.Fprintln(os.Stderr, "goroutines are left:\n"+all)
			code = 1
		}
	}
	return code
}

// Idle lets a session see what the device does while nothing is asked: its own
// goroutine begins to read a moment after the last request. The time is that of
// the bubble.
func Idle() {
	time.Sleep(30 * time.Millisecond)
	synctest.Wait()
}

// Map is the map that s says, as "1>17,2>18".
func Map(t testing.TB, s string) ocs.Map {
	t.Helper()
	if s == "" {
		return ocs.Map{}
	}
	m, err := ocs.ParseMap(s)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// Is reports whether err matches target, where nil matches only nil.
func Is(err, target error) bool {
	if target == nil {
		return err == nil
	}
	return errors.Is(err, target)
}

// Listen serves on a port of this machine until the test ends, and returns its
// address. The server must end with its context, without an error.
func Listen(tb testing.TB, serve func(context.Context, net.Listener) error) string {
	tb.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		tb.Fatal(err)
	}
	Serve(tb, func(ctx context.Context) error { return serve(ctx, l) })
	return l.Addr().String()
}

// Serve runs a server until the test ends. It must end with its context, without
// an error.
func Serve(tb testing.TB, serve func(context.Context) error) {
	tb.Helper()
	served := make(chan error, 1)
	ctx, stop := context.WithCancel(context.Background())
	go func() { served <- serve(ctx) }()
	tb.Cleanup(func() {
		stop()
		if err := <-served; err != nil {
			tb.Error(err)
		}
	})
}

// Holds reports an error unless the switch says that it holds the map that want
// says, as "1>17,2>18".
func Holds(t testing.TB, sw ocs.Switch, want string) {
	t.Helper()
	if m, err := sw.CrossConnects(t.Context()); err != nil || !m.Equal(Map(t, want)) {
		t.Errorf("holds %v, %v, want %s", m, err, want)
	}
}
