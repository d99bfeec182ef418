// Package grid runs RailX on a lab: the switches of a grid (package topology/railx) are brought to a configuration, all
// at once or one rail at a time, read back, and checked by following the light.
//
//	text, err := grid.LabFile(g, grid.LabOptions{Switching: 25 * time.Millisecond}) // an emulated lab for the grid
//	cables, err := grid.Cables(ctx, file, g, size)
//	report, err := grid.Apply(ctx, file, cables, torus, hyperx, grid.Options{...})
//
// # Where the ports are
//
// A rail of a row or column is a switch of the lab, and an end of a rail, "+" or "-" of a node, is a duplex port of it: an
// ingress that the node sends into and an egress that it receives from. A lab can say which in two ways:
//
//   - by NICs: host n2-3 is the node in column 2 and row 3, and its NICs x0p, x0m, y1p are its "+" and "-" on rail 0
//     of its row and its "+" on rail 1 of its column;
//   - by names alone, where it has no host n0-0: switch x3-0 is rail 0 of row 3, y2-1 rail 1 of column 2, and duplex
//     port q is ingress q+1 and the egress of the same place, see [railx.Regular].
//
// # What is checked
//
// When all has moved, every switch is read once more, by its driver and not from what the plan says, and the
// light followed from "+" to "-" until each ring closes: [railx.Config.Check] knows nothing of how the links were made.
package grid
