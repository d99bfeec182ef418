package alloc_test

import (
	"fmt"

	"github.com/ocslab/ocslab/topology/railx"
	"github.com/ocslab/ocslab/topology/railx/alloc"
)

// Three faults in one column cost that column; the fourth, on its own, a row or a column.
func ExampleLargest() {
	a, err := alloc.Largest(8, 8, []railx.Node{{Column: 3, Row: 0}, {Column: 3, Row: 4}, {Column: 3, Row: 7}, {Column: 5, Row: 2}})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(a)
	// Output: 7 x 7 of 8 x 8 nodes (76.6 %); without row 2 and column 3
}
