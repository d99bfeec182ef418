package live

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/ocslab/ocslab/internal/natural"
	"github.com/ocslab/ocslab/lab"
	"github.com/ocslab/ocslab/lab/history"
	"github.com/ocslab/ocslab/lab/panics"
	"github.com/ocslab/ocslab/ocs"
)

// reversal is what undo or redo takes back. The zero reversal is nothing.
type reversal struct {
	// entries are changes of the history: one, or those of one wish on several switches. Of
	// a redo these are undos.
	entries []history.Entry
	// of is what that was in the beginning: of a redo, the changes that were undone.
	of   []history.Entry
	call *panics.Call // a panic to be lifted, or to be called again
	at   time.Time    // when that was
}

func (r reversal) none() bool { return len(r.entries) == 0 && r.call == nil }

// text says what is taken back: "connect rail0 1>33 (change 12)"; "" for nothing.
func (r reversal) text() string {
	switch {
	case r.call != nil:
		return "panic: " + r.call.Reason
	case len(r.of) == 0:
		return ""
	}
	var what, ids []string
	for _, e := range r.of {
		what, ids = append(what, changeWords(e)), append(ids, fmt.Sprint(e.ID))
	}
	change := "change"
	if len(ids) > 1 {
		change = "changes"
	}
	return fmt.Sprintf("%s (%s %s)", strings.Join(what, ", "), change, strings.Join(ids, ", "))
}

// changeWords says what a change of the history has done.
func changeWords(e history.Entry) string {
	verb, m := "connect", e.Change.Add
	if m.Len() == 0 {
		verb, m = "disconnect", e.Change.Remove
	}
	return verb + " " + e.Switch + " " + circuitsText(m)
}

// longCircuits is from how many characters on circuits are only counted.
const longCircuits = 40

// circuitsText writes circuits for people, or how many they are.
func circuitsText(m ocs.Map) string {
	if text := m.String(); len(text) < longCircuits {
		return text
	}
	return natural.Count(m.Len(), "circuit")
}

// deeds are what undo and redo are worked out from.
type deeds struct {
	entries []history.Entry
	calls   []panics.Call
	devices map[string]string // names of the lab's switches by device
}

// root returns the change that an entry, which may be an undo or a redo, comes back to, and
// how many steps that is: 0 for a change, 1 for an undo, 2 for a redo.
func (p deeds) root(e history.Entry) (history.Entry, int) {
	steps := 0
	for e.UndoOf != 0 {
		i := slices.IndexFunc(p.entries, func(x history.Entry) bool { return x.ID == e.UndoOf })
		if i < 0 {
			break
		}
		e = p.entries[i]
		steps++
	}
	return e, steps
}

// panics reports whether a change was made by a panic, which takes it back as one.
func (p deeds) panics(e history.Entry) bool {
	return slices.ContainsFunc(p.calls, func(c panics.Call) bool { return c.Made(e) })
}

// undoable reports whether undo may take an entry back, as history.Log.Last has it.
func (p deeds) undoable(e history.Entry) bool {
	return p.devices[e.Device] != "" && e.UndoOf == 0 && e.UndoneBy == 0 && e.State != history.Failed && len(e.Set) == 0 && !p.panics(e)
}

// redoable reports whether an entry is an undo that can be taken back.
func (p deeds) redoable(e history.Entry) bool {
	if p.devices[e.Device] == "" || e.UndoOf == 0 || e.UndoneBy != 0 || e.State != history.Done || len(e.Set) > 0 {
		return false
	}
	of, steps := p.root(e)
	return steps%2 == 1 && !p.panics(of)
}

// newest returns the newest entry that is wanted, with those that were one wish with it.
func (p deeds) newest(want func(history.Entry) bool) (r reversal) {
	for _, e := range slices.Backward(p.entries) {
		first := len(r.entries) == 0
		if !first && (e.Group == 0 || e.Group != r.entries[0].Group) || !want(e) {
			continue
		}
		if first {
			r.at = e.Began
		}
		of, _ := p.root(e)
		r.entries, r.of = append(r.entries, e), append(r.of, of)
	}
	slices.Reverse(r.entries)
	slices.Reverse(r.of)
	return r
}

// undo returns what undo takes back: the newest change, or the panic that is newer.
func (p deeds) undo() reversal {
	r := p.newest(p.undoable)
	for i := range p.calls {
		if c := &p.calls[i]; c.Lifted.IsZero() && (r.none() || c.At.After(r.at)) {
			r = reversal{call: c, at: c.At}
		}
	}
	return r
}

// redo returns what redo takes back: the newest undo, or the panic that was lifted later,
// unless something new was done since.
func (p deeds) redo() reversal {
	r := p.newest(p.redoable)
	for i := range p.calls {
		if c := &p.calls[i]; !c.Lifted.IsZero() && (r.none() || c.Lifted.After(r.at)) {
			r = reversal{call: c, at: c.Lifted}
		}
	}
	for _, e := range p.entries {
		if p.devices[e.Device] != "" && e.UndoOf == 0 && e.State != history.Failed && len(e.Set) == 0 && !p.panics(e) && e.Began.After(r.at) {
			return reversal{}
		}
	}
	for _, c := range p.calls {
		if c.At.After(r.at) {
			return reversal{}
		}
	}
	return r
}

// devices are the names of the lab's switches by what the history calls them.
func (s *Session) devices() map[string]string {
	f := s.file()
	l := lab.New(f, s.opt.Lab)
	names := map[string]string{}
	for _, x := range f.Switches {
		if device, err := l.Device(x.Name); err == nil {
			names[device] = x.Name
		}
	}
	return names
}

