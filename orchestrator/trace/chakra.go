package trace

import (
	"cmp"
	"container/heap"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/ocslab/ocslab/topology/opus"
)

// maxNodes is how many nodes an execution trace of a rank may have.
const maxNodes = 1 << 20

// Chakra says what is not in execution traces: which job they are of.
type Chakra struct {
	Name  string
	Job   opus.Job // on one rail
	Rails int      // ranks of a host; rank g of the whole job is rank g/Rails of its rail
	Gbps  float64  // of a duplex port; 0 is [DefaultGbps]
	// Groups says for the name of each process group along which axis it communicates: "dp"; or "front-end/dp", if it uses
	// that network; or "scale-up". Groups that have no name are "".
	Groups map[string]string
}

// chakraNode is what we read of a node, in the JSON form of protocol buffers, which writes 64-bit numbers as text.
type chakraNode struct {
	ID              json.Number   `json:"id"`
	Name            string        `json:"name"`
	Type            string        `json:"type"`
	CtrlDeps        []json.Number `json:"ctrlDeps"`
	DataDeps        []json.Number `json:"dataDeps"`
	StartTimeMicros json.Number   `json:"startTimeMicros"`
	DurationMicros  json.Number   `json:"durationMicros"`
	Attr            []chakraAttr  `json:"attr"`

	id, start int64
	waits     int           // for so many nodes
	next      []*chakraNode // that wait for it
}

// chakraAttr is an attribute: of the values one is set.
type chakraAttr struct {
	Name      string      `json:"name"`
	Int32Val  json.Number `json:"int32Val"`
	Int64Val  json.Number `json:"int64Val"`
	Uint32Val json.Number `json:"uint32Val"`
	Uint64Val json.Number `json:"uint64Val"`
	BoolVal   bool        `json:"boolVal"`
	StringVal string      `json:"stringVal"`
}

// number returns an attribute that is a number.
func (n *chakraNode) number(name string) (int64, error) {
	for _, a := range n.Attr {
		if a.Name == name {
			return int64Of(cmp.Or(a.Int64Val, a.Int32Val, a.Uint64Val, a.Uint32Val))
		}
	}
	return 0, fmt.Errorf("it has no attribute %s", name)
}

// int64Of reads a number; one that is missing is 0, as protocol buffers have it.
func int64Of(n json.Number) (int64, error) {
	if n == "" {
		return 0, nil
	}
	return n.Int64()
}

// chakraKinds are the collectives that we have, by comm_type of version 0.0.4 of the schema.
var chakraKinds = map[int64]Kind{
	0: AllReduce, 2: AllGather, 6: AllToAll, 7: ReduceScatter, 8: ReduceScatter, 9: Barrier,
}

// ImportChakra makes a trace of one step from execution traces of MLCommons Chakra: one for each rank of the rail, in
// order, in the JSON form that Chakra's own chakra_jsonizer writes (objects one after the other, metadata first).
//
// An execution trace is a graph, and says what may overlap; a trace here is a sequence of operations that block. So what
// overlapped follows one after the other: in an order that respects all dependencies, earlier nodes (by
// startTimeMicros, then by id) first. Step times come out longer than they were. Computation is the sum
// of COMP_NODE, except those that say is_cpu_op. An operation's time follows from its comm_size, since a
// recorded one includes waiting for others. Nodes of other types only order things. Sends and receives need the attributes
// comm_dst and comm_src. Refused are collectives that there are none of here (broadcast, reduce, gather, scatter), and, by
// [Trace.Check], schedules that cannot end when each operation blocks. The error matches [ErrTrace], unless a reader failed.
func ImportChakra(opt Chakra, ranks ...io.Reader) (*Trace, error) {
	t := &Trace{
		Name: opt.Name, About: "From execution traces of MLCommons Chakra, what overlapped put in a sequence.",
		Job: opt.Job, Rails: opt.Rails, Gbps: opt.Gbps,
	}
	if err := t.checkHeader(); err != nil {
		return nil, err
	}
	if len(ranks) != t.Job.Ranks() {
		return nil, fmt.Errorf("%w: there are %d execution traces, and the job has %d ranks on a rail",
			ErrTrace, len(ranks), t.Job.Ranks())
	}
	step := Step{Ranks: make([][]Op, len(ranks))}
	tails := make([]int64, len(ranks))
	for rank, r := range ranks {
		nodes, err := readChakra(r)
		if err != nil {
			return nil, fmt.Errorf("execution trace of rank %d: %w", rank, err)
		}
		for _, n := range nodes {
			duration, err := int64Of(n.DurationMicros)
			if err != nil || duration < 0 || tails[rank]+duration > maxUS {
				return nil, fmt.Errorf("%w: execution trace of rank %d, node %d: its duration of %s µs, or the computation that "+
					"it is part of, is impossible", ErrTrace, rank, n.id, n.DurationMicros)
			}
			if n.Type == "COMP_NODE" && !slices.ContainsFunc(n.Attr, func(a chakraAttr) bool {
				return a.Name == "is_cpu_op" && a.BoolVal
			}) {
				tails[rank] += duration
			}
			op, ok, err := t.chakraOp(n, opt.Groups)
			if err != nil {
				return nil, fmt.Errorf("%w: execution trace of rank %d, node %d (%s): %w", ErrTrace, rank, n.id, n.Name, err)
			}
			if ok {
				op.ComputeBeforeUS, tails[rank] = tails[rank], 0
				step.Ranks[rank] = append(step.Ranks[rank], op)
			}
		}
	}
	step.TailUS = slices.Max(tails) // a trace has one for all
	t.Steps = []Step{step}
	if err := t.Check(); err != nil {
		return nil, err
	}
	return t, nil
}

