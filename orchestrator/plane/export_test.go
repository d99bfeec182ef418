package plane

import "github.com/ocslab/ocslab/ocs"

// Span is when an egress had the light of an ingress.
type Span struct {
	Egress, From ocs.Port
	Since, Till  int64
}

// Dark is what an operation finds dark in a given past.
func Dark(past []Span, all []ocs.CrossConnect, begin, end int64) int64 {
	l := &light{lit: map[ocs.Port][]span{}}
	for _, s := range past {
		l.lit[s.Egress] = append(l.lit[s.Egress], span{s.From, s.Since, s.Till})
	}
	return l.dark(all, begin, end)
}

var Share = share
