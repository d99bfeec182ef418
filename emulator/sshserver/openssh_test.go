package sshserver_test

import (
	"bufio"
	"bytes"
	"context"
	"crypto/ed25519"
	"encoding/pem"
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

	"github.com/ocslab/ocslab/emulator"
	"github.com/ocslab/ocslab/emulator/sshserver"
)

// openSSH runs Debian's client against a server, with input, and returns what it
// prints.
func openSSH(t *testing.T, addr, input string, env []string, args ...string) (out, errs string, err error) {
	t.Helper()
	program, err := exec.LookPath("ssh")
	if err != nil {
		t.Skip("there is no ssh: install openssh-client")
	}
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		t.Fatal(err)
	}
	known := filepath.Join(t.TempDir(), "known_hosts")
	line := knownhosts.Line([]string{addr}, sshserver.HostKey("rail0", 1).PublicKey())
	if err := os.WriteFile(known, []byte(line+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, program, append([]string{
		"-F", "none", "-p", port, "-o", "UserKnownHostsFile=" + known, "-o", "StrictHostKeyChecking=yes", "-o", "IdentityAgent=none",
	}, args...)...)
	for i, arg := range cmd.Args {
		cmd.Args[i] = strings.ReplaceAll(arg, "HOST", host)
	}
	cmd.Env = append(append(os.Environ(), "HOME="+t.TempDir()), env...)
	cmd.Stdin = strings.NewReader(input)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err = cmd.Run()
	return stdout.String(), stderr.String(), err
}

// password makes ssh ask a program for the password.
func password(t *testing.T, text string) []string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "askpass")
	if err := os.WriteFile(path, []byte("#!/bin/sh\necho '"+text+"'\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	return []string{"SSH_ASKPASS=" + path, "SSH_ASKPASS_REQUIRE=force", "DISPLAY=none"}
}

func TestOpenSSH(t *testing.T) {
	s := newServer(t)
	_, private, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	key, err := ssh.NewSignerFromKey(private)
	if err != nil {
		t.Fatal(err)
	}
	block, err := ssh.MarshalPrivateKey(private, "")
	if err != nil {
		t.Fatal(err)
	}
	identity := filepath.Join(t.TempDir(), "id")
	if err := os.WriteFile(identity, pem.EncodeToMemory(block), 0o600); err != nil {
		t.Fatal(err)
	}
	s.AuthorizedKeys = map[string][]ssh.PublicKey{"admin": {key.PublicKey()}}
	addr, _ := serve(t, s)
	root := password(t, "root")
	const commands = "ENT-PATCH::1,33:1:;RTRV-PATCH:::2:;"
	byKey := []string{"-o", "BatchMode=yes", "-i", identity, "admin@HOST"}

	for _, tt := range []struct {
		name, input string
		env, args   []string
		want        []string
	}{
		{"Key", commands, nil, byKey, []string{"M  1 COMPLD\r\n;\r\n>", `"1,33"`}},
		{"Password", commands, root, []string{"-o", "PreferredAuthentications=password", "admin@HOST"}, []string{"M  1 COMPLD", "M  2 COMPLD"}},
		{"Interactive", commands, root, []string{"-o", "PreferredAuthentications=keyboard-interactive", "admin@HOST"}, []string{"M  2 COMPLD"}},
		{"Subsystem", "hello", nil, append([]string{"-s"}, append(byKey, "echo")...), []string{"admin from 127.0.0.1;hello"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			out, errs, err := openSSH(t, addr, tt.input, tt.env, tt.args...)
			if err != nil {
				t.Fatalf("%v: %s", err, errs)
			}
			for _, want := range tt.want {
				if !strings.Contains(out, want) {
					t.Errorf("got %q, want %q in it", out, want)
				}
			}
		})
	}

	// With a terminal what is typed is shown. The end of the input is nothing
	// that a terminal passes on, so it is the device that ends the session.
	t.Run("Terminal", func(t *testing.T) {
		s := newServer(t)
		s.AuthorizedKeys = map[string][]ssh.PublicKey{"admin": {key.PublicKey()}}
		s.Shell = frontEnd(func(_ context.Context, conn io.ReadWriteCloser, _ emulator.SessionInfo) {
			typed, err := bufio.NewReader(conn).ReadString('\n')
			fmt.Fprintf(conn, "got %q, %v\r\n", typed, err)
		})
		addr, _ := serve(t, s)
		out, errs, err := openSSH(t, addr, "*IDN?\r", nil, append([]string{"-tt"}, byKey...)...)
		if want := "*IDN?\r\ngot \"*IDN?\\n\", <nil>\r\n"; err != nil || out != want {
			t.Errorf("got %q, %q, %v, want %q", out, errs, err, want)
		}
	})

	for _, tt := range []struct {
		name      string
		env, args []string
		want      string
	}{
		{"WrongPassword", password(t, "toor"), []string{"-o", "NumberOfPasswordPrompts=1", "admin@HOST"}, "Permission denied ("},
		{"NoPassword", nil, []string{"-o", "BatchMode=yes", "admin@HOST"}, "Permission denied"},
		{"Command", nil, append(byKey, "id"), "exec request failed"},
		{"NoSubsystem", nil, append([]string{"-s"}, append(byKey, "sftp")...), "subsystem request failed"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			out, errs, err := openSSH(t, addr, "", tt.env, tt.args...)
			if err == nil || out != "" || !strings.Contains(errs, tt.want) {
				t.Errorf("got %q, %q, %v, want %q", out, errs, err, tt.want)
			}
		})
	}
}
