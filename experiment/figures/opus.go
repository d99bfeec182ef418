package figures

import "time"

// What section 5.1 of the Opus paper says of its testbed.
var (
	opusSwitching = exactly(200*time.Millisecond, "200 ms")
	opusPower     = published{0, 100 * time.Millisecond, "within 100 ms"}
	opusLinkUp    = map[string]published{
		"on":  exactly(6*time.Second, "6 s"),
		"off": exactly(3*time.Second, "3 s"),
	}
	opusRapid   = exactly(10*time.Second, "up to 10 s")
	opusCarrier = published{70 * time.Microsecond, 80 * time.Microsecond, "70 to 80 µs"}
	opusRDMA    = published{100 * time.Millisecond, 200 * time.Millisecond, "100 to 200 ms"}
)

// Notes of several rows.
const (
	probeNote    = "Ours are packets of a UDP probe, which flow as soon as they can; the paper's are RDMA of a job that was drained before."
	firmwareNote = "the firmware is emulated with the paper's time as its median."
	pairedNote   = "At each NIC, from the light at its port to its carrier."
)
