// Package tuitest is what tests of the UI share: states of invented labs, a lab that
// only remembers what it was asked, and goldens of what is drawn.
package tuitest

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/muesli/termenv"

	"github.com/ocslab/ocslab/tui/canvas"
	"github.com/ocslab/ocslab/tui/styles"
)

func init() {
	// Package teatest has the same flag, and comes first where both are linked in.
	if flag.Lookup("update") == nil {
		flag.Bool("update", false, "write golden files instead of comparing with them")
	}
}

// updating reports whether golden files are to be written.
func updating() bool {
	f, ok := flag.Lookup("update").Value.(flag.Getter)
	return ok && f.Get() == true
}

// Sizes are the sizes of terminals that goldens are drawn at.
var Sizes = [][2]int{{80, 24}, {120, 40}, {200, 60}}

// Draw returns a canvas of w x h that was drawn on.
func Draw(w, h int, draw func(a canvas.Area)) *canvas.Canvas {
	c := canvas.New(w, h)
	draw(c.Area())
	return c
}

// Golden draws at each of Sizes and compares with testdata/NAME-80x24.txt, which has the text, and
// NAME-80x24.ans, which has the same with colours, as a terminal of 256 colours gets them.
func Golden(t *testing.T, name string, draw func(a canvas.Area)) {
	t.Helper()
	for _, size := range Sizes {
		c := Draw(size[0], size[1], draw)
		base := fmt.Sprintf("%s-%dx%d", name, size[0], size[1])
		Compare(t, base+".txt", c.String())
		Compare(t, base+".ans", Colours(c)+"\n")
	}
}

// Colours returns the canvas as a terminal of 256 colours gets it, in the dark theme.
func Colours(c *canvas.Canvas) string {
	w := styles.Writer{Theme: styles.Themes()[0], Profile: termenv.ANSI256}
	return w.Render(c)
}

// Compare compares text with a file in testdata, or, with -update, writes it.
func Compare(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if updating() {
		if err := os.MkdirAll("testdata", 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", path, diff)
	}
}
