// Package fabric joins emulated switches to real Linux interfaces: hosts that are
// network namespaces, NICs that are network devices, and between them what firmware
// and fibre do. What is above the kernel can so be measured with nothing but software,
// and the truth is known.
//
// # From light to carrier
//
// A NIC sends into one port of a switch and receives from another. Its transmitter
// always shines. When there is enough light at its receiver, its firmware detects it,
// trains the link, reports it, and then the driver gives the kernel a carrier, with the
// delays of the NIC's profile (package firmwarenotes). When light is lost for longer
// than the profile's debounce time, the link is given up and the carrier goes at once;
// light that is back before goes unnoticed. All delays are counted from when the light
// came or went and not from when that was noticed.
//
// A fibre may lose light on its way ([NIC].TxLoss and RxLoss): what enters the switch and
// what the receiver gets is then less than what was launched and what left the switch.
//
// Each direction is judged on its own: a NIC that receives light has a carrier even if
// what it sends arrives nowhere. Remote fault signalling, by which Ethernet links of
// 10 Gbit/s and more go down together, is not emulated.
//
// # Frames
//
// A frame goes to the NIC that receives the light of the one that sends it, as long as
// that light is there and both have a carrier. All else is dropped and counted
// ([Fabric.Stats]). The receiving host sees any frame, also one for another address,
// as from a real fibre.
//
// All NICs are in the network 198.18.0.0/15 and know each other's addresses for good
// (permanent neighbours), so that no ARP stands between light and traffic. IPv6 is off
// in the hosts, so nothing is sent but by the host's programs. A host with several NICs
// chooses one with SO_BINDTODEVICE, as its routes are all the same.
//
// # Truth
//
// [Fabric.Truth] holds marks in the words of package timeline, on the axis of the host.
// Their Reconfiguration is the number of the operation of the switch that led to them.
//
//	dark, light    "gpu1/ens1f0"              the instant at which light at the receiver went or had settled
//	firmware       "gpu1/ens1f0"              while the published tree was told that there is a link
//	carrier-down,
//	carrier-up     "gpu1/ens1f0"              while the kernel was told
//	traffic-lost   "gpu1/ens1f0>gpu2/ens1f0"  while the path closed: all frames before passed, and none after
//	traffic        "gpu1/ens1f0>gpu2/ens1f0"  while the first frame after that was handed to the receiving host
//
// A path opens when the last of light and carriers is there, which the Detail of traffic
// tells. The first frame is often later: a host may have nothing to send, or its kernel
// may still hold back frames after the carrier is there. Without any frame on an open path
// there is neither traffic nor traffic-lost. Host of both is that of the receiver. A mark is
// logged when its interval has ended, so a packet may have been read shortly before.
//
// # Published tree
//
// What hardware would show beyond the kernel's interfaces is in a directory for each
// host, [Host.Root], laid out like sysfs:
//
//	class/infiniband/ocs<i>/ports/1/state              "4: ACTIVE" with carrier, else "1: DOWN"
//	class/infiniband/ocs<i>/ports/1/phys_state         "5: LinkUp" if the firmware reports a link, else "2: Polling"
//	class/infiniband/ocs<i>/ports/1/gid_attrs/ndevs/0  the interface: "ens1f0"
//	module/ens1f0/eeprom                               memory of the optical module
//
// Files are changed in place, by one write of the same length. A reader that keeps them
// open sees the change. The number in state and phys_state is always right; with it may,
// for some nanoseconds, be letters of the word before. Blanks may follow the newline.
//
// The memory is that of a QSFP28 with four lanes (SFF-8636): the lower 128 bytes, then the
// upper pages in order, page p at 128+128*p, up to page 11h. A goroutine keeps the file up to
// date, so on a busy machine it is late; [Fabric.Module] reads what the memory holds at the
// time of the read. The light of a fibre is shared
// equally between the lanes. The transmitted power (bytes 50-57) is what the NIC launches,
// before its fibre, and the received one what is left after it. Readings are brought up to date only every Profile.Refresh.
// The LOS flags are set when there was not enough light at any time since the refresh
// before; reading does not clear them.
//
// # Rungs
//
// What the machine does not allow is left out, from the top: see [Rung]. An ordinary
// user gets network namespaces through [Reexec]. Nothing outlives the program, also
// when it is killed, but its directory, which the next [Start] removes.
package fabric
