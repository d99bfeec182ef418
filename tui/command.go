package tui

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	tea "github.com/charmbracelet/bubbletea"

	"github.com/ocslab/ocslab/ocs"
	"github.com/ocslab/ocslab/tui/filter"
	"github.com/ocslab/ocslab/tui/keymap"
	"github.com/ocslab/ocslab/tui/live"
	"github.com/ocslab/ocslab/tui/screen"
	"github.com/ocslab/ocslab/tui/screen/runscreen"
	"github.com/ocslab/ocslab/tui/styles"
)

// command is a command with arguments. Besides, the name of every action is one.
type command struct {
	name, usage, about string
	args               []kind // of the arguments, for completion; the last is that of all after it
	least              int    // arguments there must be; with fewer it is the action of that name, if there is one
	palette            bool   // is offered there, too
	mutates            bool
	// run carries it out. rest is all that was typed after the name.
	run func(m *model, args []string, rest string) (tea.Cmd, error)
}

// kind is what an argument is the name of.
type kind int

const (
	anything kind = iota
	aSwitch
	aNIC
	aConfiguration
	aFile
	aTheme
	aSubject
	aScreen
)

var commands []command

func init() {
	// Filled here, since commands look each other up.
	commands = []command{
		{name: "connect", usage: "SWITCH MAP", about: "make circuits: connect rail0 1>33,2>34", args: []kind{aSwitch, anything}, least: 1, palette: true, mutates: true, run: runConnect},
		{name: "disconnect", usage: "SWITCH PORTS", about: "remove the circuits on ports: disconnect rail0 1,2", args: []kind{aSwitch, anything}, least: 1, palette: true, mutates: true, run: runDisconnect},
		{name: "link", usage: "NIC NIC", about: "join two NICs both ways", args: []kind{aNIC}, least: 1, palette: true, mutates: true, run: runLink},
		{name: "unlink", usage: "NIC...", about: "remove the circuits of NICs", args: []kind{aNIC}, least: 1, palette: true, mutates: true, run: runUnlink},
		{name: "configure", usage: "NAME", about: "bring a configuration of the lab about", args: []kind{aConfiguration}, least: 1, mutates: true, run: runConfigure},
		{name: "restore", usage: "FILE", about: "bring a plan file or snapshot about", args: []kind{aFile}, palette: true, mutates: true, run: runRestore},
		{name: "panic", usage: "REASON", about: "darken the lab's ports", least: 1, mutates: true, run: runPanic},
		{name: "run", usage: "FILE", about: "load an experiment, and ask whether to run it", args: []kind{aFile}, least: 1, palette: true, mutates: true, run: runRun},
		{name: "resume", usage: "RUN", about: "go on with a run that was stopped or killed, after a question", palette: true, mutates: true, run: runResume},
		{name: "goto", usage: "rail0/33, gpu1, move/12", about: "go to a switch, port, NIC or reconfiguration", args: []kind{aSubject}, run: runGoto},
		{name: "filter", usage: "TEXT", about: "filter what is shown; without TEXT all is shown", run: runFilter},
		{name: "theme", usage: "NAME", about: "colours", args: []kind{aTheme}, least: 1, run: runTheme},
		{name: "screen", usage: "NAME", about: "show a screen", args: []kind{aScreen}, run: runScreen},
		{name: "q", about: "quit", run: func(m *model, _ []string, _ string) (tea.Cmd, error) { return m.do(keymap.Quit), nil }},
	}
}

func commandOf(name string) (command, bool) {
	for _, c := range commands {
		if c.name == name {
			return c, true
		}
	}
	return command{}, false
}

// keepCommands is how many commands are remembered.
const keepCommands = 100

// askCommand asks for a command. One that cannot be carried out stays, with the reason.
func (m *model) askCommand(text string) {
	var cmd tea.Cmd
	p := &prompt{
		title: ":", recalls: true,
		complete: func(text string) (int, []screen.Choice) { return completions(text, m.newest, m.screens) },
	}
	p.check = func(m *model, text string) string {
		// The prompt is put away first: what the command opens comes in its place.
		m.drop(p)
		var err error
		if cmd, err = m.command(text); err != nil {
			m.push(p)
			return err.Error()
		}
		return ""
	}
	p.enter = func(m *model, text string) tea.Cmd {
		if text = strings.TrimSpace(text); text != "" {
			m.history = append(slices.DeleteFunc(m.history, func(h string) bool { return h == text }), text)
			m.history = m.history[max(0, len(m.history)-keepCommands):]
		}
		return cmd
	}
	m.open(p, text)
}

