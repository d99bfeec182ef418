package report

import (
	"fmt"
	"strings"
	"time"

	"github.com/ocslab/ocslab/calibration/store"
	"github.com/ocslab/ocslab/experiment/runs"
)

// calibrations names those that the set-ups of a run have found, with their age when it began.
func calibrations(r *runs.Run) []string {
	var all []string
	timed := false
	for _, s := range r.Setups {
		for _, c := range s.Calibrations {
			timed = timed || c.Kind == store.Timing
			text := fmt.Sprintf("%v, made %s (%s before the run)", c, c.Made.UTC().Format(time.DateOnly), store.Age(r.Meta.Created.Sub(c.Made)))
			if !c.Complete {
				text += ", incomplete"
			}
			if c.Remark() != "" {
				text += ", stale"
			}
			if c.Kind == store.Timing && len(c.Floors) == 0 {
				text += ", without floors that could be used"
			}
			all = append(all, text)
		}
	}
	if len(r.Setups) > 0 && !timed {
		all = append(all, "none of timing: what cannot be resolved is what this run itself shows")
	}
	return distinct(all)
}

// staleCalibrations says what is wrong with those that the set-ups of a run have found; "" if nothing
// is.
func staleCalibrations(r *runs.Run) string {
	var all []string
	for _, s := range r.Setups {
		for _, c := range s.Calibrations {
			if why := c.Remark(); why != "" {
				all = append(all, why+".")
			}
		}
	}
	return strings.Join(distinct(all), " ")
}
