package jobs

import "github.com/ocslab/ocslab/topology/crosswiring/baseline"

// RingGain returns how much faster a job on a ring of pods with all their ports is with all links than on Uniform wiring at
// best, as a share of the speed there: 0.5 on three pods if it does nothing but communicate. communication is the share of its
// time, from 0 to 1, that it spends on the links when it has all. An odd ring has baseline.OddBound of its links, and a step
// waits for the weakest. The paper measured 0.395 on three pods.
func RingGain(pods int, communication float64) float64 {
	bound := baseline.OddBound(pods)
	if bound == 0 {
		return 0
	}
	return slowdown(bound, communication) - 1
}

// RingCommunication returns which share of its time a job spends on its links if that is how much faster it is with all of
// them: the inverse of RingGain, which for the paper's 0.395 on three pods is 0.79. ok is false if no share explains it.
func RingCommunication(pods int, gain float64) (communication float64, ok bool) {
	most := RingGain(pods, 1)
	if !(gain >= 0 && gain <= most) || most == 0 {
		return 0, false
	}
	return gain / most, true
}

// slowdown returns how many times as long a job takes with a part of the throughput between pods.
func slowdown(part, communication float64) float64 {
	if communication == 0 {
		return 1
	}
	return 1 - communication + communication/part
}

// throughput returns the throughput of a ring, by that with all links, whose bundles each have a part of theirs: that of the
// weakest, and half of what the next has more, which can go the other way round. Two pods have but one bundle.
func throughput(parts []float64) float64 {
	if len(parts) == 0 {
		return 1
	}
	least, next := parts[0], parts[0]
	for i, p := range parts[1:] {
		switch {
		case p < least:
			least, next = p, least
		case i == 0 || p < next:
			next = p
		}
	}
	return (least + next) / 2
}
