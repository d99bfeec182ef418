package main

import (
	"testing"

	"github.com/ocslab/ocslab/lab"
)

// Ensure a fault with a name before it is that of one switch, and one without of all.
func TestAddFaults_OfOne(t *testing.T) {
	e, err := lab.EmulationOf("ocstrx-8x112g")
	if err != nil {
		t.Fatal(err)
	}
	list := make([]lab.Emulation, 2)
	for i, name := range []string{"n06-l", "n06-r"} {
		list[i] = e
		transceivers := *e.Transceivers
		list[i].Name, list[i].Transceivers = name, &transceivers
	}
	if err := addFaults(list, []string{"n06-r=power-off:5s", "hot"}); err != nil {
		t.Fatal(err)
	}
	if l, r := len(list[0].Transceivers.Faults), len(list[1].Transceivers.Faults); l != 1 || r != 2 {
		t.Errorf("%d faults of n06-l, %d of n06-r: want 1 and 2", l, r)
	}
	for _, bad := range []string{"n07-l=hot", "=hot", "n06-l=", "n06-l=2/hot", "n06-l=power-off:soon"} {
		if err := addFaults(list, []string{bad}); err == nil {
			t.Errorf("%s: no error", bad)
		}
	}
}
