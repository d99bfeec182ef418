package crosswiring_test

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"testing/iotest"

	"pgregory.net/rapid"

	"github.com/ocslab/ocslab/topology/crosswiring"
)

func TestParseDemand(t *testing.T) {
	for _, x := range []struct {
		name, text string
		pods       int
		groups     int
		podLevel   bool
		at         [4]int // group, pods, links
		total      int
	}{
		{"matrix", "[[0,2],\n [2,0]]\n", 2, 1, true, [4]int{0, 1, 0, 2}, 2},
		{"matrices", " [ [[0,2],[2,0]], [[0,1],[1,0]] ]", 2, 2, false, [4]int{1, 0, 1, 1}, 3},
		{"one-of-a-list", "[[[0,2],[2,0]]]", 2, 1, false, [4]int{0, 0, 1, 2}, 2},
		{"links", `{"pods":4,"groups":2,"links":[[1,0,3,2],[1,3,0,1]]}`, 4, 2, false, [4]int{1, 0, 3, 3}, 3},
		{"pod-links", `{"pods":4,"links":[[0,3,2]]}`, 4, 1, true, [4]int{0, 3, 0, 2}, 2},
		{"no-links", `{"pods":1,"groups":1,"links":[]}`, 1, 1, false, [4]int{}, 0},
		{"csv", "group,pod,pod,links\n1,0,2,3\r\n\n# more\n1, 2, 0, 1\n", 3, 2, false, [4]int{1, 2, 0, 4}, 4},
		{"csv-no-header", "0,0,1,1", 2, 1, false, [4]int{0, 0, 1, 1}, 1},
		{"csv-pods", "Pod, Pod, Links\n0,1,7\n", 2, 1, true, [4]int{0, 0, 1, 7}, 7},
		{"asymmetric", "[[0,2],[1,0]]", 2, 1, true, [4]int{0, 1, 0, 1}, 1},
	} {
		t.Run(x.name, func(t *testing.T) {
			d, err := crosswiring.ParseDemand(strings.NewReader(x.text), "demand")
			if err != nil {
				t.Fatal(err)
			}
			if d.Pods() != x.pods || d.Groups() != x.groups || d.PodLevel() != x.podLevel || d.Total() != x.total {
				t.Fatalf("%d pods, %d groups, pod-level %v, %d links", d.Pods(), d.Groups(), d.PodLevel(), d.Total())
			}
			if got := d.At(x.at[0], x.at[1], x.at[2]); got != x.at[3] {
				t.Errorf("At(%v) is %d", x.at, got)
			}
		})
	}
}

