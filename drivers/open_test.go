package drivers_test

import (
	"bufio"
	"context"
	"errors"
	"net"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/ocslab/ocslab/drivers"
	"github.com/ocslab/ocslab/internal/secret"
	"github.com/ocslab/ocslab/ocs"
)

func TestParse(t *testing.T) {
	for url, want := range map[string]string{
		"tl1://192.0.2.10":                   "tl1  192.0.2.10:3082",
		"tl1://admin@192.0.2.10:4000":        "tl1 admin 192.0.2.10:4000",
		"TL1://Lab%20User@Switch.example/":   "tl1 Lab User Switch.example:3082",
		"tl1://[2001:db8::1]":                "tl1  [2001:db8::1]:3082",
		"tl1://admin@[::1]:1":                "tl1 admin [::1]:1",
		"tl1://[fe80::1%25eth0]:3082":        "tl1  [fe80::1%eth0]:3082",
		"tl1://host:":                        "tl1  host:3082",
		"tl1://host?max-pairs=64":            "tl1  host:3082",
		"tl1://admin@host:65535?max-pairs=1": "tl1 admin host:65535",
		"tl1://host?dialect=polatis":         "tl1  host:3082",
		"tl1://host?dialect=calient":         "tl1  host:3083",
		"tl1://host?dialect=glimmerglass":    "tl1  host:10034",
		"tl1://host:1?dialect=calient":       "tl1  host:1",
		"tl1+ssh://lab@host?key=id&agent=yes&legacy=ssh-rsa,aes128-cbc&dialect=calient": "tl1+ssh lab host:6252",
		"scpi://host?gap=50ms": "scpi  host:5025",
		"netconf://admin@host?hostkey=SHA256:JLY3kCkl7I4zKKZw4GDRsoRqiRZ9pffYLfdOY8g8+8Y": "netconf admin host:830",
		"netconf://host?any-hostkey=yes":                          "netconf  host:830",
		"netconf+tls://host?ca=a.pem&pin=SHA256:00&server-name=x": "netconf+tls  host:6513",
		"ocstrx://host?pre-emphasis=on&settle-timeout=150us":      "ocstrx  host:4001",
	} {
		got, err := drivers.Parse(url)
		if text := got.Scheme + " " + got.User + " " + got.Host; err != nil || text != want {
			t.Errorf("%s: got %q, %v, want %q", url, text, err, want)
		}
		if s := got.String(); s != got.Scheme+"://"+got.Host {
			t.Errorf("%s: got %s", url, s)
		}
		if !drivers.IsURL(url) {
			t.Errorf("%s is not taken for a URL", url)
		}
	}
	for url, want := range map[string]string{
		"tl1+serial:///dev/ttyUSB0":                                                            "/dev/ttyUSB0",
		"scpi+serial:///dev/serial/by-path/pci-0000:00:14.0@1-usb":                             "/dev/serial/by-path/pci-0000:00:14.0@1-usb",
		"ocstrx+serial:///dev/ttyACM0?baud=115200":                                             "/dev/ttyACM0",
		"ocstrx+i2c:///dev/i2c-5?addr=0x50,81&pre-emphasis=off":                                "/dev/i2c-5",
		"ocstrx+eeprom:///sys/bus/i2c/devices/5-0050/eeprom?also=/a,/b":                        "/sys/bus/i2c/devices/5-0050/eeprom",
		"scpi+serial:///dev/serial/by-id/../x?baud=9600&parity=even&stop-bits=1.5&data-bits=7": "/dev/serial/x",
	} {
		got, err := drivers.Parse(url)
		if err != nil || got.Path != want || got.Host != "" || got.String() != got.Scheme+"://"+want {
			t.Errorf("%s: got %+v, %v", url, got, err)
		}
	}
	if drivers.IsURL("rail0") {
		t.Error("rail0 is taken for a URL")
	}
}

