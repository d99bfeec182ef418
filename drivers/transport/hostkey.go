package transport

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/knownhosts"
)

// HostKeyProblem is why a key is not accepted.
type HostKeyProblem string

const (
	HostKeyUnknown HostKeyProblem = "unknown" // the host is in no known_hosts file
	HostKeyChanged HostKeyProblem = "changed" // it is, with other keys
	HostKeyRevoked HostKeyProblem = "revoked" // the key is marked @revoked
	HostKeyPinned  HostKeyProblem = "pinned"  // another one is pinned
)

// HostKeyError is a host that does not show the key it should. Nothing has been
// sent to it.
type HostKeyError struct {
	Addr        string // as dialed
	Type        string // of the key it shows: "ssh-ed25519"
	Fingerprint string // of that key: "SHA256:..."
	Problem     HostKeyProblem
	Where       string // the pin, the first "file:line" with another key, or the files
	Want        string // fingerprint of that other key; "" when there is none
}

// Error returns one sentence with the fingerprint and what to do.
func (e *HostKeyError) Error() string {
	shows := fmt.Sprintf("%s shows the %s key %s", e.Addr, e.Type, e.Fingerprint)
	switch e.Problem {
	case HostKeyUnknown:
		host, port, _ := net.SplitHostPort(e.Addr)
		return fmt.Sprintf("%s, which nobody vouches for: compare it with what the device says of itself, then pin it as the host key, or add it with ssh-keyscan -p %s %s to %s",
			shows, port, host, e.Where)
	case HostKeyChanged:
		return fmt.Sprintf("%s, but %s has %s: if the device was replaced, correct that line; if not, somebody is in between", shows, e.Where, e.Want)
	case HostKeyRevoked:
		return fmt.Sprintf("%s, which %s revokes: give the device a new key", shows, e.Where)
	}
	return fmt.Sprintf("%s, but the pinned key is %s: if the device was replaced, pin the new one; if not, somebody is in between", shows, e.Want)
}

// hostKeys is what is known of the key of a host.
type hostKeys struct {
	accept ssh.HostKeyCallback
	types  []string // known, to be asked for first
	// only is when just these are asked for: a fingerprint does not say of which
	// type the key is, so one is tried after the other.
	only  []string
	tries bool
	err   *HostKeyError // the first
}

// hostKeys reads the pin or the files.
func (s SSH) hostKeys() (*hostKeys, error) {
	switch {
	case s.AnyHostKey:
		return &hostKeys{accept: ssh.InsecureIgnoreHostKey()}, nil
	case strings.HasPrefix(s.HostKey, "SHA256:"):
		want := strings.TrimRight(s.HostKey, "=")
		k := &hostKeys{tries: true, accept: func(addr string, _ net.Addr, key ssh.PublicKey) error {
			return pinned(addr, key, want)
		}}
		return k, nil
	case s.HostKey != "":
		want, _, _, _, err := ssh.ParseAuthorizedKey([]byte(s.HostKey))
		if err != nil {
			return nil, fmt.Errorf(`the pinned SSH host key cannot be read: want "SHA256:..." or "ssh-ed25519 AAAA..."`)
		}
		return &hostKeys{types: algorithmsOf(want), accept: func(addr string, _ net.Addr, key ssh.PublicKey) error {
			return pinned(addr, key, ssh.FingerprintSHA256(want))
		}}, nil
	}
	return s.knownHosts()
}

func pinned(addr string, key ssh.PublicKey, want string) error {
	got := ssh.FingerprintSHA256(key)
	if got == want {
		return nil
	}
	return &HostKeyError{Addr: addr, Type: key.Type(), Fingerprint: got, Problem: HostKeyPinned, Where: "the pin", Want: want}
}