func TestParseDemand_Refuses(t *testing.T) {
	for _, x := range []struct{ name, text, want string }{
		{"empty", " \n", "there is nothing in it"},
		{"no-matrix", "[]", "0 pods"},
		{"no-row", "[[]]", "row 0 of group 0 has 0 numbers"},
		{"not-square", "[[0,1],[1,0],[0,0]]", "row 0 of group 0 has 2 numbers: want 3"},
		{"two-sizes", "[[[0]],[[0,1],[1,0]]]", "group 1 has 2 rows"},
		{"fraction", "[[0,1],\n[1.5,0]]", "x:2: "},
		{"nan", "[[0,NaN],\n[1,0]]", "x:1: "},
		{"huge", "[[0,3000000000],[1,0]]", "beyond 31 bits"},
		{"huger", "[[0,99999999999999999999],[1,0]]", "where a whole number belongs"},
		{"null", "[[0,\nnull],[1,0]]", "x:2: "},
		{"cut", "[[0,1],\n[1", "x:2: "},
		{"more", "[[0]]\n[[0]]", "x:1: "},
		{"text", `{"pods":"4"}`, "string where a whole number belongs"},
		{"unknown", `{"pods":2,"link":[]}`, `unknown field "link"`},
		{"no-pods", `{"links":[]}`, "want pods"},
		{"many-pods", `{"pods":5000,"links":[]}`, "5000 pods"},
		{"no-group", `{"pods":2,"groups":1,"links":[[1,0,1,1]]}`, "entry 0 of links, [1 0 1 1]: "},
		{"no-pod", `{"pods":2,"links":[[0,2,1]]}`, "there are no pods 0 and 2"},
		{"negative", `{"pods":2,"links":[[0,1,-1]]}`, "-1 links"},
		{"within", `{"pods":2,"links":[[1,1,1]]}`, "within pod 1"},
		{"short", `{"pods":2,"groups":1,"links":[[0,1,1]]}`, "want 4 numbers"},
		{"long", `{"pods":2,"links":[[0,0,1,1]]}`, "want 3 numbers"},
		{"csv-letters", "0,1,2\n0,x,1\n", "x:2: "},
		{"csv-negative", "0,1,-2\n", `"-2"`},
		{"csv-columns", "0,1,2\n0,1,2,3\n", "x:2: "},
		{"csv-one", "7", "1 number:"},
		{"csv-nan", "0,1,NaN", `"NaN"`},
		{"csv-header-alone", "pod,pod,links\n", "there is no line of links"},
		{"csv-within", "0,1,1\n1,1,1\n", "x:2: "},
		{"csv-pods", "0,100000,1\n", "100001 pods"},
		{"csv-links", "0,1,2000000000\n", "2000000000 links"},
		{"csv-sum", "0,1,16777216\n0,1,1\n", "x:2: "},
		{"csv-header-later", "0,1,1\npod,pod,links\n", "x:2: "},
	} {
		t.Run(x.name, func(t *testing.T) {
			_, err := crosswiring.ParseDemand(strings.NewReader(x.text), "x")
			if !errors.Is(err, crosswiring.ErrDemand) || !strings.Contains(err.Error(), x.want) || !strings.HasPrefix(err.Error(), "x:") {
				t.Fatalf("got %v", err)
			}
		})
	}
	broken := errors.New("the disk is broken")
	if _, err := crosswiring.ParseDemand(iotest.ErrReader(broken), "x"); !errors.Is(err, broken) {
		t.Fatalf("got %v", err)
	}
}

func TestDemand_JSON(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := drawDemand(t, drawFabric(t))
		var text bytes.Buffer
		if err := d.WriteJSON(&text); err != nil {
			t.Fatal(err)
		}
		back, err := crosswiring.ParseDemand(&text, "back")
		if err != nil || !back.Equal(d) || back.PodLevel() != d.PodLevel() {
			t.Fatal(err)
		}
	})
	d := matrices(t, [][]int{{0, 2, 1}, {2, 0, 0}, {1, 0, 0}})
	var text strings.Builder
	if err := d.WriteJSON(&text); err != nil {
		t.Fatal(err)
	}
	if got, want := text.String(), "{\"pods\":3,\"links\":[\n[0,1,2],\n[0,2,1]\n]}\n"; got != want {
		t.Errorf("got %s", got)
	}
	if err := matrices(t, [][]int{{0, 2}, {1, 0}}).WriteJSON(&text); !errors.Is(err, crosswiring.ErrDemand) {
		t.Errorf("a demand that differs by direction is written: %v", err)
	}
}

func TestConfig_JSON(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := drawFabric(t)
		c, err := crosswiring.Plan(f, drawDemand(t, f))
		if err != nil {
			t.Fatal(err)
		}
		var text bytes.Buffer
		if err := c.WriteJSON(&text); err != nil {
			t.Fatal(err)
		}
		back, err := crosswiring.ParseConfig(&text, "back")
		if err != nil || !back.Equal(c) {
			t.Fatal(err)
		}
	})
	c, err := crosswiring.FromCircuits(crosswiring.Fabric{Pods: 3, SpinePorts: 2, Groups: 1},
		map[crosswiring.Switch][]crosswiring.Circuit{{Index: 1}: {{In: 0, Out: 2}}})
	if err != nil {
		t.Fatal(err)
	}
	var text strings.Builder
	if err := c.WriteJSON(&text); err != nil {
		t.Fatal(err)
	}
	want := "{\"pods\":3,\"spine_ports\":2,\"groups\":1,\"wiring\":\"cross\",\"switches\":[\n[-1,-1,-1],\n[2,-1,-1]\n]}\n"
	if text.String() != want {
		t.Errorf("got %s", text.String())
	}
}

