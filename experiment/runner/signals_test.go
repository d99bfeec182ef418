//go:build unix

package runner_test

import (
	"errors"
	"os"
	"os/signal"
	"runtime"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/ocslab/ocslab/experiment/runner"
	"github.com/ocslab/ocslab/experiment/runs"
)

// Ensure what signals to this process do to a run. What is said is the answer to each.
func TestSignals(t *testing.T) {
	// What a shell without job control runs in the background ignores Ctrl-C, and so would this.
	heed := make(chan os.Signal, 1)
	signal.Notify(heed, syscall.SIGINT, syscall.SIGHUP)
	signal.Stop(heed)
	send := func(sig syscall.Signal) {
		if err := syscall.Kill(os.Getpid(), sig); err != nil {
			t.Error(err)
		}
	}
	for _, c := range []struct {
		name  string
		sent  []syscall.Signal
		say   []string
		match error
	}{
		{"Once", []syscall.Signal{syscall.SIGINT}, []string{"finishing the point; again to abort"}, runner.ErrStop},
		{"Twice", []syscall.Signal{syscall.SIGINT, syscall.SIGINT}, []string{"finishing the point; again to abort", "aborting; the light is put back"}, runner.ErrAbort},
		{"Terminated", []syscall.Signal{syscall.SIGTERM}, []string{"aborting; the light is put back"}, runner.ErrAbort},
		{"HangUp", []syscall.Signal{syscall.SIGHUP}, []string{"aborting; the light is put back"}, runner.ErrAbort},
		{"Unread", []syscall.Signal{syscall.SIGPIPE}, []string{""}, runner.ErrStop},
		{"Paused", []syscall.Signal{syscall.SIGUSR1, syscall.SIGUSR1}, []string{"pausing after the point", "going on"}, nil},
		{"PausedAndStopped", []syscall.Signal{syscall.SIGUSR1, syscall.SIGINT}, []string{"pausing after the point", "finishing the point; again to abort"}, runner.ErrStop},
	} {
		t.Run(c.name, func(t *testing.T) {
			w, p := newWorld(), newPlan(1, 2)
			r := w.runner(p)
			said := make(chan string)
			stop := runner.Signals(r, func(text string) { said <- text })
			defer stop()
			begun, leaving := false, false
			r.Progress = func(now runner.Progress) {
				switch {
				case now.Point == 1 && !begun:
					begun = true
					for i, sig := range c.sent {
						send(sig)
						if c.say[i] == "" {
							for r.State() != runner.Stopping {
								runtime.Gosched()
							}
							continue
						}
						if got := <-said; got != c.say[i] {
							t.Errorf("after %v it said %q, want %q", sig, got, c.say[i])
						}
					}
				case now.State == runner.Leaving && !leaving:
					leaving = true
					send(syscall.SIGINT)
					if got, want := <-said, "putting the light back; please wait"; got != want {
						t.Errorf("while leaving it said %q, want %q", got, want)
					}
				}
			}
			sum, err := r.Run(t.Context())
			if !errors.Is(err, c.match) || !sum.Restored || !leaving || w.count("light") != 1 {
				t.Errorf("%+v, error %v", sum, err)
			}
			if c.match == nil && sum.State != runs.Done {
				t.Errorf("%+v", sum)
			}
		})
	}
}

// Ensure that signals have their usual effect again, and that say may panic.
func TestSignals_Stop(t *testing.T) {
	r := newWorld().runner(newPlan(1, 1))
	told := make(chan struct{}, 8)
	stop := runner.Signals(r, func(string) { told <- struct{}{}; panic("no terminal") })
	for range 2 {
		if err := syscall.Kill(os.Getpid(), syscall.SIGUSR1); err != nil {
			t.Fatal(err)
		}
		select {
		case <-told:
		case <-time.After(time.Minute):
			t.Fatal("nothing was said")
		}
	}
	stop()
	stop()
}

// Ensure a run begun with nohup goes on when the terminal is closed.
func TestSignals_Nohup(t *testing.T) {
	if !slices.Contains(runner.Heeded(), os.Signal(syscall.SIGHUP)) {
		t.Error("SIGHUP is not heeded")
	}
	signal.Ignore(syscall.SIGHUP)
	defer signal.Reset(syscall.SIGHUP)
	if h := runner.Heeded(); slices.Contains(h, os.Signal(syscall.SIGHUP)) || !slices.Contains(h, os.Signal(syscall.SIGTERM)) {
		t.Errorf("with SIGHUP ignored, %v are heeded", h)
	}
}
