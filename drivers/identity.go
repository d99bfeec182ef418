package drivers

import (
	"context"
	"net"
	"net/netip"
	"path/filepath"
	"slices"
	"time"
)

// resolveTimeout is how long the name of a device may take to resolve.
const resolveTimeout = 2 * time.Second

// addresses returns the addresses of a device with their port, in ascending order: those of its host, with one
// address for all of the loopback, or the path that it is at, symbolic links followed. A name that does not resolve
// stands for itself.
func (t Target) addresses(ctx context.Context) []string {
	if t.Path != "" {
		path := t.Path
		if real, err := filepath.EvalSymlinks(path); err == nil {
			path = real
		}
		return []string{path}
	}
	host, port, err := net.SplitHostPort(t.Host)
	if err != nil {
		return []string{t.Host}
	}
	ctx, cancel := context.WithTimeout(ctx, resolveTimeout)
	defer cancel()
	found, err := net.DefaultResolver.LookupNetIP(ctx, "ip", host)
	if err != nil {
		return []string{t.Host}
	}
	var all []string
	for _, a := range found {
		if a = a.Unmap(); a.IsLoopback() {
			a = netip.AddrFrom4([4]byte{127, 0, 0, 1})
		}
		all = append(all, net.JoinHostPort(a.String(), port))
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// SameAddress reports whether two URLs lead to the same address and port, or the same path, after host names
// have been resolved. Protocols and users do not matter: one port serves one device. A URL that cannot be parsed
// is the same as none.
func SameAddress(ctx context.Context, a, b string) bool {
	t, err := Parse(a)
	if err != nil {
		return false
	}
	u, err := Parse(b)
	if err != nil {
		return false
	}
	if t.Host == u.Host && t.Path == u.Path {
		return true
	}
	others := u.addresses(ctx)
	return slices.ContainsFunc(t.addresses(ctx), func(x string) bool { return slices.Contains(others, x) })
}

// AddressOf returns one address for all URLs that are the same to [SameAddress], as far as their names resolve to the
// same addresses; the text itself if it is no URL.
func AddressOf(ctx context.Context, url string) string {
	t, err := Parse(url)
	if err != nil {
		return url
	}
	return t.addresses(ctx)[0]
}
