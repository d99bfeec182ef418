// Package examples embeds the example files, so that the program can show what
// it does on a machine that has nothing else.
package examples

import "embed"

// OpusTestbed is the lab file opus-testbed.yaml.
//
//go:embed opus-testbed.yaml
var OpusTestbed []byte

// OpusRails is the lab file opus-rails.yaml, and LabJob the job file lab-job.yaml for it.
//
//go:embed opus-rails.yaml
var OpusRails []byte

//go:embed lab-job.yaml
var LabJob []byte

// Experiments are the files of the folder experiments, such as "experiments/autoneg.yaml".
// The presets of package figures are among them.
//
//go:embed experiments/*.yaml
var Experiments embed.FS
