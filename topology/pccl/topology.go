package pccl

import (
	"fmt"
	"iter"
	"math/bits"
	"slices"
)

// Bounds of schedules and topologies. What is larger is refused before anything is allocated for it.
const (
	// MaxGPUs is the most GPUs of a schedule or topology.
	MaxGPUs = 1 << 16
	// MaxTransfers is the most transfers of all rounds of a schedule together, and the most circuits of a topology.
	MaxTransfers = 1 << 22
)

// Topology is a set of direct circuits between GPUs, each in one direction. It is immutable.
type Topology struct {
	name string
	gpus int
	out  [][]int // by GPU, in rising order: to which it has a circuit

	// dims are the sizes of a lattice, and wrap says that it is a torus; nil for anything else.
	dims []int
	wrap bool
}

// Name returns how it was made: "ring", "torus 8x16", "round 3", "rounds 0 to 2".
func (t *Topology) Name() string { return t.name }

// GPUs returns how many GPUs it joins.
func (t *Topology) GPUs() int { return t.gpus }

// Out returns the GPUs that gpu has a circuit to, in rising order. It is for reading only. A GPU that is not there
// has none.
func (t *Topology) Out(gpu int) []int {
	if gpu < 0 || gpu >= t.gpus {
		return nil
	}
	return t.out[gpu]
}

// Has reports whether there is a circuit from a to b.
func (t *Topology) Has(a, b int) bool {
	_, found := slices.BinarySearch(t.Out(a), b)
	return found
}

// Circuits yields the circuits in order of Src, then Dst.
func (t *Topology) Circuits() iter.Seq[Transfer] {
	return func(yield func(Transfer) bool) {
		for a, to := range t.out {
			for _, b := range to {
				if !yield(Transfer{Src: a, Dst: b}) {
					return
				}
			}
		}
	}
}

// Degree returns the most circuits that begin and that end at one GPU.
func (t *Topology) Degree() (out, in int) {
	ends := make([]int, t.gpus)
	for _, to := range t.out {
		out = max(out, len(to))
		for _, b := range to {
			ends[b]++
			in = max(in, ends[b])
		}
	}
	return out, in
}

// Len returns the number of circuits, each direction of a duplex circuit counted.
func (t *Topology) Len() int {
	n := 0
	for _, to := range t.out {
		n += len(to)
	}
	return n
}

// Equal reports whether both join the same GPUs by the same circuits; names do not count.
func (t *Topology) Equal(o *Topology) bool {
	return t.gpus == o.gpus && slices.EqualFunc(t.out, o.out, slices.Equal[[]int])
}

// NewTopology returns the topology that consists of circuits; one that is named twice is there once. A circuit of a GPU
// that is not there, or to itself, is an error that matches [ErrArgument]; too many GPUs or circuits one that
// matches [ErrSize].
func NewTopology(name string, gpus int, circuits []Transfer) (*Topology, error) {
	if err := checkGPUs(name, gpus); err != nil {
		return nil, err
	}
	if len(circuits) > MaxTransfers {
		return nil, fmt.Errorf("%w: %s has %d circuits: want %d at most", ErrSize, name, len(circuits), MaxTransfers)
	}
	for _, c := range circuits {
		if err := checkTransfer(c, gpus); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
	}
	return build(name, gpus, func(join func(a, b int)) {
		for _, c := range circuits {
			join(c.Src, c.Dst)
		}
	}), nil
}

// build makes a topology out of circuits that are known to be right.
func build(name string, gpus int, circuits func(join func(a, b int))) *Topology {
	t := &Topology{name: name, gpus: gpus, out: make([][]int, gpus)}
	circuits(func(a, b int) { t.out[a] = append(t.out[a], b) })
	for a, to := range t.out {
		slices.Sort(to)
		t.out[a] = slices.Compact(to)
	}
	return t
}

