package linkmon

import (
	"fmt"
	"time"
)

// Account holds what was reported against what the kernel counted. It is exact
// after [Monitor.Flush] or [Monitor.Close]; in between, it is what was found at the last
// Flush, plus what was reported since.
type Account struct {
	Counted   int // transitions that up and down counters tell of, from beginning to end
	Reported  int // events of kind Transition
	Merged    int // counted and not reported one by one, since one sweep found over 65536; a Gap tells of each time
	Announced int // events of kind Announcement
	Gaps      int // events of kind Gap
	Sweeps    Sweeps
	PerLink   []LinkAccount // also of interfaces that are gone
}

// LinkAccount is the part of an [Account] that is one interface's. The numbers of
// an interface begin when it was taken up.
type LinkAccount struct {
	Host, Interface                      string
	Index                                int
	Counted, Reported, Merged, Announced int
	Removed                              bool
}

// Sweeps tells how regularly the counters were read.
type Sweeps struct {
	Count   int
	Longest time.Duration // from the beginning of one to that of the next
	Late    int           // began more than 20 ms later than they should; each is a Gap
	CPU     time.Duration // of the thread that sweeps, at the last Flush; 0 where it has none of its own
}

// Err returns nil when every transition that was counted is accounted for, and
// else says how many are missing and where most of them are.
func (a Account) Err() error {
	var worst LinkAccount
	missing, most := 0, 0
	for _, l := range a.PerLink {
		d := l.Counted - l.Reported - l.Merged
		if d = max(d, -d); d > 0 {
			missing += d
			if d > most {
				worst, most = l, d
			}
		}
	}
	if missing == 0 {
		return nil
	}
	return fmt.Errorf("of %d carrier transitions counted %d were reported and %d merged, which is off by %d; most on %s/%s: %d counted, %d reported, %d merged",
		a.Counted, a.Reported, a.Merged, missing, worst.Host, worst.Interface, worst.Counted, worst.Reported, worst.Merged)
}
