package crosswiring

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/ocslab/ocslab/topology/internal/graph"
)

// It sends all there is, at the cost of a flow found another way, or says that there is no way.
func TestShifter_AsFlow(t *testing.T) {
	var s shifter
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 8).Draw(t, "nodes")
		s.reset(n)
		flow := graph.NewFlow(n + 2)
		total := 0
		for v := range n {
			have := rapid.Int32Range(-3, 3).Draw(t, "supply")
			if v == n-1 {
				have = 0
				for u := range v {
					have -= s.supply[u]
				}
			}
			s.supply[v] = have
			flow.Arc(n, v, int(max(0, have)), 0)
			flow.Arc(v, n+1, int(max(0, -have)), 0)
			total += int(max(0, have))
		}
		type arc struct{ number, cost int32 }
		var arcs []arc
		for range rapid.IntRange(0, 24).Draw(t, "arcs") {
			u, v := rapid.Int32Range(0, int32(n-1)).Draw(t, "u"), rapid.Int32Range(0, int32(n-1)).Draw(t, "v")
			room, cost := rapid.Int32Range(0, 4).Draw(t, "room"), rapid.Int32Range(0, 2).Draw(t, "cost")
			arcs = append(arcs, arc{s.arc(u, v, room, cost), cost})
			flow.Arc(int(u), int(v), int(room), float64(cost))
		}
		sent, want := flow.Send(n, n+1, total)
		if ok := s.run(); ok != (sent == total) {
			t.Fatalf("it sends all: %v, of %d %d can be", ok, total, sent)
		}
		if sent < total {
			return
		}
		got := int32(0)
		for _, a := range arcs {
			got += s.sent(a.number) * a.cost
		}
		if float64(got) != want || !(s.total == 0) {
			t.Fatalf("it costs %d: want %v", got, want)
		}
	})
}
