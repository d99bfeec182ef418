package plan

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	firmwarenotes "github.com/ocslab/ocslab/firmware-notes"
	"github.com/ocslab/ocslab/internal/builtin"
	"github.com/ocslab/ocslab/internal/strictyaml"
	"github.com/ocslab/ocslab/lab"
	"github.com/ocslab/ocslab/linkmon/probe"
)

// Parameter is a parameter that ocslab knows.
type Parameter struct {
	Name     string
	About    string // one line
	Emulated bool   // only an emulated lab can be told

	setUp    bool                              // the testbed is opened anew when it changes
	duration bool                              // so that values may be ranges of time
	read     func(s *Settings, v string) error // checks a value, and puts it into s
}

// known are the parameters that ocslab knows, by name.
var known = []Parameter{
	{
		Name: "ack", About: "when emulated switches acknowledge: before or after the light has settled", Emulated: true, setUp: true,
		read: func(s *Settings, v string) error {
			if v != "before" && v != "after" {
				return fmt.Errorf("want before or after, found %.60q", v)
			}
			s.Ack = v
			return nil
		},
	},
	{
		Name: "dwell", About: "rest before each reconfiguration, such as 2s", duration: true,
		read: func(s *Settings, v string) (err error) {
			s.Dwell, err = duration(v, 0, longest)
			return err
		},
	},
	{
		Name: "firmware", About: "profile of all emulated NICs, such as quick: see ocslab help measure; or FILE.md#PROFILE of a note beside the lab file", Emulated: true, setUp: true,
		read: func(s *Settings, v string) error {
			s.Firmware = v
			if _, note := firmwarenotes.Path(v); note { // read when the lab is known, and so where it is
				return nil
			}
			_, err := firmwarenotes.Find(v)
			return err
		},
	},
	{
		Name: "model", About: "of all emulated switches, such as polatis-6000-32x32, or a .yaml file beside the lab file; switching and ack stay those of the lab file", Emulated: true, setUp: true,
		read: func(s *Settings, v string) error {
			if models := lab.Models(); !builtin.IsFile(v) && !slices.Contains(models, v) {
				return fmt.Errorf("there is no model %.60q%s: want one of %s, or a .yaml file", v, strictyaml.DidYouMean(v, models), strings.Join(models, ", "))
			}
			s.Model = v
			return nil
		},
	},
	{
		Name: "pace", About: "time between two probe packets of a flow, such as 100us", setUp: true, duration: true,
		read: func(s *Settings, v string) (err error) {
			s.Pace, err = duration(v, probe.MinPace, probe.MaxPace)
			return err
		},
	},
	{
		Name: "switching", About: "time that emulated switches take to move light, such as 25ms", Emulated: true, setUp: true, duration: true,
		read: func(s *Settings, v string) error {
			d, err := duration(v, 0, time.Hour)
			s.Switching = &d
			return err
		},
	},
}

// Parameters returns the parameters that ocslab knows, by name.
func Parameters() []Parameter { return slices.Clone(known) }

// parameter returns the one of that name that ocslab knows.
func parameter(name string) (Parameter, bool) {
	i := slices.IndexFunc(known, func(p Parameter) bool { return p.Name == name })
	if i < 0 {
		return Parameter{}, false
	}
	return known[i], true
}

func parameterNames() []string {
	names := make([]string, len(known))
	for i, p := range known {
		names[i] = p.Name
	}
	return names
}

func duration(text string, least, most time.Duration) (time.Duration, error) {
	d, err := time.ParseDuration(text)
	if err != nil {
		return 0, fmt.Errorf("want a duration such as 200ms, found %.60q", text)
	}
	return d, within(d, least, most)
}

// settings reads the parameters that ocslab knows.
func settings(params map[string]string) (Settings, error) {
	var s Settings
	for _, p := range known {
		if v, ok := params[p.Name]; ok {
			if err := p.read(&s, v); err != nil {
				return s, fmt.Errorf("%s: %w", p.Name, err)
			}
		}
	}
	return s, nil
}

// Apply returns the lab as it is emulated under s. What s does not say is as the lab file
// says; l is left as it was.
func (s Settings) Apply(l *lab.File) *lab.File {
	n := *l
	n.Switches = slices.Clone(l.Switches)
	for i := range n.Switches {
		if n.Switches[i].Emulate == nil {
			continue
		}
		e := *n.Switches[i].Emulate
		if s.Model != "" {
			e.Model = s.Model
		}
		if s.Switching != nil {
			e.Switching = s.Switching
		}
		if s.Ack != "" {
			e.Ack = s.Ack
		}
		n.Switches[i].Emulate = &e
	}
	if s.Firmware != "" {
		n.Hosts = slices.Clone(l.Hosts)
		for i := range n.Hosts {
			n.Hosts[i].NICs = slices.Clone(n.Hosts[i].NICs)
			for j := range n.Hosts[i].NICs {
				n.Hosts[i].NICs[j].Firmware = s.Firmware
			}
		}
	}
	return &n
}

var parameterName = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_.-]*$`)

// Environment returns the name of the environment variable in which hooks find a
// parameter: OCSLAB_PARAM_ and its name in upper case, with '_' for all but letters and digits.
func Environment(param string) string {
	return "OCSLAB_PARAM_" + strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z':
			return r - 'a' + 'A'
		case r >= 'A' && r <= 'Z', r >= '0' && r <= '9':
			return r
		}
		return '_'
	}, param)
}
