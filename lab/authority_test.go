package lab_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/ocslab/ocslab/lab"
	"github.com/ocslab/ocslab/lab/history"
	"github.com/ocslab/ocslab/lab/labtest"
	"github.com/ocslab/ocslab/ocs"
)

// Ensure every Authority keeps what the gate relies on.
func TestAuthority(t *testing.T) {
	for name, open := range map[string]func(*testing.T) lab.Authority{
		"files":  func(t *testing.T) lab.Authority { return lab.Files(t.TempDir()) },
		"memory": func(*testing.T) lab.Authority { return lab.Alone() },
		"fake":   func(*testing.T) lab.Authority { return labtest.Around(nil) },
	} {
		t.Run(name, func(t *testing.T) {
			a := open(t)
			if entries, _, err := a.Entries(); err != nil || len(entries) > 0 {
				t.Fatalf("a new one has %v, %v", entries, err)
			}
			one := history.Entry{Switch: "a", Device: "test:a", Change: ocs.Change{Add: parseMap(t, "1>33")}}
			two := history.Entry{Switch: "b", Device: "test:b", Change: ocs.Change{Remove: parseMap(t, "2>34")}}
			ids, err := a.BeginAll(t.Context(), []history.Entry{one, two})
			if err != nil || len(ids) != 2 || ids[0] >= ids[1] {
				t.Fatalf("%v, %v", ids, err)
			}
			for _, id := range ids {
				if err := a.End(id, history.Done, history.Result{}); err != nil {
					t.Fatal(err)
				}
			}
			back := one
			back.UndoOf = ids[0]
			back.Change = one.Change.Inverse()
			undo, err := a.BeginAll(t.Context(), []history.Entry{back})
			if err == nil {
				err = a.End(undo[0], history.Done, history.Result{})
			}
			entries, _, err2 := a.Entries()
			if err := errors.Join(err, err2); err != nil || len(entries) != 3 {
				t.Fatalf("%v, %v", entries, err)
			}
			if x, y := entries[0], entries[1]; x.Group != ids[0] || y.Group != ids[0] || x.State != history.Done || x.UndoneBy != undo[0] || y.UndoneBy != 0 {
				t.Errorf("%+v\n%+v", x, y)
			}
			if err := a.End(99, history.Done, history.Result{}); !errors.Is(err, history.ErrUnknownID) {
				t.Errorf("the end of what never began: %v", err)
			}

			// One change of a device at a time; devices that differ do not wait for each other, whatever their identity.
			unlock, err := a.Lock(t.Context(), "test:a", "serial 1")
			if err != nil {
				t.Fatal(err)
			}
			other, err := a.Lock(t.Context(), "test:b", "serial 1")
			if err != nil {
				t.Fatal(err)
			}
			other()
			soon, cancel := context.WithTimeout(t.Context(), time.Millisecond)
			defer cancel()
			if _, err := a.Lock(soon, "test:a", "serial 1"); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("a second change of the device: %v", err)
			}
			var next sync.WaitGroup
			next.Go(func() {
				unlock, err := a.Lock(t.Context(), "test:a", "serial 1")
				if err != nil {
					t.Error(err)
					return
				}
				unlock()
			})
			unlock()
			unlock() // once is enough
			next.Wait()
		})
	}
}
