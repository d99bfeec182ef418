package watch

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/ocslab/ocslab/timeline"
)

const (
	agentFirst = 32               // exchanges of clock readings at the start, back to back
	agentEvery = time.Second      // between two later ones
	agentStart = 20 * time.Second // for the first answer: ssh may be slow
	agentGrace = 3 * time.Second  // for it to end when its input has
	agentQuiet = 5 * time.Second  // without an answer: the host is out of reach
	agentLine  = 1 << 20          // bytes in a line at most

	// An agent that could not be started, or has ended, is tried again after againFirst, twice
	// that, and so on, up to againMost.
	againFirst = 500 * time.Millisecond
	againMost  = 10 * time.Second
)

const sourceAgent = "agent"

// Reached is the event of a note that a host is watched again, after it was out of reach.
const Reached = "reached"

// agent is ocslab on another machine.
type agent struct {
	w     *Watch
	host  *Host
	cmd   *exec.Cmd
	in    io.WriteCloser
	clock Clock
	tail  *tail // of what it wrote to its standard error
	ended chan struct{}

	write sync.Mutex // held while a line is written

	mu      sync.Mutex // guards what follows
	id      int
	waiting map[int]chan reply
	closing bool
	carried traffic // what it was asked to send and to send back; guarded by Watch.pairing
	account Account // as it was at the last flush
	err     error   // why it ended
}

// reply is an answer of an agent.
type reply struct {
	Question
	received int64 // on our axis
}

// Question is a line to an agent, and its answer, which repeats kind and id.
type Question struct {
	Kind string `json:"kind"` // "clock", "flush", "machine", "nics", "traffic" or "flows"
	ID   int    `json:"id"`

	Traffic *traffic `json:"traffic,omitempty"`

	AtNS    int64    `json:"at_ns,omitempty"` // the answer to "clock"
	Machine *Machine `json:"machine,omitempty"`

	NICs  []nicAddress `json:"nics,omitempty"`
	Flows []flowState  `json:"flows,omitempty"`
	Error string       `json:"error,omitempty"`
}

// startAgent runs the agent of h and waits until its clock is known.
func (w *Watch) startAgent(ctx context.Context, h *Host) (*agent, error) {
	args := append(h.Agent[1:len(h.Agent):len(h.Agent)], "watch", "--json", "--agent", "--host", h.Name)
	if w.opt.Poll > 0 {
		args = append(args, "--poll", w.opt.Poll.String())
	}
	for flag, on := range map[string]bool{"--tight": w.opt.Tight, "--sync": w.opt.Sync, "--netlink-only": w.opt.NoCounters} {
		if on {
			args = append(args, flag)
		}
	}
	if w.opt.Optics != 0 {
		args = append(args, "--optics", w.opt.Optics.String())
	}
	args = append(args, h.Interfaces...)
	a := &agent{w: w, host: h, tail: &tail{}, ended: make(chan struct{}), waiting: map[int]chan reply{}}
	a.cmd = exec.Command(h.Agent[0], args...)
	a.cmd.Stderr = a.tail
	a.cmd.WaitDelay = agentGrace
	ownGroup(a.cmd) // Ctrl-C is for us: we end it
	var out io.ReadCloser
	var err error
	if a.in, err = a.cmd.StdinPipe(); err == nil {
		out, err = a.cmd.StdoutPipe()
	}
	if err == nil {
		err = a.cmd.Start()
	}
	if err != nil {
		return nil, fmt.Errorf("agent of host %s: %w", h.Name, err)
	}
	go a.read(out)
	ctx, cancel := context.WithTimeout(ctx, agentStart)
	defer cancel()
	for range agentFirst {
		if _, _, _, err := a.exchange(ctx); err != nil {
			return nil, errors.Join(fmt.Errorf("agent of host %s (%s): %w", h.Name, strings.Join(h.Agent, " "), err), a.close())
		}
	}
	w.source(a.source())
	w.readers.Go(a.keepTime)
	return a, nil
}

// keepAgent has an agent of h running until ctx ends.
func (w *Watch) keepAgent(ctx context.Context, h *Host) {
	pause := againFirst
	told := ""
	for {
		began := time.Now()
		a, err := w.startAgent(ctx, h)
		if err == nil {
			w.join(a)
			w.startPairs(ctx)
			if told != "" {
				a.reached()
			}
			select {
			case <-a.ended:
				err = fmt.Errorf("the agent ended: %w", a.failure())
			case <-ctx.Done():
				return // Close ends the agent, when all has been read
			}
			w.leave(a)
			a.close()
			told = err.Error() // by the agent
		}
		if ctx.Err() != nil {
			return
		}
		w.offline(h.Name, err.Error())
		if told != err.Error() {
			told = err.Error()
			now := timeline.HostAxis().NS(time.Now())
			w.add(Record{Note: &Note{Kind: Gap, Host: h.Name, Interval: timeline.Point(now), Source: sourceAgent, Text: told}})
		}
		if time.Since(began) > againMost+agentStart {
			pause = againFirst
		}
		again := time.NewTimer(pause)
		select {
		case <-again.C:
		case <-ctx.Done():
			again.Stop()
			return
		}
		pause = min(2*pause, againMost)
	}
}

