package netconfserver_test

import (
	"bytes"
	"context"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ocslab/ocslab/emulator"
	"github.com/ocslab/ocslab/emulator/internal/servertest"
	"github.com/ocslab/ocslab/emulator/netconfserver"
	"github.com/ocslab/ocslab/emulator/sshserver"
)

// overSSH serves a device over SSH until the test ends, and returns the port.
func overSSH(t *testing.T, s *netconfserver.Server) string {
	t.Helper()
	srv := &sshserver.Server{Device: s.Device, HostKey: sshserver.HostKey("rail0", 1), Subsystems: map[string]emulator.FrontEnd{"netconf": s}}
	addr, _ := servertest.Serve(t, srv.Serve)
	_, port, err := net.SplitHostPort(addr)
	if err != nil {
		t.Fatal(err)
	}
	return port
}

// TestPeer_Ncclient runs a public client in both framings.
func TestPeer_Ncclient(t *testing.T) {
	const python = "/usr/bin/python3" // that of the system, which has its packages
	if out, err := exec.Command(python, "-c", "import ncclient").CombinedOutput(); err != nil {
		t.Skipf("python3-ncclient is not installed: %v %s", err, out)
	}
	for _, version := range []string{"1.0", "1.1"} {
		t.Run(version, func(t *testing.T) {
			p := personality()
			p.NETCONF.Base10 = version == "1.0"
			port := overSSH(t, newServer(t, p))
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
			defer cancel()
			out, err := exec.CommandContext(ctx, python, "testdata/client.py", port, version).CombinedOutput()
			if err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			const want = `module True
map 1>17 2>18
notification True
map 2>18
map 2>18 3>19
error invalid-value Invalid OXC port: 1000
label a <b> & c
status DISABLED
schema True
`
			if got := string(out); got != want {
				t.Errorf("got\n%s", got)
			}
		})
	}
}

// TestPeer_OpenSSH speaks by hand through the ssh program.
func TestPeer_OpenSSH(t *testing.T) {
	ssh := needs(t, "ssh")
	dir := t.TempDir()
	ask := filepath.Join(dir, "ask")
	if err := os.WriteFile(ask, []byte("#!/bin/sh\necho root\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	port := overSSH(t, newServer(t, personality()))
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, ssh, "-F", "none", "-p", port, "-o", "StrictHostKeyChecking=no", "-o", "UserKnownHostsFile="+filepath.Join(dir, "known"),
		"-o", "PreferredAuthentications=password", "-s", "admin@127.0.0.1", "netconf")
	cmd.Env = append(os.Environ(), "SSH_ASKPASS="+ask, "SSH_ASKPASS_REQUIRE=force", "DISPLAY=:9")
	cmd.Stdin = strings.NewReader(hello + eom + "\n" + `<rpc message-id="1" ` + base + `><get><filter><product-information ` + opsw + `/></filter></get></rpc>` + eom +
		`<rpc message-id="2" ` + base + `><close-session/></rpc>` + eom)
	var errs bytes.Buffer
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v\n%s%s", err, out, errs.String())
	}
	for _, part := range []string{"<session-id>1</session-id>", "<manufacturer>Polatis</manufacturer>", `message-id="2"><ok/></rpc-reply>]]>]]>`} {
		if !strings.Contains(string(out), part) {
			t.Errorf("no %s in\n%s", part, out)
		}
	}
}

// TestPeer_Yanglint has libyang check what get and get-config show against the
// modules, in every revision.
func TestPeer_Yanglint(t *testing.T) {
	yanglint := needs(t, "yanglint")
	for _, n := range revisions() {
		dir := writeModules(t, n)
		replies := map[string]string{}
		synctest.Test(t, func(t *testing.T) {
			p := personality()
			p.NETCONF = n
			c := login(t, newServer(t, p), "admin")
			list := "pair"
			if n.OpticalSwitch < "2017-08-04" {
				list = "pairs"
			}
			c.wantEdit(`<cross-connects `+opsw+`><`+list+`><ingress>1</ingress><egress>17</egress></`+list+`></cross-connects>`+
				ports("ports", `<port><port-id>17</port-id><port-label>a</port-label><voa><atten-mode>VOA_MODE_RELATIVE</atten-mode><atten-level>-3</atten-level></voa><opm><power-low-alarm>-20</power-low-alarm><power-alarm-control>POWER_ALARM_CONTINUOUS</power-alarm-control></opm></port>`)+
				ports("groups", `<group><group-name>a</group-name><ingress>1</ingress><egress>17</egress></group>`), "<ok/>")
			c.want(`<shutter-config `+plts+`><port><port-id>1</port-id><signal-block-time>10</signal-block-time></port></shutter-config>`, "<ok/>")
			c.want(`<port-set-state `+opsw+`><port-disab>1</port-disab></port-set-state>`, "<ok/>")
			replies["data"] = c.do("<get/>")
			replies["config"] = c.do("<get-config><source><running/></source></get-config>")
		})
		for kind, reply := range replies {
			inner := strings.TrimSuffix(strings.TrimPrefix(reply, "<data>"), "</data>")
			for _, foreign := range []string{"nacm", "netconf-state"} {
				before, rest, ok := strings.Cut(inner, "<"+foreign+" ")
				if ok {
					_, after, _ := strings.Cut(rest, "</"+foreign+">")
					inner = before + after
				}
			}
			file := filepath.Join(dir, kind+".xml")
			if err := os.WriteFile(file, []byte(inner), 0o600); err != nil {
				t.Fatal(err)
			}
			out, err := exec.Command(yanglint, "-p", dir, "-t", kind, filepath.Join(dir, "optical-switch.yang"), filepath.Join(dir, "polatis-switch.yang"), file).CombinedOutput()
			if err != nil || len(out) > 0 {
				t.Errorf("%s %s: %v\n%s\n%s", n.OpticalSwitch, kind, err, out, inner)
			}
		}
	}
}

// Ensure that many clients at once are all served over real sockets.
func TestServe_ManyClients(t *testing.T) {
	p := personality()
	p.Switching = emulator.Switching{Ack: emulator.AckBefore}
	s := newServer(t, p)
	addr, stop := servertest.Serve(t, s.Serve)
	servertest.Clients(t, 100, func(i int) error { return oneClient(addr, strconv.Itoa(i%8+1), strconv.Itoa(i%8+17)) })
	stop()
	if n := s.Device.CrossConnects().Len(); n != 8 {
		t.Errorf("%d cross-connects", n)
	}
}
