package pause_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ocslab/ocslab/internal/pause"
)

func TestFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		for _, d := range []time.Duration{-time.Second, 0, time.Second} {
			if err := pause.For(t.Context(), d); err != nil {
				t.Errorf("%v: %v", d, err)
			}
		}
		if got := time.Since(began); got != time.Second {
			t.Errorf("waited for %v, want 1s", got)
		}
		why := errors.New("somebody pressed a key")
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(time.Minute, func() { cancel(why) })
		for _, d := range []time.Duration{time.Hour, 0} {
			if err := pause.For(ctx, d); !errors.Is(err, why) {
				t.Errorf("%v: %v, want the cause", d, err)
			}
		}
		if got := time.Since(began); got != time.Minute+time.Second {
			t.Errorf("waited for %v in all, want 1m1s", got)
		}
	})
}
