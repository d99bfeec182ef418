package plane_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ocslab/ocslab/emulator"
	"github.com/ocslab/ocslab/emulator/fabric"
	firmwarenotes "github.com/ocslab/ocslab/firmware-notes"
	"github.com/ocslab/ocslab/ocs"
	"github.com/ocslab/ocslab/orchestrator/plane"
	"github.com/ocslab/ocslab/timeline"
	"github.com/ocslab/ocslab/topology/opus"
)

// hosts joins four hosts of two NICs to a switch, as labJob wants them; a link is up 100 ms after its light.
func hosts(t testing.TB, d *emulator.Device, rung fabric.Rung) *fabric.Fabric {
	t.Helper()
	cfg := fabric.Config{Switches: map[string]*emulator.Device{"ocs": d}, Rung: rung, Dir: t.TempDir()}
	for port := range 8 {
		host, name, _ := nicOf("", port)
		cfg.NICs = append(cfg.NICs, fabric.NIC{
			Host: host, Name: name, Tx: fabric.Port{Switch: "ocs", Port: cabled[port].In}, Rx: fabric.Port{Switch: "ocs", Port: cabled[port].Out},
			Profile: firmwarenotes.Profile{
				Name: "test/fixed", Refresh: time.Second, Debounce: firmwarenotes.Span{Median: time.Millisecond},
				Detect: firmwarenotes.Span{Median: 10 * time.Millisecond}, Train: firmwarenotes.Span{Median: 80 * time.Millisecond},
				Carrier: firmwarenotes.Span{Median: 10 * time.Millisecond},
			},
		})
	}
	f, err := fabric.Start(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	})
	return f
}

func nicOf(_ string, port int) (host, name string, err error) {
	return fmt.Sprintf("gpu%d", port/2+1), fmt.Sprintf("ens1f%d", port%2), nil
}

func packets(t testing.TB, f *fabric.Fabric, opt plane.PacketsOptions) *plane.Packets {
	t.Helper()
	opt.Fabric, opt.NIC, opt.Assignments = f, nicOf, map[string]opus.Assignment{"rail0": cabled}
	p, err := plane.NewPackets(opt)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Close() })
	return p
}

// Ensure an operation takes what it should on links that are up, waits for links that come up, and repeats what is
// lost meanwhile; in memory, where time is exact.
func TestPackets(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := exactly(t)
		f := hosts(t, d, fabric.Memory)
		p := packets(t, f, plane.PacketsOptions{})
		defer p.Close()
		id(t, d, "11")
		parts := func(op uint64) (all []plane.Transfer) {
			for rank := range 4 {
				all = append(all, dp(rank, op))
			}
			return all
		}
		for _, r := range do(t.Context(), p, parts(0)...) {
			// Two circuits both ways, 16 datagrams each, of which the last leaves before the end.
			if r.err != nil || r.EndNS-r.BeginNS != 10e6 || r.Sent != 64 || r.Repeated != 0 || r.Dark != 0 || r.Lost != 0 {
				t.Errorf("links that are up: %+v", r)
			}
		}

		if _, err := d.Disconnect(1); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		begun := nowNS()
		go func() {
			time.Sleep(30 * time.Millisecond)
			if _, err := d.Connect([]ocs.CrossConnect{{Ingress: 1, Egress: 12}}); err != nil {
				t.Error(err)
			}
		}()
		for rank, r := range do(t.Context(), p, parts(1)...) {
			switch took := time.Duration(r.EndNS - begun); {
			case r.err != nil:
				t.Error(r.err)
			case rank >= 2 && (took != 10*time.Millisecond || r.Repeated != 0):
				t.Errorf("rank %d, whose links are up, takes %v: %+v", rank, took, r)
			case rank < 2 && (took < 150*time.Millisecond || took > 155*time.Millisecond || r.Repeated == 0 || r.Dark == 0):
				// 30 ms until somebody connects, 20 ms until there is light, 100 ms until there is a carrier
				t.Errorf("rank %d, whose link is down, takes %v: %+v", rank, took, r)
			}
		}
	})
}

// Ensure an operation without light ends with an error that says where, for all members.
func TestPackets_Stalled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := exactly(t)
		f := hosts(t, d, fabric.Memory)
		p := packets(t, f, plane.PacketsOptions{Patience: 2 * time.Second, Datagrams: 3})
		defer p.Close()
		id(t, d, "00")
		for _, r := range do(t.Context(), p, dp(0, 0), dp(1, 0)) {
			if !errors.Is(r.err, plane.ErrStalled) || !strings.Contains(r.err.Error(), "has waited 2s for gpu") ||
				!strings.Contains(r.err.Error(), "to acknowledge 3 of 3 datagrams") {
				t.Errorf("got %v", r.err)
			}
		}
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer cancel()
		for _, r := range do(ctx, p, dp(0, 1), dp(1, 1)) {
			if !errors.Is(r.err, context.DeadlineExceeded) {
				t.Errorf("cancelled: %v", r.err)
			}
		}
		p.Close()
		if _, err := p.Do(t.Context(), dp(0, 2)); !errors.Is(err, plane.ErrClosed) {
			t.Errorf("closed: %v", err)
		}
	})
}

// Ensure it works with real network devices.
func TestPackets_Kernel(t *testing.T) {
	for _, a := range fabric.Rungs() {
		if a.Rung == fabric.Memory {
			continue
		}
		t.Run(strings.Fields(a.Rung.String())[0], func(t *testing.T) {
			if a.Err != nil {
				if os.Geteuid() == 0 && !errors.Is(a.Err, errors.ErrUnsupported) {
					t.Fatal(a.Err)
				}
				t.Skip(a.Err)
			}
			d := exactly(t)
			f := hosts(t, d, a.Rung)
			clock := plane.NewClock()
			defer clock.Close()
			p := packets(t, f, plane.PacketsOptions{Clock: clock, Patience: 30 * time.Second})
			defer p.Close()
			made, err := d.Connect(mustMap(t, "1>12,2>11,3>10,4>9,5>16,6>15,7>14,8>13").Slice())
			if err != nil {
				t.Fatal(err)
			}
			// Carriers come 100 ms after the light, however slow we are.
			up := timeline.HostAxis().NS(made.Settled.Add(100 * time.Millisecond))
			for op := range uint64(2) {
				for rank, r := range do(t.Context(), p, dp(0, op), dp(1, op), dp(2, op), dp(3, op)) {
					if r.err != nil || r.EndNS-r.BeginNS < 10e6 || r.Sent < 64 || r.Uses.Len() != 4 {
						t.Errorf("operation %d, rank %d: %+v", op, rank, r)
					}
					if r.EndNS < up {
						t.Errorf("operation %d of rank %d was complete %v before the links were up", op, rank, time.Duration(up-r.EndNS))
					}
				}
			}
		})
	}
}

func TestNewPackets_Refuses(t *testing.T) {
	for _, opt := range []plane.PacketsOptions{
		{}, {Fabric: &fabric.Fabric{}, NIC: nicOf, Datagrams: -1}, {Fabric: &fabric.Fabric{}, NIC: nicOf, Repeat: time.Microsecond},
	} {
		if _, err := plane.NewPackets(opt); !errors.Is(err, plane.ErrTransfer) {
			t.Errorf("%+v: %v", opt, err)
		}
	}
}
