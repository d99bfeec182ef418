package tui

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	tea "github.com/charmbracelet/bubbletea"

	"github.com/ocslab/ocslab/internal/natural"
	"github.com/ocslab/ocslab/ocs"
	"github.com/ocslab/ocslab/tui/canvas"
	"github.com/ocslab/ocslab/tui/keymap"
	"github.com/ocslab/ocslab/tui/live"
	"github.com/ocslab/ocslab/tui/screen"
)

// dialog shows what something comes to, and waits for a yes: a change with its preview, or a question. There is one
// at most. Whatever has to be confirmed is confirmed here and with the same key, and no other key does it: enter does
// nothing, and there is nothing to type.
type dialog struct {
	question *question // nil: it is about a change
	urgent   bool      // the panic key has opened it: y counts at once

	wish   live.Wish
	number int // of the preview that it waits for, or shows
	cancel context.CancelFunc
	began  time.Time // of looking

	ready   bool // preview is there
	preview live.Preview
	again   string // why it was looked at once more

	// fresh is since when the preview has been seen without a yes: zero while it has not
	// been drawn.
	fresh     time.Time
	top       int
	fits, all int // lines that are seen, and that there are
	risks     int // lines up to the last that warns
	seen      int // lines that have been seen
}

// question is something to be confirmed that is no change of circuits.
type question struct {
	title string
	ways  []way          // to do it, at least one
	at    int            // the way that is chosen
	no    func(m *model) // when it is closed without a yes; nil: nothing
}

// way is one way to do what is asked.
type way struct {
	name  string // "" where there is no other
	about string
	do    func(m *model) tea.Cmd
}

// confirm asks a question.
func (m *model) confirm(q *question) {
	if why := m.waiting(); why != "" {
		m.say("not asked: "+why, true)
		return
	}
	m.push(&dialog{question: q, cancel: func() {}, ready: true})
}

// questionOf is the question that a screen asks.
func (m *model) questionOf(c screen.Confirm) *question {
	q := &question{title: c.Title}
	for _, w := range c.Ways {
		q.ways = append(q.ways, way{w.Name, w.About, func(m *model) tea.Cmd { return m.requests(w.Then()) }})
	}
	return q
}

// isPanic reports whether it is about a panic, which is not kept waiting: y counts whatever the switches say and
// however small the terminal is.
func (d *dialog) isPanic() bool { return d.wish.Verb == live.PanicNow }

// leastLines is how many lines of a preview must be seen for a yes.
const leastLines = 3

// look is how long a preview is to be seen before a yes counts, and how long no other key is to have come before it.
// A y that was typed before the preview was there, or pasted, or that comes from a key held down, would accept what
// nobody has read. What counts is when keys were read, not when they were acted on.
const look = 200 * time.Millisecond

// Messages of changes.
type (
	previewMsg struct {
		number  int
		preview live.Preview
	}
	appliedMsg struct {
		preview live.Preview
		outcome live.Outcome
	}
)

// pending says what a wish has to wait for: a change that waits to be accepted, or is being
// sent. A panic waits for no other change that is being sent: that may hang.
func (m *model) pending(w live.Wish) string {
	switch {
	case m.panicking != nil:
		return "a panic is being sent: " + m.panicking.title
	case m.sending != nil && w.Verb != live.PanicNow:
		return "a change is being sent: " + m.sending.title
	}
	return m.waiting()
}

// waiting says what waits to be confirmed, "" if nothing does.
func (m *model) waiting() string {
	for _, l := range m.layers {
		switch d, ok := l.(*dialog); {
		case !ok:
		case d.question != nil:
			return "another question waits to be answered"
		default:
			return "another change waits to be accepted"
		}
	}
	return ""
}

// propose asks what a wish comes to, and opens the window that shows it.
func (m *model) propose(w live.Wish) tea.Cmd {
	if why := m.pending(w); why != "" {
		text, refused := "nothing was begun: "+why, ""
		if m.isSending() { // which is what the line says anyway
			refused = describe(w)
			if w.Verb == live.Undo || w.Verb == live.Redo {
				refused = string(w.Verb)
			}
			text = "not begun: " + refused
		}
		m.say(text, true)
		m.note.refused = refused
		return nil
	}
	d := &dialog{}
	m.push(d)
	return d.look(m, w)
}

