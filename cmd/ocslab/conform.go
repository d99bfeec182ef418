package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/ocslab/ocslab/drivers"
	"github.com/ocslab/ocslab/drivers/conformance"
	"github.com/ocslab/ocslab/ocs"
)

func (a *app) conformCommand() *cobra.Command {
	var cfg conformance.Config
	c := &cobra.Command{
		Use:   "conform URL",
		Short: "Run the conformance suite against a device",
		Long: `Find out what a switch can do and whether it does it as the drivers expect.
Only ports that are free are used, and the switch is left as it was found:
light that the suite did not bring is never darkened, unless --all-ports.`,
		Example: "  ocslab conform tl1://admin@192.0.2.10:3082 --password env:RAIL0_PASSWORD --json > rail0.json",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			t, err := drivers.Parse(args[0])
			if err != nil {
				return err
			}
			opt, err := a.options(t)
			if err != nil {
				return err
			}
			cfg.Name = t.String()
			cfg.Open = func(ctx context.Context) (ocs.Switch, error) { return drivers.Open(ctx, args[0], opt) }
			show := a.progress()
			cfg.Progress = func(done, total int, check string) { show.set("%d of %d: %s", done, total, check) }
			r, err := conformance.Run(cmd.Context(), cfg)
			show.done()
			if err != nil {
				return err
			}
			if a.set.JSON {
				a.json(r)
			} else {
				r.WriteText(a.out)
			}
			switch {
			case r.Cancelled && cmd.Context().Err() != nil:
				return context.Cause(cmd.Context())
			case !r.Restored:
				return verifyError(fmt.Sprintf("%s could not be left as it was found: %v", cfg.Name, r.NotRestored))
			case r.Failed > 0:
				return verifyError(fmt.Sprintf("%s: %d of %d checks failed", cfg.Name, r.Failed, r.Failed+r.Passed))
			}
			return nil
		},
	}
	c.Flags().BoolVar(&cfg.AllPorts, "all-ports", false, "darken whatever is in the way, and restart the matrix")
	c.Flags().DurationVar(&cfg.Timeout, "check-timeout", 0, "how long one check may take (default 1m; robotic switches need more)")
	c.Flags().IntVar(&cfg.MaxPorts, "max-pairs", 0, "use at most `N` pairs of free ports (default 8)")
	return c
}

// verifyError is a failed verification, with a text of its own.
type verifyError string

func (e verifyError) Error() string        { return string(e) }
func (e verifyError) Is(target error) bool { return target == ocs.ErrVerify }
