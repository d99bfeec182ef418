package runs

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"maps"
	"slices"
)

// longestLine is what a line may have; what is longer is damaged.
const longestLine = 16 << 20

// ledger is what the files of a run hold: all that belongs to no point, and where the
// finished points are.
type ledger struct {
	sessions []Session
	setups   []Setup
	dropped  map[int]bool
	events   []Event
	points   []span // finished, each once
	done     map[int]bool

	good, size               int64 // of events.ndjson: up to the last line that counts, and in all
	samplesGood, samplesSize int64
}

// span is where a finished point is.
type span struct {
	begun
	at, end                 int64 // of its lines in events.ndjson, the first and last left out
	samplesAt, samplesEnd   int64 // and in samples.ndjson
	samples                 int
	reconfigurations, notes int
	marks, truth, expected  int
}

// scan reads the files and keeps what counts. What is damaged becomes an event. Lines that
// are added meanwhile are not read.
func scan(ctx context.Context, events, samples readerAt) (*ledger, error) {
	l := &ledger{dropped: make(map[int]bool), done: make(map[int]bool)}
	s := scanner{ledger: l, unknown: make(map[string]int)}
	var err error
	if l.size, err = events.size(); err != nil {
		return nil, err
	}
	// The samples of a point are written before what says that it is done, so those of all
	// points up to here are there.
	if l.samplesSize, err = samples.size(); err != nil {
		return nil, err
	}
	if err := eachLine(ctx, events, 0, l.size, s.line); err != nil {
		return nil, err
	}
	for _, kind := range slices.Sorted(maps.Keys(s.unknown)) {
		s.found("skipped", 0, skippedText(kind, s.unknown[kind]))
	}
	if err := s.samples(ctx, samples); err != nil {
		return nil, err
	}
	slices.SortStableFunc(l.points, func(a, b span) int { return a.First - b.First })
	return l, nil
}

// scanner goes through events.ndjson.
type scanner struct {
	*ledger
	number  int    // of the line
	open    *block // begun and not done
	bad     lines  // damaged lines since the last that counts
	want    []done // of the points
	unknown map[string]int
}

// block is a point, up to the line that ends it.
type block struct {
	span
	first int // number of its first line
	lines int
	crc   uint32
}

// lines are the numbers of lines, first to last.
type lines struct{ first, last int }

func (l lines) String() string {
	if l.first == l.last {
		return fmt.Sprintf("line %d", l.first)
	}
	return fmt.Sprintf("lines %d to %d", l.first, l.last)
}

// add counts a line in.
func (b *block) add(text []byte) {
	b.lines++
	b.crc = crc32.Update(b.crc, crc32.IEEETable, text)
	b.crc = crc32.Update(b.crc, crc32.IEEETable, newline)
}

var newline = []byte("\n")

// closes reports whether d, which ends the block, says that it is whole.
func (b *block) closes(d done) bool {
	return d.Point == b.Point && d.Lines == b.lines && d.CRC == checksum(b.crc)
}

func checksum(crc uint32) string { return fmt.Sprintf("%08x", crc) }

// line takes in one line of events.ndjson.
func (s *scanner) line(text []byte, at, end int64, whole bool) error {
	s.number++
	if !whole {
		s.damaged(s.number)
		return nil
	}
	switch kind := string(kindOf(text)); kind {
	case kindBegun:
		s.forget()
		var b begun
		if json.Unmarshal(text, &b) != nil || b.Point < 1 {
			s.damaged(s.number)
			return nil
		}
		s.open = &block{span: span{begun: b, at: end}, first: s.number, crc: crc32.ChecksumIEEE(text)}
		s.open.crc = crc32.Update(s.open.crc, crc32.IEEETable, newline)
	case kindDone:
		var d done
		if s.open == nil || json.Unmarshal(text, &d) != nil || !s.open.closes(d) {
			s.forget()
			s.damaged(s.number)
			return nil
		}
		b := s.open.span
		b.end = at
		s.open = nil
		s.counts(end)
		s.points, s.want = append(s.points, b), append(s.want, d)
	case kindSession, kindSessionEnded, kindSetup, kindDropped, kindAbandoned, kindEvent:
		s.forget()
		if s.take(kind, text) != nil {
			s.damaged(s.number)
			return nil
		}
		s.counts(end)
	default:
		if s.open != nil {
			s.open.add(text)
			s.open.count(kind)
			return nil
		}
		switch kind {
		case "", kindReconfiguration, kindMark, kindTruth, kindExpected, kindNote:
			s.damaged(s.number) // or of a point whose beginning is
		default:
			s.unknown[kind]++
			s.counts(end)
		}
	}
	return nil
}

// count counts a line of a kind of which there are lists in a [Run].
func (p *span) count(kind string) {
	switch kind {
	case kindReconfiguration:
		p.reconfigurations++
	case kindMark:
		p.marks++
	case kindTruth:
		p.truth++
	case kindExpected:
		p.expected++
	case kindNote:
		p.notes++
	}
}

