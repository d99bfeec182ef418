package advice_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/ocslab/ocslab/orchestrator/advice"
)

// The numbers are a report, so only what must hold is tested: no network beats one that has all bandwidth
// always, more bandwidth never costs time, and the advantage over the one-shot network falls with it, as in
// the paper.
func TestStudy(t *testing.T) {
	var all []advice.Result
	sweep := map[string]advice.Result{}
	for _, c := range advice.Cases() {
		r, err := advice.Study(c)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, r)
		if r.EPS > r.Opus || r.EPS > r.OneShot || r.PPShare <= 0 || r.PPShare >= 1 {
			t.Errorf("%s: EPS %v, one-shot %v (%v), Opus %v", c.Name, r.EPS, r.OneShot, r.PPShare, r.Opus)
		}
		kind, _, _ := strings.Cut(c.Name, ",")
		if c.Switch != 10*time.Millisecond || c.DP != 4 {
			continue
		}
		if last, ok := sweep[kind]; ok && last.Case.Gbps < c.Gbps && (r.Opus >= last.Opus || r.Found.OneShot <= last.Found.OneShot) {
			t.Errorf("%s: %v and %v, with less bandwidth %v and %v", c.Name, r.Opus, r.Found, last.Opus, last.Found)
		}
		sweep[kind] = r
	}
	text := advice.StudyText(all)
	t.Log("\n" + text)
	for line := range strings.Lines(text) {
		if utf8.RuneCountInString(line) > 101 {
			t.Errorf("too wide: %s", line)
		}
	}
	if _, err := json.Marshal(all); err != nil {
		t.Error(err)
	}
}

func TestStudy_Refused(t *testing.T) {
	good := advice.Cases()[0]
	for _, change := range []func(*advice.Case){
		func(c *advice.Case) { c.Stages = 1 },
		func(c *advice.Case) { c.Stages = 5 },
		func(c *advice.Case) { c.DP = 3 },
		func(c *advice.Case) { c.DP = 0 },
		func(c *advice.Case) { c.TP = 0 },
		func(c *advice.Case) { c.Gbps = 0 },
		func(c *advice.Case) { c.PFLOPS = -1 },
		func(c *advice.Case) { c.Switch = -1 },
	} {
		c := good
		change(&c)
		if _, err := advice.Study(c); !errors.Is(err, advice.ErrOptions) {
			t.Errorf("%+v: %v", c, err)
		}
	}
}