// deeds reads what was done, here and by others, with the panics of this lab. With an error it
// returns what could be read.
func (s *Session) deeds() (deeds, error) {
	p := deeds{devices: s.devices()}
	var err, unread error
	if s.opt.History != nil {
		p.entries, _, err = s.opt.History.Entries()
	}
	p.calls, unread = panics.Read(s.opt.StateDir)
	p.calls = slices.DeleteFunc(p.calls, func(c panics.Call) bool {
		return !slices.ContainsFunc(c.Dark, func(d panics.Dark) bool { return p.devices[d.Device] != "" })
	})
	return p, cmp.Or(err, unread)
}

// previewReversal looks at what undo or redo would do now.
func (s *Session) previewReversal(ctx context.Context, w Wish) Preview {
	p, err := s.deeds()
	if err != nil {
		return Preview{Wish: w, Title: string(w.Verb), Err: err}
	}
	r, nothing := p.undo(), "no change is left to undo"
	if w.Verb == Redo {
		r, nothing = p.redo(), "no undo is left to redo, or something was done since"
	}
	title := fmt.Sprintf("%s %s", w.Verb, r.text())
	switch {
	case r.none():
		return Preview{Wish: w, Title: string(w.Verb), Err: fmt.Errorf("%w: %s", ErrNothing, nothing)}
	case r.call == nil:
		return s.previewTasks(ctx, takeBack(w, title, r.entries, p.devices))
	}
	var x Preview
	if w.Verb == Undo {
		x = s.previewLift(ctx, w, r.call.N)
	} else {
		again := w
		again.Reason = r.call.Reason
		x = s.previewPanic(ctx, again, r.call.N)
	}
	x.Title = title
	return x
}

// recallEvery is how often the history and the file of panics are looked at, for what others
// have done.
const recallEvery = time.Second

// historyFile is what package history keeps in its directory.
const historyFile = "history.ndjson"

// stamp tells whether a file has changed.
type stamp struct {
	size int64
	at   time.Time
}

func (s *Session) stampOf(name string) stamp {
	if s.opt.StateDir == "" {
		return stamp{}
	}
	info, err := os.Stat(filepath.Join(s.opt.StateDir, name))
	if err != nil {
		return stamp{}
	}
	return stamp{info.Size(), info.ModTime()}
}

// keepRecalling keeps State.Undo, Redo and Panic true until the Session ends.
func (s *Session) keepRecalling() {
	tick := time.NewTicker(recallEvery)
	defer tick.Stop()
	var seen [2]stamp
	var lab *lab.File
	for {
		now := [2]stamp{
			s.stampOf(historyFile), s.stampOf("."), // the record of panics is replaced, and may have files beside it
		}
		if f := s.file(); now != seen || f != lab {
			seen, lab = now, f
			s.recall()
		}
		select {
		case <-tick.C:
		case <-s.ctx.Done():
			return
		}
	}
}

// recall works out anew what undo and redo would take back, and whether a panic is in force.
func (s *Session) recall() {
	s.act.recalling.Lock()
	defer s.act.recalling.Unlock()
	p, err := s.deeds()
	if err != nil {
		s.act.complain(s, err)
		if len(p.calls) == 0 {
			return
		}
	}
	undo, redo, inForce := p.undo().text(), p.redo().text(), panicOf(p.calls)
	s.mu.Lock()     // State is what was published last, which may be of before
	if err != nil { // a panic is shown all the same
		undo, redo = s.parts.Undo, s.parts.Redo
	}
	same := s.parts.Undo == undo && s.parts.Redo == redo && samePanic(s.parts.Panic, inForce)
	s.mu.Unlock()
	if same {
		return
	}
	now := time.Now()
	s.update(func(p *parts) {
		switch was := p.Panic; {
		case samePanic(was, inForce):
		case inForce == nil:
			p.say(Entry{At: now, Kind: Event, Text: "the panic is lifted"})
		default:
			p.say(Entry{At: now, Kind: Event, Bad: true, Text: fmt.Sprintf("a panic is in force, called by %s: %s (%s)", inForce.Who, inForce.Reason, inForce.What)})
		}
		p.Undo, p.Redo, p.Panic = undo, redo, inForce
	})
}

func samePanic(a, b *Panic) bool {
	if a == nil || b == nil {
		return a == b
	}
	return a.At.Equal(b.At) && a.Reason == b.Reason && a.Who == b.Who && a.What == b.What && a.Lit == b.Lit
}

// panicOf is all panics in force as one, nil if there is none.
func panicOf(calls []panics.Call) *Panic {
	var p *Panic
	var reasons, who, what, lit, why []string
	add := func(list []string, text string) []string {
		if text == "" || slices.Contains(list, text) {
			return list
		}
		return append(list, text)
	}
	for _, c := range calls {
		if !c.Lifted.IsZero() {
			continue
		}
		if p == nil {
			p = &Panic{At: c.At}
		}
		reasons, who, what = add(reasons, c.Reason), add(who, c.Who), add(what, c.What())
		for _, d := range c.Dark {
			if !d.Lifted && d.Now() != panics.IsDark {
				lit, why = add(lit, d.Switch), add(why, cmp.Or(d.Why, "not confirmed yet"))
			}
		}
	}
	if len(lit) > 0 {
		p.Lit = fmt.Sprintf("light may still be on at %s: %s", strings.Join(lit, ", "), strings.Join(why, "; "))
	}
	if p != nil {
		p.Reason, p.Who, p.What = strings.Join(reasons, "; "), strings.Join(who, ", "), strings.Join(what, "; ")
	}
	return p
}
