// Package probe says when traffic between NICs stopped and when it resumed. It
// sends small UDP packets at a steady pace in each direction asked for, and looks
// which of them arrive.
//
//	p, err := probe.Start(ctx, probe.Options{
//		Endpoints: []probe.Endpoint{
//			{Name: "gpu1/ens1f0", NS: gpu1, Interface: "ens1f0", Addr: a, MAC: macA},
//			{Name: "gpu2/ens1f0", NS: gpu2, Interface: "ens1f0", Addr: b, MAC: macB},
//		},
//		Flows: []probe.Flow{{From: "gpu1/ens1f0", To: "gpu2/ens1f0"}, {From: "gpu2/ens1f0", To: "gpu1/ens1f0"}},
//	})
//	for {
//		event, err := p.Next(ctx) // Lost, Resumed, Gap
//		...
//	}
//
// Every packet has a sequence number; the instants before and after its send call
// are kept, and the kernel stamps it when it arrives. A probe does not send what it
// is late for: it skips, so that a starved sender makes intervals wide, not
// outages.
//
// # Which packets are missing
//
// Every packet of a flow is judged once, in order of sequence, and all events follow
// from these verdicts:
//
//   - it arrived, in whatever order, within [Options.Silence] of its send call;
//   - it is missing when the kernel refused to send it, which is known at once, or
//     when it has not arrived Silence after its send call. The receiver must have emptied
//     its socket after that moment, so that a late reader makes no outages;
//   - it is unknown when it is not among those that arrived, and the receiver's own
//     socket dropped packets meanwhile. Unknown packets count for nothing: the
//     bounds of an outage are always packets that are known to have arrived or not.
//
// A run of missing packets, one or more, is an outage: [Lost] at its beginning and
// [Resumed] at its end. Hence a hole that is filled within Silence is reordering,
// duplicates change nothing, and an interruption shorter than Silence during which
// packets are held back and not dropped is no outage but delay. What comes later than
// Silence is counted ([FlowState].Late) and stays missing; the first after an outage is told
// as a [Gap], since that outage may be none. Events are told Silence after the
// packets that decide them, however short the outage; what they say does not
// depend on when they are told. Of an outage only its ends are kept, so it can
// last as long as it likes.
//
// # What the intervals hold
//
// Of a path that keeps the order of packets, these are certain:
//
// Lost begins with the send call of the last packet that arrived: the path was
// whole when that passed, which was later. It ends when the send call of the first
// missing packet ended: that found the path broken. The packet may have been broken
// off further down the path than where the call left it: in a queue, a NIC's ring, a
// switch. Therefore the end is moved out by the longest time that one of the last
// 512 to 1024 arrivals took from the end of its send call to its receive stamp. On a veth that is
// nothing, since the packet is there when the call returns. The interval
// certainly holds the moment from which on what was handed to the kernel did not
// arrive, and it holds the moment at which a place further down broke unless
// the missing packet took longer from its call to that place than all those took
// from theirs to the end. It never ends before the send call of a packet that did not arrive.
//
// Resumed begins with the send call of the last missing packet, which came to a path
// that was broken still, and ends with the receive stamp of the first packet that
// arrived, which must have passed before that. Wherever in the path it was broken, this holds.
//
// On a path that reorders packets behind the place where it breaks this stays
// so. If it reorders before that place, a packet may get through that was
// sent after one that did not: the fringe then shows as short outages of their own.
//
// # Clocks
//
// All times are on [timeline.HostAxis]. The kernel stamps packets with the wall
// clock. Each reading of a socket compares the two clocks before and after; if
// the wall clock was stepped between, or if the stamp would lie before the packet
// was sent or after it was read, the stamp is not used and the packet arrived
// somewhere between those two.
//
// # What Linux does not say
//
// A full queue (ENOBUFS) is hidden from UDP sockets that do not ask for the error
// queue (udp_send_skb in net/ipv4/udp.c), and a device without carrier swallows
// packets silently (noop_enqueue in net/sched/sch_generic.c). Such packets are
// found missing like any other, with the same interval. Packets dropped between NIC and
// socket for want of CPU (/proc/net/softnet_stat) cannot be told from an outage.
//
// Carrier loss flushes neighbour entries that are not permanent, and what is then
// measured is ARP; see [Endpoint].MAC. Two interfaces of one namespace do not talk over
// the wire, since their addresses are local: use namespaces.
package probe
