package plan_test

import (
	"testing"

	"github.com/ocslab/ocslab/examples"
	"github.com/ocslab/ocslab/experiment/plan"
	"github.com/ocslab/ocslab/lab"
)

// testbed is the lab of the examples.
func testbed(t testing.TB) *lab.File {
	t.Helper()
	l, err := lab.Parse("opus-testbed.yaml", examples.OpusTestbed)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// parse reads an experiment of which only the middle is given.
func parse(t testing.TB, text string) *plan.File {
	t.Helper()
	f, err := plan.Parse("x.yaml", []byte("name: x\nfinally: {light: restore}\n"+text))
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// resolve holds a file against the emulated testbed.
func resolve(t testing.TB, text string) *plan.Plan {
	t.Helper()
	p, err := parse(t, text).Resolve(testbed(t), plan.Options{Emulated: true})
	if err != nil {
		t.Fatal(err)
	}
	return p
}
