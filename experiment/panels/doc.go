// Package panels brings a patch list of fibres between servers (package fibre) about on a lab whose switches are the
// patch panels, and follows every circuit through what they hold then.
//
//	text, err := panels.LabFile(panels.Room{Rows: 8, Columns: 8, Fibres: 7}, panels.LabOptions{})
//	report, err := panels.Apply(ctx, f, room, patch, panels.Options{…})
//
// # The cabling
//
// Servers stand in rows and columns. A server has ports toward each neighbour: NIC e0 of host s5 is its fibre 0 toward the
// east, w0, n0 and s0 are toward the west, north and south. Those of a row hang on the panels of that row, those toward
// north and south on the panels of the column. A lab may have them anywhere else, too: what counts is its hosts, and that the two ends
// of a fibre are on the same switch.
//
// Light goes from one server's port to its neighbour's. That a server sends it on inside, from port to port, is up to
// its interposer (package interposer) and is not done here. The fibres are those of "PCCL: Photonic circuit-switched
// collective communication for distributed ML", arXiv 2509.15450, section 4.2 and algorithm 4.
package panels
