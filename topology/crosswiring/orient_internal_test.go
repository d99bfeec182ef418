package crosswiring

import (
	"testing"

	"pgregory.net/rapid"
)

// turnings returns the most links that keep their direction of all orientations with at most so many out of a pod and in.
func turnings(t *ties, i int, out []int32, most int32) int {
	if i == len(t.all) {
		for u, n := range out {
			if n > most || t.degree[u]-n > most {
				return -1
			}
		}
		return 0
	}
	x, best := t.all[i], -1
	for x.out = 0; x.out <= x.links; x.out++ {
		out[x.u] += x.out
		out[x.v] += x.links - x.out
		if n := turnings(t, i+1, out, most); n >= 0 {
			best = max(best, n+int(x.kept()))
		}
		out[x.u] -= x.out
		out[x.v] -= x.links - x.out
	}
	return best
}

// The orientation keeps as many links as any, and only fails if none has room.
func TestTies_OrientIsExact(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		k := newTies(rapid.IntRange(2, 5).Draw(t, "pods"))
		for u := range k.pods {
			for v := range u {
				if n := rapid.Int32Range(0, 3).Draw(t, "links"); n > 0 {
					k.want(int32(u), int32(v), n)
					x := &k.all[len(k.all)-1]
					x.there, x.back = rapid.Int32Range(0, 3).Draw(t, "there"), rapid.Int32Range(0, 3).Draw(t, "back")
				}
			}
		}
		most := rapid.IntRange(0, 7).Draw(t, "most")
		ok := k.orient(most)
		want := turnings(k, 0, make([]int32, k.pods), int32(most))
		if ok != (want >= 0) {
			t.Fatalf("%v: want %d", ok, want)
		}
		if !ok {
			return
		}
		if got := k.kept(); got != want {
			t.Fatalf("it keeps %d: want %d", got, want)
		}
		out := make([]int32, k.pods)
		for _, x := range k.all {
			out[x.u] += x.out
			out[x.v] += x.links - x.out
		}
		for u, n := range out {
			if n > int32(most) || k.degree[u]-n > int32(most) {
				t.Fatalf("pod %d sends %d of %d", u, n, k.degree[u])
			}
		}
	})
}
