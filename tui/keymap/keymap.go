// Package keymap has all keys of the terminal UI: which there are, what each does, where,
// and whether that can move light. Help, the palette, the commands and the gate of the
// read-only mode are made from this one table.
package keymap

import "strings"

// Action is what a key, a command or the palette asks for.
type Action string

// The actions.
const (
	None Action = ""

	Screen1    Action = "patch"
	Screen2    Action = "links"
	Screen3    Action = "timeline"
	Screen4    Action = "experiment"
	Screen5    Action = "devices"
	Screen6    Action = "log"
	NextScreen Action = "next-screen"
	PrevScreen Action = "previous-screen"
	LastView   Action = "last-view"
	Back       Action = "back"
	Quit       Action = "quit"

	Help     Action = "help"
	Command  Action = "command"
	Palette  Action = "palette"
	Filter   Action = "filter"
	Freeze   Action = "freeze"
	Copy     Action = "copy"
	Save     Action = "save"
	Mouse    Action = "mouse"
	NewTheme Action = "theme"
	Redraw   Action = "redraw"
	ReadOnly Action = "read-only"
	Write    Action = "write"
	Suspend  Action = "suspend"

	Up         Action = "up"
	Down       Action = "down"
	Left       Action = "left"
	Right      Action = "right"
	PageUp     Action = "page-up"
	PageDown   Action = "page-down"
	Home       Action = "home"
	End        Action = "end"
	Select     Action = "select"
	SelectAll  Action = "select-all"
	Sort       Action = "sort"
	Reverse    Action = "reverse"
	Enter      Action = "enter" // what that is depends on what the cursor is on
	NextSwitch Action = "next-switch"
	PrevSwitch Action = "previous-switch"
	NextRow    Action = "next-row" // of a chart beside a list
	PrevRow    Action = "previous-row"
	GoTo       Action = "go-to" // a port or a NIC that is typed

	View    Action = "view" // matrix or list
	ZoomIn  Action = "zoom-in"
	ZoomOut Action = "zoom-out"
	ZoomFit Action = "zoom-fit"
	All     Action = "all" // also what is hidden by default

	Connect    Action = "connect"
	Disconnect Action = "disconnect"
	Link       Action = "link"
	Unlink     Action = "unlink"
	Configure  Action = "configure"
	Undo       Action = "undo"
	Redo       Action = "redo"
	Panic      Action = "panic"
	Lift       Action = "lift"
	Edit       Action = "edit"
	Open       Action = "open"
	Run        Action = "run"
	Pause      Action = "pause"
	Stop       Action = "stop"
	Abort      Action = "abort"

	Accept Action = "accept"
	Cancel Action = "cancel"
	Policy Action = "policy"
)

// Where is where a key means something.
type Where string

// The places. In a dialog and in a prompt only their own keys mean anything.
const (
	Everywhere   Where = "everywhere"
	InLists      Where = "lists"
	InPatch      Where = "patch"
	InLinks      Where = "links"
	InTimeline   Where = "timeline"
	InExperiment Where = "experiment"
	InDevices    Where = "devices"
	InLog        Where = "log"
	InPreview    Where = "preview" // something waits to be confirmed
)

// Binding is one action and its keys.
type Binding struct {
	Action Action
	Keys   []string // as bubbletea names them; the first is the one that is shown
	Help   string   // what it does, for people
	Where  []Where
	// Mutates says that it can lead to something being sent that changes a device or a
	// run, or to a file being written. The read-only mode lets no such action pass.
	Mutates bool
	// CLI is the command that does the same, with the words in capitals to be filled in;
	// "" for what is of the screen only.
	CLI string
}

// In reports whether the binding is for a place.
func (b Binding) In(w Where) bool {
	for _, x := range b.Where {
		if x == w {
			return true
		}
	}
	return false
}

// Key is the key that is shown, "" if it has none.
func (b Binding) Key() string {
	if len(b.Keys) == 0 {
		return ""
	}
	return Name(b.Keys[0])
}