// command carries out what was typed. The error says what of it is wrong.
func (m *model) command(text string) (tea.Cmd, error) {
	words := strings.Fields(text)
	if len(words) == 0 {
		return nil, nil
	}
	name, args := words[0], words[1:]
	rest := strings.TrimSpace(strings.TrimPrefix(strings.TrimSpace(text), name))
	c, isCommand := commandOf(name)
	_, isAction := keymap.Of(keymap.Action(name))
	switch {
	case isCommand && (len(args) >= c.least || !isAction):
		if c.mutates {
			if err := m.gateCommand(c); err != nil {
				return nil, err
			}
		}
		return c.run(m, args, rest)
	case isAction && len(args) > 0:
		return nil, fmt.Errorf("%s takes nothing after it", name)
	case isAction && len(placesOf(keymap.Action(name))) == 1 && placesOf(keymap.Action(name))[0] == keymap.InPreview:
		return nil, fmt.Errorf("%s is for a preview only", name)
	case isAction:
		return m.doAnywhere(keymap.Action(name)), nil
	}
	if near := nearest(name, commandNames()); near != "" {
		return nil, fmt.Errorf("there is no command %q; do you mean %s?", name, near)
	}
	return nil, fmt.Errorf("there is no command %q; ? shows what there is", name)
}

// gateCommand is gate for a command, which is refused before its arguments are read.
func (m *model) gateCommand(c command) error {
	return m.gate(screen.Call{Doing: c.name, Mutates: c.mutates})
}

// commandNames are all words that a command can begin with.
func commandNames() []string {
	var names []string
	for _, c := range commands {
		names = append(names, c.name)
	}
	for _, b := range keymap.Bindings() {
		if inPalette(b) && !slices.Contains(names, string(b.Action)) {
			names = append(names, string(b.Action))
		}
	}
	return names
}

// completions are what can follow the text of a command, and how many of its characters
// stay before that.
func completions(text string, s *live.State, screens []screen.Screen) (from int, cs []screen.Choice) {
	runes := []rune(text)
	from = len(runes)
	for from > 0 && runes[from-1] != ' ' {
		from--
	}
	start := string(runes[from:])
	before := strings.Fields(string(runes[:from]))
	if len(before) == 0 {
		return from, begin(start, commandChoices())
	}
	c, ok := commandOf(before[0])
	if !ok || len(c.args) == 0 {
		return from, nil
	}
	var all []screen.Choice
	switch c.args[min(len(before)-1, len(c.args)-1)] {
	case aSwitch:
		for _, n := range switchNames(s) {
			all = append(all, screen.Choice{Value: n, About: about(s.Switch(n))})
		}
	case aNIC:
		for _, n := range nicNames(s) {
			all = append(all, screen.Choice{Value: n})
		}
	case aConfiguration:
		for _, n := range s.File.ConfigNames() {
			all = append(all, screen.Choice{Value: n})
		}
	case aFile:
		return from, files(start)
	case aTheme:
		for _, t := range styles.Themes() {
			all = append(all, screen.Choice{Value: t.Name, About: t.About})
		}
	case aScreen:
		for _, sc := range screens {
			all = append(all, screen.Choice{Value: string(sc.Name())})
		}
	case aSubject:
		for _, n := range append(switchNames(s), nicNames(s)...) {
			all = append(all, screen.Choice{Value: n})
		}
		for _, mv := range s.Moves {
			all = append(all, screen.Choice{Value: fmt.Sprintf("move/%d", mv.Number), About: mv.Title})
		}
	}
	return from, begin(start, all)
}

// commandChoices are all commands with what they do.
func commandChoices() []screen.Choice {
	var all []screen.Choice
	for _, n := range commandNames() {
		c := screen.Choice{Value: n}
		if x, ok := commandOf(n); ok {
			c.About = strings.TrimSpace(x.usage + "  " + x.about)
		} else if b, ok := keymap.Of(keymap.Action(n)); ok {
			c.About = b.Help
		}
		all = append(all, c)
	}
	return all
}

func about(s *live.Switch) string {
	if s == nil {
		return ""
	}
	return strings.TrimSpace(string(s.Status) + " " + s.Identity.Model)
}

