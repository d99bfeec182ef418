package watch

import (
	"encoding/json"
	"fmt"

	"github.com/ocslab/ocslab/timeline"
)

// Record is one thing that was seen: a mark or a note.
type Record struct {
	Mark *timeline.Mark
	Note *Note
}

// MarshalJSON writes the mark or the note.
func (r Record) MarshalJSON() ([]byte, error) {
	if r.Mark != nil {
		return r.Mark.MarshalJSON()
	}
	return json.Marshal(r.Note)
}

// UnmarshalJSON reads what MarshalJSON writes.
func (r *Record) UnmarshalJSON(data []byte) error {
	var k struct {
		Kind string `json:"kind"`
	}
	if err := json.Unmarshal(data, &k); err != nil {
		return fmt.Errorf("record: %w", err)
	}
	switch NoteKind(k.Kind) {
	case "mark":
		var m timeline.Mark
		if err := m.UnmarshalJSON(data); err != nil {
			return err
		}
		*r = Record{Mark: &m}
	case Gap, Link, Outage:
		var n Note
		if err := json.Unmarshal(data, &n); err != nil {
			return fmt.Errorf("record: %w", err)
		}
		if n.Earliest > n.Latest {
			return fmt.Errorf("record: earliest_ns %d is after latest_ns %d", n.Earliest, n.Latest)
		}
		*r = Record{Note: &n}
	default:
		return fmt.Errorf("record: unknown kind %.60q", k.Kind)
	}
	return nil
}

// NoteKind is what a [Note] is about.
type NoteKind string

const (
	// Gap is a time in which a source knew less than it should.
	Gap NoteKind = "gap"
	// Link is an interface that came, went or changed.
	Link NoteKind = "link"
	// Outage is an interruption of traffic that is no stage of the reconfiguration it
	// fell into.
	Outage NoteKind = "outage"
)

// Late is the event of a Gap that there is because the machine was busy.
const Late = "late"

// Note is what is worth knowing beside marks. In JSON, what is empty is left out.
type Note struct {
	Kind              NoteKind `json:"kind"`
	Event             string   `json:"event,omitempty"` // of Link: added, removed, renamed, operstate; of Gap: Late
	Subject           string   `json:"subject,omitempty"`
	Host              string   `json:"host,omitempty"`
	timeline.Interval          // when
	Source            string   `json:"source"`
	Text              string   `json:"text,omitempty"` // for people: one sentence
}
