package emulator

import (
	"fmt"
	"slices"
	"time"
)

// NETCONF is how the NETCONF front end speaks.
type NETCONF struct {
	// OpticalSwitch and PolatisSwitch are the revisions of the two YANG modules;
	// default the newest. Before 2017-08-04 the list of cross-connects is called
	// pairs, before 2017-09-11 notifications are opt-in.
	OpticalSwitch string `yaml:"optical_switch"`
	PolatisSwitch string `yaml:"polatis_switch"`
	Base10        bool   `yaml:"base_1_0"`       // knows end-of-message framing only
	NoInterleave  bool   `yaml:"no_interleave"`  // a session with a subscription does nothing else
	OpenFlowError bool   `yaml:"openflow_error"` // an unfiltered get gives data and an rpc-error
	Compact       bool   `yaml:"compact"`        // notifications without line breaks
	MaxSessions   int    `yaml:"max_sessions"`   // 0 is no limit
	// Hello is how long a client may take for its hello; default one minute.
	Hello time.Duration `yaml:"hello"`
}

// Revisions of the YANG modules optical-switch and polatis-switch that are
// known, oldest first.
var (
	OpticalSwitchRevisions = []string{"2015-09-14", "2016-02-17", "2016-04-22", "2017-02-09", "2017-08-04", "2018-03-22"}
	PolatisSwitchRevisions = []string{"2015-09-14", "2016-02-17", "2016-04-22", "2017-05-30", "2017-09-11", "2018-01-19"}
)

func (n *NETCONF) fill() {
	if n.OpticalSwitch == "" {
		n.OpticalSwitch = OpticalSwitchRevisions[len(OpticalSwitchRevisions)-1]
	}
	if n.PolatisSwitch == "" {
		n.PolatisSwitch = PolatisSwitchRevisions[len(PolatisSwitchRevisions)-1]
	}
	if n.Hello == 0 {
		n.Hello = time.Minute
	}
}

func (n *NETCONF) check() error {
	switch {
	case !slices.Contains(OpticalSwitchRevisions, n.OpticalSwitch):
		return fmt.Errorf("netconf.optical_switch: %.40q: want one of %v", n.OpticalSwitch, OpticalSwitchRevisions)
	case !slices.Contains(PolatisSwitchRevisions, n.PolatisSwitch):
		return fmt.Errorf("netconf.polatis_switch: %.40q: want one of %v", n.PolatisSwitch, PolatisSwitchRevisions)
	case n.MaxSessions < 0:
		return fmt.Errorf("netconf.max_sessions: want 0 (no limit) or more")
	}
	return nil
}