func TestParseConfig_Refuses(t *testing.T) {
	const head = `{"pods":2,"spine_ports":2,"groups":1,"wiring":"cross","switches":`
	for _, x := range []struct {
		name, text string
		kind       error
		want       string
	}{
		{"empty", "", crosswiring.ErrConfig, "there is nothing in it"},
		{"list", "[1]", crosswiring.ErrConfig, "array where"},
		{"no-wiring", `{"pods":2,"spine_ports":2,"groups":1}`, crosswiring.ErrFabric, "cross, uniform or dual-link"},
		{"odd", `{"pods":2,"spine_ports":3,"groups":1,"wiring":"cross"}`, crosswiring.ErrFabric, "3 ports"},
		{"switches", head + "[[0,1]]}", crosswiring.ErrConfig, "1 switch: want 2"},
		{"inputs", head + "[[0,1],[1]]}", crosswiring.ErrConfig, "1 input of switch 0/1"},
		{"output-twice", head + "[[0,1],\n[1,1]]}", crosswiring.ErrConfig, "output 1 of switch 0/1 has light from inputs 0 and 1"},
		{"no-output", head + "[[0,2],[1,0]]}", crosswiring.ErrConfig, "circuit 1>2 of switch 0/0"},
		{"below-dark", head + "[[0,-2],[1,0]]}", crosswiring.ErrConfig, "circuit 1>-2 of switch 0/0"},
		{"fraction", head + "[[0,1],\n[1,.5]]}", crosswiring.ErrConfig, "x:2: "},
		{"more", head + "[[0,1],[1,0]]}}", crosswiring.ErrConfig, "more behind the end"},
		{"null", head + "[[0,1],[1,null]]}", crosswiring.ErrConfig, "null"},
	} {
		t.Run(x.name, func(t *testing.T) {
			_, err := crosswiring.ParseConfig(strings.NewReader(x.text), "x")
			if !errors.Is(err, x.kind) || !strings.Contains(err.Error(), x.want) || !strings.HasPrefix(err.Error(), "x:") {
				t.Fatalf("got %v", err)
			}
		})
	}
}

func FuzzParseDemand(f *testing.F) {
	f.Add([]byte("[[0,1],[1,0]]"))
	f.Add([]byte("group,pod,pod,links\n0,1,2,3\n"))
	f.Add([]byte(`{"pods":4,"groups":2,"links":[[0,1,3,2]]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		d, err := crosswiring.ParseDemand(bytes.NewReader(data), "x")
		if err != nil {
			if !errors.Is(err, crosswiring.ErrDemand) || strings.Contains(err.Error(), "\n") {
				t.Fatalf("%q", err)
			}
			return
		}
		if d.Pods() > 256 {
			return // right, but slow
		}
		var text bytes.Buffer
		if err := d.WriteJSON(&text); err != nil {
			return // a matrix that differs by direction
		}
		back, err := crosswiring.ParseDemand(&text, "back")
		if err != nil || !back.Equal(d) || back.PodLevel() != d.PodLevel() {
			t.Fatal("not the same when written and read", err)
		}
	})
}

func FuzzParseConfig(f *testing.F) {
	f.Add([]byte(`{"pods":2,"spine_ports":2,"groups":1,"wiring":"cross","switches":[[1,0],[1,-1]]}`))
	f.Add([]byte(`{"pods":2,"spine_ports":2,"groups":1,"wiring":"dual-link","switches":[[3,2,1,0]]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		c, err := crosswiring.ParseConfig(bytes.NewReader(data), "x")
		if err != nil {
			if !errors.Is(err, crosswiring.ErrConfig) && !errors.Is(err, crosswiring.ErrFabric) || strings.Contains(err.Error(), "\n") {
				t.Fatalf("%q", err)
			}
			return
		}
		sound := c.Check() == nil
		if c.Demand().Total() > c.Count()/2 || sound && c.Fabric().Wiring != crosswiring.Uniform && 2*c.Demand().Total() != c.Count() {
			t.Fatalf("%d links of %d circuits", c.Demand().Total(), c.Count())
		}
		var text bytes.Buffer
		if err := c.WriteJSON(&text); err != nil {
			t.Fatal(err)
		}
		back, err := crosswiring.ParseConfig(&text, "back")
		if err != nil || !back.Equal(c) {
			t.Fatal("not the same when written and read", err)
		}
	})
}
