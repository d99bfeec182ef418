package main

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/spf13/cobra"

	"github.com/ocslab/ocslab/drivers"
	"github.com/ocslab/ocslab/drivers/conformance"
	"github.com/ocslab/ocslab/lab"
	"github.com/ocslab/ocslab/ocs"
)

func (a *app) conformCommand() *cobra.Command {
	var cfg conformance.Config
	dry := false
	c := &cobra.Command{
		Use:   "conform SWITCH",
		Short: "Run the conformance suite against a device",
		Long: `Test what a switch supports and whether it behaves as the drivers expect. Only
ports that are free are used; ports that are protected or leased are left alone, and
the switch is restored afterwards. Every change is recorded: "ocslab undo" takes all of
them back if the suite was killed. --all-ports also darkens circuits of others and
restarts the matrix; it is refused while any port is protected or leased.`,
		Example: "  ocslab conform tl1://admin@192.0.2.10:3082 --password env:RAIL0_PASSWORD --json > rail0.json\n  ocslab --lab lab.yaml conform rail0 --dry-run",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx := cmd.Context()
			cfg.Name = args[0]
			if t, err := drivers.Parse(args[0]); err == nil {
				cfg.Name = t.String()
			}
			sw, err := a.open(ctx, args[0])
			if err != nil {
				return err
			}
			gate := sw.Gate()
			if err := gate.InPanic(ctx, sw); err != nil {
				return aboutSwitch(sw.Name, err)
			}
			release, err := a.conformPorts(ctx, sw, &cfg, dry)
			if err != nil {
				return err
			}
			op := gate.Operation()
			cfg.Open = func(ctx context.Context) (ocs.Switch, error) { return op.Session(ctx, sw) }
			if dry {
				return a.conformPlan(ctx, cfg)
			}
			defer release()
			return a.conform(ctx, cfg)
		},
	}
	c.Flags().BoolVar(&cfg.AllPorts, "all-ports", false, "darken circuits that block a test, and restart the matrix")
	c.Flags().BoolVar(&dry, "dry-run", false, "print the ports and the tests that would be used, and change nothing")
	c.Flags().DurationVar(&cfg.Timeout, "check-timeout", 0, "how long one check may take (default 1m; robotic switches need more)")
	c.Flags().IntVar(&cfg.MaxPorts, "max-pairs", 0, "use at most `N` pairs of free ports (default 8)")
	return c
}

// conformPorts finds the ports that the suite may use, and leases them for as long as it runs.
func (a *app) conformPorts(ctx context.Context, sw *lab.Opened, cfg *conformance.Config, dry bool) (release func() error, err error) {
	gate := sw.Gate()
	kept, err := gate.Kept(ctx, sw)
	if err != nil {
		return nil, err
	}
	cfg.Avoid = slices.Sorted(maps.Keys(kept))
	if len(cfg.Avoid) > 0 && cfg.AllPorts {
		return nil, aboutSwitch(sw.Name, fmt.Errorf("--all-ports would darken it: %w", kept[cfg.Avoid[0]]))
	}
	id, err := sw.Identify(ctx)
	if err != nil {
		return func() error { return nil }, nil // the suite reports it
	}
	have, err := sw.CrossConnects(ctx)
	if err != nil {
		return func() error { return nil }, nil
	}
	var free []ocs.Port
	for _, p := range id.Geometry.Ports() {
		if !slices.Contains(cfg.Avoid, p) && (cfg.AllPorts || len(have.At(p)) == 0) {
			free = append(free, p)
		}
	}
	if dry || len(free) == 0 {
		return func() error { return nil }, nil
	}
	return gate.Lease(ctx, sw, free, "ocslab conform")
}

type conformPlanLine struct {
	Kind    string   `json:"kind"` // "conform-plan"
	Switch  string   `json:"switch"`
	Ingress string   `json:"ingress"`
	Egress  string   `json:"egress"`
	Avoided string   `json:"avoided"` // ports that are protected or leased
	Checks  []string `json:"checks"`
}

// conformPlan prints what the suite would use.
func (a *app) conformPlan(ctx context.Context, cfg conformance.Config) error {
	p, err := conformance.Preview(ctx, cfg)
	if err != nil {
		return err
	}
	line := conformPlanLine{"conform-plan", cfg.Name, ocs.FormatPorts(p.Ingress), ocs.FormatPorts(p.Egress), ocs.FormatPorts(cfg.Avoid), p.Checks}
	if a.set.JSON {
		a.json(line)
		return nil
	}
	a.printf("%s: would use pairs of the free ports %s and %s for %d checks", cfg.Name, line.Ingress, line.Egress, len(p.Checks))
	if len(cfg.Avoid) > 0 {
		a.printf("; protected or leased, left alone: %s", line.Avoided)
	}
	a.printf("\n")
	return nil
}

// conform runs the suite and prints its report.
func (a *app) conform(ctx context.Context, cfg conformance.Config) error {
	show := a.progress()
	cfg.Progress = func(done, total int, check string) { show.set("%d of %d: %s", done, total, check) }
	r, err := conformance.Run(ctx, cfg)
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
	case r.Cancelled && ctx.Err() != nil:
		return context.Cause(ctx)
	case !r.Restored:
		return verifyError(fmt.Sprintf("%s could not be left as it was found: %v", cfg.Name, r.NotRestored))
	case r.Failed > 0:
		return verifyError(fmt.Sprintf("%s: %d of %d checks failed", cfg.Name, r.Failed, r.Failed+r.Passed))
	}
	return nil
}

// verifyError is a failed verification, with a text of its own.
type verifyError string

func (e verifyError) Error() string        { return string(e) }
func (e verifyError) Is(target error) bool { return target == ocs.ErrVerify }
