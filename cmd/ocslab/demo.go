package main

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"github.com/ocslab/ocslab/examples"
	"github.com/ocslab/ocslab/experiment"
	"github.com/ocslab/ocslab/lab"
)

func (a *app) demoCommand() *cobra.Command {
	var flags measureFlags
	var inTUI bool
	c := &cobra.Command{
		Use:   "demo",
		Short: "See light move: an emulated testbed, toggled and timed layer by layer",
		Long: `Start an emulated testbed: one switch behind a real TL1 socket and four hosts, which
are network namespaces with real interfaces whose firmware and carrier follow the
light. Toggle between its two configurations, and print when each stage was reached
after the command, how surely that is known, and how far the marks were from what the
emulation did. Needs no lab and no network but 127.0.0.1; as root, or where user
namespaces are allowed, the interfaces are the kernel's, else they are in memory.

The firmware is an invented quick one; --firmware connectx-6-dx/autoneg-off takes
three seconds a time, as the real one does.

With --tui the same testbed is shown in the terminal UI, for you to toggle.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if inTUI {
				return a.demoTUI(cmd.Context(), flags.firmware, flags.rung, flags.seed)
			}
			f, err := lab.Parse("opus-testbed.yaml", examples.OpusTestbed)
			if err != nil {
				return err
			}
			opt, err := flags.testbed(f, toggled[:])
			if err != nil {
				return err
			}
			if done, err := enter(); done {
				return err
			}
			return a.demo(cmd.Context(), &flags, f, opt)
		},
	}
	flags.add(c.Flags(), 20, lab.DefaultFirmware)
	c.AddCommand(a.pcclDemoCommand(), a.railxDemoCommand(), a.meshDemoCommand(), a.fibresDemoCommand(), a.infiniteDemoCommand(), a.crossDemoCommand())
	c.Flags().BoolVar(&inTUI, "tui", false, "show the testbed in the terminal UI instead")
	return c
}

// toggled are the configurations of the testbed that the demo goes to and fro
// between.
var toggled = [2]string{"dp", "pp"}

func (a *app) demo(ctx context.Context, flags *measureFlags, f *lab.File, opt experiment.TestbedOptions) (err error) {
	for i := range f.Switches {
		f.Switches[i].Emulate.Seed = &flags.seed
	}
	l := lab.New(f, lab.Options{Emulated: true, Timeout: a.set.Timeout, Trace: a.tracer()})
	defer func() { err = errors.Join(err, l.Close()) }()
	t, err := experiment.OpenTestbed(ctx, l, opt)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, t.Close()) }()
	t.Bench.LinkPatience = flags.patience
	a.introduce(t, flags, toggled[:])
	m, err := a.toggle(ctx, t, flags, true)
	if m.moves == 0 {
		return err
	}
	return errors.Join(err, a.printMeasurement(t, m, flags, toggled[:], true, true))
}