// look looks at a wish, in place of what the dialog shows.
func (d *dialog) look(m *model, w live.Wish) tea.Cmd {
	if d.cancel != nil {
		d.cancel()
	}
	m.asked++
	ctx, cancel := context.WithCancel(m.ctx)
	number := m.asked
	d.wish, d.number, d.cancel, d.began = w, number, cancel, m.now()
	d.ready, d.fresh, d.top, d.seen = false, time.Time{}, 0, 0
	return func() tea.Msg { return previewMsg{number, m.lab.Preview(ctx, w)} }
}

// close closes the dialog without having done anything.
func (d *dialog) close(m *model) {
	d.cancel()
	m.drop(d)
	if d.question != nil && d.question.no != nil {
		d.question.no(m)
	}
}

// previewed takes a preview, if somebody still waits for it.
func (m *model) previewed(msg previewMsg) tea.Cmd {
	for _, l := range m.layers {
		d, ok := l.(*dialog)
		if !ok || d.question != nil || d.number != msg.number {
			continue
		}
		p := msg.preview
		switch {
		case errors.Is(p.Err, live.ErrNothing):
			d.close(m)
			m.fail(p.Title, p.Err)
		case p.Empty():
			d.close(m)
			m.say(p.Title+": nothing to do, it is so already", false)
		default:
			d.ready, d.preview = true, p
		}
		return nil
	}
	return nil
}

func (d *dialog) text() bool { return false }

// mouse scrolls. A click accepts nothing: the place might be under the mouse by chance.
func (d *dialog) mouse(m *model, e screen.Mouse) tea.Cmd {
	if _, ok := e.ID.(cancelZone); ok && e.Wheel == 0 {
		d.refuse(m)
		return nil
	}
	d.scroll(e.Wheel)
	return nil
}

// refuse closes the dialog, and says that nothing was done.
func (d *dialog) refuse(m *model) {
	d.close(m)
	if d.question != nil {
		m.say("not done: "+d.question.title, false)
		return
	}
	m.say("nothing was sent", false)
}

func (d *dialog) scroll(n int) { d.top = max(0, min(d.top+n, d.all-d.fits)) }

func (d *dialog) key(m *model, k tea.KeyMsg) tea.Cmd {
	b, ok := keymap.For(k.String(), keymap.InPreview)
	if !ok {
		m.say(confirmKeys(), false)
		return nil
	}
	// What a question leads to goes through the gate itself; quitting may be asked for in read-only, too.
	if err := m.gate(b.Action); err != nil && d.question == nil {
		m.fail("", err)
		return nil
	}
	switch b.Action {
	case keymap.Accept:
		return d.accept(m)
	case keymap.Cancel:
		d.refuse(m)
	case keymap.Policy:
		return d.policy(m)
	case keymap.Up:
		d.scroll(-1)
	case keymap.Down:
		d.scroll(1)
	case keymap.PageUp:
		d.scroll(-d.fits)
	case keymap.PageDown:
		d.scroll(d.fits)
	}
	return nil
}

// confirmKeys says which keys mean something where something waits to be confirmed.
func confirmKeys() string {
	yes, _ := keymap.Of(keymap.Accept)
	no, _ := keymap.Of(keymap.Cancel)
	return fmt.Sprintf("%s does it, %s does not", yes.Key(), no.Key())
}

// policies are in the order in which m goes through them.
var policies = []ocs.Policy{ocs.Safe, ocs.Update, ocs.Overwrite}

// hasPolicy reports whether a policy makes a difference to a wish.
func hasPolicy(w live.Wish) bool {
	return w.Verb == live.Connect || w.Verb == live.Link || w.Verb == live.Configure || w.Verb == live.Restore
}

func policyOf(w live.Wish) ocs.Policy {
	if w.Policy == "" {
		return ocs.Safe
	}
	return w.Policy
}

// policy looks again, with the next policy, or chooses the next way.
func (d *dialog) policy(m *model) tea.Cmd {
	if q := d.question; q != nil && len(q.ways) > 1 {
		q.at = (q.at + 1) % len(q.ways)
		d.fresh, d.top, d.seen = time.Time{}, 0, 0
		return nil
	}
	if !hasPolicy(d.wish) {
		m.say("there is no choice here: it touches what was named only", false)
		return nil
	}
	w := d.wish
	w.Policy = policies[(slices.Index(policies, policyOf(w))+1)%len(policies)]
	d.again = ""
	return d.look(m, w)
}

