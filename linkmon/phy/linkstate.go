package phy

import (
	"context"
	"errors"
	"fmt"
	"syscall"
	"time"

	"github.com/ocslab/ocslab/internal/netns"
	"github.com/ocslab/ocslab/linkmon/internal/genl"
	"github.com/ocslab/ocslab/timeline"
)

// From linux/ethtool_netlink.h.
const (
	msgLinkStateGet = 6 // ETHTOOL_MSG_LINKSTATE_GET, Linux 5.6
	attrLink        = 2 // ETHTOOL_A_LINKSTATE_LINK, u8
	attrSQI         = 3 // ETHTOOL_A_LINKSTATE_SQI, u32
	attrSQIMax      = 4 // ETHTOOL_A_LINKSTATE_SQI_MAX, u32
	attrExtState    = 5 // ETHTOOL_A_LINKSTATE_EXT_STATE, u8
	attrExtSubstate = 6 // ETHTOOL_A_LINKSTATE_EXT_SUBSTATE, u8
	attrDownCount   = 7 // ETHTOOL_A_LINKSTATE_EXT_DOWN_CNT, u32, Linux 6.4
)

// Link is what a driver says of a link through ethtool.
type Link struct {
	Up bool

	// Why it is down, if the driver knows: "Autoneg", "No partner detected". The second
	// goes into more detail. Both are "" while it is up.
	State, Substate string

	// Signal quality index, from 0 to SQIMax. Without an SQIMax there is none; it is a
	// thing of automotive PHYs.
	SQI, SQIMax uint32

	// Downs counts how often the physical link went down, if CountsDowns.
	Downs       uint32
	CountsDowns bool
}

// String shows the link in a few words: "up", "down (Autoneg, No partner detected)".
func (l Link) String() string {
	switch {
	case l.Up:
		return "up"
	case l.Substate != "":
		return fmt.Sprintf("down (%s, %s)", l.State, l.Substate)
	case l.State != "":
		return fmt.Sprintf("down (%s)", l.State)
	}
	return "down"
}

// Ethtool asks a driver for the state of a link. It is safe for concurrent use.
type Ethtool struct {
	nic *genl.Interface
}

// OpenEthtool prepares to ask for the link state of an interface; ns is where it is, nil
// for where the program runs. It needs no privilege there, and Linux 5.6. The interface
// goes by its name and may come later.
func OpenEthtool(ns *netns.NS, iface string) (*Ethtool, error) {
	nic, err := genl.Open(ns, iface)
	if err != nil {
		return nil, err
	}
	return &Ethtool{nic}, nil
}

// Read asks for the state; the interval, on the host's axis, is that of the asking. Ask
// for reasons, not to time a link: the kernel holds the RTNL lock meanwhile, and since
// Linux 6.8 announces at once what of this link it still had to announce.
func (e *Ethtool) Read(ctx context.Context) (Link, timeline.Interval, error) {
	from := time.Now()
	attrs, err := e.nic.Ask(ctx, msgLinkStateGet, nil)
	at := timeline.HostAxis().Span(from, time.Now())
	if errors.Is(err, syscall.ENODEV) {
		return Link{}, at, err // which says it all
	}
	var l Link
	if err == nil {
		l, err = parseLink(attrs)
	}
	if err != nil {
		return Link{}, at, fmt.Errorf("link state of %s: %w", e.nic, err)
	}
	return l, at, nil
}

// Close closes the connection to the kernel.
func (e *Ethtool) Close() error { return e.nic.Close() }

func parseLink(attrs map[uint16][]byte) (Link, error) {
	link := attrs[attrLink]
	if len(link) != 1 {
		return Link{}, fmt.Errorf("the driver does not say whether the link is up: %w", errors.ErrUnsupported)
	}
	l := Link{Up: link[0] != 0}
	if most, ok := genl.Uint32(attrs[attrSQIMax]); ok {
		if sqi, ok := genl.Uint32(attrs[attrSQI]); ok {
			l.SQI, l.SQIMax = sqi, most
		}
	}
	if state := attrs[attrExtState]; len(state) == 1 && !l.Up {
		sub := attrs[attrExtSubstate]
		l.State = word(extStates, state[0])
		if len(sub) == 1 {
			l.Substate = word(extSubstates[state[0]], sub[0])
		}
	}
	l.Downs, l.CountsDowns = genl.Uint32(attrs[attrDownCount])
	return l, nil
}

func word(words []string, n uint8) string {
	if int(n) < len(words) && words[n] != "" {
		return words[n]
	}
	return fmt.Sprintf("code %d", n)
}

// extStates is enum ethtool_link_ext_state of linux/ethtool.h in words.
var extStates = []string{
	"Autoneg", "Link training failure", "Logical mismatch", "Bad signal integrity", "No cable", "Cable issue",
	"EEPROM issue", "Calibration failure", "Power budget exceeded", "Overheat", "Module",
}

// extSubstates is enum ethtool_link_ext_substate_* by state; each counts from 1.
var extSubstates = map[uint8][]string{
	0: {"", "No partner detected", "Ack not received", "Next page exchange failed", "No partner detected during force mode",
		"FEC mismatch during override", "No HCD"},
	1:  {"", "KR frame lock not acquired", "KR link inhibit timeout", "KR Link partner did not set receiver ready", "Remote side is not ready yet"},
	2:  {"", "PCS did not acquire block lock", "PCS did not acquire AM lock", "PCS did not get align status", "FC FEC is not locked", "RS FEC is not locked"},
	3:  {"", "Large number of physical errors", "Unsupported rate", "Serdes reference clock lost", "Serdes ALOS"},
	5:  {"", "Unsupported cable", "Cable test failure"},
	10: {"", "CMIS module is not in ModuleReady state"},
}