// offline has all sources of a host be off.
func (w *Watch) offline(host, why string) {
	w.source(Source{Host: host, Name: sourceAgent, Why: why})
	w.mu.Lock()
	defer w.mu.Unlock()
	for i := range w.sources {
		if s := &w.sources[i]; s.Host == host {
			s.On, s.Why = false, why
		}
	}
}

// join takes an agent that runs among the others, and leave lets go of one that does not.
func (w *Watch) join(a *agent) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.agents = append(w.agents, a)
}

func (w *Watch) leave(a *agent) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.agents = slices.DeleteFunc(w.agents, func(x *agent) bool { return x == a })
	delete(w.silent, a.host.Name)
}

// running returns the agents that run.
func (w *Watch) running() []*agent {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.agents)
}

func (w *Watch) isSilent(host string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.silent[host]
}

// hush notes whether an agent that runs does not answer. Who is lenient does not wait for it
// then, and takes what it watches for not watched.
func (w *Watch) hush(a *agent, silent bool) {
	if !w.opt.Lenient {
		return
	}
	w.mu.Lock()
	was := w.silent[a.host.Name]
	known := slices.Contains(w.agents, a)
	if known && silent {
		w.silent[a.host.Name] = true
	} else if known {
		delete(w.silent, a.host.Name)
	}
	w.mu.Unlock()
	switch {
	case !known || was == silent:
	case silent:
		w.source(Source{Host: a.host.Name, Name: sourceAgent, Why: "the agent does not answer"})
	default:
		w.source(a.source())
		a.reached()
	}
}

// reached tells that the agent answers, after it did not.
func (a *agent) reached() {
	now := timeline.HostAxis().NS(time.Now())
	a.w.add(Record{Note: &Note{
		Kind: Link, Event: Reached, Host: a.host.Name, Interval: timeline.Point(now), Source: sourceAgent,
		Text: fmt.Sprintf("the agent of host %s answers again", a.host.Name),
	}})
}

// source is that the agent runs.
func (a *agent) source() Source {
	return Source{Host: a.host.Name, Name: sourceAgent, On: true, Why: strings.Join(a.host.Agent, " ")}
}

// keepTime goes on to compare clocks.
func (a *agent) keepTime() {
	pace := time.NewTicker(agentEvery)
	defer pace.Stop()
	lost := false
	for {
		select {
		case <-a.ended:
			return
		case <-pace.C:
		}
		ctx, cancel := context.WithTimeout(context.Background(), agentQuiet)
		from := timeline.HostAxis().NS(time.Now())
		_, _, _, err := a.exchange(ctx)
		cancel()
		if err != nil && !lost && !a.isClosing() {
			a.gap(timeline.Between(from, timeline.HostAxis().NS(time.Now())), fmt.Sprintf("no answer from the agent of host %s: %v", a.host.Name, err))
		}
		lost = err != nil
		a.w.hush(a, lost)
	}
}

// exchange learns from one reading of the other clock.
func (a *agent) exchange(ctx context.Context) (sent, its, received int64, err error) {
	sent = timeline.HostAxis().NS(time.Now())
	r, err := a.ask(ctx, Question{Kind: "clock"})
	if err != nil {
		return 0, 0, 0, err
	}
	if !a.clock.Add(sent, r.AtNS, r.received) {
		a.gap(timeline.Between(sent, r.received), fmt.Sprintf("the clock of host %s or ours jumped", a.host.Name))
	}
	return sent, r.AtNS, r.received, nil
}

// flush returns when the agent has written all that was before.
func (a *agent) flush(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, agentQuiet)
	defer cancel()
	if _, err := a.ask(ctx, Question{Kind: "flush"}); err != nil {
		return fmt.Errorf("agent of host %s: %w", a.host.Name, err)
	}
	return nil
}

