package plan_test

import (
	"strings"
	"testing"
	"time"

	"github.com/ocslab/ocslab/experiment/plan"
)

// Ensure predictions go by what is emulated, and say so. The bounds are those of the model:
// switching, link-up and rest, and a tenth of a second around them.
func TestExpected(t *testing.T) {
	for _, x := range []struct {
		name, text  string
		least, most time.Duration
		basis       string
	}{
		{"light", "wait: settled\nparameters: {switching: 25ms}", 25 * time.Millisecond, 200 * time.Millisecond, "switching in 25ms (emulated polatis-6000-32x32)"},
		{"quick", "parameters: {firmware: quick}", 245 * time.Millisecond, 400 * time.Millisecond, "link-up in 45ms (quick)"},
		{"the lab's firmware", "parameters: {dwell: 30s}", 33200 * time.Millisecond, 33500 * time.Millisecond, "link-up in 3s (connectx-6-dx/autoneg-off)"},
		{"toggled often", "parameters: {dwell: 0s}", 5 * time.Second, 10500 * time.Millisecond, "as it is toggled often"},
		{"auto-negotiation", "parameters: {dwell: 30s, firmware: connectx-6-dx/autoneg-on}", 36200 * time.Millisecond, 36500 * time.Millisecond, "30s of rest"},
		{"fixed", "wait: 2s", 2200 * time.Millisecond, 2500 * time.Millisecond, "2s as the file says"},
		{"too quick to notice", "parameters: {switching: 1ms, firmware: quick}", time.Millisecond, 200 * time.Millisecond, "keeps its link"},
		{"nobody is asked whether it is up", "wait: carrier\nparameters: {switching: 1ms, firmware: quick}", time.Second, 1200 * time.Millisecond, "keeps its link"},
		{"another model", "parameters: {model: fast-mems-25ms, firmware: quick}\nsequence: [a, b]\nconfigurations: {a: {maps: {rail0: 1>65}}, b: {maps: {rail0: 1>66}}}", 245 * time.Millisecond, 400 * time.Millisecond, "switching in 200ms (emulated fast-mems-25ms)"},
	} {
		if !strings.Contains(x.text, "sequence") {
			x.text += "\nsequence: [dp, pp]"
		}
		c := resolve(t, x.text).Conditions[0]
		if c.Expected < x.least || c.Expected > x.most || !strings.Contains(c.Basis, x.basis) {
			t.Errorf("%s: %v, %q; want %v to %v, and %q", x.name, c.Expected, c.Basis, x.least, x.most, x.basis)
		}
	}
}

// Ensure what is only assumed of a real lab is called that.
func TestExpected_Real(t *testing.T) {
	l := testbed(t)
	for i := range l.Hosts {
		l.Hosts[i].NICs[0].Firmware = ""
	}
	p, err := parse(t, "sequence: [dp, pp]").Resolve(l, plan.Options{})
	if err != nil {
		t.Fatal(err)
	}
	c := p.Conditions[0]
	if strings.Count(c.Basis, "assumed") != 2 || c.Expected < 3*time.Second {
		t.Errorf("%v, %q", c.Expected, c.Basis)
	}
	if p.Emulated {
		t.Error("the plan is for an emulated lab")
	}
}
