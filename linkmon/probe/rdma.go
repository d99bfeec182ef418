package probe

import (
	"sync"
	"time"

	firmwarenotes "github.com/ocslab/ocslab/firmware-notes"
)

// schedule is that of the note on ConnectX-6 Dx.
var schedule = sync.OnceValue(func() *firmwarenotes.Retransmission { return firmwarenotes.RDMA("connectx-6-dx") })

// NextSlot predicts when an RDMA connection (RC queue pair) sends again what was lost, when
// the path came back an outage after the post of the first message that was lost. Traffic by
// RDMA resumes at the slot, or the queue pair is in error then and not alive. The
// timeout (0 to 31, ibv_qp_attr.timeout) and the retry count (0 to 7, retry_cnt) are those of the
// queue pair. The note says in words what the prediction rests on.
//
// Source: the firmware note connectx-6-dx, key rdma: a measurement of 2026 on ConnectX-6
// (firmware 20.43.4100), RoCE v2, default settings. [firmwarenotes.Retransmission] says how the
// schedule goes. With retry 7 the queue pair was in error after 3.66 s for timeouts up to 16, and
// after 7.15, 14.7, 29.7 and 59.8 s for 17 to 20.
//
// The regular slots are taken to be the last of them before the error, counted back. This gives
// what was measured for the first: 440 ms (16), 1782 (18), 3930 (19), 8225 (20). The 710 ms
// of timeout 17 follow from it, but were not measured.
//
// Limits: the first fault of a process follows a somewhat different schedule (10 to 1250 ms off); other NICs,
// firmware and profiles of adaptive retransmission have others. With
// ROCE_ACCL.min_ack_timeout_limit_disabled=1 none of this holds: retransmission is then nominal,
// (retry + 1) * 4.096 µs * 2^timeout plus 7 to 13 % (measured with retry 7: 9.5 ms for timeout 8, 575 ms for 14, 37.9 s
// for 20).
func NextSlot(outage time.Duration, timeout, retry int) (slot time.Duration, alive bool, note string) {
	return schedule().Next(outage, timeout, retry)
}
