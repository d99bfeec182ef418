package polatiscard

import (
	"testing"
	"time"

	"github.com/ocslab/ocslab/ocs"
)

func TestGeometry(t *testing.T) {
	for product, want := range map[string]ocs.Geometry{
		"N-VST-192x192-LU1-DMHNV-801": ocs.TwoSided(192, 192), "I-OST-16x8-LU1-DMHNS": ocs.TwoSided(16, 8),
		"N-VST-32xCC-LU1-DMHNV": ocs.SingleSided(32), "": {}, "N-VST": {}, "16": {},
	} {
		if got := Geometry(product); got != want {
			t.Errorf("%s: got %+v", product, got)
		}
	}
}

func TestAveragingStep(t *testing.T) {
	for d, want := range map[time.Duration]int{
		0: 1, time.Millisecond: 1, 10 * time.Millisecond: 1, 11 * time.Millisecond: 2, time.Second: 7, 2 * time.Second: 8, time.Hour: 8,
	} {
		if got := AveragingStep(d); got != want {
			t.Errorf("%v: got %d, want %d", d, got, want)
		}
	}
}

func TestUnreplaced(t *testing.T) {
	for _, tc := range []struct{ remove, add, want string }{
		{"", "", ""}, {"1>17", "", "1>17"}, {"1>17,2>18", "1>20", "2>18"}, {"1>17,2>18", "3>18", "1>17"},
		{"1>17,2>18", "17>20", "2>18"}, {"1>60000", "2>3", "1>60000"}, {"1>17,2>18", "1>18,2>17", ""},
	} {
		var c ocs.Change
		var err1, err2 error
		c.Remove, err1 = ocs.ParseMap(tc.remove)
		c.Add, err2 = ocs.ParseMap(tc.add)
		if err1 != nil || err2 != nil {
			t.Fatal(err1, err2)
		}
		if got := Unreplaced(c).String(); got != tc.want {
			t.Errorf("-%s +%s: got %s, want %s", tc.remove, tc.add, got, tc.want)
		}
	}
}
