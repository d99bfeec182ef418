// Package ocstrx drives optical circuit-switching transceivers (OCSTrx), of which each
// lane sends its light into one of two fibres or through a loop network inside the module
// to the receiver of another lane. [Switch] makes one or a bundle of them an [ocs.Switch];
// a [Bus] is how their registers are reached: over the serial line of a controller board
// ([OpenLink]), an I2C bus ([OpenI2C]) or files of the kernel ([OpenEEPROM]). The registers
// are those of package wire/cmis/ocst.
//
// # Ports
//
// A bundle is one switch. With N = 8 x modules its ports are those of
// [ocs.Transceivers]:
//
//	port          is                                              reached from
//	1 to N        ingress: the transmitter of lane ((i-1) mod 8)+1
//	              of module ((i-1) div 8)+1
//	N+i           egress: fibre 1 of that lane                    ingress i only
//	2N+i          egress: fibre 2 of that lane                    ingress i only
//	3N+j          egress: the receiver of lane j, through the     the 8 ingress ports of
//	              loop of its module                              the same module
//
// One module has ports 1 to 32: ingress 1-8, fibre 1 is 9-16, fibre 2 is 17-24, the
// receivers behind the loop are 25-32. So 3>11 is lane 3 on fibre 1, 3>19 on fibre 2,
// 3>31 looped to the receiver of lane 7, and 3>12 does not exist.
//
// A bundle of eight has ports 1 to 256: ingress 1-64, 65-128, 129-192, 193-256. So
// 1-64>65-128 is fibre 1 of all, 1-64>129-192 is fibre 2 of all, and lane 2 of module 3
// is ingress 18, which reaches 82, 146, and 209 to 216.
//
// What excludes each other: an ingress has one egress, an egress one ingress. Beyond that
// the receiver of a lane listens to one place. A lane that sends into a fibre listens to
// that fibre; so i>N+i and i>2N+i exclude every k>3N+i, though they share no port
// ([ocs.Geometry.Excludes]). Light from the fibres has no port of its own: it belongs to
// the circuit of the lane.
//
// Identity.Geometry says all that to programs; its Reaches, Excludes and PortName answer
// for single circuits. Vendor and Model are those of page 00h, Model being joined by "+"
// where modules differ. Serial is that of the module or, of a bundle, of the board they
// are plugged into; those of the modules joined by "+" where no board tells one. Firmware
// is that of the modules.
//
// # A change
//
// [Switch.Apply] reads the lanes of the modules concerned and refuses, before anything is
// sent that changes something: ports that do not exist or cannot be reached
// ([ocs.ErrPort]); ports and receivers that are busy with what is not removed
// ([ocs.ErrConflict]); removing what is not there ([ocs.ErrNotConnected]), so that a plan
// made on an old map fails as a whole; modules that have no light to switch
// ([ocs.ErrDenied], with the reason). Adding what is there already is no error and sends
// nothing. A removed lane goes dark: its modulator is blanked, and its elements stay.
//
// One module and one path take one command: path, lanes and commit in one write. Several
// paths in one module, and all bundles, are armed first. When every module says that it
// is armed they are triggered, by the trigger line of the board at the same moment, or,
// where there is none, by a commit to each in turn, which takes them apart by the time of
// the bus. A module that cannot be armed has all others disarmed, and nothing switches. A
// context that ends before the first trigger does the same; after that all are triggered.
//
// With [ocs.WithReady] a single module is armed, too, and the trigger waits until all are ready,
// for three quarters of [ocst.ArmTimeout] at most. So both ends of a cable switch together, see
// [ocs.Rendezvous]. Who has said that it is ready is triggered, even when its context ends.
//
// Then the modules are read until each has ended. Success is that its count of switches
// has risen, its result is good, and its lanes are where they belong. A module that fails
// goes dark by itself; the others have switched. The error names it, its fault and the
// element, and matches *[ModuleError]. A fault is cleared by [Switch.Restart] only.
// Apply returns when the light is there. It does not wait until the receivers have
// recovered the clock: [Switch.Telemetry] shows that.
//
// Lanes on the loop share its permutation. Those not named in a change stay where they
// go, but the elements of the network may be set anew for it, which takes their light
// away for the time of the switch. Dark lanes are taken to wherever is free.
//
// # Two hosts
//
// A module has no lock. Apply looks at its lanes again as close to the commit as it can.
// If another host has changed the loop since the first look, Apply does the change once
// more on what is there now. It waits for a module that another host has armed. Between
// two hosts that change the same lane the later one wins, and the earlier one sees it
// when it reads.
//
// # Concurrency
//
// A Switch is safe for concurrent use. Changes and restarts are done one after another;
// reads go in between.
package ocstrx
