package rail

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/ocslab/ocslab/lab"
	"github.com/ocslab/ocslab/ocs"
	"github.com/ocslab/ocslab/orchestrator/proto"
)

// view is what a switch holds at the ports of the job.
type view struct {
	all      ocs.Map
	to, from []int32            // by duplex port: where its ingress leads, and what leads to its egress
	foreign  []ocs.CrossConnect // that lead across the border of the job
}

// owners says which duplex port an ingress, or an egress, of the switch belongs to.
type owners []int32

func (w *owners) set(p ocs.Port, q int32) {
	for int(p) >= len(*w) {
		*w = append(*w, dark)
	}
	(*w)[p] = q
}

func (w owners) at(p ocs.Port) (q int32, its bool) {
	if int(p) >= len(w) || w[p] < 0 {
		return 0, false
	}
	return w[p], true
}

func (o *Orchestrator) see(m ocs.Map) view {
	v := view{all: m, to: make([]int32, len(o.all)), from: make([]int32, len(o.all))}
	for q := range v.to {
		v.to[q], v.from[q] = dark, dark
	}
	for c := range m.All() {
		q, sends := o.ofIn.at(c.Ingress)
		p, receives := o.ofOut.at(c.Egress)
		switch {
		case sends && receives:
			v.to[q], v.from[p] = p, q
		case sends:
			v.to[q] = foreign
			v.foreign = append(v.foreign, c)
		case receives:
			v.from[p] = foreign
			v.foreign = append(v.foreign, c)
		}
	}
	return v
}

// final is an error after which there is no other attempt.
type final struct{ error }

func (f final) Unwrap() error { return f.error }

// work carries out what is ready over one session, until Close.
func (o *Orchestrator) work(session int) {
	for {
		batch := o.next()
		if batch == nil {
			return
		}
		o.attempt(session, batch)
	}
}

// next waits for tickets. First attempts are taken together, since their ports have nothing in common; a later one by
// itself, so that what cannot be done fails alone.
func (o *Orchestrator) next() []*ticket {
	o.mu.Lock()
	defer o.mu.Unlock()
	for len(o.ready) == 0 {
		if o.closed {
			return nil
		}
		o.wake.Wait()
	}
	batch := o.ready[:1:1]
	n := 1
	if batch[0].attempt == 0 {
		for n < len(o.ready) && o.ready[n].attempt == 0 {
			n++
		}
		batch = o.ready[:n:n]
	}
	o.ready = o.ready[n:]
	if n > 1 {
		o.counters.Batched += uint64(n)
	}
	return batch
}

func (o *Orchestrator) timeout() time.Duration {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.timeoutLocked()
}

func (o *Orchestrator) timeoutLocked() time.Duration {
	return cmp.Or(o.opt.Timeout, max(3*o.took, DefaultTimeout))
}

// answer is what is known of a device.
type answer uint8

const (
	unknown answer = iota
	yes
	no
)

// try is one attempt at a batch.
type try struct {
	o        *Orchestrator
	sw       ocs.Switch
	ctx      context.Context
	limit    time.Duration // of ctx
	batch    []*ticket
	view     view      // if one of them had to look
	since    uint64    // ports whose Orchestrator.lastSeq is higher have changed since it looked
	now      [][]int32 // by ticket and its port: where that leads
	failed   map[*ticket]error
	requests []uint64
}

