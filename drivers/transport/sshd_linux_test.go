package transport_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/knownhosts"

	"github.com/ocslab/ocslab/drivers/transport"
	"github.com/ocslab/ocslab/ocs"
)

// TestSSHD dials Debian's server: with one known key of the three it has, as
// shell and as subsystem.
func TestSSHD(t *testing.T) {
	program := "/usr/sbin/sshd"
	if path, err := exec.LookPath("sshd"); err == nil {
		program = path
	}
	if _, err := os.Stat(program); err != nil {
		t.Skip("there is no sshd: install openssh-server")
	}
	dir := t.TempDir()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := l.Addr().String()
	l.Close() // sshd listens by itself
	_, port, _ := net.SplitHostPort(addr)

	mine := newKey(t, "ed25519")
	identity := writeKey(t, filepath.Join(dir, "id"), mine)
	authorized := filepath.Join(dir, "authorized_keys")
	if err := os.WriteFile(authorized, ssh.MarshalAuthorizedKey(signer(t, mine).PublicKey()), 0o600); err != nil {
		t.Fatal(err)
	}
	config := fmt.Sprintf("ListenAddress 127.0.0.1:%s\nAuthorizedKeysFile %s\nStrictModes no\nUsePAM no\nPidFile none\nPermitRootLogin yes\n"+
		"PasswordAuthentication no\nSubsystem echo /bin/cat\nPrintMotd no\nPrintLastLog no\n", port, authorized)
	var hosts []ssh.PublicKey
	for _, kind := range []string{"ed25519", "ecdsa", "rsa"} {
		key := newKey(t, kind)
		hosts = append(hosts, signer(t, key).PublicKey())
		config += "HostKey " + writeKey(t, filepath.Join(dir, kind), key) + "\n"
	}
	file := filepath.Join(dir, "sshd_config")
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command(program, "-t", "-f", file).CombinedOutput(); err != nil {
		t.Skipf("sshd cannot be run here: %v: %s", err, out)
	}
	var log bytes.Buffer
	cmd := exec.Command(program, "-D", "-e", "-f", file)
	cmd.Stderr = &log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		if t.Failed() {
			t.Log(log.String())
		}
	})
	for begun := time.Now(); ; time.Sleep(10 * time.Millisecond) {
		conn, err := net.Dial("tcp", addr)
		if err == nil {
			conn.Close()
			break
		}
		if time.Since(begun) > 10*time.Second {
			t.Fatal(err)
		}
	}

	name := strings.TrimSpace(output(t, "id", "-un"))
	for i, host := range hosts {
		known := filepath.Join(dir, fmt.Sprint("known", i))
		if err := os.WriteFile(known, []byte(knownhosts.Line([]string{addr}, host)+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		for _, d := range []transport.SSH{{KnownHosts: []string{known}}, {HostKey: ssh.FingerprintSHA256(host)}} {
			d.Addr, d.User, d.KeyFile, d.Subsystem = addr, name, identity, "echo"
			ask(t, open(t, d), "hello")
		}
	}
	shell := open(t, transport.SSH{Addr: addr, User: name, KeyFile: identity, AnyHostKey: true})
	if _, err := io.WriteString(shell, "echo $((6*7)); exit\n"); err != nil {
		t.Fatal(err)
	}
	if out, err := io.ReadAll(shell); err != nil || !strings.Contains(string(out), "42") {
		t.Errorf("got %q, %v", out, err)
	}
	other := writeKey(t, filepath.Join(dir, "other"), newKey(t, "ed25519"))
	if _, err := (transport.SSH{Addr: addr, User: name, KeyFile: other, AnyHostKey: true}).Dial(t.Context()); !errors.Is(err, ocs.ErrDenied) {
		t.Errorf("got %v", err)
	}
}

func output(t *testing.T, name string, args ...string) string {
	t.Helper()
	out, err := exec.Command(name, args...).Output()
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}