// TestParseRefuses holds every URL that cannot be used, with what is said about
// it. A password is "hunter2" in all of them.
func TestParseRefuses(t *testing.T) {
	const password = "a password does not belong into a URL: use --password env:NAME or file:PATH, or password: in the lab file"
	for _, tt := range []struct{ url, shown, reason string }{
		{"", "", "unknown protocol: want one of netconf, netconf+tls, ocstrx, ocstrx+eeprom, ocstrx+i2c, ocstrx+serial, scpi, scpi+serial, tl1, tl1+serial, tl1+ssh"},
		{"rail0", "rail0", "unknown protocol: want one of netconf, netconf+tls, ocstrx, ocstrx+eeprom, ocstrx+i2c, ocstrx+serial, scpi, scpi+serial, tl1, tl1+serial, tl1+ssh"},
		{"http://host", "http://host", "unknown protocol: want one of netconf, netconf+tls, ocstrx, ocstrx+eeprom, ocstrx+i2c, ocstrx+serial, scpi, scpi+serial, tl1, tl1+serial, tl1+ssh"},
		{"tl1://", "tl1://", "no host"},
		{"tl1://:3082", "tl1://:3082", "no host"},
		{"tl1:host", "tl1:***", "no host"},
		{"tl1://host/x", "tl1://host", "want nothing behind the address but ?options"},
		{"tl1://host#x", "tl1://host", "want nothing behind the address but ?options"},
		{"tl1://host:0", "tl1://host:0", "the port is not one of 1 to 65535"},
		{"tl1://host:65536", "tl1://host:65536", "the port is not one of 1 to 65535"},
		{"tl1://host:x", "tl1://host:***", "cannot be read"},
		{"tl1://[::1", "tl1://[::1", "cannot be read"},
		{"tl1://host?max-pairs=0", "tl1://host", "max-pairs: want a number from 1"},
		{"tl1://host?max-pairs=", "tl1://host", "max-pairs: want a number from 1"},
		{"tl1://host?max-pairs=1&max-pairs=2", "tl1://host", "max-pairs is there twice"},
		{"tl1://host?a=%zz", "tl1://host", "the options cannot be read"},
		{"tl1://host?timeout=1s", "tl1://host", "there is an unknown option: want dialect, max-pairs"},

		{"tl1://host?dialect=klingon", "tl1://host", "dialect: want one of polatis, calient, glimmerglass"},
		{"scpi://host?gap=soon", "scpi://host", "gap: want a time from 0s to 1m, such as 100ms"},
		{"netconf://host?hostkey=SHA256:xx", "netconf://host", "hostkey: want a fingerprint, SHA256: and 43 characters, as ssh-keygen -l prints it, or a public key"},
		{"netconf://host?agent=no", "netconf://host", "agent: want yes, or leave it out"},
		{"netconf://host?baud=1", "netconf://host", "there is an unknown option: want agent, any-hostkey, hostkey, key, known-hosts, legacy"},
		{"tl1+serial://host/dev/x", "tl1+serial:///dev/x", "want a path, as in tl1+serial:///dev/ttyUSB0, and no host"},
		{"tl1+serial://", "tl1+serial://", "no path: want one as in tl1+serial:///dev/ttyUSB0"},
		{"scpi+serial:///dev/x#y", "scpi+serial:///dev/x", "want nothing behind the path but ?options"},
		{"ocstrx+i2c:///dev/i2c-1?addr=0x50,0x80", "ocstrx+i2c:///dev/i2c-1", "addr: want addresses of 0x08 to 0x77, separated by commas"},
		{"ocstrx+i2c://", "ocstrx+i2c://", "no path: want one as in ocstrx+i2c:///dev/i2c-1"},
		{"ocstrx://host?settle-timeout=2ms", "ocstrx://host", "settle-timeout: want a time from 1us to 1ms, such as 200us"},
		{"ocstrx+serial:///dev/x?pre-emphasis=yes", "ocstrx+serial:///dev/x", "pre-emphasis: want one of on, off"},
		{"ocstrx+eeprom:///sys/x?addr=0x50", "ocstrx+eeprom:///sys/x", "there is an unknown option: want also, pre-emphasis, settle-timeout"},
		{"scpi+serial:///dev/x?baud=fast", "scpi+serial:///dev/x", "baud: want a number from 1"},
		{"tl1+serial://admin:hunter2@/dev/x", "tl1+serial://***@", password},

		{"tl1://admin:hunter2@host", "tl1://***@host", password},
		{"tl1://:hunter2@host", "tl1://***@host", password},
		{"http://admin:hunter2@host", "http://***@host", password},
		{"tl1://admin:hunter2@", "tl1://***@", password},
		{"tl1://admin:hunter2@host:1x", "tl1://***@host:***", "cannot be read"},
		{"tl1://admin:hunter2%zz@host", "tl1://***@host", "cannot be read"},
		{"tl1://admin:hunter2\n@host", "tl1://***@host", "cannot be read"},
		{"tl1://admin:12/hunter2@host", "tl1://***@host", password},
		{"tl1://admin:12?hunter2@host", "tl1://***@host", password},
		{"tl1://admin:12#hunter2@host", "tl1://***@host", password},
		{"tl1://admin:12@hunter2@host", "tl1://***@host", password},
		{"tl1://admin:hunter2/x@host", "tl1://***@host", "cannot be read"},
		{"tl1:admin:hunter2@host", "***@host", password},
		{"admin:hunter2@host", "***@host", password},
		{"tl1://admin:hunter2", "tl1://admin:***", "cannot be read"},
		{"tl1://host?password=hunter2", "tl1://host", "there is an unknown option: want dialect, max-pairs"},
		{"tl1://host?hunter2", "tl1://host", "there is an unknown option: want dialect, max-pairs"},
		{"tl1://host?max-pairs=hunter2", "tl1://host", "max-pairs: want a number from 1"},
		{"tl1://host#hunter2", "tl1://host", "want nothing behind the address but ?options"},
	} {
		_, err := drivers.Parse(tt.url)
		var bad *drivers.URLError
		if !errors.As(err, &bad) || bad.URL != tt.shown || bad.Reason != tt.reason {
			t.Errorf("%q: got %v, want %q: %s", tt.url, err, tt.shown, tt.reason)
		}
		sw, err := drivers.Open(t.Context(), tt.url, drivers.Options{})
		if sw != nil || err == nil || strings.Contains(err.Error(), "hunter2") || strings.Contains(err.Error(), "\n") {
			t.Errorf("%q: Open gave %v, %v", tt.url, sw, err)
		}
	}
}