// attempt tries once, and decides what becomes of each ticket.
func (o *Orchestrator) attempt(session int, batch []*ticket) {
	begun := time.Now()
	limit := o.timeout()
	ctx, cancel := context.WithTimeoutCause(o.ctx, limit, fmt.Errorf("%s did not answer within %v: %w", o.opt.Switch, limit, context.DeadlineExceeded))
	defer cancel()
	x := &try{o: o, ctx: ctx, limit: limit, batch: batch, failed: map[*ticket]error{}}
	for _, t := range batch {
		t.attempt++
		if t.req > 0 {
			x.requests = append(x.requests, t.req)
		}
	}
	// Another session may have better luck.
	x.sw = o.opt.Sessions[(session+batch[0].attempt-1)%len(o.opt.Sessions)]
	err := o.lit()
	if err != nil {
		err = final{err}
	} else {
		err = x.run()
	}
	if err != nil {
		x.failRest(err)
	}
	x.light()

	o.mu.Lock()
	defer o.mu.Unlock()
	var lines []line
	generations := make([]uint64, len(batch))
	for k, t := range batch {
		err, bad := x.failed[t]
		if bad {
			x.judgeLocked(t, err, limit-time.Since(begun))
			continue
		}
		if t.kind == takeOld {
			continue
		}
		if t.removed+t.added > 0 {
			o.generation++
			o.counters.Changes++
			o.counters.Removed += uint64(t.removed)
			o.counters.Added += uint64(t.added)
		} else {
			o.counters.NoOps++
		}
		for i, q := range t.ports {
			switch {
			case t.freed != nil && t.freed[i] || t.dim != nil && t.passed[i] == settled:
			default: // where another one has entered it is dark until that is done
				o.held[q] = t.goal[i]
				o.trustLocked(q)
			}
		}
		if t.displaced > 0 && o.takes == unknown {
			o.takes = yes
		}
		generations[k] = o.generation
		lines = append(lines, line{Did: t.seq, Generation: o.generation, Unsure: o.unsureLocked()})
	}
	_ = o.journal.add(lines...) // the next intent fails if this could not be written
	verified := false
	for k, t := range batch {
		if _, bad := x.failed[t]; bad {
			continue
		}
		verified = true
		d := proto.Done{Generation: generations[k], Shape: t.config.Shape, Result: proto.NoOp, Removed: t.removed, Added: t.added, Attempts: t.attempt,
			CommandNS: nanos(t.command), SwitchAckNS: nanos(t.acked), VerifiedNS: nanos(t.verified), LightNS: nanos(t.light)}
		if t.removed+t.added > 0 {
			d.Result = proto.Applied
		}
		o.finishLocked(t, d, nil)
	}
	if verified {
		o.tellLocked(Event{What: Verified, Requests: x.requests, Attempt: batch[0].attempt})
	}
	o.pumpLocked()
}

func (x *try) fail(t *ticket, err error) {
	if _, bad := x.failed[t]; !bad {
		x.failed[t] = err
	}
}

func (x *try) failRest(err error) {
	for _, t := range x.batch {
		x.fail(t, err)
	}
}

// judgeLocked decides whether a failed ticket gets another attempt.
func (x *try) judgeLocked(t *ticket, err error, left time.Duration) {
	o := x.o
	var f final
	switch {
	case o.closed:
		o.finishLocked(t, proto.Done{}, o.gone())
	case t.kind == takeOld:
		o.finishLocked(t, proto.Done{}, nil) // the ports stay unsure
	case errors.As(err, &f) || t.attempt >= o.opt.Attempts:
		o.failLocked(t, codeOf(err), &failure{o.opt.Rail, o.sentence(t, err, x.limit), err})
	default:
		o.counters.Retries++
		t.look = true
		o.handOverLocked(t)
		o.unguardLocked(t)
		o.pumpLocked()
		o.tellLocked(Event{What: Retried, Requests: x.requests, Attempt: t.attempt, Err: err})
		// What fails at once, such as a session that is being made anew, gets a part of the time that silence gets.
		pause := max(min(left, x.o.timeoutLocked()/4), 0)
		if t.attempt == 1 && errors.Is(err, ocs.ErrNotConnected) {
			pause = 0 // what was to go has gone by itself, and reading tells what is left
		}
		o.waiting[t] = time.AfterFunc(pause, func() {
			o.mu.Lock()
			defer o.mu.Unlock()
			delete(o.waiting, t)
			if o.closed {
				o.finishLocked(t, proto.Done{}, o.gone())
				o.pumpLocked()
				o.deliver.Broadcast()
				return
			}
			o.ready = append(o.ready, t)
			o.wake.Signal()
		})
	}
}

// codeOf says in a word why it failed.
func codeOf(err error) proto.Code {
	switch {
	case errors.Is(err, ocs.ErrVerify):
		return proto.Verify
	case errors.Is(err, ocs.ErrConflict), errors.Is(err, ocs.ErrInterlock), errors.Is(err, ocs.ErrDenied):
		return proto.Conflict
	case errors.Is(err, ocs.ErrPort):
		return proto.Bad
	}
	return proto.Timeout // it did not answer, or could not be asked
}

