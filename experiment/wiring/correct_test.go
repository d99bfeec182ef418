package wiring_test

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ocslab/ocslab/experiment/wiring"
	"github.com/ocslab/ocslab/lab"
)

func found(nic string, end wiring.End, claimed, at lab.PortRef, how wiring.How) wiring.Fibre {
	return wiring.Fibre{NIC: nic, End: end, Claimed: claimed, Found: at, Verdict: wiring.Elsewhere, How: how}
}

func TestCorrect(t *testing.T) {
	port := func(n int) lab.PortRef {
		p, err := lab.ParsePortRef("rail0/" + string(rune('0'+n)))
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	const before = "switches: [{name: rail0, url: 'tl1://192.0.2.1'}]\nhosts: # all of them\n" +
		"- {name: gpu1, nics: [{name: ens1f0, tx: \"rail0/1\" , rx: 'rail0/5'}]} # ü\r\n" +
		"- name: gpu2\n  nics:\n  - name: ens1f0\n    tx: rail0/2# no comment\n    rx: rail0/6 # one\n"
	const plain = "switches: [{name: rail0, url: 'tl1://192.0.2.1'}]\nhosts: # all of them\n" +
		"- {name: gpu1, nics: [{name: ens1f0, tx: \"rail0/1\" , rx: 'rail0/5'}]} # ü\r\n" +
		"- name: gpu2\n  nics:\n  - name: ens1f0\n    tx: rail0/2\n    rx: rail0/6 # one\n"
	if _, _, err := wiring.Correct("lab.yaml", []byte(before), &wiring.Result{}); err == nil {
		t.Error("a lab file that is wrong was corrected")
	}
	for _, x := range []struct {
		name   string
		fibres []wiring.Fibre
		want   string
		lines  []int
		err    error
	}{
		{"nothing", nil, plain, nil, nil},
		{"a swap", []wiring.Fibre{
			found("gpu1/ens1f0", wiring.Rx, port(5), port(6), wiring.ByLight), found("gpu2/ens1f0", wiring.Rx, port(6), port(5), wiring.ByLight),
			found("gpu1/ens1f0", wiring.Tx, port(1), port(3), wiring.ByName),
		}, "switches: [{name: rail0, url: 'tl1://192.0.2.1'}]\nhosts: # all of them\n" +
			"- {name: gpu1, nics: [{name: ens1f0, tx: rail0/3 , rx: rail0/6}]} # ü\r\n" +
			"- name: gpu2\n  nics:\n  - name: ens1f0\n    tx: rail0/2\n    rx: rail0/5 # one\n", []int{3, 3, 8}, nil},
		{"by elimination", []wiring.Fibre{found("gpu1/ens1f0", wiring.Tx, port(1), port(3), wiring.ByElimination)}, plain, nil, nil},
		{"a guess", []wiring.Fibre{found("gpu1/ens1f0", wiring.Rx, port(5), port(6), wiring.ByLight)}, "", nil, wiring.ErrNotCorrectable},
	} {
		t.Run(x.name, func(t *testing.T) {
			got, done, err := wiring.Correct("lab.yaml", []byte(plain), &wiring.Result{Fibres: x.fibres})
			if !errors.Is(err, x.err) {
				t.Fatalf("%v, want %v", err, x.err)
			}
			if diff := cmp.Diff(x.want, string(got)); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			var lines []int
			for _, c := range done {
				lines = append(lines, c.Line)
			}
			if !cmp.Equal(lines, x.lines) {
				t.Errorf("lines %v, want %v", lines, x.lines)
			}
		})
	}
}
