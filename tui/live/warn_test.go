package live

import (
	"errors"
	"log/slog"
	"testing"
	"testing/synctest"

	"github.com/ocslab/ocslab/ocs"
)

func TestWarnings(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := fakeSession(t, newMonitored(ocs.Map{}), nil)
		defer s.Close()
		log := slog.New(s.Warnings()).With("switch", "rail0")
		log.Info("nothing to see")
		log.Warn("the circuits were put back, and the history does not say so", "error", errors.New("no space left"))
		x := later(s, PublishEvery)
		if want := "the circuits were put back, and the history does not say so; switch: rail0; error: no space left"; x.LastEvent == nil || x.LastEvent.Text != want || !x.LastEvent.Bad {
			t.Errorf("last event %+v, want %q", x.LastEvent, want)
		}
	})
}
