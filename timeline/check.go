package timeline

import (
	"cmp"
	"fmt"
	"slices"
)

// Violation is an effect that came certainly before its cause: a wrong mark, a clock
// that is off by more than its bound, or a reply to another command.
type Violation struct {
	Cause, Effect Mark
	Rule          string // what should hold
}

// Error describes the violation in one sentence.
func (v Violation) Error() string {
	return fmt.Sprintf("timeline: reconfiguration %d: %s, but %s came before %s",
		v.Effect.Reconfiguration, v.Rule, v.Effect, v.Cause)
}

type orderRule struct {
	cause, effect Stage
	sameSubject   bool // holds only where both have one subject
	text          string
}

// orderRules is all that Check assumes. Nothing is assumed across the subjects of
// different layers, since any port's light may feed any NIC.
var orderRules = []orderRule{
	{Command, Ack, true, "a switch acknowledges after it was commanded"},
	{Command, Dark, false, "light goes after the command"},
	{Command, TrafficLost, false, "traffic stops after the command"},
	{Command, CarrierDown, false, "carrier goes after the command"},
	{Command, Light, false, "light comes after the command"},
	{Command, Firmware, false, "firmware reports link after the command"},
	{Command, CarrierUp, false, "carrier comes after the command"},
	{Command, Traffic, false, "traffic resumes after the command"},
	{Dark, Light, true, "light comes back after it went"},
	{Light, Firmware, true, "firmware reports link after the light came"},
	{CarrierDown, CarrierUp, true, "carrier comes back after it went"},
	{TrafficLost, Traffic, true, "traffic resumes after it stopped"},
}

// Check reports orders that cannot be. Within one reconfiguration these hold:
//
//	cause         effect           between
//	command       ack              marks of one subject
//	command       any other stage  any subjects
//	dark          light            marks of one subject
//	light         firmware         marks of one subject
//	carrier-down  carrier-up       marks of one subject
//	traffic-lost  traffic          marks of one subject
//
// An effect violates its rule when it is certainly before ([Interval.Before]) every
// mark that could be its cause; the earliest of those is then reported. A cause that
// nobody saw is no violation. The result follows the order of the effects in marks.
//
// Traffic-lost deserves care: its mark must reach up to the packet that did not
// arrive, for the last packet that did is often older than the command.
func Check(marks []Mark) []Violation {
	type place struct {
		stage   Stage
		subject string
	}
	type found struct {
		effect int // its place in marks
		Violation
	}
	// The earliest mark of each stage that is a cause, of one subject and, under
	// anySubject, of all.
	const anySubject = "\x00any"
	first := make(map[place]int)
	keep := func(at place, i int) {
		if f, ok := first[at]; !ok || compareMarks(marks[i], marks[f]) < 0 {
			first[at] = i
		}
	}
	var violations []found
	for _, group := range byReconfiguration(marks) {
		clear(first)
		for _, i := range group {
			m := &marks[i]
			switch m.Stage {
			case Command:
				keep(place{m.Stage, anySubject}, int(i))
				keep(place{m.Stage, m.Subject}, int(i))
			case Dark, Light, CarrierDown, TrafficLost:
				keep(place{m.Stage, m.Subject}, int(i))
			}
		}
		for _, i := range group {
			effect := &marks[i]
			for _, rule := range orderRules {
				if rule.effect != effect.Stage {
					continue
				}
				at := place{rule.cause, anySubject}
				if rule.sameSubject {
					at.subject = effect.Subject
				}
				if cause, ok := first[at]; ok && effect.Before(marks[cause].Interval) {
					violations = append(violations, found{int(i), Violation{marks[cause], *effect, rule.text}})
				}
			}
		}
	}
	slices.SortStableFunc(violations, func(a, b found) int { return cmp.Compare(a.effect, b.effect) })
	var list []Violation
	for _, v := range violations {
		list = append(list, v.Violation)
	}
	return list
}

// byReconfiguration returns the places of the marks of each reconfiguration, in order.
func byReconfiguration(marks []Mark) [][]int32 {
	order := make([]int32, len(marks))
	for i := range order {
		order[i] = int32(i)
	}
	slices.SortStableFunc(order, func(a, b int32) int {
		return cmp.Compare(marks[a].Reconfiguration, marks[b].Reconfiguration)
	})
	var groups [][]int32
	for begin := 0; begin < len(order); {
		end := begin + 1
		for end < len(order) && marks[order[end]].Reconfiguration == marks[order[begin]].Reconfiguration {
			end++
		}
		groups = append(groups, order[begin:end])
		begin = end
	}
	return groups
}
