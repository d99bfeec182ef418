package transport

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"

	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/agent"

	"github.com/ocslab/ocslab/ocs"
)

// credentials are what a client shows of itself.
type credentials struct {
	key      ssh.Signer
	agent    net.Conn
	password string
	stop     func() bool // takes back that agent is closed with the context

	begun   bool     // the host has been accepted and has asked for them
	allowed []string // what it takes
	tried   []string // what it did not take
}

// credentials reads the key and reaches the agent.
func (s SSH) credentials(ctx context.Context) (*credentials, error) {
	c := &credentials{password: s.Password.Reveal(), stop: func() bool { return true }}
	if s.KeyFile != "" {
		signer, encrypted, err := readKey(s.KeyFile, c.password)
		if err != nil {
			return nil, err
		}
		c.key = signer
		if encrypted {
			c.password = "" // not for the device
		}
	}
	if s.Agent {
		path := os.Getenv("SSH_AUTH_SOCK")
		if path == "" {
			return nil, errors.New("there is no SSH agent: $SSH_AUTH_SOCK is not set")
		}
		conn, err := (&net.Dialer{}).DialContext(ctx, "unix", path)
		if err != nil {
			return nil, fmt.Errorf("cannot reach the SSH agent: %w", err)
		}
		c.agent, c.stop = conn, context.AfterFunc(ctx, func() { conn.Close() })
	}
	return c, nil
}

func (c *credentials) close() {
	if c.agent != nil {
		c.stop()
		c.agent.Close()
	}
}

func readKey(path, passphrase string) (signer ssh.Signer, encrypted bool, err error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, false, fmt.Errorf("SSH key: %w", err)
	}
	signer, err = ssh.ParsePrivateKey(data)
	var missing *ssh.PassphraseMissingError
	if !errors.As(err, &missing) {
		if err != nil {
			// The text of a parser may quote what it was given.
			return nil, false, fmt.Errorf("SSH key %s: is not a private key that can be read", path)
		}
		return signer, false, nil
	}
	if passphrase == "" {
		return nil, true, fmt.Errorf("SSH key %s: is encrypted: give its passphrase as the password", path)
	}
	signer, err = ssh.ParsePrivateKeyWithPassphrase(data, []byte(passphrase))
	if err != nil {
		return nil, true, fmt.Errorf("SSH key %s: the password does not open it", path)
	}
	return signer, true, nil
}

// configure makes a client show what there is, in order: keys, password, answer.
func (c *credentials) configure(config *ssh.ClientConfig) {
	c.begun, c.allowed, c.tried = false, nil, nil
	config.AuthCallback = func(state *ssh.ClientAuthContext) (ssh.AuthMethod, error) {
		c.begun, c.allowed, c.tried = true, state.AllowedMethods, state.TriedMethods
		return nil, nil // the next of config.Auth
	}
	config.Auth = nil
	if c.key != nil || c.agent != nil {
		config.Auth = append(config.Auth, ssh.PublicKeysCallback(c.signers))
	}
	if c.password != "" {
		config.Auth = append(config.Auth, ssh.Password(c.password), ssh.KeyboardInteractive(c.answerer()))
	} else if c.key == nil && c.agent == nil {
		config.Auth = append(config.Auth, ssh.Password("")) // an account without one
	}
}

func (c *credentials) signers() ([]ssh.Signer, error) {
	var all []ssh.Signer
	if c.key != nil {
		all = append(all, c.key)
	}
	if c.agent != nil {
		held, err := agent.NewClient(c.agent).Signers()
		if err != nil {
			return nil, err
		}
		all = append(all, held...)
	}
	return all, nil
}

// answerer answers the first hidden question with the password, and no other:
// a second one means that it was wrong, and too many of those lock accounts.
func (c *credentials) answerer() ssh.KeyboardInteractiveChallenge {
	asked := false
	return func(_, _ string, questions []string, echos []bool) ([]string, error) {
		switch {
		case len(questions) == 0:
			return nil, nil // a text without a question
		case len(questions) > 1 || echos[0] || asked:
			return nil, errors.New("more is asked for than a password")
		}
		asked = true
		return []string{c.password}, nil
	}
}

// refused makes the error of a login that was refused.
func (c *credentials) refused(user string, err error) error {
	var tried []string
	for _, method := range c.tried {
		if method != "none" {
			tried = append(tried, method)
		}
	}
	wants := strings.Join(c.allowed, ", ")
	if wants == "" {
		wants = "something else"
	}
	if len(tried) == 0 {
		return fmt.Errorf("login as %q: the device wants %s, which was not given: %w", user, wants, ocs.ErrDenied)
	}
	why := ""
	if text := err.Error(); strings.Contains(text, "disconnect") {
		why = " (" + text + ")"
	}
	return fmt.Errorf("login as %q with %s%s: %w", user, strings.Join(tried, ", "), why, ocs.ErrDenied)
}
