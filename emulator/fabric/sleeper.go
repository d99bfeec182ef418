package fabric

import (
	"time"

	"github.com/ocslab/ocslab/timeline"
)

// sleeper lets one goroutine sleep until a time on the host's axis or until
// somebody wakes it. It may also wake for no reason.
type sleeper interface {
	sleep(until int64)
	wake() // also if nobody sleeps yet: the next sleep then ends at once
	close()
}

// timerSleeper stands on package time, so that it works under testing/synctest.
type timerSleeper struct {
	axis timeline.Axis
	more chan struct{} // holds one
}

func newTimerSleeper() *timerSleeper {
	return &timerSleeper{axis: timeline.HostAxis(), more: make(chan struct{}, 1)}
}

func (s *timerSleeper) sleep(until int64) {
	if until == never {
		<-s.more
		return
	}
	t := time.NewTimer(time.Duration(until - s.axis.NS(time.Now())))
	defer t.Stop()
	select {
	case <-t.C:
	case <-s.more:
	}
}

func (s *timerSleeper) wake() {
	select {
	case s.more <- struct{}{}:
	default:
	}
}

func (s *timerSleeper) close() {}