// Name is how a key is written for people.
func Name(key string) string {
	switch key {
	case " ":
		return "space"
	case "up":
		return "↑"
	case "down":
		return "↓"
	case "left":
		return "←"
	case "right":
		return "→"
	}
	return strings.Replace(key, "ctrl+", "^", 1)
}

var bindings = []Binding{
	{Action: Screen1, Keys: []string{"1"}, Help: "patch field", Where: []Where{Everywhere}, CLI: "ocslab show SWITCH"},
	{Action: Screen2, Keys: []string{"2"}, Help: "links of the NICs", Where: []Where{Everywhere}, CLI: "ocslab watch"},
	{Action: Screen3, Keys: []string{"3"}, Help: "timelines of reconfigurations", Where: []Where{Everywhere}, CLI: "ocslab measure --from CONF --to CONF"},
	{Action: Screen4, Keys: []string{"4"}, Help: "experiment", Where: []Where{Everywhere}, CLI: "ocslab runs list"},
	{Action: Screen5, Keys: []string{"5"}, Help: "devices", Where: []Where{Everywhere}, CLI: "ocslab show --all"},
	{Action: Screen6, Keys: []string{"6"}, Help: "log of all that was sent and received", Where: []Where{Everywhere}, CLI: "ocslab --trace …"},
	{Action: NextScreen, Keys: []string{"tab"}, Help: "next screen", Where: []Where{Everywhere}},
	{Action: PrevScreen, Keys: []string{"shift+tab"}, Help: "previous screen", Where: []Where{Everywhere}},
	{Action: LastView, Keys: []string{"-"}, Help: "the screen before this one", Where: []Where{Everywhere}},
	{Action: Back, Keys: []string{"esc"}, Help: "back: close, clear the filter, clear the selection", Where: []Where{Everywhere}},
	{Action: Help, Keys: []string{"?", "f1"}, Help: "all keys", Where: []Where{Everywhere}, CLI: "ocslab help"},
	{Action: Command, Keys: []string{":"}, Help: "type a command", Where: []Where{Everywhere}},
	{Action: Palette, Keys: []string{"ctrl+p"}, Help: "find whatever can be done", Where: []Where{Everywhere}},
	{Action: Filter, Keys: []string{"/"}, Help: "filter: fuzzy words, 'exact, !inverse", Where: []Where{Everywhere}},
	{Action: Freeze, Keys: []string{"f"}, Help: "freeze what is shown", Where: []Where{Everywhere}},
	{Action: Copy, Keys: []string{"Y"}, Help: "copy what the cursor is on", Where: []Where{Everywhere}},
	{Action: Save, Keys: []string{"ctrl+s"}, Help: "save what is shown to a file", Where: []Where{Everywhere}, Mutates: true},
	{Action: Edit, Keys: []string{"e"}, Help: "edit the lab file, or the experiment's, in $EDITOR", Where: []Where{Everywhere}, Mutates: true},
	{Action: Mouse, Keys: []string{"M"}, Help: "leave the mouse to the terminal, or take it", Where: []Where{Everywhere}},
	{Action: NewTheme, Keys: []string{"T"}, Help: "next theme", Where: []Where{Everywhere}},
	{Action: Redraw, Keys: []string{"ctrl+l"}, Help: "draw everything anew", Where: []Where{Everywhere}},
	{Action: ReadOnly, Keys: []string{"R"}, Help: "read-only from here on", Where: []Where{Everywhere}},
	{Action: Write, Help: "end read-only, unless ocslab was started so", Where: []Where{Everywhere}},
	{Action: Suspend, Keys: []string{"ctrl+z"}, Help: "back to the shell; fg comes back", Where: []Where{Everywhere}},
	{Action: Quit, Keys: []string{"q", "ctrl+c"}, Help: "quit", Where: []Where{Everywhere}},

	{Action: Up, Keys: []string{"up", "k"}, Help: "up", Where: []Where{InLists}},
	{Action: Down, Keys: []string{"down", "j"}, Help: "down", Where: []Where{InLists}},
	{Action: Left, Keys: []string{"left", "h"}, Help: "left", Where: []Where{InLists}},
	{Action: Right, Keys: []string{"right", "l"}, Help: "right", Where: []Where{InLists}},
	{Action: PageUp, Keys: []string{"pgup", "ctrl+b"}, Help: "a page up", Where: []Where{InLists}},
	{Action: PageDown, Keys: []string{"pgdown", "ctrl+f"}, Help: "a page down", Where: []Where{InLists}},
	{Action: Home, Keys: []string{"home", "g"}, Help: "to the first", Where: []Where{InLists}},
	{Action: End, Keys: []string{"end", "G"}, Help: "to the last", Where: []Where{InLists}},
	{Action: Select, Keys: []string{" "}, Help: "select, or not", Where: []Where{InPatch, InLinks, InLog}},
	{Action: SelectAll, Keys: []string{"ctrl+a"}, Help: "select all that is shown", Where: []Where{InPatch, InLinks}},
	{Action: Sort, Keys: []string{"s"}, Help: "sort by the next column", Where: []Where{InLists}},
	{Action: Reverse, Keys: []string{"S"}, Help: "sort the other way", Where: []Where{InLists}},
	{Action: NextSwitch, Keys: []string{"n"}, Help: "next switch", Where: []Where{InPatch, InDevices}},
	{Action: PrevSwitch, Keys: []string{"N"}, Help: "previous switch", Where: []Where{InPatch, InDevices}},
	{Action: GoTo, Keys: []string{"'"}, Help: "go to a port or a NIC: 12, 12>40, gpu1", Where: []Where{InPatch, InLinks}},
	{Action: NextRow, Keys: []string{"n"}, Help: "next row of the waterfall", Where: []Where{InTimeline}},
	{Action: PrevRow, Keys: []string{"N"}, Help: "previous row of the waterfall", Where: []Where{InTimeline}},
	{Action: View, Keys: []string{"v"}, Help: "matrix, or list", Where: []Where{InPatch, InTimeline, InExperiment}},
	{Action: ZoomIn, Keys: []string{"+", "=", "]"}, Help: "larger", Where: []Where{InPatch, InTimeline}},
	{Action: ZoomOut, Keys: []string{"_", "["}, Help: "smaller", Where: []Where{InPatch, InTimeline}},
	{Action: ZoomFit, Keys: []string{"0"}, Help: "as large as fits", Where: []Where{InPatch, InTimeline}},
	{Action: All, Keys: []string{"a"}, Help: "show all, also what is routine", Where: []Where{InLists}},
	{Action: Enter, Keys: []string{"enter"}, Help: "open; in the patch field: connect, or disconnect, what the cursor is on", Where: []Where{InLists}},

	{Action: Connect, Keys: []string{"c"}, Help: "connect the selected ports, or those under the cursor", Where: []Where{InPatch}, Mutates: true, CLI: "ocslab connect SWITCH MAP --mode update"},
	{Action: Disconnect, Keys: []string{"d"}, Help: "disconnect the selected ports, or those under the cursor", Where: []Where{InPatch}, Mutates: true, CLI: "ocslab disconnect SWITCH PORTS"},
	{Action: Link, Keys: []string{"L"}, Help: "link two selected NICs both ways", Where: []Where{InPatch, InLinks}, Mutates: true, CLI: "ocslab link NIC NIC --mode update"},
	{Action: Unlink, Keys: []string{"K"}, Help: "unlink the selected NICs", Where: []Where{InPatch, InLinks}, Mutates: true, CLI: "ocslab unlink NIC"},
	{Action: Configure, Keys: []string{"C"}, Help: "bring a configuration of the lab about", Where: []Where{Everywhere}, Mutates: true, CLI: "ocslab apply FILE --mode update"},
	{Action: Undo, Keys: []string{"u"}, Help: "take back the last change", Where: []Where{Everywhere}, Mutates: true, CLI: "ocslab undo"},
	{Action: Redo, Keys: []string{"U", "ctrl+r"}, Help: "take back the last undo", Where: []Where{Everywhere}, Mutates: true, CLI: "ocslab undo ID"},
	// Esc and ! that arrive together are alt+!.
	{Action: Panic, Keys: []string{"!", "alt+!"}, Help: "panic: no light from the lab's ports, at once", Where: []Where{Everywhere}, Mutates: true, CLI: "ocslab panic --reason TEXT"},
	{Action: Lift, Help: "end a panic: give back the light that it took", Where: []Where{Everywhere}, Mutates: true, CLI: "ocslab panic --lift"},

	{Action: Open, Keys: []string{"o"}, Help: "choose an experiment", Where: []Where{InExperiment}, CLI: "ocslab run FILE --plan"},
	{Action: Open, Keys: []string{"o"}, Help: "show the NIC's ports in the patch field", Where: []Where{InLinks}, CLI: "ocslab show SWITCH"},
	{Action: Open, Keys: []string{"o"}, Help: "show the NIC or port of the row", Where: []Where{InTimeline}},
	{Action: Open, Keys: []string{"o"}, Help: "its patch field", Where: []Where{InDevices}, CLI: "ocslab show SWITCH"},
	{Action: Run, Keys: []string{"r"}, Help: "run the experiment", Where: []Where{InExperiment}, Mutates: true, CLI: "ocslab run FILE"},
	{Action: Pause, Keys: []string{"p"}, Help: "pause after the point that is under way, or go on", Where: []Where{InExperiment}, Mutates: true, CLI: "ocslab runs pause RUN"},
	{Action: Stop, Keys: []string{"t"}, Help: "stop after the point that is under way", Where: []Where{InExperiment}, Mutates: true, CLI: "ocslab runs stop RUN"},
	{Action: Abort, Keys: []string{"X"}, Help: "abort at once", Where: []Where{InExperiment}, Mutates: true, CLI: "ocslab runs abort RUN"},

	{Action: Accept, Keys: []string{"y"}, Help: "do it", Where: []Where{InPreview}, Mutates: true},
	{Action: Cancel, Keys: []string{"esc", "n", "q", "ctrl+c"}, Help: "do not, and close", Where: []Where{InPreview}},
	{Action: Policy, Keys: []string{"m"}, Help: "another way: what may happen to other circuits (safe, update, overwrite), or how to run", Where: []Where{InPreview}},
	{Action: Up, Keys: []string{"up", "k"}, Help: "up", Where: []Where{InPreview}},
	{Action: Down, Keys: []string{"down", "j"}, Help: "down", Where: []Where{InPreview}},
	{Action: PageUp, Keys: []string{"pgup", "ctrl+b"}, Help: "a page up", Where: []Where{InPreview}},
	{Action: PageDown, Keys: []string{"pgdown", "ctrl+f"}, Help: "a page down", Where: []Where{InPreview}},
}

// Bindings are all there are. The slice is not to be changed.
func Bindings() []Binding { return bindings }

// For returns the binding of a key in a place: that of the first place that has one.
func For(key string, places ...Where) (Binding, bool) {
	for _, w := range places {
		for _, b := range bindings {
			if !b.In(w) {
				continue
			}
			for _, k := range b.Keys {
				if k == key {
					return b, true
				}
			}
		}
	}
	return Binding{}, false
}

// Of returns the binding of an action, the first if it has several.
func Of(a Action) (Binding, bool) {
	for _, b := range bindings {
		if b.Action == a {
			return b, true
		}
	}
	return Binding{}, false
}

// Mutates reports whether an action can change a device, a run or a file. An action that
// is not in the table does, to be on the safe side.
func Mutates(a Action) bool {
	b, ok := Of(a)
	return !ok || b.Mutates
}
