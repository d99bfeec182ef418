package pccl_test

import (
	"fmt"
	"testing"

	"github.com/ocslab/ocslab/topology/pccl"
)

func BenchmarkCheck(b *testing.B) {
	for _, bb := range []struct {
		c    pccl.Collective
		a    pccl.Algorithm
		gpus int
	}{
		{pccl.AllReduce, "rhd-halving", 128}, {pccl.AllReduce, "rhd-halving", 1024}, {pccl.ReduceScatter, "rhd-halving", 16384},
		{pccl.AllReduce, "ring", 128}, {pccl.AllReduce, "ring", 1024}, {pccl.ReduceScatter, "swing 4x4x8", 128},
		{pccl.AllToAll, "dex", 128}, {pccl.AllToAll, "dex", 1024}, {pccl.AllToAll, "linear", 128}, {pccl.AllToAll, "linear", 1024},
	} {
		b.Run(fmt.Sprintf("%s/%s/%d", bb.c, bb.a, bb.gpus), func(b *testing.B) {
			s := mustNew(b, bb.c, bb.a, bb.gpus, 256e6)
			for b.Loop() {
				if err := s.Check(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkWire(b *testing.B) {
	for _, bb := range []struct {
		name     string
		topology string
		gpus     int
		switches []string
	}{
		{"one switch", "torus 8x16", 128, []string{"a", "a", "a", "a"}}, {"a switch a port", "torus 8x16", 128, []string{"a", "b", "c", "d"}},
		{"a switch a port", "hypercube", 1024, []string{"a", "b", "c", "d", "e", "f", "g", "h", "i", "j"}},
	} {
		b.Run(fmt.Sprintf("%s/%s/%d", bb.name, bb.topology, bb.gpus), func(b *testing.B) {
			top, fabric := mustTopology(b, bb.topology, bb.gpus), nics(bb.gpus, bb.switches...)
			for b.Loop() {
				if _, err := (pccl.WireOptions{NICs: fabric}).Wire(top); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
