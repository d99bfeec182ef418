package sequence

import (
	"context"
	"errors"
	"fmt"

	"github.com/ocslab/ocslab/experiment"
	"github.com/ocslab/ocslab/experiment/plan"
	"github.com/ocslab/ocslab/experiment/runner"
	"github.com/ocslab/ocslab/lab/panics"
	"github.com/ocslab/ocslab/ocs"
)

// player is a bench that tells of the steps.
type player struct {
	runner.Bench
	player *play
}

// Move is a step, unless it is the way to where a repeat begins.
func (b *player) Move(ctx context.Context, number int, to map[string]ocs.Map, wait plan.Wait) (experiment.Move, error) {
	p := b.player
	if number == 0 {
		p.at = -1
		return b.Bench.Move(ctx, number, to, wait)
	}
	step := p.step(number)
	p.at = step
	if p.opt.Before != nil {
		p.opt.Before(step)
	}
	mv, err := p.move(ctx, step, func(ctx context.Context) (experiment.Move, error) {
		return b.Bench.Move(ctx, number, to, wait)
	})
	if err != nil {
		return mv, err
	}
	p.result.Moves = append(p.result.Moves, mv)
	if p.opt.After != nil {
		if err := p.opt.After(ctx, step, mv); err != nil {
			return mv, fmt.Errorf("after step %d, %s: %w", step+1, p.steps[step].Name, err)
		}
	}
	p.over = number == p.opt.Repeats*len(p.steps)
	return mv, nil
}

// move carries a step out, and ReadBack beside it.
func (p *play) move(ctx context.Context, step int, do func(context.Context) (experiment.Move, error)) (experiment.Move, error) {
	if p.opt.ReadBack == nil {
		return do(ctx)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var told chan error
	cut := make(chan struct{})
	tell := func(mv experiment.Move) {
		if told != nil {
			return
		}
		told = make(chan error, 1)
		go func() {
			err := experiment.Guard(func() error { return p.opt.ReadBack(ctx, step, mv) })
			if err != nil {
				cancel() // nobody needs the light any more
			} else if p.opt.Hurry != nil && p.opt.Hurry(step) {
				close(cut)
			}
			told <- err
		}()
	}
	bench := &p.bed.Bench
	bench.Seen, bench.Cut = tell, cut
	mv, err := do(ctx)
	bench.Seen, bench.Cut = nil, nil
	if err != nil {
		cancel()
	} else {
		tell(mv) // when nothing was to be changed
	}
	if told == nil {
		return mv, err
	}
	if failed := <-told; failed != nil && (err == nil || errors.Is(err, context.Canceled)) {
		err = fmt.Errorf("step %d, %s: %w", step+1, p.steps[step].Name, failed)
	}
	return mv, err
}

// reconcile has Reconcile bring about what the steps want of switches.
func (p *play) reconcile(t *experiment.Testbed) {
	if p.opt.Reconcile == nil {
		return
	}
	for _, r := range t.Bench.Rigs {
		do := r.Reconcile
		r.Reconcile = func(ctx context.Context, want ocs.Map, policy ocs.Policy) (ocs.Report, error) {
			if p.at < 0 {
				return do(ctx, want, policy)
			}
			return p.opt.Reconcile(ctx, p.at, r.Name, want, func(ctx context.Context, want ocs.Map) (ocs.Report, error) {
				return do(ctx, want, policy)
			})
		}
	}
}

// inDark says that light which a panic keeps dark need not be tried again.
func inDark(err error) error {
	if errors.Is(err, panics.ErrInForce) {
		return fmt.Errorf("%w: %w", runner.ErrDark, err)
	}
	return err
}
