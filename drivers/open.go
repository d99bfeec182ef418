package drivers

import (
	"context"
	"fmt"
	"maps"
	"net"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/ocslab/ocslab/drivers/tl1switch"
	"github.com/ocslab/ocslab/drivers/transport"
	"github.com/ocslab/ocslab/internal/secret"
	"github.com/ocslab/ocslab/ocs"
)

// Options are what a URL does not say.
type Options struct {
	Name     string // of the device in messages; default host:port
	Password secret.Secret
	Timeout  time.Duration // for one reply; 0 is the driver's default
	// Trace, when set, is called with what is sent and received, one piece at a
	// time, with secrets masked. It must not keep p nor call the switch.
	Trace func(sent bool, p []byte)
}

// URLError is a URL that cannot be used. Its text never holds a password.
type URLError struct {
	URL    string // protocol and address only
	Reason string
}

// Error returns one sentence.
func (e *URLError) Error() string { return fmt.Sprintf("switch URL %q: %s", e.URL, e.Reason) }

// Target is a switch URL that has been understood.
type Target struct {
	Scheme, User, Host string // Host has its port
	options            map[string]string
}

// scheme is an entry of the table of protocols.
type scheme struct {
	port string // default
	// options are the keys a query may have and what says why a value is
	// wrong, "" if it is not.
	options map[string]func(value string) string
	open    func(ctx context.Context, t Target, opt Options) (ocs.Switch, error)
}

var schemes = map[string]scheme{
	"tl1": {port: "3082", options: map[string]func(string) string{"max-pairs": positive}, open: openTL1},
}

func positive(value string) string {
	if n, err := strconv.Atoi(value); err != nil || n < 1 {
		return "want a number from 1"
	}
	return ""
}

// IsURL reports whether s is meant as a URL rather than as a name.
func IsURL(s string) bool { return strings.Contains(s, "://") }

// Parse checks a URL without connecting. Errors are a *[URLError].
func Parse(raw string) (Target, error) {
	fail := func(format string, args ...any) (Target, error) {
		return Target{}, &URLError{redact(raw), fmt.Sprintf(format, args...)}
	}
	u, err := url.Parse(raw)
	if err != nil {
		// Its text quotes the URL, and there may be a password in it.
		return fail("cannot be read")
	}
	_, password := u.User.Password()
	if password || strings.Contains(u.Opaque+u.Path+u.RawQuery+u.Fragment, "@") {
		return fail("a password does not belong into a URL: use --password env:NAME or file:PATH, or password: in the lab file")
	}
	sc, known := schemes[u.Scheme]
	switch {
	case !known:
		return fail("unknown protocol: want one of %s", list(schemes))
	case u.Hostname() == "":
		return fail("no host")
	case u.Path != "" && u.Path != "/" || u.Fragment != "":
		return fail("want nothing behind the address but ?options")
	}
	port := u.Port()
	if port == "" {
		port = sc.port
	}
	if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
		return fail("the port is not one of 1 to 65535")
	}
	t := Target{u.Scheme, u.User.Username(), net.JoinHostPort(u.Hostname(), port), map[string]string{}}
	query, err := url.ParseQuery(u.RawQuery)
	if err != nil {
		return fail("the options cannot be read")
	}
	for key, values := range query {
		check, known := sc.options[key]
		switch {
		case !known:
			// Neither key nor value is shown: somebody may have tried to
			// pass a password.
			return fail("there is an unknown option: want %s", list(sc.options))
		case len(values) > 1:
			return fail("%s is there twice", key)
		}
		if wrong := check(values[0]); wrong != "" {
			return fail("%s: %s", key, wrong)
		}
		t.options[key] = values[0]
	}
	return t, nil
}

func list[V any](m map[string]V) string { return strings.Join(slices.Sorted(maps.Keys(m)), ", ") }

// redact leaves protocol and address of a URL, whether it can be read or not.
func redact(raw string) string {
	scheme, address, found := strings.Cut(raw, "://")
	if found {
		scheme += "://"
	} else {
		scheme, address = "", raw
	}
	// A password may have any character but is always before the last '@'.
	user := ""
	if i := strings.LastIndexByte(address, '@'); i >= 0 {
		user, address = "***@", address[i+1:]
	}
	if i := strings.IndexAny(address, "/?#"); i >= 0 {
		address = address[:i]
	}
	// What should be a port may be the password of who forgot the host.
	if i := strings.LastIndexByte(address, ':'); i >= 0 && strings.Trim(address[i+1:], "0123456789]") != "" {
		address = address[:i+1] + "***"
	}
	return scheme + user + address
}

// String returns the URL without user and options: what stays the same however
// a device is spoken of.
func (t Target) String() string { return t.Scheme + "://" + t.Host }

// Loopback reports whether the address is one of this machine.
func (t Target) Loopback() bool {
	host, _, _ := net.SplitHostPort(t.Host)
	return strings.EqualFold(host, "localhost") || net.ParseIP(host).IsLoopback()
}

// Open connects to the switch at a URL. Errors are a *[URLError] or, from the
// wire, an *[ocs.OpError].
func Open(ctx context.Context, rawURL string, opt Options) (ocs.Switch, error) {
	t, err := Parse(rawURL)
	if err != nil {
		return nil, err
	}
	if opt.Name == "" {
		opt.Name = t.Host
	}
	return schemes[t.Scheme].open(ctx, t, opt)
}

func openTL1(ctx context.Context, t Target, opt Options) (ocs.Switch, error) {
	cfg := tl1switch.Config{
		Dialer: transport.TCP{Addr: t.Host}, Device: opt.Name,
		User: t.User, Password: opt.Password, Timeout: opt.Timeout,
	}
	if s, set := t.options["max-pairs"]; set {
		cfg.MaxPairs, _ = strconv.Atoi(s) // Parse has checked it
	}
	if opt.Trace != nil {
		cfg.Trace = func(d tl1switch.Direction, p []byte) { opt.Trace(d == tl1switch.Sent, p) }
	}
	sw, err := tl1switch.Open(ctx, cfg)
	if err != nil {
		return nil, err // not a typed nil
	}
	return sw, nil
}
