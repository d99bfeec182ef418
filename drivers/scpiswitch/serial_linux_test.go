package scpiswitch_test

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ocslab/ocslab/drivers/internal/drivertest"
	"github.com/ocslab/ocslab/drivers/scpiswitch"
	"github.com/ocslab/ocslab/drivers/transport"
	"github.com/ocslab/ocslab/emulator"
	"github.com/ocslab/ocslab/emulator/serialline"
	"github.com/ocslab/ocslab/ocs"
)

// TestSerial is everything once over a serial line, and that a session that was
// given up leaves nothing behind for the next.
func TestSerial(t *testing.T) {
	srv := newServer(t, "polatis-6000-32x32", instant)
	line, err := serialline.Listen(filepath.Join(t.TempDir(), "tty"))
	if err != nil {
		t.Fatal(err)
	}
	drivertest.Serve(t, func(ctx context.Context) error { return line.Serve(ctx, srv) })
	// A read is given up when all but its reply has come.
	reading, giveUp := context.WithCancelCause(t.Context())
	var asked bool
	trace := func(sent bool, p []byte) {
		asked = asked || sent && strings.HasPrefix(string(p), readMap)
		if asked && !sent && strings.HasPrefix(string(p), "0") {
			giveUp(drivertest.ErrEnough)
		}
	}
	open := func(trace func(bool, []byte)) *scpiswitch.Switch {
		sw, err := scpiswitch.Open(t.Context(), scpiswitch.Config{Dialer: transport.Serial{Path: line.Path()}, Device: "rail0", Trace: trace})
		if err != nil {
			t.Fatal(err)
		}
		return sw
	}
	testEverything(t, srv.Device, open(nil))

	sw := open(trace)
	defer sw.Close()
	srv.Faults.Add(emulator.Fault{Kind: emulator.FaultHang, Verb: "OXC.SWIT.CONN.STAT", Times: 1})
	if _, err := sw.CrossConnects(reading); !errors.Is(err, drivertest.ErrEnough) {
		t.Errorf("got %v", err)
	}
	want := drivertest.Map(t, "1>33,2>34")
	if r, err := ocs.Reconcile(t.Context(), sw, want, ocs.Overwrite); err != nil || !r.After.Equal(want) {
		t.Errorf("got %+v, %v", r, err)
	}
}
