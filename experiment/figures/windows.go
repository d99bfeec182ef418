package figures

import "time"

// Windows models the training step of a job that reconfigures its network between phases
// of communication, as the Opus paper does: between two phases nothing is sent for a while
// (the window), and a reconfiguration that begins with the window costs only what does not
// fit into it.
type Windows struct {
	Base     time.Duration   // the step if switching took no time, control included
	Windows  []time.Duration // of one step; there is one reconfiguration for each
	Overhead time.Duration   // of control, for each reconfiguration, if it is not in Base
}

// Step returns how long a step takes when a reconfiguration takes delta, 0 or more, and
// begins as soon as its window does: Base and, for each window W, max(0, delta + Overhead - W).
func (w Windows) Step(delta time.Duration) time.Duration {
	step := w.Base
	for _, window := range w.Windows {
		step += max(0, delta+w.Overhead-window)
	}
	return step
}

// Demand returns the same for reconfigurations that begin only when the next phase asks for
// them, at the end of the window: nothing is hidden.
func (w Windows) Demand(delta time.Duration) time.Duration {
	return w.Base + time.Duration(len(w.Windows))*(delta+w.Overhead)
}

// opusConfig1 is the job of the Opus paper's figure 10, left: an 8B model on 16 GPUs (batch
// 16, sequence 8192, TP4 FSDP2 PP2). Its windows are not published: these were fitted by us
// to the authors' archived averages, and reproduce them within 0.8 %, but for the noisy
// point at 10 ms.
var opusConfig1 = Windows{
	Base: 10222 * time.Millisecond,
	Windows: []time.Duration{
		26 * time.Millisecond, 26 * time.Millisecond, 26 * time.Millisecond,
		26 * time.Millisecond, 26 * time.Millisecond, 1680 * time.Millisecond,
	},
}

// archived is a step time in the archive of the paper's measurements.
type archived struct {
	Delay time.Duration // that the switch was made to take
	Step  time.Duration // mean of the steps after warm-up
}

// opusArchive are the archived averages of opusConfig1 with provisioning.
var opusArchive = []archived{
	{0, 10222 * time.Millisecond},
	{10 * time.Millisecond, 10370500 * time.Microsecond},
	{50 * time.Millisecond, 10320300 * time.Microsecond},
	{100 * time.Millisecond, 10614200 * time.Microsecond},
	{250 * time.Millisecond, 11269200 * time.Microsecond},
	{500 * time.Millisecond, 12557 * time.Millisecond},
	{750 * time.Millisecond, 13953800 * time.Microsecond},
	{1000 * time.Millisecond, 15121500 * time.Microsecond},
}
