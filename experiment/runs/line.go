package runs

import (
	"bytes"
	"encoding/json"
	"math"
	"strconv"
	"time"

	"github.com/ocslab/ocslab/internal/jsontext"
	"github.com/ocslab/ocslab/linkmon/watch"
	"github.com/ocslab/ocslab/timeline"
)

// The kinds of lines, see the package comment.
const (
	kindSession      = "session"
	kindSessionEnded = "session-ended"
	kindSetup        = "setup"
	kindDropped      = "dropped"
	kindAbandoned    = "point-abandoned"
	kindEvent        = "event"

	kindBegun           = "point-begun"
	kindReconfiguration = "reconfiguration"
	kindMark            = "mark"
	kindTruth           = "truth"
	kindExpected        = "expected"
	kindNote            = "note"
	kindSample          = "sample"
	kindDone            = "point-done"
)

// begun begins a block in either file.
type begun struct {
	Point     int  `json:"point"`
	Condition int  `json:"condition"`
	Repeat    int  `json:"repeat"`
	Null      bool `json:"null,omitempty"`
	First     int  `json:"first_reconfiguration"`
	Session   int  `json:"session"`
}

// done ends a block, and says what has to be in it.
type done struct {
	Point int    `json:"point"`
	Lines int    `json:"lines"` // between that which begins the block and this one
	CRC   string `json:"crc"`   // of all lines of the block before this one
	// The others are in events.ndjson only.
	Samples    int    `json:"samples,omitempty"` // lines of the block in samples.ndjson
	SamplesCRC string `json:"samples_crc,omitempty"`
	Finished   int    `json:"finished,omitempty"` // points of the run, this one included
}

// ended is that a session or a point is over, or that a point is not begun.
type ended struct {
	Point   int       `json:"point,omitempty"`
	Session int       `json:"session"`
	Wall    time.Time `json:"wall"`
	Why     string    `json:"why"`
}

// noteLine is a note, whose own kind has to go by another name.
type noteLine struct {
	Reconfiguration int            `json:"reconfiguration"`
	Note            watch.NoteKind `json:"note"`
	Event           string         `json:"event,omitempty"`
	Subject         string         `json:"subject,omitempty"`
	Host            string         `json:"host,omitempty"`
	timeline.Interval
	Source string `json:"source"`
	Text   string `json:"text,omitempty"`
}

// appendLine appends the line of a struct that has no key "kind" of its own.
func appendLine(b []byte, kind string, fields any) ([]byte, error) {
	var object bytes.Buffer
	e := json.NewEncoder(&object)
	e.SetEscapeHTML(false) // "1>33" is to be legible
	if err := e.Encode(fields); err != nil {
		return b, err
	}
	b = append(b, `{"kind":"`...)
	b = append(b, kind...)
	b = append(b, `",`...)
	return append(b, object.Bytes()[1:]...), nil // with the newline of the encoder
}

// appendMark appends the line of a mark, which is what [timeline.Mark.MarshalJSON] gives but
// for the kind.
func appendMark(b []byte, kind string, m *timeline.Mark) []byte {
	b = append(b, `{"kind":"`...)
	b = append(b, kind...)
	b = append(b, `","stage":"`...)
	b = append(b, m.Stage...)
	b = append(b, `","subject":`...)
	b = jsontext.Append(b, m.Subject)
	b = append(b, `,"host":`...)
	b = jsontext.Append(b, m.Host)
	b = append(b, `,"earliest_ns":`...)
	b = strconv.AppendInt(b, m.Earliest, 10)
	b = append(b, `,"latest_ns":`...)
	b = strconv.AppendInt(b, m.Latest, 10)
	b = append(b, `,"source":`...)
	b = jsontext.Append(b, m.Source)
	if m.Detail != "" {
		b = append(b, `,"detail":`...)
		b = jsontext.Append(b, m.Detail)
	}
	b = append(b, `,"reconfiguration":`...)
	b = strconv.AppendInt(b, int64(m.Reconfiguration), 10)
	return append(b, "}\n"...)
}

func appendExpected(b []byte, e *timeline.Expectation) []byte {
	b = append(b, `{"kind":"expected","reconfiguration":`...)
	b = strconv.AppendInt(b, int64(e.Reconfiguration), 10)
	b = append(b, `,"stage":"`...)
	b = append(b, e.Stage...)
	b = append(b, `","subject":`...)
	b = jsontext.Append(b, e.Subject)
	return append(b, "}\n"...)
}

func appendSample(b []byte, s *Sample) []byte {
	b = append(b, `{"kind":"sample","reconfiguration":`...)
	b = strconv.AppendInt(b, int64(s.Reconfiguration), 10)
	b = append(b, `,"subject":`...)
	b = jsontext.Append(b, s.Subject)
	b = append(b, `,"earliest_ns":`...)
	b = strconv.AppendInt(b, s.EarliestNS, 10)
	b = append(b, `,"latest_ns":`...)
	b = strconv.AppendInt(b, s.LatestNS, 10)
	if s.Dark {
		return append(b, ",\"dark\":true}\n"...)
	}
	b = append(b, `,"power_dbm":`...)
	b = strconv.AppendFloat(b, s.PowerDBm, 'g', -1, 64)
	return append(b, "}\n"...)
}

// finite reports whether a number can be written in JSON.
func finite(f float64) bool { return !math.IsNaN(f) && !math.IsInf(f, 0) }
