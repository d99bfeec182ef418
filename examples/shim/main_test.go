package main

import (
	"context"
	"net"
	"sync"
	"testing"

	"github.com/ocslab/ocslab/lab"
	"github.com/ocslab/ocslab/orchestrator"
	orchestratedjob "github.com/ocslab/ocslab/orchestrator/job"
	"github.com/ocslab/ocslab/topology/opus"
)

// Four ranks of this program train on an emulated rail, and ask less once they have learnt.
func TestRun(t *testing.T) {
	in, file, err := orchestratedjob.Emulated(job, 1, opus.Pair, 0)
	if err != nil {
		t.Fatal(err)
	}
	l := lab.New(in, lab.Options{Emulated: true})
	t.Cleanup(func() { l.Close() })
	s, err := orchestrator.Open(t.Context(), orchestrator.Options{Lab: l, Job: file})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close(context.Background()) })
	at, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var serving, ranks sync.WaitGroup
	serving.Go(func() {
		if err := s.Serve(ctx, at); err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(serving.Wait)
	t.Cleanup(cancel)
	dial := func(ctx context.Context) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "tcp", at.Addr().String())
	}
	for rank := range job.Ranks() {
		ranks.Go(func() {
			stats, err := run(ctx, dial, rank, 7)
			if err != nil {
				t.Error(err)
			}
			if stats.Operations != 14 || stats.Hits == 0 || stats.Mispredictions > 0 {
				t.Errorf("rank %d: %+v, want 14 operations, and predictions that came true", rank, stats)
			}
		})
	}
	ranks.Wait()
}
