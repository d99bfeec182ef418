package experiment

import (
	"cmp"
	"slices"
	"strings"

	"github.com/ocslab/ocslab/linkmon/optics"
	"github.com/ocslab/ocslab/linkmon/phy"
	"github.com/ocslab/ocslab/linkmon/watch"
)

// Lack is something that is not watched, or not well, on one or more subjects.
type Lack struct {
	Subjects []string // NICs, hosts or switches
	Reason   string   // "no bpf: permission denied"
}

// String is one line.
func (l Lack) String() string { return strings.Join(l.Subjects, ", ") + ": " + l.Reason }

// Missing says what is not watched and why, each reason once. Sources that nobody misses are
// left out, and, of NICs in memory, those of a kernel, since there is none.
func Missing(sources []watch.Source, inMemory bool) []Lack {
	var lacks []Lack
	for _, s := range sources {
		warning := s.On && s.Name == optics.Source && s.Why != ""
		if s.On && !warning || slices.Contains(optional, s.Name) || inMemory && (s.Name == "netlink" || s.Name == "bpf") {
			continue
		}
		reason := "no " + s.Name + ": " + s.Why
		if warning {
			reason = s.Name + ": " + s.Why
		}
		i := slices.IndexFunc(lacks, func(l Lack) bool { return l.Reason == reason })
		if i < 0 {
			i = len(lacks)
			lacks = append(lacks, Lack{Reason: reason})
		}
		lacks[i].Subjects = append(lacks[i].Subjects, cmp.Or(s.Subject, s.Host))
	}
	return lacks
}

// optional are the sources that nobody misses.
var optional = []string{"sync", watch.SourceEthtool, phy.SourceKmsg}