// run carries the batch out. An error concerns all tickets that have not failed by themselves.
func (x *try) run() error {
	if err := x.look(); err != nil {
		return err
	}
	if err := x.write(); err != nil {
		return final{err}
	}
	err := x.change()
	if !x.denied(err) {
		return err
	}
	// Nothing was changed, or else the reading tells.
	for _, t := range x.batch {
		t.look = true
	}
	if err := x.look(); err != nil {
		return err
	}
	return x.change()
}

// denied reports whether the device has refused to take over what it was not told to remove, which was not known. From
// then on it is told.
func (x *try) denied(err error) bool {
	if !errors.Is(err, ocs.ErrConflict) && !errors.Is(err, ocs.ErrDenied) || errors.As(err, new(final)) {
		return false
	}
	if !slices.ContainsFunc(x.batch, func(t *ticket) bool { return t.displaced > 0 }) {
		return false
	}
	o := x.o
	o.mu.Lock()
	defer o.mu.Unlock()
	switch o.takes {
	case unknown:
		o.takes = no
		return true
	case yes: // what is shared now must not be removed by name
		o.takes = unknown
	}
	return false
}

// change sends what the ports of the batch lack, and compares what the switch holds then.
func (x *try) change() error {
	var gone, displaced, replaced, add []ocs.CrossConnect
	x.o.mu.Lock()
	// The first of several attempts leaves what is in the way of its circuits to the device.
	named := x.o.takes == no || x.batch[0].attempt > 1
	if named {
		for _, t := range x.batch {
			x.o.handOverLocked(t) // nobody may be where something is removed by name
		}
		x.o.pumpLocked()
	}
	for k, t := range x.batch {
		if t.kind == takeOld || x.failed[t] != nil {
			continue
		}
		d := x.differenceLocked(k)
		// A repetition sends what is missing, which may be nothing when an answer was lost.
		t.removed, t.added = max(t.removed, len(d.gone)+len(d.displaced)+len(d.replaced)), max(t.added, len(d.add))
		if t.displaced = len(d.displaced); named {
			t.displaced = 0
		}
		gone, displaced = append(gone, d.gone...), append(displaced, d.displaced...)
		replaced, add = append(replaced, d.replaced...), append(add, d.add...)
	}
	x.o.mu.Unlock()
	if named {
		if len(displaced) > 0 { // a device that denies is sent its removals before anything else in any case
			gone, replaced = append(append(gone, displaced...), replaced...), nil
		}
		displaced = nil
	}
	if len(gone) > 0 && len(add) > 0 {
		m, err := x.send(Disconnected, gone, nil, nil)
		if err != nil {
			return err
		}
		x.give(m)
		gone = nil
	}
	var v view
	if len(gone)+len(displaced)+len(replaced)+len(add) > 0 {
		what := Connected
		if len(add) == 0 {
			what = Disconnected
		}
		var err error
		if v, err = x.send(what, append(gone, replaced...), displaced, add); err != nil {
			return err
		}
		for _, t := range x.batch {
			if t.kind != takeOld {
				x.verify(t, v)
			}
		}
	}
	now := time.Now()
	for _, t := range x.batch {
		t.verified = now
	}
	return nil
}

