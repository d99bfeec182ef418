// Package live keeps a lab open, and knows how it is now.
//
//	s, err := live.Open(ctx, live.Options{File: f, Lab: opt, History: log})
//	...
//	for range s.Changed() {
//		draw(s.State())
//	}
//
// A [Session] has a session of its own with each switch for reading, follows the links
// of the hosts, and keeps what it learns in a [State], a value that does not change any
// more once it is handed out: there is a newer one instead, at most every
// [PublishEvery]. So whoever draws it needs no lock, may be as slow as it likes, and
// holds up nothing.
//
// # Truth
//
// What a State says of a switch is what the device has said, and when. What was asked
// for is not in it. A switch that does not answer keeps what it said last, with its age,
// and is tried again until it answers.
//
// # Changing
//
// A change is wished for ([Wish]), looked at ([Session.Preview]), and brought about as it
// was looked at, or not at all ([Session.Apply]): when the switch has changed in between,
// nothing is sent. Every change goes the way it goes on the command line: through
// history, interlock and read-back, and it is measured as [experiment.Bench] measures.
package live
