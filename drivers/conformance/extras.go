package conformance

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/ocslab/ocslab/ocs"
)

// labelled sets a label and reads it back. A refusal by the device is told
// apart from what went wrong.
func (b *bench) labelled(ctx context.Context, text string) (refusal, err error) {
	p := b.pairs[0].Ingress
	if err := b.setLabel(ctx, p, text); errors.Is(err, ocs.ErrDenied) {
		return err, nil
	} else if err != nil {
		return nil, err
	}
	l, _ := ocs.As[ocs.Labeler](b.first)
	all, err := l.Labels(ctx, p)
	if err != nil {
		return nil, err
	}
	if got, has := all[p]; got != text || has != (text != "") {
		return nil, fmt.Errorf("port %d was labelled %q, and %q reads back", p, text, got)
	}
	return nil, nil
}

func (b *bench) label(ctx context.Context) error {
	for _, text := range []string{"conformance1", "conformance2", ""} {
		if refusal, err := b.labelled(ctx, text); refusal != nil || err != nil {
			return errors.Join(refusal, err)
		}
	}
	return nil
}

// labelText tries what is special to protocols. A device may refuse it, but
// not store something else.
func (b *bench) labelText(ctx context.Context) error {
	var refusals []string
	for _, text := range []string{
		"two words", "a;b", `say "hi"`, "a,b", "a&b", "a&&b", "a=b", "a:b", `back\slash`, "rack-4/2", "100%", "it's", "(x)", "#@$<>",
		"M  1 COMPLD", "/* a */",
	} {
		refusal, err := b.labelled(ctx, text)
		if err != nil {
			return err
		}
		if refusal != nil {
			refusals = append(refusals, strconv.Quote(text))
		}
	}
	if len(refusals) > 0 {
		b.quirk("label text", "some is refused", "%s", strings.Join(refusals, " "))
	} else {
		b.quirk("label text", "any", "blanks, quotes, semicolons and the like read back")
	}
	return nil
}

// labelLength finds the longest label by halving.
func (b *bench) labelLength(ctx context.Context) error {
	const most = 512
	good, bad := 0, most+1
	var why error
	for bad-good > 1 {
		n := (good + bad) / 2
		refusal, err := b.labelled(ctx, strings.Repeat("x", n))
		switch {
		case err != nil:
			return err
		case refusal == nil:
			good = n
		default:
			bad, why = n, refusal
		}
	}
	switch good {
	case 0:
		return fmt.Errorf("a label of one character is refused: %w", why)
	case most:
		b.quirk("label length", fmt.Sprintf("%d or more", most), "longer ones were not tried")
	default:
		b.quirk("label length", strconv.Itoa(good), "%d characters: %s", bad, sentence(why))
	}
	return nil
}

// errHeard ends listening.
var errHeard = errors.New("the suite has heard enough")

// notify listens with the first client while the second operates a shutter.
func (b *bench) notify(ctx context.Context) error {
	if !b.supported[capShutter] {
		return skipf("there is no shutter to cause an event with")
	}
	p := b.pairs[0].Egress
	n, _ := ocs.As[ocs.Notifier](b.first)
	listening, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	heard, ended := make(chan ocs.Event, 1), make(chan error, 1)
	go func() {
		ended <- safely(func() error {
			return n.Notify(listening, func(e ocs.Event) {
				if e.Port == p {
					select {
					case heard <- e:
					default:
					}
				}
			})
		})
	}()
	var event ocs.Event
	var early error
	closed := false
	// Nobody says when listening has begun, so the shutter is operated again.
	got, err := b.soon(ctx, func() (bool, error) {
		closed = !closed
		if err := b.setShutters(ctx, b.second, closed, p); err != nil {
			return false, err
		}
		select {
		case event = <-heard:
			return true, nil
		case err := <-ended:
			early = fmt.Errorf("listening ended by itself: %w", orNone(err))
			return false, early
		case <-time.After(b.cfg.Settle / 10):
			return false, nil
		}
	})
	if early != nil {
		return early
	}
	stop(errHeard)
	select {
	case why := <-ended:
		if err == nil && !errors.Is(why, errHeard) {
			err = fmt.Errorf("listening should end with context.Cause, but gives: %w", orNone(why))
		}
	case <-time.After(prompt):
		return fmt.Errorf("listening did not end within %v of its context", prompt)
	}
	if err == nil && !got {
		err = fmt.Errorf("a second client operated the shutter of port %d for %v, and no event named that port", p, b.cfg.Settle)
	}
	if err != nil {
		return err
	}
	b.quirk("event of a shutter", event.Severity, "%s", event.Text)
	return b.expect(ctx, b.first)
}

func (b *bench) bootMode(ctx context.Context) error {
	r, _ := ocs.As[ocs.Restarter](b.first)
	m, err := r.BootMode(ctx)
	switch {
	case err != nil:
		return err
	case m != ocs.BootDark && m != ocs.BootRestore:
		return fmt.Errorf("the boot mode is %q, neither %s nor %s", m, ocs.BootDark, ocs.BootRestore)
	}
	b.quirk("boot mode", string(m), "as found")
	return nil
}

func (b *bench) restartRestore(ctx context.Context) error { return b.restart(ctx, ocs.BootRestore) }
func (b *bench) restartDark(ctx context.Context) error    { return b.restart(ctx, ocs.BootDark) }

// restart restarts the device in a boot mode and wants it to hold afterwards
// what that mode says.
func (b *bench) restart(ctx context.Context, mode ocs.BootMode) error {
	return b.whole(ctx, func() error {
		if len(b.pairs) > 0 {
			if err := b.connect(ctx, b.pairs...); err != nil {
				return err
			}
		}
		want, err := b.first.CrossConnects(ctx)
		if err != nil {
			return err
		}
		if want.Len() == 0 {
			return skipf("there is no circuit that could be kept or lost")
		}
		if err := b.setBoot(ctx, mode); err != nil {
			return err
		}
		r, _ := ocs.As[ocs.Restarter](b.first)
		switch now, err := r.BootMode(ctx); {
		case err != nil:
			return err
		case now != mode:
			return fmt.Errorf("the boot mode was set to %s, and %q reads back", mode, now)
		}
		if err := r.Restart(ctx); err != nil {
			return err
		}
		if mode == ocs.BootDark {
			want = ocs.Map{}
		}
		// The device may end the session, and be away for a while.
		var got ocs.Map
		done, err := poll(ctx, b.cfg.Timeout/2, func() (bool, error) {
			if b.first == nil && b.reopen(ctx) != nil {
				return false, nil
			}
			if got, err = b.first.CrossConnects(ctx); err != nil {
				b.close()
			}
			return err == nil && got.Equal(want), nil
		})
		if err == nil && !done {
			err = fmt.Errorf("after a restart in boot mode %s the map should be %s, but is %s", mode, orNothing(want), orNothing(got))
		}
		return err
	})
}
