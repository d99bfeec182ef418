// Package walk follows the light through optical switches from every spine port, by fibres and circuits alone: it
// verifies a plan, or what real switches hold, without knowing how it was planned or which wiring it is.
//
//	r, err := walk.Walk(f.Fibres(), config.AllCircuits())
//	for _, v := range r.Violations { … }               // ports whose light does not come back from where it goes
//
// A port of an Ethernet switch needs what it sends to go to the port that it hears from: L2 compatibility, equation 6 of
// the Cross Wiring paper, "A Highly Scalable LLM Clusters with Optical Interconnect", arXiv 2411.01503.
package walk
