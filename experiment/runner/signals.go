package runner

import (
	"fmt"
	"os"
	"os/signal"
	"slices"
	"sync"

	"github.com/ocslab/ocslab/experiment"
)

// Signals lets the signals that this process gets control a run, until stop is called.
// The first interrupt (Ctrl-C) stops it after the point that is under way, the second
// aborts it, and so do SIGTERM and, unless it is ignored (nohup), SIGHUP; SIGUSR1 pauses and continues. SIGPIPE (who read the
// output has gone) stops it after the point, too. While the light is put back, signals change
// nothing. What a signal has led to is told to say, in words; of SIGPIPE nothing is said, since
// that could cause the next one.
//
// The context of [Runner.Run] must not end by the same signals: that would abort.
func Signals(r *Runner, say func(text string)) (stop func()) {
	got, done := make(chan os.Signal, 8), make(chan struct{})
	signal.Notify(got, heeded()...)
	var listening sync.WaitGroup
	listening.Go(func() {
		h := signals{r: r}
		for {
			select {
			case <-done:
				return
			case sig := <-got:
				if text := h.handle(sig); text != "" {
					_ = experiment.Guard(func() error { say(text); return nil }) // nobody is left to tell
				}
			}
		}
	})
	return sync.OnceFunc(func() {
		signal.Stop(got)
		close(done)
		listening.Wait()
	})
}

// heeded are the signals that control a run, but for those that this process was told to
// ignore: a run begun with nohup goes on when the terminal is closed.
func heeded() []os.Signal {
	return slices.DeleteFunc(slices.Clone(handled), signal.Ignored)
}

// signals is what a run has been sent.
type signals struct {
	r           *Runner
	interrupted bool
}

// handle does what a signal asks for and says what that is, "" for nothing.
func (s *signals) handle(sig os.Signal) (text string) {
	if sig == unreadSignal {
		s.r.stop(fmt.Errorf("%w: nobody reads what it prints any more", ErrStop))
		return ""
	}
	switch s.r.State() {
	case Leaving:
		return "putting the light back; please wait"
	case Ended:
		return "the run has ended"
	}
	switch {
	case sig == os.Interrupt && !s.interrupted:
		s.interrupted = true
		s.r.stop(fmt.Errorf("%w (%v)", ErrStop, sig))
		return "finishing the point; again to abort"
	case sig == pauseSignal:
		s.r.Toggle()
		switch s.r.State() {
		case Pausing, Paused:
			return "pausing after the point"
		}
		return "going on"
	}
	s.r.abort(fmt.Errorf("%w (%v)", ErrAbort, sig))
	return "aborting; the light is put back"
}
