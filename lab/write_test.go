package lab_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/ocslab/ocslab/examples"
	"github.com/ocslab/ocslab/lab"
)

// Ensure a lab file that was written is read as the same lab.
func TestFile_YAML(t *testing.T) {
	for name, text := range map[string]string{
		"testbed": string(examples.OpusTestbed),
		"all": `
name: "1"
switches:
  - {name: "true", url: "tl1://admin@192.0.2.10:3082", password: "env:X", emulate: {model: polatis-6000-32x32, switching: 1ms, jitter: 10us, seed: 7, ack: before, busy: deny}}
  - {name: rail1, emulate: {model: polatis-6000-32x32}}
hosts:
  - {name: h1, netns: "pid:7", tree: trees/h1, nics: [{name: n0, tx: "true/1", rx: "true/33"}]}
  - {name: h2, agent: [ssh, "h 2", 'it"s'], nics: [{name: n0, tx: "true/2", rx: "true/34", firmware: quick}]}
  - {name: h3}
protect: ["true/31", rail1/2]
configurations:
  a: {maps: {rail1: "1>33,2>34"}, links: [[h1, h2]]}
  b: {links: []}
`,
	} {
		f, err := lab.Parse("lab.yaml", []byte(text))
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		again, err := lab.Parse("lab.yaml", f.YAML())
		if err != nil {
			t.Fatalf("%s: %v\n%s", name, err, f.YAML())
		}
		opts := cmp.Options{cmpopts.IgnoreTypes(lab.Pos{}), cmpopts.EquateEmpty(), cmp.Comparer(func(a, b lab.Configuration) bool {
			return cmp.Equal(a.Links, b.Links, cmpopts.EquateEmpty()) && len(a.Maps) == len(b.Maps)
		})}
		if d := cmp.Diff(f, again, opts); d != "" {
			t.Errorf("%s: (-want +got):\n%s", name, d)
		}
		for _, c := range f.ConfigNames() {
			want, err1 := f.Config(c)
			got, err2 := again.Config(c)
			if err1 != nil || err2 != nil || !cmp.Equal(want, got, cmp.Comparer(func(a, b interface{ String() string }) bool { return a.String() == b.String() })) {
				t.Errorf("%s: configuration %s: %v %v, want %v %v", name, c, got, err2, want, err1)
			}
		}
	}
}
