package phy

import (
	"context"
	"fmt"
	"os"

	"github.com/ocslab/ocslab/internal/netns"
)

// Source is one way to learn what firmware says, and whether it can be had.
type Source struct {
	Name string // "ib-phys", "ethtool", "kmsg"
	On   bool
	Why  string // a sentence: why not, or what it is worth
}

// Probe tries each source for an interface once. ns is where the interface is, nil for
// where the program runs; sys is the tree that [FindIB] looks in. It changes nothing and
// writes nothing, so whether the clock of the kernel log can be calibrated is not known
// afterwards.
func Probe(ctx context.Context, ns *netns.NS, sys *os.Root, iface string) []Source {
	return []Source{probeIB(sys, iface), probeEthtool(ctx, ns, iface), probeKmsg()}
}

func probeIB(sys *os.Root, iface string) Source {
	p, err := FindIB(sys, iface)
	if err != nil {
		return Source{SourceIB, false, err.Error()}
	}
	defer p.Close()
	s, _, err := p.Read()
	if err != nil {
		return Source{SourceIB, false, err.Error()}
	}
	why := fmt.Sprintf("%s says %s", p, s)
	if p.LinkLayer == "Ethernet" {
		why += "; of RoCE that follows the kernel's carrier"
	}
	return Source{SourceIB, true, why}
}

func probeEthtool(ctx context.Context, ns *netns.NS, iface string) Source {
	const name = "ethtool"
	e, err := OpenEthtool(ns, iface)
	if err != nil {
		return Source{name, false, err.Error()}
	}
	defer e.Close()
	l, _, err := e.Read(ctx)
	if err != nil {
		return Source{name, false, err.Error()}
	}
	return Source{name, true, "the link is " + l.String()}
}

func probeKmsg() Source {
	if err := tryLog(); err != nil {
		return Source{SourceKmsg, false, err.Error()}
	}
	return Source{SourceKmsg, true, "the kernel log can be read; not every driver writes of its links"}
}
