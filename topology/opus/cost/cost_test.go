package cost_test

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/ocslab/ocslab/topology/opus/cost"
)

// The paper's ratios, and the sums they come from.
func TestCompare(t *testing.T) {
	for _, c := range []struct {
		sys                      cost.System
		epsDollars, railsDollars float64 // 0: not known
		epsWatts, railsWatts     float64
		dollars, watts           float64 // ratios, to the digits given
		digits                   int
	}{
		{cost.System{Servers: 16}, 1048062, 245632, 32920, 1380, 4.267, 23.855, 3},
		{cost.System{Servers: 16, Kind: cost.H200}, 1048062, 245632, 32920, 1380, 4.27, 23.86, 2},
		{cost.System{Servers: 64, Kind: cost.H200}, 4192248, 982528, 131680, 5520, 4.27, 23.86, 2},
		{cost.System{Servers: 32, Kind: cost.H200}, 0, 0, 0, 0, 4.353, 24.375, 3}, // radix 11: no fixed ratio
		{cost.System{Servers: 16, Kind: cost.GB200}, 3115630, 982528, 132636, 8592, 3.171, 15.437, 3},
		{cost.System{Servers: 64, Kind: cost.GB200}, 12462521, 3930112, 530546, 34368, 3.17, 15.44, 2},
		// What the architecture needs: two duplex ports for each GPU.
		{cost.System{Servers: 64, Kind: cost.H200, Ports: 2}, 4192248, 1965056, 131680, 11040, 2.13, 11.93, 2},
	} {
		t.Run(fmt.Sprintf("%+v", c.sys), func(t *testing.T) {
			eps, rails, err := cost.Compare(c.sys)
			if err != nil {
				t.Fatal(err)
			}
			for _, x := range []struct {
				what      string
				got, want float64
			}{
				{"packet switches, dollars", eps.Dollars(), c.epsDollars},
				{"packet switches, watts", eps.Watts(), c.epsWatts},
				{"rails, dollars", rails.Dollars(), c.railsDollars},
				{"rails, watts", rails.Watts(), c.railsWatts},
			} {
				if x.want != 0 && math.Abs(x.got-x.want) > 0.5 {
					t.Errorf("%s: %.2f, want %.0f", x.what, x.got, x.want)
				}
			}
			ulp := math.Pow10(-c.digits)
			if got := eps.Dollars() / rails.Dollars(); math.Abs(got-c.dollars) > 0.5001*ulp {
				t.Errorf("price: %.5f, want %v", got, c.dollars)
			}
			if got := eps.Watts() / rails.Watts(); math.Abs(got-c.watts) > 0.5001*ulp {
				t.Errorf("power: %.5f, want %v", got, c.watts)
			}
		})
	}
}

// The items are those that the sums are made of, to the cent.
func TestCompare_Items(t *testing.T) {
	eps, rails, err := cost.Compare(cost.System{Servers: 16, Kind: cost.H200})
	if err != nil {
		t.Fatal(err)
	}
	want := []cost.Bill{
		{Name: "packet switches", Items: []cost.Item{
			{What: "packet switch ports", Count: 640, Dollars: 372990, Watts: 25240},
			{What: "transceivers", Count: 768, Dollars: 675072, Watts: 7680},
		}},
		{Name: "optical rails", Items: []cost.Item{
			{What: "OCS ports, simplex", Count: 256, Dollars: 133120, Watts: 100},
			{What: "transceivers", Count: 128, Dollars: 112512, Watts: 1280},
		}},
	}
	if diff := cmp.Diff(want, []cost.Bill{eps, rails}); diff != "" {
		t.Error(diff)
	}
}

func TestCompare_Refused(t *testing.T) {
	for _, c := range []struct {
		sys  cost.System
		want string
	}{
		{cost.System{}, "it has 0 servers"},
		{cost.System{Servers: -1}, "it has -1 servers"},
		{cost.System{Servers: cost.MaxServers + 1}, "servers: want 1 to 1048576"},
		{cost.System{Servers: 1, Kind: "B300"}, `there are no prices for "B300"`},
		{cost.System{Servers: 1, GPUs: -8}, "a server has -8 GPUs"},
		{cost.System{Servers: 1, Ports: 9}, "9 duplex ports"},
	} {
		_, _, err := cost.Compare(c.sys)
		if !errors.Is(err, cost.ErrSystem) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: %v, want one that says %q", c.sys, err, c.want)
		}
		if _, err := cost.Report(c.sys); !errors.Is(err, cost.ErrSystem) {
			t.Errorf("report of %+v: %v", c.sys, err)
		}
	}
}

