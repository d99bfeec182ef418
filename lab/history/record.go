package history

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/ocslab/ocslab/internal/statedir"
	"github.com/ocslab/ocslab/ocs"
)

// version is the version of the line form, which the package comment
// describes. A later one must still be a JSON object with a number "v". Lines that
// version 1 can express are written as version 1, so that older programs read them.
const version = 2

// maxID fits an int on every system and a number in every JSON reader.
const maxID = math.MaxInt32

const (
	kindBegin = "begin"
	kindEnd   = "end"
)

// errDamaged: the line is not one that was written in whole.
var errDamaged = errors.New("damaged")

// header, begun and ended are the keys of a line, in order. A line has the
// header and, by its kind, one of the others.
type header struct {
	V      int    `json:"v"`
	Kind   string `json:"kind"`
	ID     int    `json:"id"`
	TimeNS int64  `json:"t_ns"`
}

type begun struct {
	Switch  string  `json:"switch"`
	Device  string  `json:"device"`
	Command string  `json:"command"`
	Remove  ocs.Map `json:"remove"`
	Add     ocs.Map `json:"add"`
	UndoOf  int     `json:"undo_of"`
	Who     string  `json:"who,omitempty"`
	// Version 2 only.
	Group int       `json:"group,omitempty"`
	Set   []Setting `json:"set,omitempty"`
	Until string    `json:"until,omitempty"`
}

// v is the lowest version of the line form that expresses b.
func (b begun) v() int {
	if b.Group != 0 || len(b.Set) > 0 || b.Until != "" {
		return version
	}
	return 1
}

type ended struct {
	State State  `json:"state"`
	AckNS int64  `json:"ack_ns"`
	Error string `json:"error"`
}

// outcomeRecord is a line that ends a change.
type outcomeRecord struct {
	header
	ended
}

// endOf is the line that ends a change.
func endOf(id int, state State, detail Result) outcomeRecord {
	return outcomeRecord{
		header{V: 1, Kind: kindEnd, ID: id, TimeNS: time.Now().UnixNano()},
		ended{State: state, AckNS: max(0, detail.AckNS), Error: detail.Error},
	}
}

// record is a line of either kind, as read.
type record struct {
	header
	begun
	ended
}

// entry returns the entry that a line of kind begin starts.
func (r record) entry() Entry {
	return Entry{
		ID:      r.ID,
		Began:   time.Unix(0, r.TimeNS),
		Switch:  r.Switch,
		Device:  r.Device,
		Command: r.Command,
		Change:  ocs.Change{Remove: r.Remove, Add: r.Add},
		State:   Pending,
		UndoOf:  r.UndoOf,
		Who:     r.Who,
		Group:   r.Group,
		Set:     r.Set,
		Until:   r.Until,
	}
}

// end brings a line of kind end into the entry it is about.
func (r record) end(e *Entry) {
	e.Ended, e.State, e.Error = time.Unix(0, r.TimeNS), r.State, r.Error
	if r.AckNS > 0 {
		e.AckNS = r.AckNS
	}
}

// encode returns the line for v, with its seal and newline.
func encode(v any) ([]byte, error) {
	line, err := statedir.Seal(v)
	return append(line, '\n'), err
}

// decode reads a line without its newline. The error matches [ErrNewer] for a
// line of a later version, errDamaged for one whose seal is broken; otherwise
// it says what is wrong with a line that is whole.
func decode(line []byte) (record, error) {
	var r record
	err := errDamaged
	if statedir.Sealed(line) {
		if err = json.Unmarshal(line, &r); err == nil && r.V >= 1 && r.V <= version {
			return r, nil
		}
	}
	// A later version may seal its lines otherwise.
	var v struct{ V float64 }
	if json.Unmarshal(line, &v) == nil && v.V > version {
		return record{}, fmt.Errorf("%w (format %v, this one knows %d)", ErrNewer, v.V, version)
	}
	if err == nil {
		err = fmt.Errorf("unknown format %d", r.V)
	}
	return record{}, err
}
