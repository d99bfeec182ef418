// Package model has the closed forms of InfiniteHBD: which part of the GPUs cannot be used when nodes are dead, and how
// much a layer sends.
//
//	bound := model.WasteBound(32, 4, 0.0406, 2) // of the GPUs, TP-32 on nodes of 4, K = 2: 9.2 %
//	waste, err := model.Waste(8, 0.0406, 2)     // what it really is: 0.55 %
//
// Sections, tables and appendices are those of the InfiniteHBD paper (see package infinitehbd).
package model

import (
	"errors"
	"fmt"
	"math"
)

// ErrArgument is a number for which there is no result. Test with errors.Is.
var ErrArgument = errors.New("there is no such waste")

// NodeRate returns the share of nodes with a dead GPU if GPUs die independently of each other, a share of gpu of them:
// from 0 to 1.
func NodeRate(gpu float64, gpusPerNode int) float64 {
	return -math.Expm1(float64(gpusPerNode) * math.Log1p(-gpu))
}

// GPURate is the inverse of [NodeRate], for nodes of 1 GPU or more.
func GPURate(node float64, gpusPerNode int) float64 {
	return -math.Expm1(math.Log1p(-node) / float64(gpusPerNode))
}

// HalfRate is [PartRate] of half a node.
func HalfRate(node float64, gpusPerNode int) float64 {
	return PartRate(node, gpusPerNode, gpusPerNode/2)
}

// PartRate returns the probability that a given part of a node, with partGPUs of its GPUs, is concerned when the node
// fails: a share of node of the nodes, from 0 to 1, has a dead GPU, and GPUs die independently of each other (appendix A).
// As node goes to 0 it goes to the share of the GPUs that the part has, and that is what it is for 0.
func PartRate(node float64, gpusPerNode, partGPUs int) float64 {
	switch {
	case partGPUs == gpusPerNode:
		return 1
	case node == 0:
		return float64(partGPUs) / float64(gpusPerNode)
	}
	return NodeRate(GPURate(node, gpusPerNode), partGPUs) / node
}

// WasteBound returns the paper's bound on the expected share of GPUs that are healthy and in no ring (appendix C):
// 2 (tp - g) q^K, with tp GPUs of a ring, g GPUs of a node, a share q of nodes dead, and reach K. It may exceed 1, and is
// 16 to 35 times what [Waste] says for table 7.
func WasteBound(tp, gpusPerNode int, dead float64, hops int) float64 {
	return 2 * float64(tp-gpusPerNode) * math.Pow(dead, float64(hops))
}

// Waste returns the expected share of GPUs that are healthy and in no ring, of a line without ends, of whose nodes a
// share q is dead, each on its own, and whose rings have m nodes. It is exact, and ours beyond the paper: behind a
// healthy node the line breaks with probability b = q^K, so a piece has a geometric number of healthy nodes, and those
// that are left over when it is cut into rings are lost:
//
//	(1-q) b Σ(j=1..m-1) j b (1-b)^(j-1) / (1-(1-b)^m)  =  (1-q) (1 - m b (1-b)^(m-1) / (1-(1-b)^m))
//
// The ends of a line lose about (m-1)/2 nodes more, once. That a node cannot have both its neighbours at distance K if K
// is odd is not counted. The error matches [ErrArgument].
func Waste(m int, dead float64, hops int) (float64, error) {
	if m < 1 || hops < 1 || !(dead >= 0 && dead <= 1) {
		return 0, fmt.Errorf("%w: rings of %d nodes, reach %d, and a share of %g dead: want 1 and more, 1 and more, and 0 to 1",
			ErrArgument, m, hops, dead)
	}
	return (1 - dead) * leftover(float64(m), math.Pow(dead, float64(hops))), nil
}

// leftover returns the share of healthy nodes that are in no ring of m if the line breaks behind each with probability b.
func leftover(m, b float64) float64 {
	switch {
	case m == 1 || b == 0:
		return 0
	case b == 1:
		return 1
	case m*b < 1e-5: // the difference below would lose its digits
		return (m - 1) * b * (0.5 - (m-5)*b/12)
	}
	stay := math.Log1p(-b)
	return 1 + m*b*math.Exp((m-1)*stay)/math.Expm1(m*stay)
}

// Fragment returns how many healthy GPUs of a domain in which any tp can form a ring are in none: all, if tp is below 1.
func Fragment(gpus, dead, tp int) int {
	healthy := max(0, gpus-dead)
	if tp < 1 {
		return healthy
	}
	return healthy % tp
}

// Layer is a layer of a mixture-of-experts model (table 3 of the paper).
type Layer struct {
	Batch    int // sequences
	Sequence int // tokens
	Hidden   int // values of a token
	Experts  int // that a token is sent to: k
	Bytes    int // of a value
}

// TensorParallel returns the bytes that a GPU of n, 1 or more, sends for the layer under tensor parallelism:
// 2 b s h (n-1)/n values.
func (l Layer) TensorParallel(n int) float64 {
	return 2 * float64(l.Batch) * float64(l.Sequence) * float64(l.Hidden) * float64(l.Bytes) * float64(n-1) / float64(n)
}

// ExpertParallel returns the same under expert parallelism: 2 b s h (n-1)/n k/n values.
func (l Layer) ExpertParallel(n int) float64 {
	return l.TensorParallel(n) * float64(l.Experts) / float64(n)
}
