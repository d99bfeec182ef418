package timeline

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// Mark says that a stage was reached within an interval, and who saw it.
//
// Its JSON form is one object with the keys kind ("mark"), stage, subject, host,
// earliest_ns, latest_ns, source, detail (left out when empty) and
// reconfiguration, in this order. Text that is not UTF-8 does not survive JSON.
type Mark struct {
	Stage   Stage  `json:"stage"`
	Subject string `json:"subject"` // what it happened to: "rail0", "rail0/33", "gpu1/ens1f0"
	Host    string `json:"host"`    // where it was seen

	Interval // when it happened, on the axis of the run

	Source          string `json:"source"`           // what saw it: "counters"; after Merge "counters+netlink"
	Detail          string `json:"detail,omitempty"` // for people
	Reconfiguration int    `json:"reconfiguration"`  // from 1; 0 is before the first
}

// String describes the mark in one line for people.
func (m Mark) String() string {
	return fmt.Sprintf("%s of %s at %s (%s)", m.Stage, m.Subject, m.Interval, m.Source)
}

// MarshalJSON writes the mark. It refuses what UnmarshalJSON would refuse to read.
func (m Mark) MarshalJSON() ([]byte, error) {
	if err := m.validate(); err != nil {
		return nil, err
	}
	type fields Mark
	return encode(struct {
		Kind string `json:"kind"`
		fields
	}{"mark", fields(m)})
}

// UnmarshalJSON reads a mark. It is strict, so that a misspelt key is not a lost
// fact: an unknown key, another kind, an unknown stage, a missing end, an earliest
// time after the latest, or a negative reconfiguration is an error, and m is then
// unchanged.
func (m *Mark) UnmarshalJSON(data []byte) error {
	type fields Mark
	in := struct {
		Kind     string `json:"kind"`
		Earliest *int64 `json:"earliest_ns"`
		Latest   *int64 `json:"latest_ns"`
		fields
	}{}
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	if err := d.Decode(&in); err != nil {
		return fmt.Errorf("timeline: mark: %w", err)
	}
	// The json package hands over exactly one value, but a direct caller may not.
	if _, err := d.Token(); err != io.EOF {
		return errors.New("timeline: mark: more text after the object")
	}
	if in.Kind != "mark" {
		return fmt.Errorf("timeline: mark: kind is %q, not \"mark\"", in.Kind)
	}
	if in.Earliest == nil || in.Latest == nil {
		return errors.New("timeline: mark: earliest_ns and latest_ns are both needed")
	}
	read := Mark(in.fields)
	read.Interval = Interval{*in.Earliest, *in.Latest}
	if err := read.validate(); err != nil {
		return err
	}
	*m = read
	return nil
}

func (m Mark) validate() error {
	switch {
	case !m.Stage.Valid():
		return fmt.Errorf("timeline: mark: unknown stage %q", m.Stage)
	case m.Earliest > m.Latest:
		return fmt.Errorf("timeline: mark: earliest_ns %d is after latest_ns %d", m.Earliest, m.Latest)
	case m.Reconfiguration < 0:
		return fmt.Errorf("timeline: mark: reconfiguration %d is negative", m.Reconfiguration)
	}
	return nil
}

// encode is json.Marshal that leaves the ">" of cross-connects alone; whether to
// escape it for HTML is for the caller's encoder to say.
func encode(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}

// compareMarks is the order of a merged list. The keys after the host only make it
// total, so that no result depends on the order of the input.
func compareMarks(a, b Mark) int {
	return cmp.Or(
		cmp.Compare(a.Earliest, b.Earliest),
		cmp.Compare(a.Stage.rank(), b.Stage.rank()),
		cmp.Compare(a.Subject, b.Subject),
		cmp.Compare(a.Host, b.Host),
		cmp.Compare(a.Reconfiguration, b.Reconfiguration),
		cmp.Compare(a.Latest, b.Latest),
		cmp.Compare(a.Source, b.Source),
		cmp.Compare(a.Detail, b.Detail),
		cmp.Compare(a.Stage, b.Stage),
	)
}
