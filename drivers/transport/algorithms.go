package transport

import (
	"fmt"
	"slices"
	"strings"

	"golang.org/x/crypto/ssh"
)

// hostKeyTypes are the algorithms with which hosts show who they are, the best
// first.
var hostKeyTypes = []string{
	ssh.KeyAlgoED25519, ssh.KeyAlgoECDSA256, ssh.KeyAlgoECDSA384, ssh.KeyAlgoECDSA521,
	ssh.KeyAlgoRSASHA512, ssh.KeyAlgoRSASHA256,
}

// config has the algorithms and the user, but nothing that identifies either
// side.
func (s SSH) config() (*ssh.ClientConfig, error) {
	good, old := ssh.SupportedAlgorithms(), legacyAlgorithms()
	config := &ssh.ClientConfig{User: s.User, HostKeyAlgorithms: slices.Clone(hostKeyTypes)}
	config.KeyExchanges, config.Ciphers, config.MACs = good.KeyExchanges, good.Ciphers, good.MACs
	for _, name := range s.Legacy {
		switch {
		case slices.Contains(old.KeyExchanges, name):
			config.KeyExchanges = append(config.KeyExchanges, name)
		case slices.Contains(old.Ciphers, name):
			config.Ciphers = append(config.Ciphers, name)
		case slices.Contains(old.MACs, name):
			config.MACs = append(config.MACs, name)
		case slices.Contains(old.HostKeys, name):
			config.HostKeyAlgorithms = append(config.HostKeyAlgorithms, name)
		default:
			return nil, fmt.Errorf("old SSH algorithm %.60q is not known: want some of %s", name, strings.Join(LegacyAlgorithms(), ", "))
		}
	}
	return config, nil
}

func legacyAlgorithms() ssh.Algorithms {
	old := ssh.InsecureAlgorithms()
	old.HostKeys = slices.DeleteFunc(old.HostKeys, func(name string) bool { return strings.Contains(name, "-cert-") })
	return old
}

// LegacyAlgorithms returns what may be in SSH.Legacy, sorted.
func LegacyAlgorithms() []string {
	old := legacyAlgorithms()
	all := slices.Concat(old.KeyExchanges, old.Ciphers, old.MACs, old.HostKeys)
	slices.Sort(all)
	return slices.Compact(all)
}

// noCommonAlgorithm says what a device offers, and what would help.
func noCommonAlgorithm(e *ssh.AlgorithmNegotiationError, err error) error {
	var old []string
	for _, name := range e.RequestedAlgorithms {
		if slices.Contains(LegacyAlgorithms(), name) {
			old = append(old, name)
		}
	}
	if len(old) == 0 {
		return err
	}
	return fmt.Errorf("the device has only old SSH algorithms: if that is how it must be, allow the legacy algorithm %s: %w",
		strings.Join(old, " or "), err)
}
