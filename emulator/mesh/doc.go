// Package mesh emulates a mesh of Mach-Zehnder interferometers (MZIs), as it is under the accelerators of a server
// with a photonic interposer: heaters that take their time, light that is split by what they have reached, and
// heaters that do nothing any more.
//
//	d, err := mesh.New(mesh.Options{Rows: 16, Columns: 16})
//	err = d.Set(map[int]float64{5: math.Pi}, []mesh.Tap{{Node: 4, Side: mesh.East, Wavelength: 1, Adds: true}, …})
//	d.Phases()            // of all heaters, now
//	d.Light()             // what each tap that takes light gets, and from which source
//	d.Stick(5, mesh.Fault{Phase: 0, Unseen: true})
//
// # Model
//
// Nodes count from 0, row by row; each joins four waveguides. A phase of 0 joins north with south and west with east
// (bar). A phase of π joins them around a corner (cross): west with south and north with east where row and column
// together are even, west with north and south with east where they are odd, as every other MZI stands a quarter
// turned. In between, the share sin²(phase/2) of the power goes the way of the cross. Each MZI lets a thousandth
// (30 dB) go the wrong way and loses 0.1 dB; both are invented, but of the usual size. Light of several ways adds
// up by power: interference between them is not modelled, nor is heat that reaches neighbours.
//
// A heater moves exponentially, and is within 1 % of π of where it was sent after [Options.Settling], 3.7 µs by default:
// what the paper quotes for Passage ("PCCL: Photonic circuit-switched collective communication for distributed ML",
// arXiv 2509.15450, section 4.1).
//
// A tap is a resonator at a node: one that adds puts 1 mW of its source onto a waveguide, away from the node; one that
// takes has all light of its wavelength that comes to the node on a waveguide, before the MZI. Each source has a tone of its
// own, by which receivers tell whose light they get.
//
// No protocol of such a device is published, and an invented one would prove nothing: it is a value in memory. Like all
// of the emulator, it is a function of time, and has no goroutines; a [Device] is safe for concurrent use.
package mesh
