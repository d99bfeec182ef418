package drivers

import (
	"fmt"
	"maps"
	"net"
	"net/url"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	cryptossh "golang.org/x/crypto/ssh"

	"github.com/ocslab/ocslab/drivers/transport"
)

// URLError is a URL that cannot be used. Its text never holds a password.
type URLError struct {
	URL    string // protocol and address only
	Reason string
}

// Error returns one sentence.
func (e *URLError) Error() string { return fmt.Sprintf("switch URL %q: %s", e.URL, e.Reason) }

// Target is a switch URL that has been understood.
type Target struct {
	Scheme, User string
	Host         string // with its port; "" where the address is a path
	Path         string // of a serial line, a bus or a file
	options      map[string]string
}

func anything(string) string { return "" }

var fingerprint = regexp.MustCompile(`^SHA256:[A-Za-z0-9+/]{43}=?$`)

func hostKey(value string) string {
	value = unblank(value)
	if _, _, _, _, err := cryptossh.ParseAuthorizedKey([]byte(value)); err == nil || fingerprint.MatchString(value) {
		return ""
	}
	return "want a fingerprint, SHA256: and 43 characters, as ssh-keygen -l prints it, or a public key"
}

func algorithms(value string) string {
	known := transport.LegacyAlgorithms()
	for name := range strings.SplitSeq(value, ",") {
		if !slices.Contains(known, name) {
			return fmt.Sprintf("%.40q is none of %s", name, strings.Join(known, ", "))
		}
	}
	return ""
}

func duration(value string) string {
	if d, err := time.ParseDuration(value); err != nil || d < 0 || d > time.Minute {
		return "want a time from 0s to 1m, such as 100ms"
	}
	return ""
}

func yes(value string) string {
	if value != "yes" {
		return "want yes, or leave it out"
	}
	return ""
}

func word(words ...string) func(string) string {
	return func(value string) string {
		if !slices.Contains(words, value) {
			return "want one of " + strings.Join(words, ", ")
		}
		return ""
	}
}

// addresses are 7-bit addresses on an I2C bus.
func addresses(value string) string {
	for a := range strings.SplitSeq(value, ",") {
		if n, err := strconv.ParseUint(a, 0, 7); err != nil || n < 0x08 || n > 0x77 {
			return "want addresses of 0x08 to 0x77, separated by commas"
		}
	}
	return ""
}

func microseconds(value string) string {
	if d, err := time.ParseDuration(value); err != nil || d < time.Microsecond || d > time.Millisecond {
		return "want a time from 1us to 1ms, such as 200us"
	}
	return ""
}

func positive(value string) string {
	if n, err := strconv.Atoi(value); err != nil || n < 1 {
		return "want a number from 1"
	}
	return ""
}

// Schemes returns the protocols of URLs that can be opened.
func Schemes() []string { return slices.Sorted(maps.Keys(schemes)) }

// PathExample returns an address of a scheme whose URLs lead to a path; "" for others.
func PathExample(scheme string) string { return schemes[scheme].path }

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
	sc, known := schemes[u.Scheme]
	_, password := u.User.Password()
	behind := u.Opaque + u.Path + u.RawQuery + u.Fragment
	if sc.path != "" { // names in /dev/serial/by-path have an @
		behind = u.RawQuery + u.Fragment
	}
	if password || strings.Contains(behind, "@") {
		return fail("a password does not belong into a URL: use --password env:NAME or file:PATH, or password: in the lab file")
	}
	switch {
	case !known:
		return fail("unknown protocol: want one of %s", list(schemes))
	case sc.path != "":
		return parseLine(raw, u, sc)
	case u.Hostname() == "":
		return fail("no host")
	case u.Path != "" && u.Path != "/" || u.Fragment != "":
		return fail("want nothing behind the address but ?options")
	}
	options, wrong := sc.parseOptions(u.RawQuery)
	if wrong != "" {
		return fail("%s", wrong)
	}
	port := u.Port()
	if port == "" {
		port = sc.port
		if p, other := dialectPorts[options["dialect"]]; other && u.Scheme == "tl1" {
			port = p
		}
	}
	if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
		return fail("the port is not one of 1 to 65535")
	}
	return Target{Scheme: u.Scheme, User: u.User.Username(), Host: net.JoinHostPort(u.Hostname(), port), options: options}, nil
}

// parseLine reads a URL whose address is a path.
func parseLine(raw string, u *url.URL, sc scheme) (Target, error) {
	fail := func(format string, args ...any) (Target, error) {
		return Target{}, &URLError{u.Scheme + "://" + u.Path, fmt.Sprintf(format, args...)}
	}
	switch {
	case u.Host != "":
		return fail("want a path, as in %s://%s, and no host", u.Scheme, sc.path)
	case u.Path == "" || u.Path == "/":
		return fail("no path: want one as in %s://%s", u.Scheme, sc.path)
	case u.Fragment != "":
		return fail("want nothing behind the path but ?options")
	}
	options, wrong := sc.parseOptions(u.RawQuery)
	if wrong != "" {
		return fail("%s", wrong)
	}
	return Target{Scheme: u.Scheme, User: u.User.Username(), Path: filepath.Clean(u.Path), options: options}, nil
}

// parseOptions reads a query; wrong says what is wrong with it. Neither key nor
// value of an unknown option is shown: somebody may have tried to pass a
// password.
func (sc scheme) parseOptions(rawQuery string) (options map[string]string, wrong string) {
	query, err := url.ParseQuery(rawQuery)
	if err != nil {
		return nil, "the options cannot be read"
	}
	options = map[string]string{}
	for key, values := range query {
		check, known := sc.options[key]
		switch {
		case !known && len(sc.options) == 0:
			return nil, "there is an unknown option: this protocol has none"
		case !known:
			return nil, "there is an unknown option: want " + list(sc.options)
		case len(values) > 1:
			return nil, key + " is there twice"
		}
		if bad := check(values[0]); bad != "" {
			return nil, key + ": " + bad
		}
		options[key] = values[0]
	}
	return options, ""
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
func (t Target) String() string { return t.Scheme + "://" + t.Host + t.Path }

// address is where the device is, for messages.
func (t Target) address() string { return t.Host + t.Path }

// Loopback reports whether the device is a program on this machine: at a
// loopback address, or at the other end of a pseudo-terminal.
func (t Target) Loopback() bool {
	if t.Path != "" {
		real, err := filepath.EvalSymlinks(t.Path)
		return err == nil && strings.HasPrefix(real, "/dev/pts/")
	}
	host, _, _ := net.SplitHostPort(t.Host)
	return strings.EqualFold(host, "localhost") || net.ParseIP(host).IsLoopback()
}