func (a *agent) ask(ctx context.Context, q Question) (reply, error) {
	answer := make(chan reply, 1)
	a.mu.Lock()
	a.id++
	q.ID = a.id
	a.waiting[q.ID] = answer
	a.mu.Unlock()
	defer func() {
		a.mu.Lock()
		delete(a.waiting, q.ID)
		a.mu.Unlock()
	}()
	line, err := json.Marshal(q)
	if err != nil {
		return reply{}, err
	}
	a.write.Lock()
	_, err = a.in.Write(append(line, '\n'))
	a.write.Unlock()
	if err != nil {
		select { // what it said last tells more
		case <-a.ended:
			return reply{}, a.failure()
		case <-ctx.Done():
		}
		return reply{}, err
	}
	select {
	case r := <-answer:
		return r, nil
	case <-a.ended:
		return reply{}, a.failure()
	case <-ctx.Done():
		return reply{}, context.Cause(ctx)
	}
}

// read takes in what the agent writes until it ends.
func (a *agent) read(out io.Reader) {
	defer close(a.ended)
	lines := bufio.NewScanner(out)
	lines.Buffer(make([]byte, 64<<10), agentLine)
	for lines.Scan() {
		received := timeline.HostAxis().NS(time.Now())
		a.line(lines.Bytes(), received)
	}
	err := errors.Join(lines.Err(), a.cmd.Wait())
	a.mu.Lock()
	a.err = err
	a.mu.Unlock()
	if !a.isClosing() {
		for _, s := range a.w.Sources() {
			if s.Host == a.host.Name {
				s.On, s.Why = false, "the agent ended"
				a.w.source(s)
			}
		}
		now := timeline.HostAxis().NS(time.Now())
		a.gap(timeline.Point(now), fmt.Sprintf("the agent of host %s ended: %v", a.host.Name, a.failure()))
	}
}

func (a *agent) line(data []byte, received int64) {
	var q Question
	var source Source
	var account Account
	err := json.Unmarshal(data, &q)
	switch {
	case err != nil:
	case q.Kind == "source":
		err = json.Unmarshal(data, &source)
	case q.Kind == "account":
		err = json.Unmarshal(data, &account)
	}
	if err != nil {
		a.gap(timeline.Point(received), fmt.Sprintf("the agent of host %s wrote %.60q, which is no JSON line", a.host.Name, data))
		return
	}
	switch q.Kind {
	case "clock", "flush", "machine", "nics", "traffic", "flows":
		a.mu.Lock()
		answer := a.waiting[q.ID]
		delete(a.waiting, q.ID) // one answer is enough
		a.mu.Unlock()
		if answer != nil {
			answer <- reply{q, received}
		}
	case "account":
		a.mu.Lock()
		a.account = account
		a.mu.Unlock()
	case "source":
		a.w.source(source)
	case "error":
		a.tail.Write([]byte(q.Error))
	case "mark", string(Gap), string(Link), string(Outage):
		var r Record
		if err := json.Unmarshal(data, &r); err != nil {
			a.gap(timeline.Point(received), fmt.Sprintf("agent of host %s: %v", a.host.Name, err))
			return
		}
		var at *timeline.Interval
		if r.Mark != nil {
			at = &r.Mark.Interval
		} else {
			at = &r.Note.Interval
		}
		here, ok := a.clock.Here(*at, received)
		if !ok {
			a.gap(timeline.Point(received), fmt.Sprintf("a record of host %s before its clock was known", a.host.Name))
			return
		}
		*at = here
		a.w.add(r)
	}
}

func (a *agent) gap(at timeline.Interval, text string) {
	a.w.add(Record{Note: &Note{Kind: Gap, Host: a.host.Name, Interval: at, Source: sourceAgent, Text: text}})
}

func (a *agent) isClosing() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.closing
}

// failure says why it ended.
func (a *agent) failure() error {
	a.mu.Lock()
	err := a.err
	a.mu.Unlock()
	if said := a.tail.String(); said != "" {
		return fmt.Errorf("it said: %s", said)
	}
	if err == nil {
		return errors.New("it ended")
	}
	return err
}

// close ends the agent: its input ends, and so should it.
func (a *agent) close() error {
	a.mu.Lock()
	if a.closing {
		a.mu.Unlock()
		return nil
	}
	a.closing = true
	a.mu.Unlock()
	a.in.Close()
	select {
	case <-a.ended:
	case <-time.After(agentGrace):
		a.cmd.Process.Signal(os.Kill)
		<-a.ended
	}
	return nil
}

// tail keeps the end of a text.
type tail struct {
	mu   sync.Mutex // guards text
	text []byte
}

func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	const most = 500
	t.text = append(t.text, p...)
	t.text = t.text[max(len(t.text)-most, 0):]
	return len(p), nil
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return strings.TrimSpace(string(t.text))
}
