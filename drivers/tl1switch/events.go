package tl1switch

import (
	"context"
	"regexp"
	"strconv"
	"time"

	"github.com/ocslab/ocslab/ocs"
	"github.com/ocslab/ocslab/wire/tl1"
)

// Notify allows autonomous messages on this session and hands them to f. When
// the last call of it ends they are inhibited again, for which it takes up to a
// second longer. See [ocs.Notifier].
func (sw *Switch) Notify(ctx context.Context, f func(ocs.Event)) error {
	l := sw.events.Add()
	s, err := sw.listen(ctx)
	if err == nil {
		err = sw.fail("listen", "", "", l.Run(ctx, s.ended, func() error { return s.err }, f))
	}
	sw.events.Remove(l)
	sw.unlisten(ctx)
	return err
}

// listen returns the session that autonomous messages are allowed on.
func (sw *Switch) listen(ctx context.Context) (*session, error) {
	const op = "listen"
	if err := sw.take(ctx, op); err != nil {
		return nil, err
	}
	defer sw.turn.Pass()
	if sw.s == nil || !sw.s.usable() {
		if err := sw.connect(ctx); err != nil {
			return nil, err
		}
	}
	err := sw.inhibit(ctx, sw.s)
	if notLoggedIn(err) {
		err = sw.login(ctx, sw.s)
	}
	sw.s.relieve() // from now on it reads all the time
	return sw.s, err
}

// unlisten inhibits autonomous messages if nobody listens any more. If that
// fails, they are dropped when they come.
func (sw *Switch) unlisten(ctx context.Context) {
	if sw.events.Wanted() {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer cancel()
	if sw.take(ctx, "") != nil {
		return
	}
	defer sw.turn.Pass()
	if sw.s != nil && sw.s.usable() {
		_ = sw.inhibit(ctx, sw.s) // looks again whether anybody listens
	}
}

var severities = map[string]string{"*C": "critical", "**": "major", "*": "minor", "A": "event"}

// The port is what stands before the colon of an autonomous message's text, or
// is named in it.
var (
	leadingPort = regexp.MustCompile(`^"?(\d{1,5}):`)
	namedPort   = regexp.MustCompile(`(?i)\bport (\d{1,5})\b`)
)

// announce hands an autonomous message to those who listen.
func (sw *Switch) announce(m tl1.Message, received time.Time) {
	if !sw.events.Wanted() {
		return
	}
	e := ocs.Event{Received: received, Severity: severities[m.Alarm], Text: m.Event, Raw: sw.hide.text(string(m.Raw))}
	for _, line := range m.Text {
		e.Text += ": " + sw.hide.text(line)
		for _, re := range []*regexp.Regexp{leadingPort, namedPort} {
			if sub := re.FindStringSubmatch(line); e.Port == 0 && sub != nil {
				n, _ := strconv.Atoi(sub[1]) // at most five digits
				e.Port = ocs.Port(n)
			}
		}
	}
	sw.events.Publish(e)
}
