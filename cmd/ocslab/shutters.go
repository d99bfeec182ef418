package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/ocslab/ocslab/ocs"
)

type shuttersLine struct {
	Kind   string `json:"kind"` // "shutters"
	Switch string `json:"switch"`
	Ports  string `json:"ports"`
	State  string `json:"state"` // "open" or "closed"
}

func (a *app) shuttersCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "shutters SWITCH open|close PORTS",
		Short: "Open or close the shutters of ports, read back and verified",
		Long: `Open or close the shutters of ports. Circuits stay as they are. The change is
recorded, and "ocslab undo" takes it back. Protected and leased ports are refused, and
shutters are not opened where a panic keeps the light away.`,
		Example: "  ocslab --lab lab.yaml shutters rail0 open 1-4,33",
		Args:    cobra.ExactArgs(3),
		RunE: func(cmd *cobra.Command, args []string) error {
			if args[1] != "open" && args[1] != "close" {
				return usagef("want open or close, found %q", args[1])
			}
			ports, err := ocs.ParsePorts(args[2])
			if err != nil {
				return err
			}
			if len(ports) == 0 {
				return usagef("no ports: want some such as 1,2 or 33-36")
			}
			sw, err := a.open(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			s, ok := ocs.As[ocs.Shutter](sw)
			if !ok {
				return aboutSwitch(sw.Name, fmt.Errorf("shutters: %w", ocs.ErrNotSupported))
			}
			closed, state := args[1] == "close", "open"
			if closed {
				state = "closed"
			}
			if err := s.SetShutters(cmd.Context(), closed, ports...); err != nil {
				return aboutSwitch(sw.Name, err)
			}
			now, err := s.Shutters(cmd.Context(), ports...)
			if err != nil {
				return aboutSwitch(sw.Name, fmt.Errorf("the shutters were set but could not be read back: %w", err))
			}
			for _, p := range ports {
				if now[p] != closed {
					return aboutSwitch(sw.Name, fmt.Errorf("%w: the shutter of port %d is not %s", ocs.ErrVerify, p, state))
				}
			}
			if a.set.JSON {
				a.json(shuttersLine{"shutters", sw.Name, ocs.FormatPorts(ports), state})
			}
			a.printf("%s: the shutters of %s are %s, read back\n", sw.Name, ocs.FormatPorts(ports), state)
			return nil
		},
	}
}
