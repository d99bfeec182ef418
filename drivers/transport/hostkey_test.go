package transport_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/knownhosts"

	"github.com/ocslab/ocslab/drivers/transport"
	"github.com/ocslab/ocslab/emulator/sshserver"
	"github.com/ocslab/ocslab/internal/secret"
)

// TestHostKey is a device with one key, and all that can be known of it.
func TestHostKey(t *testing.T) {
	dev := newDevice(t)
	addr, _ := serveSSH(t, dev, nil)
	key, other := sshserver.HostKey("rail0", 1), sshserver.HostKey("rail1", 1)
	rsa := signer(t, newKey(t, "rsa")).PublicKey()
	line := func(marker string, name string, key ssh.PublicKey) string {
		return strings.TrimSpace(marker+" "+knownhosts.Line([]string{name}, key)) + "\n"
	}
	hashed := knownhosts.HashHostname(knownhosts.Normalize(addr)) + strings.TrimPrefix(knownhosts.Line([]string{"x"}, key.PublicKey()), "x") + "\n"
	authorized := string(ssh.MarshalAuthorizedKey(key.PublicKey()))
	shows := addr + " shows the ssh-ed25519 key " + sshserver.Fingerprint(key)
	host, port, _ := strings.Cut(addr, ":")

	for _, tt := range []struct {
		name, known, pin string
		problem          transport.HostKeyProblem // "" is none
		want             string
	}{
		{"Known", line("", addr, key.PublicKey()), "", "", ""},
		{"Hashed", hashed, "", "", ""},
		{"AmongOthers", "# lab\n\n" + line("", "rail1", other.PublicKey()) + line("", addr, rsa) + line("", addr, other.PublicKey()) + line("", addr, key.PublicKey()), "", "", ""},
		{"Wildcard", line("", "[127.0.0.*]:"+port, key.PublicKey()), "", "", ""},
		{"AmongUnreadable", "what is this\n" + addr + " ssh-future AAAA\n[1.2.3.4] " + authorized + "\n" + line("", addr, key.PublicKey()) + "!", "", "", ""},
		{"ChangedAmongUnreadable", "\nwhat is this\n# lab\n" + line("", addr, other.PublicKey()) + "\n!\n", "", transport.HostKeyChanged, "but FILE:4 has " + sshserver.Fingerprint(other)},
		{"UnreadableAlone", addr + " ssh-ed25519 AAAA\n", "", transport.HostKeyUnknown, "with ssh-keyscan -p " + port + " " + host + " to FILE"},
		{"Unknown", line("", host, key.PublicKey()), "", transport.HostKeyUnknown, // on port 22
			shows + ", which nobody vouches for: compare it with what the device says of itself, then pin it as the host key, or add it with ssh-keyscan -p " + port + " " + host + " to FILE"},
		{"Empty", "", "", transport.HostKeyUnknown, "nobody vouches for"},
		{"Changed", "\n" + line("", addr, other.PublicKey()), "", transport.HostKeyChanged,
			shows + ", but FILE:2 has " + sshserver.Fingerprint(other) + ": if the device was replaced, correct that line; if not, somebody is in between"},
		{"OtherType", line("", addr, rsa), "", transport.HostKeyChanged, "FILE:1 has " + ssh.FingerprintSHA256(rsa)},
		{"Revoked", line("", addr, key.PublicKey()) + line("@revoked", "*", key.PublicKey()), "", transport.HostKeyRevoked,
			shows + ", which FILE:2 revokes: give the device a new key"},
		{"PinnedFingerprint", "", sshserver.Fingerprint(key), "", ""},
		{"PinnedKey", "", authorized, "", ""},
		{"PinBeforeFiles", line("", addr, other.PublicKey()), authorized, "", ""},
		{"PinDiffers", "", sshserver.Fingerprint(other), transport.HostKeyPinned,
			shows + ", but the pinned key is " + sshserver.Fingerprint(other) + ": if the device was replaced, pin the new one; if not, somebody is in between"},
		{"PinOfOtherType", "", string(ssh.MarshalAuthorizedKey(rsa)), transport.HostKeyPinned, "but the pinned key is " + ssh.FingerprintSHA256(rsa)},
	} {
		t.Run(tt.name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "known_hosts")
			if err := os.WriteFile(file, []byte(tt.known), 0o600); err != nil {
				t.Fatal(err)
			}
			d := transport.SSH{Addr: addr, User: "admin", Password: secret.New("hunter2"), HostKey: tt.pin, KnownHosts: []string{file}, Subsystem: "echo"}
			if tt.problem == "" {
				d.Password = secret.New("root")
				ask(t, open(t, d), "hello")
				return
			}
			_, err := d.Dial(t.Context())
			var wrong *transport.HostKeyError
			if !errors.As(err, &wrong) || wrong.Problem != tt.problem || wrong.Addr != addr || wrong.Fingerprint != sshserver.Fingerprint(key) {
				t.Fatalf("got %+v, %v", wrong, err)
			}
			if want := strings.ReplaceAll(tt.want, "FILE", file); !strings.Contains(err.Error(), want) {
				t.Errorf("got  %v\nwant %s", err, want)
			}
		})
	}

	revoked := filepath.Join(t.TempDir(), "known_hosts")
	if err := os.WriteFile(revoked, []byte("?\n"+line("", addr, key.PublicKey())+"@revoked * ssh-ed25519 AAAA\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for want, d := range map[string]transport.SSH{
		"known SSH hosts: " + revoked + ":3: cannot read which key is revoked": {KnownHosts: []string{revoked}},
		"the pinned SSH host key cannot be read":                               {HostKey: "MD5:00:11"},
		"known SSH hosts: open /nonexistent":                                   {KnownHosts: []string{"/nonexistent"}},
	} {
		d.Addr = addr
		if _, err := d.Dial(t.Context()); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}

// TestHostKeyDefaults: without anything said it is the user's own file.
func TestHostKeyDefaults(t *testing.T) {
	addr, _ := serveSSH(t, newDevice(t), nil)
	home := t.TempDir()
	t.Setenv("HOME", home)
	d := transport.SSH{Addr: addr, User: "admin", Password: secret.New("root"), Subsystem: "echo"}
	_, err := d.Dial(t.Context())
	var wrong *transport.HostKeyError
	if !errors.As(err, &wrong) || wrong.Problem != transport.HostKeyUnknown || wrong.Where != home+"/.ssh/known_hosts" {
		t.Errorf("got %v", err)
	}
	line := knownhosts.Line([]string{addr}, sshserver.HostKey("rail0", 1).PublicKey())
	if err := errors.Join(os.Mkdir(home+"/.ssh", 0o700), os.WriteFile(home+"/.ssh/known_hosts", []byte(line), 0o600)); err != nil {
		t.Fatal(err)
	}
	ask(t, open(t, d), "hello")
}

// TestHostKeys is a device with keys of three types, of which one is known,
// whichever that is.
func TestHostKeys(t *testing.T) {
	var keys []ssh.Signer
	config := &ssh.ServerConfig{NoClientAuth: true}
	for _, kind := range []string{"ed25519", "ecdsa", "rsa"} {
		key := signer(t, newKey(t, kind))
		keys = append(keys, key)
		config.AddHostKey(key)
	}
	addr := bareServer(t, config, nil)
	dir := t.TempDir()
	for i, key := range keys[1:] { // bareServer has one of the first type
		file := filepath.Join(dir, fmt.Sprint(i))
		if err := os.WriteFile(file, []byte(knownhosts.Line([]string{addr}, key.PublicKey())), 0o600); err != nil {
			t.Fatal(err)
		}
		for name, d := range map[string]transport.SSH{
			"known":       {KnownHosts: []string{file}},
			"pinned":      {HostKey: string(ssh.MarshalAuthorizedKey(key.PublicKey()))},
			"fingerprint": {HostKey: ssh.FingerprintSHA256(key.PublicKey())},
		} {
			d.Addr = addr
			t.Run(key.PublicKey().Type()+" "+name, func(t *testing.T) { ask(t, open(t, d), "hello") })
		}
	}
	// The first that it shows is what the error is about.
	_, err := transport.SSH{Addr: addr, HostKey: "SHA256:none"}.Dial(t.Context())
	var wrong *transport.HostKeyError
	if !errors.As(err, &wrong) || wrong.Type != "ssh-ed25519" || wrong.Problem != transport.HostKeyPinned {
		t.Errorf("got %v", err)
	}
}