// take takes in a line that belongs to no point.
func (s *scanner) take(kind string, text []byte) error {
	var e ended
	switch kind {
	case kindSession:
		var n Session
		if err := json.Unmarshal(text, &n); err != nil {
			return err
		}
		s.sessions = append(s.sessions, n)
		return nil
	case kindSetup:
		var u Setup
		if err := json.Unmarshal(text, &u); err != nil {
			return err
		}
		s.setups = append(s.setups, u)
		return nil
	case kindEvent:
		var v Event
		if err := json.Unmarshal(text, &v); err != nil {
			return err
		}
		s.events = append(s.events, v)
		return nil
	}
	if err := json.Unmarshal(text, &e); err != nil {
		return err
	}
	switch kind {
	case kindDropped:
		s.dropped[e.Point] = true
	case kindAbandoned:
		s.events = append(s.events, Event{Kind: "abandoned", Session: e.Session, Point: e.Point, Wall: e.Wall, Text: e.Why})
	case kindSessionEnded:
		for i := range s.sessions {
			if s.sessions[i].Number == e.Session {
				s.sessions[i].Ended = e.Why
			}
		}
	}
	return nil
}

// damaged notes a line that does not count.
func (s *scanner) damaged(number int) {
	if s.bad.first == 0 {
		s.bad.first = number
	}
	s.bad.last = number
}

// forget notes the open block, if there is one, as damaged.
func (s *scanner) forget() {
	if s.open != nil {
		s.damaged(s.open.first)
		s.damaged(s.number - 1)
		s.open = nil
	}
}

// counts notes that a line that ends at end counts; so what was bad before it is no torn
// end but damage.
func (s *scanner) counts(end int64) {
	s.good = end
	if s.bad.first > 0 {
		s.found("recovered", 0, fmt.Sprintf("The file events.ndjson is damaged at %s: a point that was there does not count, and is measured again on resume.", s.bad))
		s.bad = lines{}
	}
}

// found adds an event. Its time is that of the session in which the line was written, so
// that reading a run twice gives the same.
func (s *scanner) found(kind string, point int, text string) {
	e := Event{Kind: kind, Point: point, Text: text}
	if n := len(s.sessions); n > 0 {
		e.Session, e.Wall = s.sessions[n-1].Number, s.sessions[n-1].Begun
	}
	s.events = append(s.events, e)
}

func skippedText(kind string, n int) string {
	return fmt.Sprintf("Lines of the kind %.60q, %d in all, were skipped: this version of ocslab does not know them.", kind, n)
}

// samples reads samples.ndjson, and takes back points whose samples are not there, or that
// are there already.
func (s *scanner) samples(ctx context.Context, f readerAt) error {
	whole := make(map[done]*block)
	var open *block
	err := eachLine(ctx, f, 0, s.samplesSize, func(text []byte, at, end int64, isWhole bool) error {
		switch kind := string(kindOf(text)); {
		case kind == kindBegun:
			open = &block{span: span{at: end}, crc: crc32.ChecksumIEEE(text)}
			open.crc = crc32.Update(open.crc, crc32.IEEETable, newline)
			if json.Unmarshal(text, &open.begun) != nil {
				open = nil
			}
		case open == nil:
		case kind == kindDone:
			var d done
			if isWhole && json.Unmarshal(text, &d) == nil && open.closes(d) {
				open.end = at
				whole[d] = open
				s.samplesGood = end
			}
			open = nil
		default:
			open.add(text)
		}
		return nil
	})
	if err != nil {
		return err
	}
	kept := s.points[:0]
	for i, p := range s.points {
		if d := s.want[i]; d.Samples > 0 || d.SamplesCRC != "" { // one without the other is damage
			b := whole[done{Point: d.Point, Lines: d.Samples, CRC: d.SamplesCRC}]
			if b == nil {
				s.found("recovered", p.Point, fmt.Sprintf("The readings of point %d in samples.ndjson are damaged: the point does not count, and is measured again on resume.", p.Point))
				continue
			}
			p.samplesAt, p.samplesEnd, p.samples = b.at, b.end, b.lines
		}
		if s.done[p.Point] {
			s.found("recovered", p.Point, fmt.Sprintf("Point %d is recorded twice: what was recorded first counts.", p.Point))
			continue
		}
		s.done[p.Point] = true
		kept = append(kept, p)
	}
	s.points = kept
	return nil
}

// readerAt is a file that is read while it grows.
type readerAt interface {
	io.ReaderAt
	size() (int64, error)
}

// eachLine calls do with each line from one place of a file to another: its text without the
// newline, valid until do returns, where it begins and where the next one does, and whether
// it has a newline. The text of a line that is too long is nil.
func eachLine(ctx context.Context, f io.ReaderAt, from, to int64, do func(text []byte, at, end int64, whole bool) error) error {
	r := bufio.NewReaderSize(io.NewSectionReader(f, from, to-from), 1<<18)
	var long []byte // of a line that is longer than the buffer
	at, tooLong := from, false
	end := from
	for n := 0; ; n++ {
		if n%1024 == 0 && ctx.Err() != nil {
			return context.Cause(ctx)
		}
		text, err := r.ReadSlice('\n')
		end += int64(len(text))
		if errors.Is(err, bufio.ErrBufferFull) {
			if tooLong = tooLong || len(long)+len(text) > longestLine; tooLong {
				long = nil
			} else {
				long = append(long, text...)
			}
			continue
		}
		if err != nil && !errors.Is(err, io.EOF) {
			return err
		}
		if long != nil {
			text = append(long, text...)
			long = nil
		}
		text, whole := bytes.CutSuffix(text, newline)
		if tooLong {
			text, tooLong = nil, false
		}
		if end > at {
			if err := do(text, at, end, whole); err != nil {
				return err
			}
		}
		if err != nil {
			return nil
		}
		at = end
	}
}
