package conformance_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ocslab/ocslab/drivers"
	"github.com/ocslab/ocslab/drivers/conformance"
	"github.com/ocslab/ocslab/emulator"
	"github.com/ocslab/ocslab/emulator/ocstrx"
	"github.com/ocslab/ocslab/internal/secret"
	"github.com/ocslab/ocslab/lab"
	"github.com/ocslab/ocslab/ocs"
)

// cell is one run of the suite: a model of the emulator over a wire.
type cell struct {
	model, wire string
	report      conformance.Report
}

// wiresOf returns the ways to reach a model, and the URL of each.
func wiresOf(p emulator.Personality) map[string]lab.Endpoint {
	wires := map[string]lab.Endpoint{}
	for _, at := range lab.Endpoints(p) {
		wires[string(at)] = at
	}
	if p.Has(emulator.SpeaksNETCONF) {
		wires["netconf+tls"] = lab.NETCONFTLS
	}
	if runtime.GOOS == "linux" {
		if p.Has(emulator.SpeaksTL1) {
			wires["tl1+serial"] = lab.Serial
		}
		if p.Has(emulator.SpeaksSCPI) {
			wires["scpi+serial"] = lab.Serial
		}
	}
	return wires
}

// Ensure that the suite passes on every driver, every front end and every model,
// and that the table in the documentation is what came out.
func TestMatrix(t *testing.T) {
	t.Parallel()
	pki := makePKI(t)
	var mu sync.Mutex // guards cells
	var cells []cell
	add := func(model, wire string, r conformance.Report) {
		mu.Lock()
		defer mu.Unlock()
		cells = append(cells, cell{model, wire, r})
	}
	t.Run("cells", func(t *testing.T) {
		for _, model := range emulator.Models() {
			p := quick(t, model)
			p.Control.Reboot = 20 * time.Millisecond // NETCONF restarts the network card
			p.SCPI.Gap = 0                           // would take a minute; package scpiswitch has a test of it
			for wire, at := range wiresOf(p) {
				t.Run(model+"/"+wire, func(t *testing.T) {
					t.Parallel()
					listen := map[lab.Endpoint]string{at: ""}
					if at == lab.Serial {
						listen[at] = filepath.Join(t.TempDir(), "tty")
					}
					g, err := ocs.ParseGeometry(p.Size)
					if err != nil {
						t.Fatal(err)
					}
					b := start(t, lab.Emulation{Personality: p, Listen: listen, First: at, TLS: pki.server}, someForeign(g), nil)
					defer b.Close()
					cfg := b.config()
					cfg.AllPorts = true
					cfg.Open = b.over(lab.Endpoint(wire), pki.dir)
					r := run(t, cfg)
					fails(t, r)
					if !r.Restored || r.Cancelled || len(r.Others) > 0 {
						t.Errorf("restored=%v cancelled=%v others=%v", r.Restored, r.Cancelled, r.Others)
					}
					add(model, wire, r)
				})
			}
		}
		for _, model := range ocstrx.Models() {
			for _, at := range []lab.Endpoint{lab.OCSTrx, lab.OCSTrxSerial} {
				if at == lab.OCSTrxSerial && runtime.GOOS != "linux" {
					continue
				}
				t.Run(model+"/"+string(at), func(t *testing.T) {
					t.Parallel()
					add(model, string(at), overLink(t, model, at))
				})
			}
		}
	})
	if t.Failed() || runtime.GOOS != "linux" {
		return
	}
	table := matrix(cells)
	t.Log("\n" + table)
	const path = "../../docs/conformance.md"
	doc, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	const begin, end = "<!-- matrix -->\n", "<!-- end -->\n"
	head, rest, ok1 := strings.Cut(string(doc), begin)
	was, tail, ok2 := strings.Cut(rest, end)
	if !ok1 || !ok2 {
		t.Fatalf("%s: the marks around the table are gone", path)
	}
	if *update {
		if err := os.WriteFile(path, []byte(head+begin+table+end+tail), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if was != table {
		t.Errorf("%s: the table is not what came out; run with -update:\n%s", path, table)
	}
}

// overLink runs the suite on a board of transceivers with circuits of others on its
// first module.
func overLink(t *testing.T, model string, at lab.Endpoint) conformance.Report {
	t.Helper()
	p, err := ocstrx.LoadPersonality(model)
	if err != nil {
		t.Fatal(err)
	}
	listen := map[lab.Endpoint]string{at: ""}
	if at == lab.OCSTrxSerial {
		listen = map[lab.Endpoint]string{lab.Serial: filepath.Join(t.TempDir(), "tty")}
	}
	e, err := lab.Emulation{Transceivers: &lab.Transceivers{Personality: p}, Listen: listen}.Start()
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	open := func(ctx context.Context) (ocs.Switch, error) {
		return drivers.Open(ctx, e.URLs()[at], drivers.Options{Name: "dut", Timeout: 5 * time.Second})
	}
	sw, err := open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	n := ocs.Port(8 * p.Modules) // lane 1 on its fibre 2, lane 2 in the loop to the receiver of lane 3
	others := ocs.MustMap(ocs.CrossConnect{Ingress: 1, Egress: 2*n + 1}, ocs.CrossConnect{Ingress: 2, Egress: 3*n + 3})
	if _, err := sw.Apply(t.Context(), ocs.Change{Add: others}); err != nil {
		t.Fatal(err)
	}
	if err := sw.Close(); err != nil {
		t.Fatal(err)
	}
	r := run(t, conformance.Config{Name: "dut", AllPorts: true, Open: open})
	fails(t, r)
	if !r.Restored || r.Cancelled || len(r.Others) > 0 {
		t.Errorf("restored=%v cancelled=%v others=%v", r.Restored, r.Cancelled, r.Others)
	}
	if got := quirk(r, "egress ports of an ingress"); got == "" {
		t.Error("no ingress was moved through the egress ports that it reaches")
	}
	return r
}

// over opens sessions over a wire, with the certificates in dir. There is one
// serial line only, as on the device: who opens it a second time is refused.
func (b *bed) over(wire lab.Endpoint, dir string) func(context.Context) (ocs.Switch, error) {
	url := b.URLs()[wire]
	if wire == lab.NETCONFTLS {
		url += "?ca=ca.pem&cert=admin.pem&key=admin.key"
	}
	return func(ctx context.Context) (ocs.Switch, error) {
		return drivers.Open(ctx, url, drivers.Options{Name: "dut", Password: secret.New("root"), Timeout: b.timeout, Dir: dir})
	}
}

// pki is an authority that has certified a switch at 127.0.0.1 and its user
// admin.
type pki struct {
	dir    string // ca.pem, admin.pem, admin.key
	server *tls.Config
}

func makePKI(t *testing.T) pki {
	t.Helper()
	check := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	template := func(serial int64, name string) *x509.Certificate {
		return &x509.Certificate{
			SerialNumber: big.NewInt(serial), Subject: pkix.Name{CommonName: name},
			NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		}
	}
	key := func() *ecdsa.PrivateKey {
		k, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		check(err)
		return k
	}
	ca, caKey := template(1, "lab authority"), key()
	ca.IsCA, ca.BasicConstraintsValid, ca.KeyUsage = true, true, x509.KeyUsageCertSign
	caDER, err := x509.CreateCertificate(rand.Reader, ca, ca, &caKey.PublicKey, caKey)
	check(err)
	issue := func(c *x509.Certificate, usage x509.ExtKeyUsage) tls.Certificate {
		k := key()
		c.ExtKeyUsage = []x509.ExtKeyUsage{usage}
		der, err := x509.CreateCertificate(rand.Reader, c, ca, &k.PublicKey, caKey)
		check(err)
		return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: k}
	}
	server := template(2, "rail0")
	server.IPAddresses = []net.IP{net.IPv4(127, 0, 0, 1)}
	serverCert := issue(server, x509.ExtKeyUsageServerAuth)
	admin := issue(template(3, "admin"), x509.ExtKeyUsageClientAuth)

	dir := t.TempDir()
	write := func(name, kind string, der []byte) {
		check(os.WriteFile(filepath.Join(dir, name), pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600))
	}
	write("ca.pem", "CERTIFICATE", caDER)
	write("admin.pem", "CERTIFICATE", admin.Certificate[0])
	keyDER, err := x509.MarshalPKCS8PrivateKey(admin.PrivateKey)
	check(err)
	write("admin.key", "PRIVATE KEY", keyDER)
	pool := x509.NewCertPool()
	parsed, err := x509.ParseCertificate(caDER)
	check(err)
	pool.AddCert(parsed)
	return pki{dir, &tls.Config{Certificates: []tls.Certificate{serverCert}, ClientCAs: pool}}
}

// columns are the capabilities of the matrix.
var columns = []string{"switch", "power-meter", "shutter", "labeler", "attenuator", "notifier", "restarter"}

// matrix is the table for the documentation: how many checks of each capability
// passed, which were skipped, and which are not supported though the capability is.
func matrix(cells []cell) string {
	slices.SortFunc(cells, func(a, b cell) int {
		return strings.Compare(a.model+"\x00"+a.wire, b.model+"\x00"+b.wire)
	})
	var out strings.Builder
	fmt.Fprintf(&out, "| model | wire | %s | skipped | not supported |\n", strings.Join(columns, " | "))
	out.WriteString("| --- | --- |" + strings.Repeat(" ---: |", len(columns)) + " --- | --- |\n")
	for _, c := range cells {
		fmt.Fprintf(&out, "| `%s` | `%s` |", c.model, c.wire)
		supported := map[string]bool{}
		for _, k := range c.report.Capabilities {
			supported[k.Name] = k.Supported
		}
		var skipped, lacking []string
		for _, name := range columns {
			passed := 0
			for _, k := range c.report.Checks {
				switch {
				case k.Capability != name:
				case k.Result == conformance.Pass:
					passed++
				case k.Result == conformance.Skip && supported[name]:
					skipped = append(skipped, k.Name)
				case k.Result == conformance.Unsupported && supported[name]:
					lacking = append(lacking, k.Name)
				}
			}
			if !supported[name] {
				out.WriteString(" - |")
			} else {
				fmt.Fprintf(&out, " %d |", passed)
			}
		}
		fmt.Fprintf(&out, " %s | %s |\n", strings.Join(skipped, ", "), strings.Join(lacking, ", "))
	}
	return out.String()
}

// Ensure that every test that the documentation names is there.
func TestDocumentedTests(t *testing.T) {
	t.Parallel()
	doc, err := os.ReadFile("../../docs/conformance.md")
	if err != nil {
		t.Fatal(err)
	}
	named := regexp.MustCompile("`([a-z0-9/]+)\\.(Test\\w+)`").FindAllStringSubmatch(string(doc), -1)
	if len(named) < 10 {
		t.Fatalf("%d tests are named", len(named))
	}
	for _, n := range named {
		files, err := filepath.Glob("../../" + n[1] + "/*_test.go")
		if err != nil {
			t.Fatal(err)
		}
		if !slices.ContainsFunc(files, func(file string) bool {
			data, err := os.ReadFile(file)
			return err == nil && strings.Contains(string(data), "func "+n[2]+"(")
		}) {
			t.Errorf("there is no %s in %s", n[2], n[1])
		}
	}
}