// accept does what is asked, if that has been seen. The key has arrived alone.
func (d *dialog) accept(m *model) tea.Cmd {
	at := m.read.at
	early := at.Sub(m.read.before) < look
	switch {
	case d.isPanic() && !d.urgent && (early || at.Sub(d.began) < look):
		m.say("y came before this could be read: look, then y again", false)
		return nil
	case d.isPanic():
		return d.panic(m)
	case !d.ready:
		return nil // nothing has been seen
	case d.question == nil && d.preview.Err != nil:
		m.fail("cannot be done", d.preview.Err)
		return nil
	case d.fits < leastLines:
		m.say("the terminal is too small to show what this does: make it larger", true)
		return nil
	case d.seen < d.risks:
		m.say("not all warnings have been seen: ↓ shows the rest", true)
		return nil
	case early || d.fresh.IsZero() || at.Sub(d.fresh) < look:
		m.say("y came before this could be read: look, then y again", false)
		return nil
	}
	d.cancel()
	m.drop(d)
	if q := d.question; q != nil {
		return q.ways[q.at].do(m)
	}
	return d.send(m, d.preview)
}

// panic sends a panic. It waits for no switch to say what goes dark, and for no error to go away.
func (d *dialog) panic(m *model) tea.Cmd {
	p := d.preview
	if !d.ready || p.Err != nil {
		// Nobody has said that it is dark, so it is tried.
		p = live.Preview{Wish: d.wish, Title: describe(d.wish), At: m.now(), Parts: []live.Part{{Silent: true}}}
	}
	d.cancel()
	m.drop(d)
	return d.send(m, p)
}

// send sends what was accepted.
func (d *dialog) send(m *model, p live.Preview) tea.Cmd {
	s := &sending{title: p.Title, since: m.now(), done: make(chan struct{})}
	if d.isPanic() {
		m.panicking = s
	} else {
		m.sending = s
	}
	m.note = note{} // what is said from here on is said while this is being sent
	return func() tea.Msg {
		defer close(s.done)
		return appliedMsg{p, m.lab.Apply(m.ctx, p)}
	}
}

// applied says what became of a change.
func (m *model) applied(msg appliedMsg) tea.Cmd {
	if msg.preview.Wish.Verb == live.PanicNow {
		m.panicking = nil
	} else {
		m.sending = nil
	}
	m.take()
	out := msg.outcome
	text := out.Text
	switch {
	case text == "" && out.Err != nil:
		text = out.Title + ": " + out.Err.Error()
	case text == "":
		text = out.Title + ": done"
	}
	refused := m.note.refused
	if refused != "" { // it was asked for while this was being sent, and stays readable
		text = "not begun: " + refused + "; " + text
	}
	m.say(text, out.Err != nil || refused != "")
	if m.isSending() {
		m.note.refused = refused
	}
	if out.Err == nil {
		for _, s := range m.screens {
			if s, ok := s.(screen.Applied); ok {
				s.Applied(msg.preview)
			}
		}
	}
	switch {
	case !m.quitting:
	case out.Err != nil:
		m.quitting = false // somebody should read this first
	case !m.isSending():
		return tea.Quit
	}
	if v := msg.preview.Wish.Verb; !errors.Is(out.Err, live.ErrChanged) || v == live.Undo || v == live.Redo {
		// Undo and redo would be of another change by now, which nobody has asked for.
		return nil
	}
	if m.top() != nil || m.gate(screen.Propose{Wish: msg.preview.Wish}) != nil {
		// A window that opened now would take keys that are meant for another.
		return nil
	}
	cmd := m.propose(msg.preview.Wish)
	if d, ok := m.top().(*dialog); ok {
		d.again = "It has changed since it was looked at, so nothing was sent. This is what it comes to now."
		if len(out.ID) > 0 {
			d.again = "A part was sent, then " + out.Err.Error() + ". This is what is left to do."
		}
	}
	return cmd
}

// cancelZone is where a click cancels.
type cancelZone struct{}