// begin returns the choices that begin with a text, or, if there are none, those that
// have its letters.
func begin(start string, all []screen.Choice) []screen.Choice {
	var cs []screen.Choice
	for _, c := range all {
		if strings.HasPrefix(c.Value, start) && c.Value != start {
			cs = append(cs, c)
		}
	}
	if len(cs) > 0 || start == "" || slices.ContainsFunc(all, func(c screen.Choice) bool { return c.Value == start }) {
		return cs
	}
	for _, c := range all {
		if _, ok := filter.Score(strings.ToLower(c.Value), strings.ToLower(start)); ok {
			cs = append(cs, c)
		}
	}
	return cs
}

// nearest returns the word that a mistyped one is meant to be, "" if none is near.
func nearest(word string, words []string) string {
	for _, w := range words {
		if len(word) > 2 && strings.HasPrefix(w, word) || len(w) > 2 && strings.HasPrefix(word, w) {
			return w
		}
	}
	best, least := "", len(word)/3+2
	for _, w := range words {
		if d := distance(word, w); d < least {
			best, least = w, d
		}
	}
	return best
}

// distance is how many letters have to be changed, put in, or left out.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		last := row[0]
		row[0]++
		for j := range len(b) {
			next := min(row[j+1], row[j]) + 1
			if a[i] == b[j] {
				next = min(next, last)
			} else {
				next = min(next, last+1)
			}
			last, row[j+1] = row[j+1], next
		}
	}
	return row[len(b)]
}

// theSwitch checks the name of a switch.
func (m *model) theSwitch(name string) error {
	if _, ok := m.newest.File.Switch(name); ok {
		return nil
	}
	return unknown("switch", name, switchNames(m.newest))
}

// theNIC returns the full name of a NIC.
func (m *model) theNIC(name string) (string, error) {
	n, err := m.newest.File.NIC(name)
	if err != nil {
		if all := nicNames(m.newest); !slices.ContainsFunc(all, func(x string) bool { return strings.HasPrefix(x, name+"/") }) {
			return "", unknown("NIC", name, all)
		}
		return "", err
	}
	return n.FullName(), nil
}

// fewNames is how many names an error lists.
const fewNames = 6

func unknown(what, name string, names []string) error {
	text := fmt.Sprintf("the lab has no %s %q", what, name)
	if near := nearest(name, names); near != "" {
		return fmt.Errorf("%s; do you mean %s?", text, near)
	}
	switch {
	case len(names) == 0:
		return fmt.Errorf("%s, nor any other", text)
	case len(names) <= fewNames:
		return fmt.Errorf("%s; there are %s", text, and(names))
	}
	return errors.New(text)
}

func (m *model) wish(w live.Wish) (tea.Cmd, error) {
	if why := m.pending(w); why != "" {
		return nil, errors.New("nothing was begun: " + why)
	}
	return m.request(screen.Propose{Wish: w}), nil
}

func runConnect(m *model, args []string, _ string) (tea.Cmd, error) {
	if err := m.theSwitch(args[0]); err != nil {
		return nil, err
	}
	want, err := ocs.ParseMap(strings.Join(args[1:], ""))
	if err != nil {
		return nil, fmt.Errorf("connect: %w", err)
	}
	if want.Len() == 0 {
		return nil, errors.New("connect: nothing to connect; want a map such as 1>33,2>34")
	}
	return m.wish(live.Wish{Verb: live.Connect, Switch: args[0], Map: want})
}

func runDisconnect(m *model, args []string, _ string) (tea.Cmd, error) {
	if err := m.theSwitch(args[0]); err != nil {
		return nil, err
	}
	ports, err := ocs.ParsePorts(strings.Join(args[1:], ""))
	if err != nil {
		return nil, fmt.Errorf("disconnect: %w", err)
	}
	if len(ports) == 0 {
		return nil, errors.New("disconnect: no ports; want ports such as 1,2 or 33-36")
	}
	return m.wish(live.Wish{Verb: live.Disconnect, Switch: args[0], Ports: ports})
}

func (m *model) nics(args []string) ([]string, error) {
	var names []string
	for _, a := range args {
		n, err := m.theNIC(a)
		if err != nil {
			return nil, err
		}
		if slices.Contains(names, n) {
			return nil, fmt.Errorf("%s is named twice", n)
		}
		names = append(names, n)
	}
	return names, nil
}