// knownHosts reads the files.
func (s SSH) knownHosts() (*hostKeys, error) {
	files, missing := s.KnownHosts, ""
	if len(files) == 0 {
		home, err := os.UserHomeDir()
		candidates := []string{"/etc/ssh/ssh_known_hosts"}
		if err == nil {
			candidates = append([]string{filepath.Join(home, ".ssh", "known_hosts")}, candidates...)
		}
		missing = candidates[0]
		for _, file := range candidates {
			if _, err := os.Stat(file); err == nil {
				files = append(files, file)
			}
		}
	} else {
		missing = files[0]
	}
	db, name, err := readKnownHosts(files)
	if err != nil {
		return nil, fmt.Errorf("known SSH hosts: %w", err)
	}
	// Names are stored in lower case.
	lookup := func(addr string, remote net.Addr, key ssh.PublicKey) error {
		return db(strings.ToLower(addr), remote, key)
	}
	k := &hostKeys{accept: func(addr string, remote net.Addr, key ssh.PublicKey) error {
		return unknown(lookup(addr, remote, key), addr, key, missing, name)
	}}
	var known *knownhosts.KeyError
	if errors.As(lookup(s.Addr, &net.TCPAddr{}, noKey{}), &known) {
		for _, key := range known.Want {
			k.types = append(k.types, algorithmsOf(key.Key)...)
		}
	}
	return k, nil
}

// unknown puts an error of package knownhosts into our words. Name gives the
// names of the files that it has read.
func unknown(err error, addr string, key ssh.PublicKey, file string, name func(string) string) error {
	var (
		wrong   *knownhosts.KeyError
		revoked *knownhosts.RevokedError
		e       = &HostKeyError{Addr: addr, Type: key.Type(), Fingerprint: ssh.FingerprintSHA256(key)}
	)
	place := func(k knownhosts.KnownKey) string { return fmt.Sprintf("%s:%d", name(k.Filename), k.Line) }
	switch {
	case errors.As(err, &revoked):
		e.Problem, e.Where = HostKeyRevoked, place(revoked.Revoked)
	case errors.As(err, &wrong) && len(wrong.Want) > 0:
		// That of the same type, if there is one, is the one that has changed.
		i := max(0, slices.IndexFunc(wrong.Want, func(k knownhosts.KnownKey) bool { return k.Key.Type() == key.Type() }))
		e.Problem, e.Where, e.Want = HostKeyChanged, place(wrong.Want[i]), ssh.FingerprintSHA256(wrong.Want[i].Key)
	case errors.As(err, &wrong):
		e.Problem, e.Where = HostKeyUnknown, file
	default:
		return err
	}
	return e
}

// algorithmsOf returns the algorithms that prove possession of a key.
func algorithmsOf(key ssh.PublicKey) []string {
	if key.Type() == ssh.KeyAlgoRSA {
		return []string{ssh.KeyAlgoRSASHA512, ssh.KeyAlgoRSASHA256, ssh.KeyAlgoRSA}
	}
	return []string{key.Type()}
}

// configure makes a client ask for the known types first. It would otherwise be
// shown a key of a better type that nobody has noted.
func (k *hostKeys) configure(config *ssh.ClientConfig) {
	config.HostKeyCallback = k.accept
	if k.only == nil {
		k.only = config.HostKeyAlgorithms
	}
	var first, rest []string
	for _, name := range k.only {
		if slices.Contains(k.types, name) {
			first = append(first, name)
		} else {
			rest = append(rest, name)
		}
	}
	config.HostKeyAlgorithms = append(first, rest...)
}

// another reports whether the host is to be asked for a key of another type.
func (k *hostKeys) another(err error) bool {
	var wrong *HostKeyError
	if !k.tries || !errors.As(err, &wrong) {
		return false
	}
	if k.err == nil {
		k.err = wrong
	}
	shown := strings.TrimSuffix(wrong.Type, "@openssh.com")
	k.only = slices.DeleteFunc(slices.Clone(k.only), func(name string) bool {
		return name == shown || shown == ssh.KeyAlgoRSA && strings.HasPrefix(name, "rsa-")
	})
	return len(k.only) > 0
}

// first returns what was wrong with the first key shown, or err.
func (k *hostKeys) first(err error) error {
	var differ *ssh.AlgorithmNegotiationError
	if k.err != nil && (errors.As(err, &differ) || errors.As(err, new(*HostKeyError))) {
		return k.err
	}
	return err
}

// noKey is a key that no host has.
type noKey struct{}

func (noKey) Type() string                        { return "none" }
func (noKey) Marshal() []byte                     { return nil }
func (noKey) Verify([]byte, *ssh.Signature) error { return errors.New("no key") }
