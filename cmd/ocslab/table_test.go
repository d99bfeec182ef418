package main

import (
	"strings"
	"testing"
)

// Ensure columns go in the order given, as many as must, and headings and alignment with them.
func TestTable_Fit(t *testing.T) {
	for _, x := range []struct {
		most int
		want string
	}{
		{0, "stage   n  median  bounds\nlight  10   200.1    1..2\n"},
		{25, "stage   n  median  bounds\nlight  10   200.1    1..2\n"},
		{24, "stage   n  median\nlight  10   200.1\n"},
		{16, "stage   n\nlight  10\n"},
		{1, "stage   n\nlight  10\n"}, // no more may go
	} {
		tab := table{align: ".>>>"}
		tab.row("stage", "n", "median", "bounds")
		tab.row("light", "10", "200.1", "1..2")
		tab.fit(x.most, 3, 2)
		var b strings.Builder
		tab.write(&b, "")
		if b.String() != x.want {
			t.Errorf("at most %d:\n%swant\n%s", x.most, b.String(), x.want)
		}
	}
}
