package main

import (
	"fmt"
	"os"

	"github.com/ocslab/ocslab/examples"
	"github.com/ocslab/ocslab/experiment/sequence"
	"github.com/ocslab/ocslab/lab"
	"github.com/ocslab/ocslab/lab/blackout"
	"github.com/ocslab/ocslab/ocs"
)

// sequenceOptions are how planners move a lab and record it: under --mode, and not where a panic is in force, be it
// now or by the time that a change is to be sent.
func (a *app) sequenceOptions(l *lab.File, name, about string) (opt sequence.Options, err error) {
	opt.Name, opt.About, opt.Args = name, about, os.Args[1:]
	if opt.Options, err = a.executionOptions(); err != nil {
		return opt, err
	}
	if opt.Mode, err = a.moveMode(); err != nil {
		return opt, err
	}
	if err := a.noPanic(l, opt.Lab); err != nil {
		return opt, fmt.Errorf("nothing is moved: %w", err)
	}
	dark := blackout.New(blackout.Options{File: l, Device: lab.New(l, opt.Lab).Device, StateDir: opt.Lab.StateDir})
	opt.Refuse = func(sw *lab.Opened, c ocs.Change) error {
		return dark.Refuse(blackout.Light{Switch: sw.Name, Device: sw.Device, Add: c.Add})
	}
	if l.Path == "" {
		opt.LabText = examples.OpusTestbed
	}
	return opt, nil
}