// draw draws the window over the screen.
func (d *dialog) draw(m *model, a canvas.Area) {
	w := min(a.W-4, 104)
	rows, warn := d.rows(m)
	var lines []row
	for i, r := range rows {
		lines = append(lines, r.flow(w-4)...)
		if i == warn-1 {
			d.risks = len(lines)
		}
	}
	h := min(len(lines)+4, a.H)
	title := "preview"
	role := canvas.Accent
	switch {
	case d.question != nil:
		title, role = "question", canvas.Warn
	case d.isPanic():
		title, role = "panic", canvas.Bad
	case !d.ready:
		title = "looking…"
	case d.preview.Err != nil:
		title, role = "cannot be done", canvas.Bad
	}
	in := popup(a, w, h, title, canvas.S(role))
	in = in.Sub(1, 0, in.W-2, in.H)
	body, foot := in.Bottom(2)
	d.fits, d.all = body.H, len(lines)
	d.scroll(0)
	for y := 0; y < body.H && d.top+y < len(lines); y++ {
		lines[d.top+y].draw(body, y)
	}
	if more := d.all - d.top - body.H; more > 0 {
		foot.TextRight(foot.W, 0, fmt.Sprintf("%s below ↓", natural.Count(more, "line")), canvas.S(canvas.Warn))
	} else if d.top > 0 {
		foot.TextRight(foot.W, 0, fmt.Sprintf("%s above ↑", natural.Count(d.top, "line")), canvas.S(canvas.Dim))
	}
	d.foot(foot)
	if d.ready && body.H >= leastLines {
		d.seen = max(d.seen, min(d.top+body.H, d.all))
		if d.fresh.IsZero() {
			d.fresh = m.now()
		}
	}
}

// foot draws the keys. Cancel is the default, and drawn so.
func (d *dialog) foot(a canvas.Area) {
	key, dim := canvas.S(canvas.Accent), canvas.S(canvas.Dim)
	no, _ := keymap.Of(keymap.Cancel)
	yes, _ := keymap.Of(keymap.Accept)
	other, _ := keymap.Of(keymap.Policy)
	cancel := "[ " + no.Key() + "  do nothing ]"
	a.Text(0, 1, cancel, canvas.S(canvas.Text, canvas.Reverse, canvas.Bold))
	a.Sub(0, 1, canvas.Width(cancel), 1).Zone(cancelZone{})
	x := canvas.Width(cancel) + 2
	if d.ready && d.preview.Err == nil || d.isPanic() {
		x = a.Text(x, 1, yes.Key(), key)
		x = a.Text(x, 1, " do it", canvas.S(canvas.Text)) + 2
	}
	choice := ""
	switch q := d.question; {
	case q != nil && len(q.ways) > 1:
		choice = " way: " + q.ways[q.at].name
	case hasPolicy(d.wish):
		choice = " policy: " + string(policyOf(d.wish))
	}
	if choice != "" {
		x = a.Text(x, 1, other.Key(), key)
		x = a.Text(x, 1, choice, canvas.S(canvas.Text)) + 2
	}
	if d.all > d.fits {
		x = a.Text(x, 1, "↑↓", key)
		a.Text(x, 1, " scroll", dim)
	}
}

// rows are what the dialog says: first what is a reason to stop, then what changes, then
// what follows from that. The first warn of them have all warnings; what is last may be below the edge of
// a small terminal.
func (d *dialog) rows(m *model) (rows []row, warn int) {
	if d.question != nil {
		rows = d.question.rows()
		return rows, len(rows)
	}
	if !d.ready {
		return []row{
			line(seg{describe(d.wish), canvas.S(canvas.Text, canvas.Bold)}), {},
			line(seg{"asking the switches what they hold… " + age(m.now().Sub(d.began)), canvas.S(canvas.Busy)}), {},
		}, 0
	}
	p := d.preview
	rows = []row{line(seg{p.Title, canvas.S(canvas.Text, canvas.Bold)})}
	if d.again != "" {
		rows = append(rows, line(seg{d.again, canvas.S(canvas.Warn)}))
	}
	if p.Err != nil {
		rows = append(rows, line(seg{"✗ " + sentence(p.Err.Error()), canvas.S(canvas.Bad)}))
		if hasPolicy(p.Wish) && errors.Is(p.Err, ocs.ErrConflict) {
			rows = append(rows, line(seg{"  m changes what may happen to other circuits.", canvas.S(canvas.Dim)}))
		}
	} else {
		rows = append(rows, line(seg{summary(p), canvas.S(canvas.Text)}))
	}
	for _, part := range p.Parts {
		rows = append(rows, warnings(p, part)...)
	}
	warn = len(rows)
	for _, part := range p.Parts {
		rows = append(rows, row{})
		rows = append(rows, partRows(part)...)
	}
	rows = append(rows, row{})
	for _, part := range p.Parts {
		rows = append(rows, outage(part)...)
	}
	if hasPolicy(p.Wish) {
		rows = append(rows, line(seg{"policy   ", canvas.S(canvas.Dim)}, seg{string(policyOf(p.Wish)) + ": " + policyMeans[policyOf(p.Wish)], canvas.S(canvas.Text)}))
	}
	if len(p.CLI) > 0 {
		for _, c := range p.CLI {
			rows = append(rows, line(seg{"$ " + c, canvas.S(canvas.Dim)}))
		}
	}
	return rows, warn
}

