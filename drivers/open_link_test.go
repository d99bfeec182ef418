package drivers

import (
	"testing"
	"time"

	"github.com/ocslab/ocslab/drivers/ocstrx"
	"github.com/ocslab/ocslab/wire/cmis/ocst"
)

// TestLinkTimes ensures that what noise has spoilt is sent again long before the patience of
// the user is over and before modules that are armed give up, and that repeats do not fill a
// slow line.
func TestLinkTimes(t *testing.T) {
	for _, c := range []struct {
		name     string
		patience time.Duration
		baud     int
		timeout  time.Duration
		retries  int
	}{
		{"defaults", 0, 0, ocstrx.DefaultReplyTimeout, ocstrx.DefaultRetries},
		{"of the command line", 10 * time.Second, 0, ocstrx.DefaultReplyTimeout, 19},
		{"impatient", 200 * time.Millisecond, 0, 50 * time.Millisecond, 3},
		{"fast line", 10 * time.Second, 921600, ocstrx.DefaultReplyTimeout, 19},
		{"slow line", 10 * time.Second, 9600, 2666 * time.Millisecond, 3},
		{"slow line, impatient", time.Second, 9600, 2666 * time.Millisecond, 3},
		{"no time at all", 1, 0, 0, ocstrx.DefaultRetries},
	} {
		timeout, retries := linkTimes(c.patience, c.baud)
		if timeout.Truncate(time.Millisecond) != c.timeout || retries < c.retries || c.patience > 1 && retries != c.retries {
			t.Errorf("%s: again after %v, %d times, want %v, %d times", c.name, timeout, retries, c.timeout, c.retries)
		}
		if c.baud == 0 && timeout >= ocst.ArmTimeout {
			t.Errorf("%s: again after %v, when modules have disarmed themselves", c.name, timeout)
		}
	}
}
