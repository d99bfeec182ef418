package live

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/ocslab/ocslab/lab"
)

// Ensure a host that is out of reach leaves no other unwatched, and that its NICs say why.
func TestHosts_OneOutOfReach(t *testing.T) {
	here, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	f, err := lab.Parse("lab.yaml", fmt.Appendf(nil, `switches:
  - {name: sw0, url: '%s'}
hosts:
  - {name: far, agent: [/no/such/program], nics: [{name: nic0, tx: sw0/1, rx: sw0/33}]}
  - {name: '%s', nics: [{name: lo, tx: sw0/2, rx: sw0/34}]}
`, emulation(t, "fast-mems-25ms").URL(), here))
	if err != nil {
		t.Fatal(err)
	}
	s := openTestbed(t, func(o *Options) { o.File, o.Lab.Emulated = f, false })
	x := until(t, s, "the host within reach is watched", func(x *State) bool { return x.NICs[1].Watched && x.Opening == "" })
	if x.NICs[1].Carrier != CarrierUp {
		t.Errorf("carrier of lo: %s", x.NICs[1].Carrier)
	}
	until(t, s, "the other one says why not", func(x *State) bool {
		return !x.NICs[0].Watched && strings.Contains(x.NICs[0].Why, "/no/such/program")
	})
	until(t, s, "the log says so", func(x *State) bool {
		for _, e := range x.Log {
			if e.Kind == Event && e.Bad && strings.Contains(e.Text, "/no/such/program") {
				return true
			}
		}
		return false
	})
}
