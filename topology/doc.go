// Package topology computes what optical switches shall connect: given the NICs of a lab
// and the ports that they hang on, a planner says which of them are joined.
//
//	maps, err := topology.Plan("ring", topology.Request{NICs: nics, With: map[string]string{"step": "2"}})
//
// [Planners] lists the planners with their arguments. Plans are pure arithmetic: no device
// is asked, and the same request gives the same maps. Functions are safe for concurrent use.
//
// # Words
//
// NICs count from 0 in the order of the request, and around: after the last comes the first.
// That one NIC sends to another takes one cross-connect, from the port that the one sends
// into to the port that the other receives from, on the switch that has both. No NIC sends
// to two, or receives from two; one that a planner leaves out gets no cross-connect.
package topology