func runLink(m *model, args []string, _ string) (tea.Cmd, error) {
	names, err := m.nics(args)
	if err != nil {
		return nil, err
	}
	if len(names) != 2 {
		return nil, errors.New("link: want two NICs")
	}
	return m.wish(live.Wish{Verb: live.Link, NICs: names})
}

func runUnlink(m *model, args []string, _ string) (tea.Cmd, error) {
	names, err := m.nics(args)
	if err != nil {
		return nil, err
	}
	return m.wish(live.Wish{Verb: live.Unlink, NICs: names})
}

func runConfigure(m *model, args []string, _ string) (tea.Cmd, error) {
	if len(args) != 1 {
		return nil, errors.New("configure: want the name of one configuration")
	}
	if names := m.newest.File.ConfigNames(); !slices.Contains(names, args[0]) {
		return nil, unknown("configuration", args[0], names)
	}
	return m.wish(live.Wish{Verb: live.Configure, Configuration: args[0]})
}

func runRestore(m *model, _ []string, rest string) (tea.Cmd, error) {
	if rest == "" {
		return nil, errors.New("restore: want a plan file or a snapshot")
	}
	return m.wish(live.Wish{Verb: live.Restore, File: expand(rest)})
}

func runPanic(m *model, _ []string, rest string) (tea.Cmd, error) {
	return m.wish(live.Wish{Verb: live.PanicNow, Reason: rest})
}

func runRun(m *model, _ []string, rest string) (tea.Cmd, error) {
	m.show(m.indexOf(keymap.Screen4))
	call := m.load(rest)
	inner := call.Do
	m.say(call.Doing+"…", false)
	return func() tea.Msg { return loadedMsg{call, inner(m.ctx, m.lab)} }, nil
}

func runResume(m *model, args []string, _ string) (tea.Cmd, error) {
	if len(args) != 1 {
		return nil, errors.New("resume: want the ID of one run; the experiment screen lists them")
	}
	m.show(m.indexOf(keymap.Screen4))
	return m.request(runscreen.Resume(m.Env(), args[0])), nil
}

func runGoto(m *model, args []string, _ string) (tea.Cmd, error) {
	if len(args) != 1 {
		return nil, errors.New("goto: want one of rail0, rail0/33, gpu1/ens1f0, move/12")
	}
	name := args[0]
	if n, err := m.newest.File.NIC(name); err == nil {
		return m.request(screen.Goto{Screen: keymap.Screen2, Subject: n.FullName()}), nil
	}
	if strings.HasPrefix(name, "move/") {
		if !slices.ContainsFunc(m.newest.Moves, func(mv *live.Move) bool { return fmt.Sprintf("move/%d", mv.Number) == name }) {
			return nil, fmt.Errorf("goto: there is no reconfiguration %s", name)
		}
		return m.request(screen.Goto{Screen: keymap.Screen3, Subject: name}), nil
	}
	sw, _, _ := strings.Cut(name, "/")
	if err := m.theSwitch(sw); err != nil {
		return nil, fmt.Errorf("goto: %q is no switch, port, NIC or reconfiguration of the lab", name)
	}
	return m.request(screen.Goto{Screen: keymap.Screen1, Subject: name}), nil
}

func runFilter(m *model, _ []string, rest string) (tea.Cmd, error) {
	m.filters[m.at] = filter.Parse(rest)
	return nil, nil
}

func runTheme(m *model, args []string, _ string) (tea.Cmd, error) {
	if _, ok := styles.ByName(args[0]); !ok {
		return nil, fmt.Errorf("there is no theme %q; there are %s", args[0], and(themeNames()))
	}
	m.setTheme(args[0])
	return nil, nil
}

func runScreen(m *model, args []string, _ string) (tea.Cmd, error) {
	var names []string
	for i, s := range m.screens {
		if len(args) == 1 && string(s.Name()) == args[0] {
			m.show(i)
			return nil, nil
		}
		names = append(names, string(s.Name()))
	}
	return nil, fmt.Errorf("screen: want one of %s", and(names))
}

// loadedMsg is what came of loading the experiment that is to be run.
type loadedMsg calledMsg

// loaded asks whether to run what was loaded: the screen does, as for its key.
func (m *model) loaded(msg loadedMsg) tea.Cmd {
	m.called(calledMsg(msg))
	m.take()
	if msg.err != nil || m.top() != nil || m.screen().Name() != keymap.Screen4 {
		return nil
	}
	return m.do(keymap.Run)
}
