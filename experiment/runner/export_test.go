package runner

import (
	"context"
	"time"

	"github.com/ocslab/ocslab/experiment/runs"
	"github.com/ocslab/ocslab/timeline"
)

// SetHooks puts fn in place of the commands of hooks; nil are the commands.
func (r *Runner) SetHooks(fn func(ctx context.Context, words []string) error) {
	if r.execute = nil; fn == nil {
		return
	}
	r.execute = func(ctx context.Context, c command) (ran, error) {
		ctx, cancel := context.WithTimeout(ctx, c.timeout)
		defer cancel()
		return ran{}, fn(ctx, c.words)
	}
}

// Hook runs a command as a hook is run, and returns the end of its output.
func Hook(ctx context.Context, dir string, env, words []string, timeout, grace time.Duration) (output string, code int, left bool, err error) {
	r, err := command{words, dir, env, timeout, grace}.run(ctx)
	return r.output, r.code, r.left, err
}

// HookOutput is how much of the output of a hook is kept.
const HookOutput = hookOutput

// Samples is what is recorded of readings.
func Samples(readings map[string][]timeline.Sample) []runs.Sample { return samples(1, readings) }

// Heeded is for tests.
var Heeded = heeded
