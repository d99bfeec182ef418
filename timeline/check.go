package timeline

import "fmt"

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
		reconfiguration int
		stage           Stage
		subject         string
	}
	// The earliest mark of each stage, of one subject and, under anySubject, of all.
	const anySubject = "\x00any"
	first := make(map[place]Mark)
	for _, m := range marks {
		for _, subject := range []string{m.Subject, anySubject} {
			at := place{m.Reconfiguration, m.Stage, subject}
			if f, ok := first[at]; !ok || compareMarks(m, f) < 0 {
				first[at] = m
			}
		}
	}
	var violations []Violation
	for _, effect := range marks {
		for _, rule := range orderRules {
			if rule.effect != effect.Stage {
				continue
			}
			at := place{effect.Reconfiguration, rule.cause, anySubject}
			if rule.sameSubject {
				at.subject = effect.Subject
			}
			if cause, ok := first[at]; ok && effect.Before(cause.Interval) {
				violations = append(violations, Violation{cause, effect, rule.text})
			}
		}
	}
	return violations
}
