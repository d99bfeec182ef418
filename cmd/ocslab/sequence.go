package main

import (
	"fmt"
	"os"

	"github.com/ocslab/ocslab/examples"
	"github.com/ocslab/ocslab/experiment/sequence"
	"github.com/ocslab/ocslab/lab"
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
	if l.Path == "" {
		opt.LabText = examples.OpusTestbed
	}
	return opt, nil
}
