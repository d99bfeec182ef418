package main

import (
	"time"

	"github.com/spf13/cobra"

	firmwarenotes "github.com/ocslab/ocslab/firmware-notes"
	"github.com/ocslab/ocslab/orchestrator/advice"
)

func (a *app) adviseCommand() *cobra.Command {
	var firmware string
	var opt advice.Options
	c := &cobra.Command{
		Use:   "advise TRACE",
		Short: "Say whether a training job should reconfigure its rails at all, and where in its step",
		Long: `Print which windows between the phases of a job can hide a reconfiguration, given how
long the switch takes and how long the firmware of the NICs takes to call the light a
link; what a step takes if the job reconfigures at each boundary, stays on the giant
ring, or does what is best (exact, by dynamic programming around the step); and up to
which delay reconfiguring pays.`,
		Example: "  ocslab advise lab-job --switching 200ms --firmware connectx-6-dx/autoneg-off\n  ocslab advise config-1 --switching 25ms",
		Args:    cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			t, err := loadTrace(args[0])
			if err != nil {
				return err
			}
			if firmware != "" {
				p, err := firmwarenotes.Find(firmware)
				if err != nil {
					return err
				}
				opt.Firmware = &p
			}
			advised, err := advice.Advise(t, opt)
			if err != nil {
				return usageError{err}
			}
			if a.set.JSON {
				a.json(struct {
					Kind string `json:"kind"` // "advice"
					*advice.Advice
				}{"advice", advised})
				return nil
			}
			a.printf("%s", advised.Text())
			return nil
		},
	}
	f := c.Flags()
	f.DurationVar(&opt.Switch, "switching", 200*time.Millisecond, "from the command until the light is back")
	f.DurationVar(&opt.Control, "control", time.Millisecond, "what the control plane adds")
	f.StringVar(&firmware, "firmware", "", "`PROFILE` of the NICs' firmware: what it takes from light to link (default nothing)")
	return c
}