// chakraOp makes an operation of a node; ok is false if it is none.
func (t *Trace) chakraOp(n *chakraNode, groups map[string]string) (op Op, ok bool, err error) {
	switch n.Type {
	case "COMM_COLL_NODE", "COMM_SEND_NODE", "COMM_RECV_NODE":
	default:
		return Op{}, false, nil
	}
	op.Note = n.Name
	if op.Bytes, err = n.number("comm_size"); err != nil {
		return op, false, err
	}
	if n.Type != "COMM_COLL_NODE" {
		attr := "comm_dst"
		if op.Kind = Send; n.Type == "COMM_RECV_NODE" {
			op.Kind, attr = Recv, "comm_src"
		}
		peer, err := n.number(attr)
		if err != nil || peer < 0 || peer >= int64(t.Job.Ranks()*t.Rails) {
			return op, false, cmp.Or(err, fmt.Errorf("%s is %d, and the job has %d ranks", attr, peer, t.Job.Ranks()*t.Rails))
		}
		op.Peer = int(peer) / t.Rails
		return op, true, nil
	}
	kind, err := n.number("comm_type")
	if err != nil {
		return op, false, err
	}
	if op.Kind = chakraKinds[kind]; op.Kind == "" {
		return op, false, fmt.Errorf("its comm_type is %d, which there is no operation for", kind)
	}
	group := ""
	for _, a := range n.Attr {
		if a.Name == "pg_name" {
			group = a.StringVal
		}
	}
	name, known := groups[group]
	if !known {
		return op, false, fmt.Errorf("it is not said what process group %q is", group)
	}
	if name == string(ScaleUp) {
		op.Net = ScaleUp
		return op, true, nil
	}
	if rest, is := strings.CutPrefix(name, string(FrontEnd)+"/"); is {
		name, op.Net = rest, FrontEnd
	}
	if op.Axis, ok = t.Job.AxisOf(name); !ok {
		return op, false, fmt.Errorf("process group %q is said to be along %q: the job has %q", group, name, t.Job.AxisNames())
	}
	return op, true, nil
}

// readChakra returns the nodes of an execution trace in an order that respects its dependencies.
func readChakra(r io.Reader) ([]*chakraNode, error) {
	d := json.NewDecoder(r)
	var all []*chakraNode
	byID := map[int64]*chakraNode{}
	for i := 0; ; i++ {
		n := &chakraNode{}
		err := d.Decode(n)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			var syntax *json.SyntaxError
			var kind *json.UnmarshalTypeError
			if errors.As(err, &syntax) || errors.As(err, &kind) || errors.Is(err, io.ErrUnexpectedEOF) ||
				strings.HasPrefix(err.Error(), "json: ") {
				return nil, fmt.Errorf("%w: object %d: %w", ErrTrace, i, err)
			}
			return nil, err
		}
		if i == 0 && n.Type == "" {
			continue // metadata
		}
		if len(all) == maxNodes {
			return nil, fmt.Errorf("%w: it has more than %d nodes", ErrTrace, maxNodes)
		}
		var bad, bad2 error
		n.id, bad = int64Of(n.ID)
		n.start, bad2 = int64Of(n.StartTimeMicros)
		if err := cmp.Or(bad, bad2); err != nil {
			return nil, fmt.Errorf("%w: object %d: %w", ErrTrace, i, err)
		}
		if byID[n.id] != nil {
			return nil, fmt.Errorf("%w: there are two nodes %d", ErrTrace, n.id)
		}
		byID[n.id] = n
		all = append(all, n)
	}
	var ready nodeHeap
	for _, n := range all {
		for _, d := range slices.Concat(n.CtrlDeps, n.DataDeps) {
			id, err := int64Of(d)
			if err != nil || byID[id] == nil {
				return nil, fmt.Errorf("%w: node %d depends on node %s, which there is none of", ErrTrace, n.id, d)
			}
			byID[id].next = append(byID[id].next, n)
			n.waits++
		}
		if n.waits == 0 {
			ready = append(ready, n)
		}
	}
	heap.Init(&ready)
	sorted := make([]*chakraNode, 0, len(all))
	for len(ready) > 0 {
		n := heap.Pop(&ready).(*chakraNode)
		sorted = append(sorted, n)
		for _, x := range n.next {
			if x.waits--; x.waits == 0 {
				heap.Push(&ready, x)
			}
		}
	}
	if len(sorted) < len(all) {
		return nil, fmt.Errorf("%w: %d of its %d nodes depend on each other in a circle", ErrTrace, len(all)-len(sorted), len(all))
	}
	return sorted, nil
}

// nodeHeap has the earliest node first.
type nodeHeap []*chakraNode

func (h nodeHeap) Len() int { return len(h) }
func (h nodeHeap) Less(i, j int) bool {
	return cmp.Or(cmp.Compare(h[i].start, h[j].start), cmp.Compare(h[i].id, h[j].id)) < 0
}
func (h nodeHeap) Swap(i, j int) { h[i], h[j] = h[j], h[i] }
func (h *nodeHeap) Push(x any)   { *h = append(*h, x.(*chakraNode)) }
func (h *nodeHeap) Pop() any {
	last := (*h)[len(*h)-1]
	*h = (*h)[:len(*h)-1]
	return last
}
