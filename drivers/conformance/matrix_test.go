package conformance_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ocslab/ocslab/drivers"
	"github.com/ocslab/ocslab/drivers/conformance"
	"github.com/ocslab/ocslab/emulator"
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
	var mu sync.Mutex // guards cells
	var cells []cell
	t.Run("cells", func(t *testing.T) {
		for _, model := range emulator.Models() {
			p := quick(t, model)
			p.Control.Reboot = 20 * time.Millisecond // NETCONF restarts the network card
			p.SCPI.Gap /= 5
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
					b := start(t, lab.Emulation{Personality: p, Listen: listen, First: at}, someForeign(g), nil)
					defer b.Close()
					cfg := b.config()
					cfg.AllPorts = true
					cfg.Open = b.over(lab.Endpoint(wire))
					r := run(t, cfg)
					fails(t, r)
					if !r.Restored || r.Cancelled || len(r.Others) > 0 {
						t.Errorf("restored=%v cancelled=%v others=%v", r.Restored, r.Cancelled, r.Others)
					}
					mu.Lock()
					defer mu.Unlock()
					cells = append(cells, cell{model, wire, r})
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

// over opens sessions over a wire. There is one serial line only, as on the
// device: who opens it a second time is refused.
func (b *bed) over(wire lab.Endpoint) func(context.Context) (ocs.Switch, error) {
	return func(ctx context.Context) (ocs.Switch, error) {
		return drivers.Open(ctx, b.URLs()[wire], drivers.Options{Name: "dut", Password: secret.New("root"), Timeout: b.timeout})
	}
}

// columns are the capabilities of the matrix.
var columns = []string{"switch", "power-meter", "shutter", "labeler", "attenuator", "notifier", "restarter"}

// matrix is the table for the documentation: how many checks of each capability
// passed, and which were skipped.
func matrix(cells []cell) string {
	slices.SortFunc(cells, func(a, b cell) int {
		return strings.Compare(a.model+"\x00"+a.wire, b.model+"\x00"+b.wire)
	})
	var out strings.Builder
	fmt.Fprintf(&out, "| model | wire | %s | skipped |\n", strings.Join(columns, " | "))
	out.WriteString("| --- | --- |" + strings.Repeat(" ---: |", len(columns)) + " --- |\n")
	for _, c := range cells {
		fmt.Fprintf(&out, "| `%s` | `%s` |", c.model, c.wire)
		supported := map[string]bool{}
		for _, k := range c.report.Capabilities {
			supported[k.Name] = k.Supported
		}
		var skipped []string
		for _, name := range columns {
			passed := 0
			for _, k := range c.report.Checks {
				switch {
				case k.Capability != name:
				case k.Result == conformance.Pass:
					passed++
				case k.Result == conformance.Skip && supported[name]:
					skipped = append(skipped, k.Name)
				}
			}
			if !supported[name] {
				out.WriteString(" - |")
			} else {
				fmt.Fprintf(&out, " %d |", passed)
			}
		}
		fmt.Fprintf(&out, " %s |\n", strings.Join(skipped, ", "))
	}
	return out.String()
}