// Any system has a bill, all of whose items are positive and finite, and twice the ports cost twice as
// much.
func TestCompare_Any(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		sys := cost.System{
			Servers: rapid.IntRange(1, cost.MaxServers).Draw(t, "servers"),
			Kind:    rapid.SampledFrom(cost.Kinds).Draw(t, "kind"),
			GPUs:    rapid.IntRange(0, 1024).Draw(t, "gpus"),
			Ports:   rapid.IntRange(1, 4).Draw(t, "ports"),
		}
		eps, rails, err := cost.Compare(sys)
		if err != nil {
			t.Fatal(err)
		}
		for _, b := range []cost.Bill{eps, rails} {
			for _, i := range b.Items {
				if i.Count <= 0 || i.Dollars <= 0 || i.Watts <= 0 || math.IsInf(i.Dollars+i.Watts, 0) {
					t.Fatalf("%s: %+v", b.Name, i)
				}
			}
		}
		sys.Ports *= 2
		same, twice, err := cost.Compare(sys)
		if err != nil {
			t.Fatal(err)
		}
		if same.Dollars() != eps.Dollars() || math.Abs(twice.Dollars()/rails.Dollars()-2) > 1e-12 {
			t.Fatalf("%v and %v, with twice the ports %v and %v", eps.Dollars(), rails.Dollars(), same.Dollars(), twice.Dollars())
		}
	})
}

// Both ways to count are there, whatever was asked for.
func TestReport(t *testing.T) {
	for _, ports := range []int{0, 1, 2} {
		text, err := cost.Report(cost.System{Servers: 64, Ports: ports})
		if err != nil {
			t.Fatal(err)
		}
		for _, want := range []string{
			"512 GPUs: 64 servers of 8 H200", "packet switches cost 4.27 times that and draw 23.86 times the power",
			"packet switches cost 2.13 times that and draw 11.93 times the power", "1965056.00", "982528.00", "4192248.00",
		} {
			if !strings.Contains(text, want) {
				t.Errorf("%d ports: %q is not in\n%s", ports, want, text)
			}
		}
		for line := range strings.Lines(text) {
			if utf8.RuneCountInString(line) > 101 {
				t.Errorf("too wide: %s", line)
			}
		}
	}
}

func TestReach(t *testing.T) {
	for _, c := range []struct{ switchPorts, ports, domain, perRail, pod int }{
		{512, 2, 72, 256, 18432}, // "18K GPUs"
		{512, 1, 72, 512, 36864},
		{32, 2, 2, 16, 32},
		{3, 2, 8, 1, 8},
		{1, 2, 8, 0, 0},
	} {
		perRail, pod, err := cost.Reach(c.switchPorts, c.ports, c.domain)
		if err != nil || perRail != c.perRail || pod != c.pod {
			t.Errorf("%+v: %d, %d, %v", c, perRail, pod, err)
		}
	}
	for _, bad := range [][3]int{{0, 2, 72}, {512, 0, 72}, {512, 2, 0}, {512, -2, 72}, {math.MaxInt, 1, math.MaxInt}} {
		if _, _, err := cost.Reach(bad[0], bad[1], bad[2]); !errors.Is(err, cost.ErrSystem) {
			t.Errorf("%v: %v", bad, err)
		}
	}
}

func Example() {
	text, err := cost.Report(cost.System{Servers: 64, Kind: cost.H200})
	if err != nil {
		panic(err)
	}
	fmt.Print(text)
	// Output:
	// 512 GPUs: 64 servers of 8 H200
	//
	// packet switches
	//   packet switch ports         2560  $   1491960.00     100960.00 W
	//   transceivers                3072  $   2700288.00      30720.00 W
	//   sum                               $   4192248.00     131680.00 W
	//
	// optical rails, 1 duplex port a GPU (the paper's count)
	//   OCS ports, simplex          1024  $    532480.00        400.00 W
	//   transceivers                 512  $    450048.00       5120.00 W
	//   sum                               $    982528.00       5520.00 W
	//   packet switches cost 4.27 times that and draw 23.86 times the power
	//
	// optical rails, 2 duplex ports a GPU (rings need 2)
	//   OCS ports, simplex          2048  $   1064960.00        800.00 W
	//   transceivers                1024  $    900096.00      10240.00 W
	//   sum                               $   1965056.00      11040.00 W
	//   packet switches cost 2.13 times that and draw 11.93 times the power
}
