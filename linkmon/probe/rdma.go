package probe

import (
	"fmt"
	"time"
)

// adaptive is when a message is sent again after its post, before the regular part
// of the schedule. The first values are measured, to about three digits.
var adaptive = []time.Duration{
	20700 * time.Microsecond, 37700 * time.Microsecond, 71400 * time.Microsecond,
	138 * time.Millisecond, 239 * time.Millisecond, 440 * time.Millisecond, 977 * time.Millisecond,
	1782 * time.Millisecond, 3930 * time.Millisecond, 8225 * time.Millisecond,
}

// nominal is the Local ACK Timeout of the InfiniBand specification (volume 1, 9.7.6.1.3):
// 4.096 µs times two to the power of the timeout.
func nominal(timeout int) time.Duration { return 4096 << timeout }

// NextSlot predicts when an RDMA connection (RC queue pair) sends again what was lost, when
// the path came back an outage after the post of the first message that was lost. Traffic by
// RDMA resumes at the slot, or the queue pair is in error then and not alive. The
// timeout (0 to 31, ibv_qp_attr.timeout) and the retry count (0 to 7, retry_cnt) are those of the
// queue pair. The note says in words what the prediction rests on.
//
// Source: a measurement of 2026 on ConnectX-6 (firmware 20.43.4100), RoCE v2, default
// settings. With T = max(timeout, 16), messages were sent again about 20.7, 37.7, 71.4, 138, 239, 440,
// 977, 1782, 3930 and 8225 ms after the post, as far as these are within the nominal
// 4.096 µs * 2^T, and then every I = 2 * 4.096 µs * 2^T. The queue pair was in error after
// retry * I - c, with c = 96 ms for T = 16 and 364 ms above. With retry 7 that is 3.66 s for timeouts
// up to 16, and 7.15, 14.7, 29.7 and 59.8 s for 17 to 20.
//
// The regular slots are taken to be k * I - c. This makes the error the last of them and
// gives what was measured for the first: 440 ms (16), 1782 (18), 3930 (19), 8225 (20). The 710 ms
// of timeout 17 follow from it, but were not measured.
//
// Limits: the first fault of a process follows a somewhat different schedule (10 to 1250 ms off); other NICs,
// firmware and profiles of adaptive retransmission have others. With
// ROCE_ACCL.min_ack_timeout_limit_disabled=1 none of this holds: retransmission is then nominal,
// (retry + 1) * 4.096 µs * 2^timeout plus 7 to 13 % (measured with retry 7: 9.5 ms for timeout 8, 575 ms for 14, 37.9 s
// for 20).
func NextSlot(outage time.Duration, timeout, retry int) (slot time.Duration, alive bool, note string) {
	switch {
	case timeout < 0 || timeout > 31 || retry < 0 || retry > 7:
		return 0, false, fmt.Sprintf("no prediction: timeout %d and retry %d, want 0 to 31 and 0 to 7", timeout, retry)
	case timeout == 0:
		return 0, true, "no prediction: timeout 0 waits for ever and sends nothing again"
	case retry == 0:
		return 0, false, "no prediction: without retries the first timeout is an error, and when that comes was not measured"
	}
	t := max(timeout, 16)
	c := 364 * time.Millisecond
	if t == 16 {
		c = 96 * time.Millisecond
	}
	interval := 2 * nominal(t)
	end := time.Duration(retry)*interval - c
	note = "adaptive retransmission of ConnectX-6 with default settings"
	if timeout > 20 {
		note += "; extrapolated, measured up to timeout 20"
	}
	for _, s := range adaptive {
		if s > nominal(t) || s >= end {
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