// look finds out where the ports lead now: from what was verified last, or by reading where that is not certain.
func (x *try) look() error {
	o := x.o
	x.now = make([][]int32, len(x.batch))
	v := &x.view
	if slices.ContainsFunc(x.batch, func(t *ticket) bool { return t.look }) {
		o.mu.Lock()
		x.since = o.seq
		o.seq++
		o.mu.Unlock()
		m, err := x.sw.CrossConnects(x.ctx)
		if err != nil {
			return err
		}
		*v = o.see(m)
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	for k, t := range x.batch {
		now := make([]int32, len(t.ports))
		x.now[k] = now
		for i, q := range t.ports {
			now[i] = o.held[q]
			if t.left(i) {
				now[i] = dark
				continue
			}
			if t.look {
				now[i] = v.to[q]
			}
			if t.over != nil && t.over[i] && now[i] >= 0 && t.attempt == 1 {
				// Of one that it came past, which counts it: gone already, or taken over by what is added here.
				if _, its := slices.BinarySearch(t.ports, int(now[i])); !its {
					now[i] = dark
				}
			}
			if !t.look {
				continue
			}
			o.held[q] = max(v.to[q], dark)
			if v.to[q] != foreign && v.from[q] != foreign || t.kind == takeOld || o.opt.Takeover == ocs.Update {
				continue
			}
			for _, c := range v.foreign {
				if f := o.opt.Assignment[q]; c.Ingress == f.In || c.Egress == f.Out {
					x.fail(t, final{o.conflict(c)})
				}
			}
		}
		if t.look {
			x.intrudersLocked(t)
		}
	}
	return nil
}

// intrudersLocked doubts ports that somebody else has joined to those of t, but for those that another ticket has left since
// it looked: what they hold is newer than what was read.
func (x *try) intrudersLocked(t *ticket) {
	for i, q := range t.ports {
		if r := x.view.from[q]; r >= 0 && !t.left(i) && x.o.lastSeq[r] <= x.since {
			if _, its := slices.BinarySearch(t.ports, int(r)); !its {
				x.o.doubtLocked(int(r))
			}
		}
	}
}

// write puts what is about to be done into the journal.
func (x *try) write() error {
	var lines []line
	for _, t := range x.batch {
		if !t.written && x.failed[t] == nil && t.intent.Do > 0 {
			lines = append(lines, t.intent)
		}
	}
	x.o.mu.Lock()
	defer x.o.mu.Unlock()
	if err := x.o.journal.add(lines...); err != nil {
		return err
	}
	for _, t := range x.batch {
		t.written = t.written || x.failed[t] == nil
	}
	return nil
}

// difference is what has to come, and what has to go.
type difference struct {
	gone      []ocs.CrossConnect // both ends stay dark
	displaced []ocs.CrossConnect // something else comes at one end; the other stays dark, or is another ticket's by now
	replaced  []ocs.CrossConnect // something else comes at both
	add       []ocs.CrossConnect
}

// differenceLocked compares the ports of ticket k with its goal. What is to be removed by name begins at
// a port that is its own alone, or is guarded: devices remove whatever is at a port.
func (x *try) differenceLocked(k int) (d difference) {
	t, a := x.batch[k], x.o.opt.Assignment
	goalOf := func(q int32) int32 {
		if i, its := slices.BinarySearch(t.ports, int(q)); its {
			return t.goal[i]
		}
		return dark
	}
	for i, q := range t.ports {
		if t.left(i) {
			if t.dim == nil || t.was[i] < 0 {
				continue
			}
			// Its circuit still goes by what happens at the other end, whoever is first.
			if j, _ := slices.BinarySearch(t.ports, int(t.was[i])); x.now[k][j] == int32(q) {
				d.displaced = append(d.displaced, ocs.CrossConnect{Ingress: a[q].In, Egress: a[t.was[i]].Out})
			}
			continue
		}
		now, goal := x.now[k][i], t.goal[i]
		if t.look {
			if from := x.view.from[q]; from >= 0 && from != goal {
				_, its := slices.BinarySearch(t.ports, int(from))
				c := ocs.CrossConnect{Ingress: a[from].In, Egress: a[q].Out}
				switch {
				case its || len(x.o.queue[from]) > 0 || x.o.lastSeq[from] > x.since:
					// Its own, or of another ticket that changes it, or has done so since: if that leaves it the comparison fails.
				default: // somebody has joined it to a port of ours
					x.o.guardLocked(t, int(from))
					d.gone = append(d.gone, c)
				}
			}
		}
		if now == goal {
			continue
		}
		if now >= 0 {
			c := ocs.CrossConnect{Ingress: a[q].In, Egress: a[now].Out}
			switch there := goalOf(now); {
			case goal < 0 && there < 0:
				d.gone = append(d.gone, c)
			case goal < 0 || there < 0:
				d.displaced = append(d.displaced, c)
			default:
				d.replaced = append(d.replaced, c)
			}
		}
		if goal >= 0 {
			d.add = append(d.add, ocs.CrossConnect{Ingress: a[q].In, Egress: a[goal].Out})
		}
	}
	if t.look { // under ocs.Safe this ticket has failed by now if there are any at its ports
		for _, c := range x.view.foreign {
			q, ours := x.o.ofIn.at(c.Ingress)
			if !ours {
				q, _ = x.o.ofOut.at(c.Egress)
			}
			if i, its := slices.BinarySearch(t.ports, int(q)); its && !t.left(i) {
				d.gone = append(d.gone, c)
			}
		}
	}
	return d
}

// lit returns why circuits that are there are of no use.
func (o *Orchestrator) lit() error {
	if o.opt.Dark == nil {
		return nil
	}
	return o.opt.Dark()
}

// send has the switch make a change, and reads it back. What is displaced goes by itself.
func (x *try) send(what What, remove, displaced, add []ocs.CrossConnect) (view, error) {
	o := x.o
	var c ocs.Change
	var err error
	if c.Remove, err = ocs.NewMap(remove...); err == nil {
		c.Add, err = ocs.NewMap(add...)
	}
	if err != nil {
		return view{}, final{err}
	}
	if gate := o.opt.Gate; gate != nil {
		if err := gate(); err != nil {
			return view{}, final{fmt.Errorf("%s may not be changed: %w", o.opt.Switch, err)}
		}
	}
	for _, t := range x.batch {
		t.sent = t.sent || x.failed[t] == nil
	}
	begun := time.Now()
	receipt, err := lab.Send(x.ctx, x.sw, c)
	acked := time.Now()
	o.mu.Lock()
	o.counters.Commands++
	if err == nil {
		o.took = max(acked.Sub(begun), o.took-o.took/8) // the slowest of the last
		told := c
		if all, err := ocs.NewMap(append(displaced, remove...)...); err == nil {
			told.Remove = all
		}
		o.tellLocked(Event{What: what, Requests: x.requests, Attempt: x.batch[0].attempt, Change: told, Receipt: receipt, At: acked})
	}
	o.mu.Unlock()
	if err != nil {
		return view{}, err
	}
	if !receipt.Acked.IsZero() {
		acked = receipt.Acked
	}
	if !receipt.SendStart.IsZero() {
		begun = receipt.SendStart
	}
	if !receipt.Begun.IsZero() {
		begun = receipt.Begun
	}
	for _, t := range x.batch {
		if t.command.IsZero() {
			t.command = begun
		}
		t.acked = acked
	}
	m, err := x.sw.CrossConnects(x.ctx)
	if err != nil {
		return view{}, fmt.Errorf("%w: %w", errUnread, err)
	}
	return o.see(m), nil
}

// give frees the ports that have gone dark and stay so.
func (x *try) give(v view) {
	o := x.o
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, t := range x.batch {
		if t.kind == takeOld || t.barrier() || x.failed[t] != nil {
			continue
		}
		for i, q := range t.ports {
			if t.goal[i] != dark || v.to[q] != dark || v.from[q] != dark || t.left(i) {
				continue
			}
			if t.freed == nil {
				t.freed = make([]bool, len(t.ports))
			}
			if !t.freed[i] {
				t.freed[i] = true
				o.held[q] = dark
				o.trustLocked(q)
				o.leaveLocked(t, q)
			}
		}
	}
	o.pumpLocked()
}

// verify compares the ports of t with its goal. Those where another one came past are not among them: the
// circuit that they had is gone, since its other end has another peer, which is compared.
func (x *try) verify(t *ticket, v view) {
	x.o.mu.Lock()
	defer x.o.mu.Unlock()
	var wrong []ocs.CrossConnect
	var where []int
	a := x.o.opt.Assignment
	for i, q := range t.ports {
		if t.left(i) {
			continue
		}
		goal := t.goal[i]
		if v.to[q] == goal && v.from[q] == goal {
			continue
		}
		where = append(where, q)
		switch {
		case goal >= 0 && v.to[q] != goal:
			wrong = append(wrong, ocs.CrossConnect{Ingress: a[q].In, Egress: a[goal].Out})
		case v.to[q] >= 0:
			wrong = append(wrong, ocs.CrossConnect{Ingress: a[q].In, Egress: a[v.to[q]].Out})
		}
	}
	if len(where) > 0 {
		const most = 3 // the first few of many are enough to know where to look
		x.fail(t, fmt.Errorf("%s: %s acknowledged, but the %w", x.o.names(where), x.o.opt.Switch, &ocs.VerifyError{Wrong: wrong[:min(len(wrong), most)], After: v.all}))
	}
}
