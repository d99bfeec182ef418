package fibre_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ocslab/ocslab/topology/pccl/fibre"
)

func TestParseRequests(t *testing.T) {
	want := []fibre.Request{{Src: 0, Dst: 13}, {Src: 7, Dst: 7}, {Src: 63, Dst: 0}}
	for name, text := range map[string]string{
		"lines": "# circuits\n0 13\n\n 7\t7 # none\r\n63 0",
		"JSON":  `{"requests": [{"src": 0, "dst": 13}, {"src": 7, "dst": 7}, {"dst": 0, "src": 63}]}`,
		"YAML":  "requests:\n- {src: 0, dst: 13}\n- {src: 7, dst: 7}\n- {src: 63, dst: 0}\n",
	} {
		got, err := fibre.ParseRequests("r", []byte(text), 64)
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("%s: %s", name, d)
		}
	}
}

func TestParseRequests_Refuses(t *testing.T) {
	for text, says := range map[string]string{
		"0 1\n0":                    `r:2:1: "0": want two servers`,
		"0 1 2":                     `r:1:1: "0 1 2": want two servers`,
		"0 -1":                      `r:1:3: "-1" is no server: want a number from 0 to 63`,
		" 0  01":                    `"01" is no server`,
		"\n\n0 x":                   `r:3:3: "x" is no server`,
		"0 64":                      `r:1:3: the argument is not right: there is no server 64: want 0 to 63`,
		"0 99999999999999999999":    `is no server`,
		`{"requests": [{"src":0}]}`: "dst",
		`{"requests": [{"src":0,"dst":1,"x":1}]}`:         "x",
		"{\"requests\": [\n {\"src\": 0, \"dst\": 64}]}":  "r:2:2: requests[0]",
		"{\"requests\": [\n {\"src\": 0, \"dst\": 1.5}]}": "r:2:",
		"{}":                                    "requests",
		"requests:\n- {src: 0, dst: 1, src: 2}": "r:2:",
		strings.Repeat("0 1\n", 65537):          "r:65537:1: no such size: more than 65536 circuits",
	} {
		if _, err := fibre.ParseRequests("r", []byte(text), 64); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%.40q: error = %v, want one with %q", text, err, says)
		}
	}
}

func TestParseGrid(t *testing.T) {
	g, err := fibre.ParseGrid("3x5")
	if err != nil || g.Servers() != 15 || len(g.Links()) != 22 || g.Name() != "grid 3x5" {
		t.Errorf("3x5 is %v, %v", g, err)
	}
	for _, text := range []string{"", "8", "8x", "x8", "8x8x8", "0x8", "08x8", "-8x8", "8X8", " 8x8", "99999999999x1"} {
		if _, err := fibre.ParseGrid(text); err == nil {
			t.Errorf("%q is accepted", text)
		}
	}
}

func FuzzParseRequests(f *testing.F) {
	for _, text := range []string{"0 13\n63 0 # x\n", `{"requests": [{"src": 0, "dst": 13}]}`, "requests:\n- {src: 0, dst: 1}\n", "", "{", "0"} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		all, err := fibre.ParseRequests("r", text, 64)
		if err != nil {
			return
		}
		for _, q := range all {
			if q.Src < 0 || q.Src > 63 || q.Dst < 0 || q.Dst > 63 {
				t.Fatalf("accepted %v", q)
			}
		}
	})
}
