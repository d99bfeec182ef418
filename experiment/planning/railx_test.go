package planning

import (
	"bytes"
	"strings"
	"testing"

	"github.com/ocslab/ocslab/experiment/report"
)

// TestRailxRows: what the comparison with the paper says, number by number, and each form of the figures.
func TestRailxRows(t *testing.T) {
	for name, want := range map[string]map[string]string{
		"railx-cost": {
			"chips, R = 128, m = 5 (eq. 1)":      "102400 | exact",
			"chips, R = 320, m = 2 (eq. 1)":      "102400 | exact",
			"chips, R = 128, m = 7 (eq. 1)":      "200704 | exact",
			"fat tree, 2 tiers":                  "415.9 | exact",
			"fat tree, 4 tiers":                  "83718.1 | exact",
			"fat tree, 3 tiers, tapered 7:1":     "22051.6 | exact",
			"fat trees in two dimensions":        "375.6 | exact",
			"HammingMesh, 4 x 4 boards, 1 tier":  "375.6 | exact",
			"HammingMesh, 7 x 7 boards, 1 tier":  "657.2 | exact",
			"HammingMesh, 7 x 7 boards, 2 tiers": "5822.2 | exact",
			"TPUv4":                              "54.6 | -70.6 %",
			"torus in three dimensions":          "44.5 | -1.0 %",
			"RailX, 128 ports, m = 4":            "751.1 | exact",
			"RailX, 128 ports, m = 7":            "1314.4 | exact",
		},
		"railx-alltoall": {
			"diameter, HyperX, 9 x 9":                      "2 | exact",
			"diameter, Dragonfly, 21 groups of 5":          "3 | exact",
			"hops, m = 4, n = 1 (section 4.1)":             "2 and 12 | within",
			"all-to-all in theory, 1296 chips (figure 14)": "0.999 | -0.1 %",
			"- simulated":                         "- | not done",
			"- kappa 1":                           "0.642 | as told",
			"- kappa 8 over kappa 2":              "1.000 | as told",
			"hierarchical all-reduce (figure 15)": "best everywhere | as told",
			"- lead over one ring":                "grows | as told",
			"lanes for context, longer sequences (figure 16)": "3 to 8 of 9 | as told",
		},
		"railx-availability": {
			"16 x 16 nodes, 0.1 % faulty":   "98.6 % (worst 76.6 %) | within",
			"128 x 128 nodes, 0.1 % faulty": "89.0 % (worst 80.7 %) | -1.0 points",
		},
	} {
		f, err := report.FindFigure(All(), name)
		if err != nil {
			t.Fatal(err)
		}
		s, err := f.Run(t.Context(), report.FigureOptions{Version: "v1"})
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		got := map[string]string{}
		for _, r := range s.Paper.Rows {
			got[r.Quantity] = r.Ours + " | " + r.Deviation
		}
		for quantity, w := range want {
			if got[quantity] != w {
				t.Errorf("%s: %s: got %q, want %q", name, quantity, got[quantity], w)
			}
		}
		var text, csv, html, svg bytes.Buffer
		for _, err := range []error{s.Text(&text), s.CSV(&csv), s.HTML(&html), s.SVG(&svg, "")} {
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
		}
		for _, line := range strings.Split(text.String(), "\n") {
			if n := len([]rune(line)); n > 110 {
				t.Errorf("%s: %d columns: %s", name, n, line)
			}
		}
		if strings.Contains(text.String(), "NaN") || strings.Contains(text.String(), "Inf") {
			t.Error(text.String())
		}
	}
}