// rows are what a question says: what is asked, then the ways to do it.
func (q *question) rows() []row {
	rows := []row{line(seg{q.title + "?", canvas.S(canvas.Text, canvas.Bold)}), {}}
	for i, w := range q.ways {
		mark, style := "  ", canvas.S(canvas.Dim)
		if i == q.at {
			mark, style = "▸ ", canvas.S(canvas.Text)
		}
		about := sentence(w.about)
		segs := []seg{{about, style}}
		if len(q.ways) > 1 {
			segs = []seg{{mark, canvas.S(canvas.Accent)}, {pad(w.name, 9), style}, {about, style}}
		}
		rows = append(rows, row{segs: segs})
	}
	return append(rows, row{})
}

var policyMeans = map[ocs.Policy]string{
	ocs.Safe:      "circuits in the way are a reason to refuse",
	ocs.Update:    "circuits in the way are taken over, others stay",
	ocs.Overwrite: "circuits in the way are taken over, all others on the switch are removed",
}

// summary says in one line what happens to how many circuits.
func summary(p live.Preview) string {
	var dark, lit, foreign, shut, unshut int
	for _, x := range p.Parts {
		dark += max(x.Change.Remove.Len(), len(x.Dark)) // shutters darken circuits, too
		lit += max(x.Change.Add.Len(), len(x.Lit))
		foreign += len(x.Foreign)
		shut += len(x.Shut)
		unshut += len(x.Unshut)
	}
	var words []string
	if dark > 0 {
		t := natural.Count(dark, "circuit") + " dark"
		if foreign > 0 {
			t += fmt.Sprintf(" (%d of them not ours)", foreign)
		}
		words = append(words, t)
	}
	if lit > 0 {
		words = append(words, natural.Count(lit, "circuit")+" lit")
	}
	if shut > 0 {
		words = append(words, natural.Count(shut, "shutter")+" closed")
	}
	if unshut > 0 {
		words = append(words, natural.Count(unshut, "shutter")+" opened")
	}
	if len(words) == 0 {
		return "Nothing changes."
	}
	return "Afterwards: " + and(words) + "."
}

// warnings are the risks of a part, and why its switch refuses.
func warnings(p live.Preview, part live.Part) []row {
	var rows []row
	name := ""
	if len(p.Parts) > 1 {
		name = part.Switch + ": "
	}
	if part.Err != nil && (p.Err == nil || part.Err.Error() != p.Err.Error()) {
		rows = append(rows, line(seg{"✗ " + name + sentence(part.Err.Error()), canvas.S(canvas.Bad)}))
	}
	if part.Stale {
		rows = append(rows, line(seg{"⚠ " + part.Switch + " did not answer: this is from what it said last.", canvas.S(canvas.Bad)}))
	}
	for _, r := range part.Risks {
		rows = append(rows, line(seg{"⚠ " + name + sentence(r), canvas.S(canvas.Warn)}))
	}
	return rows
}

// outage says how long light and links will be away.
func outage(part live.Part) []row {
	if part.Change.Empty() && len(part.Shut) == 0 && len(part.Unshut) == 0 {
		return nil
	}
	adds, removes := part.Change.Add.Len() > 0, part.Change.Remove.Len() > 0
	text, links := "light away for a time that is not known", ", links for about "
	switch {
	case part.Outage > 0:
		text = "light away for about " + short(part.Outage)
	case adds && !removes && len(part.Shut) == 0:
		text, links = "no light goes away", ", links up after about "
	case len(part.Shut) > 0 || removes && !adds:
		text = "light goes away, and stays away"
	case !adds && !removes: // only shutters are opened
		text = "no light goes away"
	}
	if part.LinkUp > 0 {
		text += links + short(part.LinkUp)
	}
	segs := []seg{{"outage   ", canvas.S(canvas.Dim)}, {part.Switch + ": " + text, canvas.S(canvas.Text)}}
	if part.Basis != "" {
		segs = append(segs, seg{"  (" + part.Basis + ")", canvas.S(canvas.Dim)})
	}
	return []row{line(segs...)}
}

