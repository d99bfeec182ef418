package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/ocslab/ocslab/ocs"
	"github.com/ocslab/ocslab/orchestrator"
	"github.com/ocslab/ocslab/orchestrator/job"
	"github.com/ocslab/ocslab/topology/opus"
)

func (a *app) topologyCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "topology",
		Short: "Compute the circuits that a paper's planner wants, and bring them about",
		Args:  cobra.NoArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	c.AddCommand(a.topologyOpusCommand(), a.topologyPCCLCommand(), a.topologyRailXCommand(), a.topologyInfiniteHBDCommand(), a.topologyCrossWiringCommand())
	return c
}

// topologyLine is what a rail holds for a topology ID, or what changes.
type topologyLine struct {
	Kind    string  `json:"kind"` // "topology"
	Rail    string  `json:"rail"`
	Switch  string  `json:"switch"`
	ID      string  `json:"topology_id"`
	Decimal string  `json:"decimal,omitempty"`
	Map     ocs.Map `json:"map"`
	From    string  `json:"from,omitempty"`
	Removed ocs.Map `json:"removed"` // from From
	Added   ocs.Map `json:"added"`
}

func (a *app) topologyOpusCommand() *cobra.Command {
	var from string
	var rails []string
	var apply bool
	c := &cobra.Command{
		Use:   "opus JOB ID",
		Short: "The circuits of a topology ID of a photonic rail, port by port",
		Long: `Print the cross-connects that a job's rails hold for a topology ID: one digit for
each pipeline stage, 0 while its ports serve the pipeline (PP), j while they serve
axis j of the job file. "giant-ring" is the ring through all ranks. --from ID prints
what has to change. --apply brings it about, as "ocslab connect" does, with the same
record and undo.`,
		Example: "  ocslab --lab examples/opus-rails.yaml topology opus examples/lab-job.yaml 00 --from 11\n  ocslab --lab lab.yaml topology opus job.yaml giant-ring --apply",
		Args:    cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			mode, err := a.mode()
			if err != nil {
				return err
			}
			var opt orchestrator.Options
			f, err := a.jobOf(&opt, args[0])
			if err != nil {
				return err
			}
			if rails == nil {
				for _, r := range f.Rails {
					rails = append(rails, r.Name)
				}
			}
			wishes := map[string]ocs.Map{}
			for _, name := range rails {
				line, err := railTopology(f, &opt, name, args[1], from)
				if err != nil {
					return usageError{err}
				}
				if wishes[line.Switch], err = wishes[line.Switch].Plus(line.Map); err != nil {
					return err
				}
				if a.set.JSON {
					a.json(line)
				} else {
					a.printTopology(line)
				}
			}
			if !apply {
				return nil
			}
			return a.changeAll(cmd.Context(), changeFlags{}, intentsOf(wishes, mode))
		},
	}
	addVerify(c)
	c.Flags().StringVar(&from, "from", "", "`ID` of before: print what changes, too")
	c.Flags().StringSliceVar(&rails, "rail", nil, "rails of the job (default all)")
	c.Flags().BoolVar(&apply, "apply", false, "bring it about on the switches of the lab")
	a.addMode(c, string(ocs.Safe))
	return c
}

// matchingOf returns the matching of an ID, or of the giant ring.
func matchingOf(f *job.File, id string) (m opus.Matching, decimal string, err error) {
	if id == "giant-ring" {
		m, err = opus.GiantRing(f.Job())
		return m, "", err
	}
	d, err := f.Job().ParseID(id)
	if err != nil {
		return m, "", err
	}
	m, err = opus.Build(f.Job(), d, f.OpusPolicy())
	return m, d.Decimal(), err
}

func railTopology(f *job.File, opt *orchestrator.Options, name, id, from string) (topologyLine, error) {
	r, ok := f.Rail(name)
	if !ok {
		return topologyLine{}, fmt.Errorf("job %s has no rail %q", f.Name, name)
	}
	line := topologyLine{Kind: "topology", Rail: name, Switch: r.SwitchName(), ID: id, From: from}
	cabled, err := f.Assignment(name, opt.Lab.File)
	if err != nil {
		return line, err
	}
	m, decimal, err := matchingOf(f, id)
	if err != nil {
		return line, err
	}
	line.Decimal = decimal
	if line.Map, err = cabled.Map(m); err != nil || from == "" {
		return line, err
	}
	before, _, err := matchingOf(f, from)
	if err != nil {
		return line, err
	}
	was, err := cabled.Map(before)
	if err != nil {
		return line, err
	}
	change := ocs.Diff(was, line.Map)
	line.Removed, line.Added = change.Remove, change.Add
	return line, nil
}

func (a *app) printTopology(l topologyLine) {
	a.printf("%s on %s, %s: %v\n", l.Rail, l.Switch, l.ID, l.Map)
	if l.From != "" {
		a.printf("  from %s: removes %d (%v), adds %d (%v)\n", l.From, l.Removed.Len(), l.Removed, l.Added.Len(), l.Added)
	}
}
