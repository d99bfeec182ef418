package netconfswitch

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"

	juniper "github.com/Juniper/go-netconf/netconf"

	"github.com/ocslab/ocslab/ocs"
	"github.com/ocslab/ocslab/wire/netconf"
)

// Notify subscribes to the stream Polatis and hands its notifications to f: on
// the session of the requests when the device announces interleave, otherwise on
// a second one that is closed when the last call of Notify ends. A subscription
// cannot be ended within a session.
//
// Notifications that the device is configured not to send are switched on if
// that is permitted; they stay on. If it is not, the first event says so. See
// [ocs.Notifier].
func (sw *Switch) Notify(ctx context.Context, f func(ocs.Event)) error {
	l := sw.events.Add()
	s, warned, err := sw.listen(ctx)
	if err == nil {
		if warned != nil {
			f(ocs.Event{Received: time.Now(), Severity: "event", Text: warned.Error()})
		}
		err = sw.fail("listen", "", "", l.Run(ctx, s.ended, func() error { return s.err }, f))
	}
	sw.events.Remove(l)
	sw.unlisten(ctx)
	return err
}

// listen returns the session that notifications come on, and what could not be
// switched on.
func (sw *Switch) listen(ctx context.Context) (s *session, warned, err error) {
	const op = "listen"
	main, _, err := sw.session(ctx)
	if err != nil {
		return nil, nil, err
	}
	if !main.dev.notifies {
		return nil, nil, sw.fail(op, "", "", fmt.Errorf("the device does not announce notifications: %w", ocs.ErrNotSupported))
	}
	if err := sw.life.Take(ctx, sw.listening); err != nil {
		return nil, nil, sw.fail(op, "", "", err)
	}
	defer sw.listening.Pass()
	s = main
	if !main.dev.interleave {
		if sw.ear == nil || !sw.ear.alive() {
			if sw.ear, err = sw.secondSession(ctx); err != nil {
				sw.ear = nil
				return nil, nil, err
			}
		}
		s = sw.ear
	}
	if !s.subscribed.Load() {
		if s.warned, err = sw.switchOn(ctx, &main.dev); err != nil {
			return nil, nil, err
		}
		if err := s.subscribe(ctx); err != nil {
			return nil, nil, err
		}
	}
	s.relieve() // from now on it reads all the time
	return s, s.warned, nil
}

// secondSession opens a session beside that of the requests.
func (sw *Switch) secondSession(ctx context.Context) (*session, error) {
	if err := sw.life.Take(ctx, sw.dialing); err != nil {
		return nil, sw.fail("connect", "", "", err)
	}
	defer sw.dialing.Pass()
	return sw.connect(ctx)
}

// subscribe asks for notifications on s. A device that does not know the stream
// may send the same on the one that every device has.
func (s *session) subscribe(ctx context.Context) error {
	const op = "subscribe to notifications"
	body := func(stream string) string {
		return `<create-subscription xmlns="` + netconf.NotificationNS + `"><stream>` + stream + `</stream></create-subscription>`
	}
	// What comes together with the reply counts.
	s.subscribed.Store(true)
	_, err := s.exchange(ctx, request{op: op, body: body("Polatis")})
	var refused *denial
	if errors.As(err, &refused) && refused.said[0].Tag != netconf.AccessDenied {
		if _, again := s.exchange(ctx, request{op: op, body: body("NETCONF")}); again == nil {
			err = nil
		}
	}
	if err == nil {
		return nil
	}
	s.subscribed.Store(false)
	if !errors.As(err, &refused) {
		// There may be a subscription now or later; a second one is refused.
		s.retire()
	}
	return err
}