// partRows are the circuits of a part.
func partRows(part live.Part) []row {
	rows := []row{line(seg{part.Switch, canvas.S(canvas.Title)})}
	dark, lit := byCircuit(part.Dark), byCircuit(part.Lit)
	foreign := byCircuit(part.Foreign)
	for c := range part.Change.Remove.All() {
		e, ok := dark[c]
		if !ok {
			e.Circuit = c
		}
		_, taken := foreign[c]
		rows = append(rows, endsRow("-", canvas.Bad, e, taken))
	}
	for c := range part.Change.Add.All() {
		e, ok := lit[c]
		if !ok {
			e.Circuit = c
		}
		rows = append(rows, endsRow("+", canvas.Good, e, false))
	}
	if len(part.Shut) > 0 {
		rows = append(rows, line(seg{"- close shutters " + ocs.FormatPorts(part.Shut), canvas.S(canvas.Bad)}))
		for _, e := range part.Dark {
			if !part.Change.Remove.Has(e.Circuit) {
				rows = append(rows, endsRow("  dark", canvas.Bad, e, false))
			}
		}
	}
	if len(part.Unshut) > 0 {
		rows = append(rows, line(seg{"+ open shutters " + ocs.FormatPorts(part.Unshut), canvas.S(canvas.Good)}))
		for _, e := range part.Lit {
			if !part.Change.Add.Has(e.Circuit) {
				rows = append(rows, endsRow("  lit", canvas.Good, e, false))
			}
		}
	}
	if part.Keep.Len() > 0 {
		rows = append(rows, line(seg{"= there already: " + part.Keep.String(), canvas.S(canvas.Dim)}))
	}
	switch {
	case len(rows) == 1 && part.Undo != 0:
		rows = append(rows, line(seg{fmt.Sprintf("  nothing is left of change %d; this takes it off the list of what can be undone", part.Undo), canvas.S(canvas.Dim)}))
	case len(rows) == 1:
		rows = append(rows, line(seg{"  nothing changes", canvas.S(canvas.Dim)}))
	}
	return rows
}

func byCircuit(ends []live.Ends) map[ocs.CrossConnect]live.Ends {
	m := make(map[ocs.CrossConnect]live.Ends, len(ends))
	for _, e := range ends {
		m[e.Circuit] = e
	}
	return m
}

// endsRow is one circuit with what hangs on it.
func endsRow(sign string, role canvas.Role, e live.Ends, foreign bool) row {
	dim := canvas.S(canvas.Dim)
	segs := []seg{{sign + " ", canvas.S(role, canvas.Bold)}, {pad(e.Circuit.String(), 9), canvas.S(role, canvas.Bold)}}
	if e.From != "" || e.To != "" {
		segs = append(segs, seg{or(e.From, "?") + " → " + or(e.To, "?"), canvas.S(canvas.Text)})
	} else {
		segs = append(segs, seg{"nothing known at either end", dim})
	}
	if e.HasPower {
		if e.InPower <= ocs.NoLight {
			segs = append(segs, seg{"  no light in", canvas.S(canvas.Warn)})
		} else {
			segs = append(segs, seg{"  in " + e.InPower.String(), canvas.S(canvas.Light)})
		}
	}
	switch {
	case foreign:
		segs = append(segs, seg{"  TAKEN OVER from " + or(e.Origin.Who, "somebody else"), canvas.S(canvas.Warn, canvas.Bold)})
	case e.Origin.ID > 0:
		segs = append(segs, seg{fmt.Sprintf("  by %s (change %d)", e.Origin.Who, e.Origin.ID), dim})
	case e.Origin.Who != "":
		segs = append(segs, seg{"  by " + e.Origin.Who, dim})
	}
	if e.Traffic {
		segs = append(segs, seg{"  TRAFFIC flows", canvas.S(canvas.Warn, canvas.Bold)})
	}
	return row{segs: segs, indent: 11}
}

// describe is a wish in words, before anybody has looked at it.
func describe(w live.Wish) string {
	switch w.Verb {
	case live.Connect:
		return "connect " + w.Switch + " " + w.Map.String()
	case live.Disconnect:
		return "disconnect " + w.Switch + " " + ocs.FormatPorts(w.Ports)
	case live.Link, live.Unlink:
		return string(w.Verb) + " " + and(w.NICs)
	case live.Configure:
		return "configure " + w.Configuration
	case live.Restore:
		return "restore " + w.File
	case live.Undo:
		return "take back the last change"
	case live.Redo:
		return "take back the last undo"
	case live.PanicNow:
		return "panic: " + w.Reason
	case live.Lift:
		return "end the panic"
	}
	return string(w.Verb)
}