func TestLoopback(t *testing.T) {
	for url, want := range map[string]bool{
		"tl1://127.0.0.1": true, "tl1://127.9.9.9:1": true, "tl1://[::1]": true, "tl1://LocalHost": true,
		"tl1://192.0.2.1": false, "tl1://example.com": false, "tl1://[fe80::1%25eth0]": false,
	} {
		target, err := drivers.Parse(url)
		if err != nil || target.Loopback() != want {
			t.Errorf("%s: got %v, %v", url, target.Loopback(), err)
		}
	}
}

// device answers each command with COMPLD and keeps what it was sent.
func device(t *testing.T) (addr string, sent func() string) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	var all strings.Builder
	var serving sync.WaitGroup
	serving.Go(func() {
		c, err := l.Accept()
		if err != nil {
			return
		}
		defer c.Close()
		for in := bufio.NewReader(c); ; {
			command, err := in.ReadString(';')
			if err != nil {
				return
			}
			mu.Lock()
			all.WriteString(command)
			mu.Unlock()
			_, _ = c.Write([]byte("\r\n\n   sw 26-11-20 10:00:00\r\nM  " + strings.Split(command, ":")[3] + " COMPLD\r\n;"))
		}
	})
	t.Cleanup(func() { l.Close(); serving.Wait() })
	return l.Addr().String(), func() string {
		mu.Lock()
		defer mu.Unlock()
		return all.String()
	}
}

func TestOpen(t *testing.T) {
	addr, sent := device(t)
	var trace [2]strings.Builder
	sw, err := drivers.Open(t.Context(), "tl1://lab@"+addr+"?max-pairs=1", drivers.Options{
		Name: "rail0", Password: secret.New("hunter2"),
		Trace: func(sent bool, p []byte) {
			i := 0
			if sent {
				i = 1
			}
			trace[i].Write(p)
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	change := ocs.Change{Add: ocs.MustMap(ocs.CrossConnect{Ingress: 1, Egress: 17}, ocs.CrossConnect{Ingress: 2, Egress: 18})}
	r, err := sw.Apply(t.Context(), change)
	if err != nil || r.Requests != 2 {
		t.Errorf("got %d requests, %v", r.Requests, err)
	}
	if err := errors.Join(sw.Close(), sw.Close()); err != nil {
		t.Error(err)
	}
	const rest = "OPR-ARC-EQPT::REPMGR:2::IND;ENT-PATCH::1,17:3:;ENT-PATCH::2,18:4:;"
	if got, want := sent(), "ACT-USER::lab:1::hunter2;"+rest; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if got, want := trace[1].String(), "ACT-USER::lab:1::***;"+rest; got != want {
		t.Errorf("sent: got %q, want %q", got, want)
	}
	if got := strings.Count(trace[0].String(), "COMPLD"); got != 4 {
		t.Errorf("received: got %q", &trace[0])
	}
}

func TestOpenFails(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := l.Addr().String()
	l.Close()
	sw, err := drivers.Open(t.Context(), "tl1://"+addr, drivers.Options{Password: secret.New("hunter2")})
	if sw != nil {
		t.Error("got a typed nil")
	}
	var op *ocs.OpError
	if !errors.As(err, &op) || op.Device != addr || !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("got %v", err)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	enough := errors.New("enough")
	cancel(enough)
	if _, err := drivers.Open(ctx, "tl1://"+addr, drivers.Options{}); !errors.Is(err, enough) {
		t.Errorf("got %v", err)
	}
}

// TestFiles: paths in options are relative to a folder, or to the home folder.
func TestFiles(t *testing.T) {
	t.Setenv("HOME", "/home/lab")
	for path, want := range map[string]string{
		"ca.pem": "/etc/lab/ca.pem", "../ca.pem": "/etc/ca.pem", "/ca.pem": "/ca.pem", "~/x/ca.pem": "/home/lab/x/ca.pem",
	} {
		_, err := drivers.Open(t.Context(), "netconf+tls://127.0.0.1:1?ca="+path, drivers.Options{Dir: "/etc/lab"})
		if err == nil || !strings.Contains(err.Error(), "stat "+want+":") {
			t.Errorf("%s: got %v, want %s", path, err, want)
		}
	}
}
