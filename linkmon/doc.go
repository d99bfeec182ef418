// Package linkmon reports every carrier transition of network interfaces, each
// with the interval that it must lie in, and proves by accounting that none is
// missing.
//
//	m, err := linkmon.Start(ctx, linkmon.Options{})
//	...
//	for {
//		e, err := m.Next(ctx)
//		...
//		if mark, ok := e.Mark(); ok { ... }
//	}
//
// # Why not just listen
//
// Linux announces carrier changes by RTM_NEWLINK messages, but neither promptly
// nor completely: it looks at plain NICs at most once per second
// (net/core/link_watch.c), and a link that is dark for 25 ms between two looks is
// announced late or never. What is exact are the counters: carrier_changes in
// sysfs (Linux 3.15) moves in the same instant as the carrier itself, can be read
// without privilege and takes no lock. So the counters are swept, by default
// each 100 µs; a transition lies between the beginning of the last read that did
// not show it and the end of the first that did. A late sweep widens an interval
// and never makes it wrong.
//
// # What is reported
//
// A [Transition] is what the counters show. An [Announcement] is the kernel
// telling everybody about it: from then on its own sockets use the link, or
// do not. A message carries the counter, so it announces exactly one transition; those that
// the kernel merges are never announced. With an eBPF filter on the
// socket the kernel stamps the announcement itself; without the right to load
// one it is stamped when it is read.
//
// # Time
//
// All stamps are on [timeline.HostAxis], CLOCK_MONOTONIC, for every host
// monitored: they are namespaces of one machine. No wall clock is asked, so none can
// move a stamp.
//
// The threads that sweep and listen raise their priority as far as they may
// (CAP_SYS_NICE), since on a busy machine an interval is as wide as the time that the
// sweep waits for a processor. Account tells how regular the sweeps were.
//
// # What the monitor changes
//
// With the zero Options nothing, except that taking up an interface asks for its
// carrier once, which makes Linux 6.8 and later announce a change that is
// due. [Options].Sync does so at every change, and with it the kernel starts and stops
// its queue and forgets neighbours that much earlier.
//
// # Concurrency
//
// All methods of [Monitor] may be called from several goroutines at once.
package linkmon
