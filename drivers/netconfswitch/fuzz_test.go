package netconfswitch_test

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/ocslab/ocslab/drivers/netconfswitch"
	"github.com/ocslab/ocslab/ocs"
)

// FuzzPeer is a device that says anything at all. "ID" stands for the
// message-id of the request. Calls end, with a result or an *ocs.OpError, and no
// secret is in it.
func FuzzPeer(f *testing.F) {
	eom, chunks := &line{}, &line{chunked: true, size: 50}
	for _, l := range []*line{eom, chunks} {
		for _, s := range []string{
			replyTo("ID", data("cross-connects", pair1)),
			replyTo("ID", data("port-config", entry("1", "<label>a</label><status>ENABLED</status>"))),
			replyTo("ID", data("voa", entry("33", "<atten-mode>VOA_MODE_RELATIVE</atten-mode><atten-level>-3</atten-level>"))),
			replyTo("ID", data("opm-config", entry("1", "<wavelength>1550</wavelength><averaging-time>4</averaging-time>"))),
			replyTo("ID", rpcError("in-use", "/x", "no")+"<data/>"),
			replyTo("ID", ok), replyTo("7", ok), alarm, helloText(modern...), "<password>hunter2",
		} {
			f.Add(l.chunked, l.frame(s))
			f.Add(l.chunked, l.frame(alarm)+l.frame(s)[:20])
		}
	}
	calls := []func(sw *netconfswitch.Switch) error{
		func(sw *netconfswitch.Switch) error { _, err := sw.CrossConnects(ctx); return err },
		func(sw *netconfswitch.Switch) error { _, err := sw.Identify(ctx); return err },
		func(sw *netconfswitch.Switch) error { _, err := sw.Power(ctx, 1); return err },
		func(sw *netconfswitch.Switch) error { _, err := sw.Monitors(ctx); return err },
		func(sw *netconfswitch.Switch) error { _, err := sw.Labels(ctx); return err },
		func(sw *netconfswitch.Switch) error { _, err := sw.Shutters(ctx); return err },
		func(sw *netconfswitch.Switch) error { _, err := sw.Attenuation(ctx, 33); return err },
		func(sw *netconfswitch.Switch) error { _, err := sw.BootMode(ctx); return err },
		func(sw *netconfswitch.Switch) error {
			_, err := sw.Apply(ctx, ocs.Change{Remove: ocs.MustMap(ocs.CrossConnect{Ingress: 1, Egress: 33})})
			return err
		},
		func(sw *netconfswitch.Switch) error { return sw.Notify(ctx, func(ocs.Event) {}) },
	}
	f.Fuzz(func(t *testing.T, chunked bool, said string) {
		caps := modern
		if !chunked {
			caps = []string{base10, notifies, interleave, optical, polatis}
		}
		synctest.Test(t, func(t *testing.T) {
			p := newPeer(t)
			for range 4 * len(calls) {
				p.Add(1, func(l *line) {
					l.hello(caps...)
					if l.next() == "" {
						return
					}
					l.raw(strings.ReplaceAll(said, "ID", l.id))
					l.Close()
					_, _ = io.Copy(io.Discard, l.In)
				})
			}
			sw := p.open()
			for i, call := range calls {
				err := call(sw)
				var op *ocs.OpError
				switch {
				case err == nil:
				case !errors.As(err, &op):
					t.Errorf("call %d: got %v", i, err)
				case strings.Contains(op.Reply, "<password>hunter2"):
					t.Errorf("call %d: got %q", i, op.Reply)
				}
			}
			sw.Close()
			p.Wait()
		})
	})
}

// FuzzMask: what stands in an element of a secret is not there afterwards.
func FuzzMask(f *testing.F) {
	f.Add("", "hunter2", "")
	f.Add("<a>", "x&lt;y", "</a>")
	f.Add("<password/><password>", "z", "</password>")
	f.Fuzz(func(t *testing.T, before, secret, behind string) {
		for _, name := range []string{"password", "x:secret", "auth-password"} {
			err := &ocs.OpError{}
			text := before + "<" + name + ">" + secret + "</" + name + ">" + behind
			if len(secret) < 8 || // shorter ones are in a message-id by chance
				strings.ContainsAny(secret, "<*") || strings.Contains(before+behind+name+"***", secret) {
				return
			}
			synctest.Test(t, func(t *testing.T) {
				p := newPeer(t, func(l *line) {
					l.hello(base10, optical)
					l.next()
					l.raw(strings.ReplaceAll(replyTo(l.id, text), "]]>]]>", "") + "]]>]]>")
					l.Close()
				})
				sw := p.open()
				short, cancel := context.WithTimeout(ctx, 1e9)
				defer cancel()
				_, got := sw.Apply(short, ocs.Change{Add: ocs.MustMap(ocs.CrossConnect{Ingress: 1, Egress: 33})})
				if got == nil || !errors.As(got, &err) || strings.Contains(err.Reply, secret) {
					t.Errorf("%q: got %v", text, got)
				}
				sw.Close()
				p.Wait()
			})
		}
	})
}