// unlisten closes the second session, if there is one and nobody listens any
// more.
func (sw *Switch) unlisten(ctx context.Context) {
	if sw.events.Wanted() {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer cancel()
	if sw.life.Take(ctx, sw.listening) != nil {
		return // somebody is about to listen
	}
	defer sw.listening.Pass()
	if sw.ear != nil && !sw.events.Wanted() {
		sw.ear.close(errors.New("nobody listens any more"))
		sw.ear = nil
	}
}

// kinds are the bits of mask-notification and of enable-notifications.
const kinds = "NOTIF_PORT_POWER NOTIF_PORT_POWER_WARN NOTIF_SYSTEM NOTIF_APS NOTIF_ACTIVITY"

// switchOn makes the device send all kinds of notifications. What it refuses is
// no error but a warning.
func (sw *Switch) switchOn(ctx context.Context, dev *announced) (warned, err error) {
	if !dev.polatis {
		return nil, nil
	}
	const op = "switch notifications on"
	leaf, want := "mask-notification", ""
	if dev.oldPolatis {
		leaf, want = "enable-notifications", kinds
	}
	filter := `<` + leaf + ` xmlns="` + polatisNS + `"/>`
	a, err := sw.do(ctx, request{op: op, body: string(juniper.MethodGet("subtree", filter)), read: true, about: leaf})
	if err == nil {
		set := a.reply.Data.Value(leaf)
		if sameBits(set, want) {
			return nil, nil
		}
		r := dev.edit(op, polatisNS, leaf, want)
		_, err = sw.do(ctx, r)
	}
	var refused *denial
	if errors.As(err, &refused) {
		return fmt.Errorf("the device may not send all kinds of notifications, and they cannot be switched on: %v", refused), nil
	}
	return nil, err
}

// sameBits reports whether two values of YANG type bits have the same bits.
func sameBits(a, b string) bool {
	set := map[string]bool{}
	for _, bit := range strings.Fields(a) {
		set[bit] = true
	}
	n := 0
	for _, bit := range strings.Fields(b) {
		if !set[bit] {
			return false
		}
		n++
	}
	return n == len(set)
}

// severities are those of the known notifications; the others are plain events.
var severities = map[string]string{
	"port-power-alarm": "major", "port-power-warn-alarm": "minor", "system-error": "major",
}

// namedPort is a port in the text of a notification that has no leaf for it.
var namedPort = regexp.MustCompile(`(?i)\bport (\d{1,5})\b`)

// announce hands a notification to those who listen. The text is what somebody
// did, or the name of the notification and what is in it.
func (sw *Switch) announce(root *netconf.Node, raw []byte, received time.Time) {
	if !sw.events.Wanted() {
		return
	}
	e := ocs.Event{Received: received, Severity: "event", Raw: mask(string(raw))}
	for _, n := range root.Children {
		if n.Name.Local == "eventTime" {
			continue
		}
		e.Text = n.Name.Local
		if s := severities[e.Text]; s != "" {
			e.Severity = s
		}
		if n.Value("switch-status") == "REQUEST_SERVICE" {
			e.Severity = "critical"
		}
		e.Port, _ = parsePort(n.Value("port-id"))
		if text := activity(n); text != "" {
			e.Text = text
		} else if details := describe(nil, n); len(details) > 0 {
			e.Text += ": " + strings.Join(details, ", ")
		}
		if sub := namedPort.FindStringSubmatch(e.Text); e.Port == 0 && sub != nil {
			p, _ := strconv.Atoi(sub[1]) // at most five digits
			e.Port = ocs.Port(p)
		}
	}
	sw.events.Publish(e)
}

// activity says in one sentence what somebody did, if that is what a
// notification tells.
func activity(n *netconf.Node) string {
	text := strings.TrimSpace(n.Value("notification-activity"))
	if text == "" {
		return ""
	}
	for _, part := range [][2]string{{", by ", "notification-username"}, {" over ", "notification-protocol"}, {" from ", "notification-ip-address"}} {
		if v := strings.TrimSpace(n.Value(part[1])); v != "" {
			text += part[0] + v
		}
	}
	return text
}

// describe appends the leaves of a notification, those with a text.
func describe(to []string, n *netconf.Node) []string {
	for _, c := range n.Children {
		text := strings.TrimSpace(c.Text)
		switch {
		case len(c.Children) > 0:
			to = describe(to, c)
		case secretName.MatchString(c.Name.Local):
			to = append(to, c.Name.Local+" ***")
		case text != "":
			to = append(to, c.Name.Local+" "+text)
		}
	}
	return to
}
