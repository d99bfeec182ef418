package sshserver

import (
	"bytes"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"slices"
	"strings"

	"golang.org/x/crypto/ssh"

	"github.com/ocslab/ocslab/emulator"
)

// HostKey makes the key of an emulated device: ed25519, and the same for the
// same name and seed, so that a client that knows it once knows it again.
// Anybody can compute it, so it proves nothing: it is for emulation only.
func HostKey(name string, seed uint64) ssh.Signer {
	material := binary.BigEndian.AppendUint64([]byte("ocslab emulated host key\x00"), seed)
	sum := sha256.Sum256(append(material, name...))
	signer, err := ssh.NewSignerFromKey(ed25519.NewKeyFromSeed(sum[:]))
	if err != nil {
		panic(err) // not for an ed25519 key
	}
	return signer
}

// Fingerprint returns "SHA256:..." of the public key, as ssh-keygen -l does.
func Fingerprint(key ssh.Signer) string { return ssh.FingerprintSHA256(key.PublicKey()) }

// authenticate sets the ways to log in.
func (s *Server) authenticate(config *ssh.ServerConfig) {
	login := func(user, password string) (*ssh.Permissions, error) {
		if _, err := s.Device.Login(user, password); err != nil {
			return nil, err
		}
		return nil, nil
	}
	config.PasswordCallback = func(c ssh.ConnMetadata, password []byte) (*ssh.Permissions, error) {
		return login(c.User(), string(password))
	}
	config.KeyboardInteractiveCallback = func(c ssh.ConnMetadata, ask ssh.KeyboardInteractiveChallenge) (*ssh.Permissions, error) {
		answers, err := ask("", "", []string{"Password: "}, []bool{false})
		if err != nil {
			return nil, err
		}
		return login(c.User(), answers[0])
	}
	if len(s.AuthorizedKeys) == 0 {
		return
	}
	config.PublicKeyCallback = func(c ssh.ConnMetadata, key ssh.PublicKey) (*ssh.Permissions, error) {
		_, known := s.Device.GroupOf(c.User())
		listed := slices.ContainsFunc(s.AuthorizedKeys[c.User()], func(k ssh.PublicKey) bool {
			return bytes.Equal(k.Marshal(), key.Marshal())
		})
		if !known || !listed {
			return nil, emulator.ErrLogin
		}
		return nil, nil
	}
}

// restrict leaves only s.Legacy of each kind that is in it, and returns the host
// key that signs accordingly.
func (s *Server) restrict(config *ssh.ServerConfig) (ssh.Signer, error) {
	all := func(get func(ssh.Algorithms) []string) []string {
		return slices.Concat(get(ssh.SupportedAlgorithms()), get(ssh.InsecureAlgorithms()))
	}
	kinds := []struct {
		names []string
		only  *[]string
	}{
		{all(func(a ssh.Algorithms) []string { return a.KeyExchanges }), &config.KeyExchanges},
		{all(func(a ssh.Algorithms) []string { return a.Ciphers }), &config.Ciphers},
		{all(func(a ssh.Algorithms) []string { return a.MACs }), &config.MACs},
		{all(func(a ssh.Algorithms) []string { return a.HostKeys }), new([]string)},
	}
next:
	for _, name := range s.Legacy {
		for _, kind := range kinds {
			if slices.Contains(kind.names, name) {
				*kind.only = append(*kind.only, name)
				continue next
			}
		}
		return nil, fmt.Errorf("sshserver: algorithm %.60q is not known", name)
	}
	signing := *kinds[3].only
	if len(signing) == 0 {
		return s.HostKey, nil
	}
	signer, ok := s.HostKey.(ssh.AlgorithmSigner)
	if !ok {
		return nil, fmt.Errorf("sshserver: the host key cannot be told to sign with %s", strings.Join(signing, ", "))
	}
	restricted, err := ssh.NewSignerWithAlgorithms(signer, signing)
	if err != nil {
		return nil, fmt.Errorf("sshserver: %w", err)
	}
	return restricted, nil
}
