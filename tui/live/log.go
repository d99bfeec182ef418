package live

import (
	"strings"
	"sync"
	"time"

	"github.com/ocslab/ocslab/lab"
	"github.com/ocslab/ocslab/tui/decode"
)

// mostChunks is how many pieces of trace may wait to be decoded; more are dropped, and
// counted. Decoding is a thousand times faster than a switch.
const mostChunks = 1 << 16

// chunks are what drivers have sent and received, until it is decoded. That is done by a
// goroutine of its own, so that nothing of it is in the time of a measured command.
type chunks struct {
	more chan struct{} // holds one: there are some

	mu   sync.Mutex // guards what follows
	list []chunk
	lost int // dropped since list was taken last
}

// chunk is a piece of what was sent or received, or, with nothing in it, that all sessions
// with a switch have ended.
type chunk struct {
	at   time.Time
	name string // as of lab.Options.Trace; of the end: of the switch
	sent bool
	data []byte
}

func newChunks() chunks { return chunks{more: make(chan struct{}, 1)} }

func (c *chunks) add(x chunk) {
	c.mu.Lock()
	if len(c.list) < mostChunks {
		c.list = append(c.list, x)
	} else {
		c.lost++
	}
	c.mu.Unlock()
	select {
	case c.more <- struct{}{}:
	default:
	}
}

func (c *chunks) take() (list []chunk, lost int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	list, lost = c.list, c.lost
	c.list, c.lost = nil, 0
	return list, lost
}

// trace keeps what a driver sends and receives, and hands it on to who else wants it.
func (s *Session) trace(name string, sent bool, p []byte) {
	s.chunks.add(chunk{time.Now(), name, sent, append([]byte(nil), p...)})
	if s.opt.Lab.Trace != nil {
		s.opt.Lab.Trace(name, sent, p)
	}
}

// stream is one direction of one session.
type stream struct {
	name string
	sent bool
}

// keepLog makes lines of log of what was traced, until the Session ends. Pieces are joined
// to whole messages for each session and direction.
func (s *Session) keepLog() {
	framers := map[stream]*decode.Framer{}
	var of *bed
	for {
		select {
		case <-s.chunks.more:
		case <-s.ctx.Done():
			return
		}
		list, lost := s.chunks.take()
		s.mu.Lock()
		b, spoken := s.bed, s.parts.schemes
		s.mu.Unlock()
		if b != of { // other sessions, also when they have the same names
			of, framers = b, map[stream]*decode.Framer{}
		}
		var entries []Entry
		for _, x := range list {
			entries = decoded(entries, framers, spoken, x)
		}
		if len(entries) == 0 && lost == 0 {
			continue
		}
		s.update(func(p *parts) {
			for _, e := range entries {
				p.say(e)
			}
			if lost > 0 {
				p.say(Entry{At: time.Now(), Kind: Event, Text: "there was more to log than could be decoded: some of what was sent and received is missing here", Bad: true})
			}
		})
	}
}

// decoded appends an entry for each message that a piece completes, by the scheme of each
// switch.
func decoded(entries []Entry, framers map[stream]*decode.Framer, spoken map[string]string, x chunk) []Entry {
	name, number, extra := strings.Cut(x.name, "#")
	scheme := spoken[name]
	if len(x.data) == 0 {
		return cutOff(entries, framers, scheme, x)
	}
	key := stream{x.name, x.sent}
	f := framers[key]
	if f == nil {
		f = decode.New(scheme, x.sent)
		framers[key] = f
	}
	for _, m := range f.Add(x.data) {
		e := Entry{At: x.at, Kind: Received, Switch: name, Routine: extra && number != "", Raw: m, Text: decode.Text(scheme, x.sent, m)}
		if x.sent {
			e.Kind = Sent
		}
		entries = append(entries, e)
	}
	return entries
}

// cutOff forgets the sessions with a switch, so that what comes over the next ones is not
// taken for the rest of something, and appends what was not complete.
func cutOff(entries []Entry, framers map[stream]*decode.Framer, scheme string, x chunk) []Entry {
	for key, f := range framers {
		name, _, _ := strings.Cut(key.name, "#")
		if name != x.name {
			continue
		}
		delete(framers, key)
		if rest := f.Rest(); rest != "" {
			e := Entry{At: x.at, Kind: Received, Switch: name, Raw: rest, Text: "not complete: " + decode.Text(scheme, key.sent, rest), Bad: true}
			if key.sent {
				e.Kind = Sent
			}
			entries = append(entries, e)
		}
	}
	return entries
}

// schemes returns the scheme of the URL of each switch of a lab.
func schemes(f *lab.File, emulated bool) map[string]string {
	m := map[string]string{}
	for _, x := range f.Switches {
		scheme, _, _ := strings.Cut(x.URL, "://")
		if emulated {
			scheme = emulatedScheme(f, x.Name)
		}
		m[x.Name] = scheme
	}
	return m
}

// emulatedScheme is how a switch is spoken to when it is emulated.
func emulatedScheme(f *lab.File, name string) string {
	e, err := f.Emulation(name)
	switch {
	case err != nil:
		return "" // opening it fails for the same reason
	case e.First != "":
		return string(e.First)
	case len(e.Personality.Speaks) > 0:
		return string(e.Personality.Speaks[0])
	}
	return ""
}