// checkGPUs returns why there cannot be that many GPUs in what.
func checkGPUs(what string, gpus int) error {
	if gpus < 2 || gpus > MaxGPUs {
		return fmt.Errorf("%w: %s of %d GPUs: want 2 to %d", ErrSize, what, gpus, MaxGPUs)
	}
	return nil
}

// checkTransfer returns why there is no such transfer among gpus GPUs.
func checkTransfer(t Transfer, gpus int) error {
	for _, x := range []int{t.Src, t.Dst} {
		if x < 0 || x >= gpus {
			return fmt.Errorf("%w: %d>%d: there is no GPU %d: want 0 to %d", ErrArgument, t.Src, t.Dst, x, gpus-1)
		}
	}
	if t.Src == t.Dst {
		return fmt.Errorf("%w: %d>%d: a GPU has no circuit to itself", ErrArgument, t.Src, t.Dst)
	}
	return nil
}

// Direct returns the topology whose circuits are the transfers of rounds: the wiring for one round, or for several at
// once (the union topologies, beyond the paper).
func Direct(gpus int, name string, rounds ...Round) (*Topology, error) {
	var all []Transfer
	for _, r := range rounds {
		if len(all)+len(r.Transfers) > MaxTransfers {
			return nil, fmt.Errorf("%w: %s: its rounds have more than %d transfers: want fewer rounds at once",
				ErrSize, name, MaxTransfers)
		}
		all = append(all, r.Transfers...)
	}
	return NewTopology(name, gpus, all)
}

// Dark returns the topology without circuits, which a fabric is before anything is wired.
func Dark(gpus int) (*Topology, error) { return NewTopology("dark", gpus, nil) }

// Ring returns the ring of GPUs, duplex: each has a circuit to the next and to the one before.
func Ring(gpus int) (*Topology, error) {
	if err := checkGPUs("ring", gpus); err != nil {
		return nil, err
	}
	return lattice("ring", []int{gpus}, true), nil
}

// Torus returns the duplex torus of those dimensions. GPUs are numbered row by row: the last dimension counts
// fastest. In a dimension of size 2 the way around is the same circuit, and there is one.
func Torus(dims ...int) (*Topology, error) {
	if _, err := volume("torus", dims); err != nil {
		return nil, err
	}
	return lattice("torus "+dimsText(dims), dims, true), nil
}

// Grid returns the torus of those dimensions without the circuits that lead around.
func Grid(dims ...int) (*Topology, error) {
	if _, err := volume("grid", dims); err != nil {
		return nil, err
	}
	return lattice("grid "+dimsText(dims), dims, false), nil
}

// Hypercube returns the duplex hypercube of that many GPUs, a power of two: circuits join those whose numbers
// differ in one bit.
func Hypercube(gpus int) (*Topology, error) {
	if err := checkGPUs("hypercube", gpus); err != nil {
		return nil, err
	}
	if bits.OnesCount(uint(gpus)) != 1 {
		return nil, fmt.Errorf("%w: hypercube of %d GPUs: want a power of two, such as %s", ErrSize, gpus, powersAround(gpus))
	}
	dims := slices.Repeat([]int{2}, bits.TrailingZeros(uint(gpus)))
	return lattice("hypercube", dims, false), nil
}

// lattice joins each GPU to its neighbours in each dimension.
func lattice(name string, dims []int, wrap bool) *Topology {
	dims = slices.Clone(dims)
	n := 1
	for _, d := range dims {
		n *= d
	}
	t := build(name, n, func(join func(a, b int)) {
		stride := n
		for _, d := range dims {
			stride /= d
			for x := range n {
				at := x / stride % d
				if at+1 < d {
					join(x, x+stride)
					join(x+stride, x)
				} else if wrap && d > 2 {
					join(x, x-(d-1)*stride)
					join(x-(d-1)*stride, x)
				}
			}
		}
	})
	t.dims, t.wrap = dims, wrap
	return t
}
