package experiment

import (
	"context"
	"time"

	"github.com/ocslab/ocslab/calibration/clock"
	"github.com/ocslab/ocslab/linkmon/watch"
)

// Times of one question for a clock. A machine that does not answer is suspended, or out of
// reach.
const (
	clockAnswer = 2 * time.Second
	clockTries  = 3 // in a row without an answer, before the rest of a batch is given up
)

// AskClock asks the agent of a host for its clock n times, back to back. What is not answered
// is an exchange that tells nothing. It ends early when ctx does, or the host goes on not to answer.
func AskClock(ctx context.Context, w *watch.Watch, host string, n int) []clock.Exchange {
	var list []clock.Exchange
	for silent := 0; len(list) < n && silent < clockTries; {
		one, cancel := context.WithTimeout(ctx, clockAnswer)
		sent, its, received, err := w.ReadClock(one, host)
		cancel()
		if err != nil {
			if ctx.Err() != nil {
				break
			}
			silent++
			list = append(list, clock.Exchange{Received: -1})
			continue
		}
		silent = 0
		list = append(list, clock.Exchange{Sent: sent, Its: its, Received: received})
	}
	return list
}
