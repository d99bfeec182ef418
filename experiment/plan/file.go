package plan

import (
	"time"

	"github.com/ocslab/ocslab/internal/strictyaml"
	"github.com/ocslab/ocslab/ocs"
	"github.com/ocslab/ocslab/timeline"
)

// Defaults of a [File].
const (
	DefaultRepeats = 30
	DefaultWarmUps = 3
	DefaultOrder   = Random
	DefaultSeed    = 1
	DefaultTimeout = time.Minute // of a hook
	DefaultWindow  = time.Second // of a null toggle
	MostPoints     = 1_000_000   // of a plan
	MostConditions = 10_000
)

// File is an experiment file.
type File struct {
	Path string `yaml:"-"` // as it was opened; relative paths in it are beside it
	Text []byte `yaml:"-"` // as it was written

	Name  string `yaml:"name,required"`
	About string `yaml:"about"` // what it is for, for the report

	// Lab is the lab file, beside this one; that of the command line wins.
	Lab string `yaml:"lab"`

	// Configurations are known beside those of the lab, and win over them.
	Configurations map[string]Configuration `yaml:"configurations"`
	// Sequence are the configurations that a repeat goes through, two or more: from the
	// first to the second and so on, and back to the first. A name may hold ${parameter}.
	Sequence []string `yaml:"sequence,required"`

	Parameters map[string]string `yaml:"parameters"` // that do not vary
	Axes       []Axis            `yaml:"axes"`       // crossed with each other

	Repeats *int    `yaml:"repeats"`  // of each condition
	WarmUps *int    `yaml:"warm_ups"` // laps of the sequence after each set-up that do not count
	Order   Order   `yaml:"order"`
	Seed    *uint64 `yaml:"seed"`  // of all that is random
	Nulls   *Nulls  `yaml:"nulls"` // nil: one for ten points, and at least one for each condition
	Wait    *Wait   `yaml:"wait"`  // what ends a reconfiguration; nil: all that is watched

	Measure Measure `yaml:"measure"`
	Hooks   Hooks   `yaml:"hooks"`
	Limits  []Limit `yaml:"limits"`
	Stop    *Stop   `yaml:"stop"` // of the repeats of a condition, before all are done

	// Tolerate is how many failures of switches or hosts in a row are answered by setting up
	// anew and trying the point again; with 0 the first ends the run.
	Tolerate int `yaml:"tolerate"`

	Finally *Finally `yaml:"finally,required"`

	at *strictyaml.Positions // nil of a file that was not read by Parse
}

// Configuration is what shall be connected: maps by switch and links by NIC as in a lab
// file, or what a planner of package topology says.
type Configuration struct {
	Maps     map[string]ocs.Map `yaml:"maps"`
	Links    [][]string         `yaml:"links"`
	Topology *Topology          `yaml:"topology"`
}

// Topology asks a planner of package topology.
type Topology struct {
	Planner string            `yaml:"planner,required"`
	NICs    []string          `yaml:"nics"` // in order; none: all of the lab
	With    map[string]string `yaml:"with"` // its arguments; values may hold ${parameter}
}

// Axis varies parameters, in exactly one of four ways. Values are texts; see [Parameters].
type Axis struct {
	// Grid takes every combination of the values.
	Grid map[string][]string `yaml:"grid"`
	// Zip takes the first value of each, then the second; the lists are equally long.
	Zip map[string][]string `yaml:"zip"`
	// List takes what is written.
	List []map[string]string `yaml:"list"`
	// Random draws.
	Random *RandomAxis `yaml:"random"`
}

// RandomAxis draws values: of each parameter one of the list, in which "0ms..1s" is a
// range of durations and "1..64" of whole numbers, drawn from uniformly.
type RandomAxis struct {
	Points int                 `yaml:"points,required"`
	Values map[string][]string `yaml:"values,required"`
}

// Order is the order of points.
type Order string

// The orders of points.
const (
	Fixed  Order = "fixed"  // condition by condition, as written
	Random Order = "random" // set-ups in random order, and all points of one set-up in random order
	// Interleaved is round by round: one repeat of each condition in random order, but
	// conditions of one set-up after each other.
	Interleaved Order = "interleaved"
)

// UnmarshalText accepts fixed, random and interleaved.
func (o *Order) UnmarshalText(text []byte) error { return choice(o, text, Fixed, Random, Interleaved) }

// Nulls are A/A toggles: all that a reconfiguration does but the change, watched for a
// while, to see what the set-up shows when nothing happens.
type Nulls struct {
	Count  int           `yaml:"count,required"` // in the whole run, spread evenly over it; 0: none
	Window time.Duration `yaml:"window"`         // how long each is watched; 0 is DefaultWindow
}

// Measure says what is measured and how. The zero value measures all that can be.
type Measure struct {
	Stages []timeline.Stage `yaml:"stages"` // that statistics and limits are about; none: all
	Only   []string         `yaml:"only"`   // hosts and NICs to watch; none: all of the lab

	Traffic  *bool         `yaml:"traffic"`  // probe packets between the NICs; nil is true
	Spin     bool          `yaml:"spin"`     // pace packets without sleeping
	Samples  *bool         `yaml:"samples"`  // keep readings of power monitors; nil is true
	Poll     time.Duration `yaml:"poll"`     // between sweeps of the carrier counters; 0 is the default
	Tight    bool          `yaml:"tight"`    // sweep without pause
	Sync     bool          `yaml:"sync"`     // make the kernel announce at once
	Patience time.Duration `yaml:"patience"` // for links and traffic; 0 is 30 s
}

// Hooks are commands that are run around things. A hook that fails or takes too long ends
// the run, and its finally is run.
type Hooks struct {
	BeforeRun   []Hook `yaml:"before_run"`
	Setup       []Hook `yaml:"setup"` // at the beginning, when the parameters of the set-up change, and on resume
	BeforePoint []Hook `yaml:"before_point"`
	AfterPoint  []Hook `yaml:"after_point"`
	AfterRun    []Hook `yaml:"after_run"` // before finally, when all points are done
}

// Hook is one command. Its words may hold ${parameter}, and $${ for ${ itself. In its
// environment are OCSLAB_RUN (the run's ID), OCSLAB_RUN_DIR, OCSLAB_POINT, OCSLAB_CONDITION
// and for each parameter OCSLAB_PARAM_NAME; see [Environment].
type Hook struct {
	Run     []string      `yaml:"run,required"`
	Timeout time.Duration `yaml:"timeout"` // 0 is DefaultTimeout
}

// Finally is done at the end of every run, however it ends, but for kill -9: then
// "ocslab runs resume" or "ocslab runs finish" does it.
type Finally struct {
	// Light is "restore", which puts back the circuits that the run found, or the name of
	// a configuration.
	Light string `yaml:"light,required"`
	Hooks []Hook `yaml:"hooks"` // after the light
}

// Restore is the Light of a [Finally] that puts back what was there.
const Restore = "restore"
