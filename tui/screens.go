package tui

import (
	"github.com/ocslab/ocslab/tui/screen"
	"github.com/ocslab/ocslab/tui/screen/devices"
	"github.com/ocslab/ocslab/tui/screen/links"
	"github.com/ocslab/ocslab/tui/screen/logs"
	"github.com/ocslab/ocslab/tui/screen/moves"
	"github.com/ocslab/ocslab/tui/screen/patch"
	"github.com/ocslab/ocslab/tui/screen/runscreen"
)

// newScreens are the screens, in the order of their tabs.
func newScreens() []screen.Screen {
	return []screen.Screen{patch.New(), links.New(), moves.New(), runscreen.New(), devices.New(), logs.New()}
}
