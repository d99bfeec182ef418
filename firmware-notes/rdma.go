package firmwarenotes

import (
	"fmt"
	"slices"
	"time"
)

// Retransmission is when a reliable RDMA connection (RC queue pair) sends again what was
// lost, and when it gives up, as it was measured on one firmware.
//
// With T = max(timeout, Least), messages are sent again at the times Adaptive after the
// post, as far as these are within the nominal 4.096 µs * 2^T of the InfiniBand
// specification (volume 1, 9.7.6.1.3), and then every I = Factor * 4.096 µs * 2^T. The
// queue pair is in error after retry * I - c, with c = EarlyLeast for T = Least and Early
// above. The regular times are taken to be k * I - c, which makes the error the last of
// them.
type Retransmission struct {
	MeasuredOn string // the card, if it is not that of the note
	Firmware   string
	Adaptive   []time.Duration // after the post, rising
	Factor     int
	Least      int           // timeouts below count as this one
	EarlyLeast time.Duration // c for timeouts up to Least
	Early      time.Duration // c above
	Retry      int           // retry count of what Errors says
	Errors     []ErrorTime   // measured, by timeout
	Source     string
	Confidence Confidence
}

// ErrorTime is after how long a queue pair with a timeout was in error.
type ErrorTime struct {
	Timeout int
	After   time.Duration
}

// Nominal is the Local ACK Timeout of the InfiniBand specification: 4.096 µs times two
// to the power of the timeout (0 to 31).
func Nominal(timeout int) time.Duration { return 4096 << timeout }

// early returns c for a timeout that is at least r.Least.
func (r *Retransmission) early(timeout int) time.Duration {
	if timeout == r.Least {
		return r.EarlyLeast
	}
	return r.Early
}

// Error returns after how long a queue pair is in error by the formula. The timeout is
// 1 to 31, the retry count 1 to 7.
func (r *Retransmission) Error(timeout, retry int) time.Duration {
	t := max(timeout, r.Least)
	return time.Duration(retry*r.Factor)*Nominal(t) - r.early(t)
}

// Next predicts when what was lost is sent again, when the path came back an outage after
// the post of the first message that was lost. Traffic resumes at the slot, or the queue
// pair is in error then and not alive. The timeout (0 to 31) and the retry count (0 to 7)
// are those of the queue pair. The note says in words what the prediction rests on.
func (r *Retransmission) Next(outage time.Duration, timeout, retry int) (slot time.Duration, alive bool, note string) {
	switch {
	case timeout < 0 || timeout > 31 || retry < 0 || retry > 7:
		return 0, false, fmt.Sprintf("no prediction: timeout %d and retry %d, want 0 to 31 and 0 to 7", timeout, retry)
	case timeout == 0:
		return 0, true, "no prediction: timeout 0 waits for ever and sends nothing again"
	case retry == 0:
		return 0, false, "no prediction: without retries the first timeout is an error, and when that comes was not measured"
	}
	t := max(timeout, r.Least)
	interval, c := time.Duration(r.Factor)*Nominal(t), r.early(t)
	end := r.Error(timeout, retry)
	note = "adaptive retransmission of " + r.MeasuredOn + " with default settings"
	if most := r.most(); timeout > most {
		note += fmt.Sprintf("; extrapolated, measured up to timeout %d", most)
	}
	for _, s := range r.Adaptive {
		if s > Nominal(t) || s >= end {
			break
		}
		if s >= outage {
			return s, true, note
		}
	}
	for k := 1; k < retry; k++ {
		if s := time.Duration(k)*interval - c; s >= outage {
			return s, true, note
		}
	}
	return end, false, note + fmt.Sprintf("; in error after %.3g s", end.Seconds())
}

// most is the longest timeout that was measured.
func (r *Retransmission) most() int {
	most := 0
	for _, e := range r.Errors {
		most = max(most, e.Timeout)
	}
	return most
}

func (r *Retransmission) clone() *Retransmission {
	if r == nil {
		return nil
	}
	c := *r
	c.Adaptive, c.Errors = slices.Clone(r.Adaptive), slices.Clone(r.Errors)
	return &c
}
