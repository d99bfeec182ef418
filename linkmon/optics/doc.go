// Package optics reads what the optical module of a network interface sees, and tells
// from it when the light went and came.
//
// A [Reader] gives access to the memory of a module: [OpenEthtool] through the kernel,
// [OpenFile] from a memory image, which is what emulated modules publish. A [Sampler]
// finds out what the module is and reads the received power once a period; a [Tracker]
// turns its samples into dark and light marks.
//
//	r, err := optics.OpenEthtool(ns, "ens1f0")
//	...
//	s := optics.Sampler{Reader: r, Period: 10 * time.Millisecond}
//	t := optics.Tracker{Subject: "gpu1/ens1f0", Host: "gpu1"}
//	for {
//		sample, err := s.Sample(ctx)
//		...
//		if mark, ok := t.Add(sample); ok { ... }
//	}
//
// # What a module knows, and when
//
// A module measures its light slowly. The flag for loss of signal may be 100 ms late
// (SFF-8679, SFF-8436), and the power no better, though the light itself reaches the
// network interface's SerDes within about 0.1 ms of coming back. So module power bounds
// when light moved, and does not time it; the monitors of an optical switch are better at
// that. How old a value may be is [Tracker.Lag], and every mark is wider by it.
//
// # What reading costs others
//
// The kernel holds the RTNL lock while it reads a module through ethtool, for 0.3 ms of
// I²C at best and many milliseconds at worst. Meanwhile no link event is announced. So on
// a host where announcements (RTM_NEWLINK) are timed, sample by ethtool only if the carrier
// counters are the measure; they need no lock. DisturbsLinkTiming of a reader says whether
// it does this.
package optics
