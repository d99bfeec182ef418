package main

import (
	"fmt"
	"os"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	firmwarenotes "github.com/ocslab/ocslab/firmware-notes"
	"github.com/ocslab/ocslab/internal/termdoc"
)

// notesFlags are what notes is told.
type notesFlags struct {
	search  string
	looking bool // --search was given
	set     string
	target  firmwarenotes.Target
}

func (a *app) notesCommand() *cobra.Command {
	var f notesFlags
	c := &cobra.Command{
		Use:   "notes [NAME|NIC|FILE.md]",
		Short: "Read what is known of firmware: how long it takes, why, and how sure that is",
		Long: `Without a name, list the notes that come with ocslab. With one, print the note: the text,
then each fact and each setting with its source and how sure it is. A NIC of the lab file
(--lab FILE) stands for the note of its firmware. A FILE.md is a note of your own: it is
checked, and printed if nothing is wrong with it.

--set prints the commands that change a setting: to look, to apply, to make it effective,
to verify and to take back. It never runs them.`,
		Example: "  ocslab notes\n  ocslab notes connectx-6-dx\n  ocslab notes --search \"link up\"\n" +
			"  ocslab notes connectx-6-dx --set PHY_AUTO_NEG=AUTO_NEG_DISABLED --pci 0000:3b:00.0 --port 1\n  ocslab notes rig.md",
		Args:              cobra.MaximumNArgs(1),
		ValidArgsFunction: a.completeNote,
		RunE: func(c *cobra.Command, args []string) error {
			f.looking = c.Flags().Changed("search")
			return a.notes(args, f)
		},
	}
	fl := c.Flags()
	fl.StringVar(&f.search, "search", "", "print each place in which all `WORDS` stand, best note first")
	fl.StringVar(&f.set, "set", "", "print the commands that set `SETTING=VALUE`")
	fl.StringVar(&f.target.PCI, "pci", "", "with --set: PCI `ADDRESS` of the card, such as 0000:3b:00.0")
	fl.StringVar(&f.target.Dev, "dev", "", "with --set: network device, such as `ens1f0`")
	fl.StringVar(&f.target.Port, "port", "", "with --set: `PORT` of the card, from 1")
	return c
}

// completeNote completes the names of notes and of NICs of the lab; files come from the shell.
func (a *app) completeNote(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	var names []string
	for _, n := range firmwarenotes.All() {
		names = append(names, n.Name)
	}
	if a.settle(cmd) == nil {
		if f, err := a.file(); err == nil && f != nil {
			for _, h := range f.Hosts {
				for _, n := range h.NICs {
					names = append(names, h.Name+"/"+n.Name)
				}
			}
		}
	}
	return names, cobra.ShellCompDirectiveDefault
}

func (a *app) notes(args []string, f notesFlags) error {
	set := f.target
	switch {
	case f.looking && strings.TrimSpace(f.search) == "":
		return usagef("--search: give words to look for")
	case f.set == "" && (set.PCI != "" || set.Dev != "" || set.Port != ""):
		return usagef("--pci, --dev and --port go with --set SETTING=VALUE")
	case f.set != "" && len(args) == 0:
		return usagef("--set %s: of which note? ocslab notes NAME --set %s", f.set, f.set)
	case f.set != "" && f.search != "":
		return usagef("--set and --search do not go together")
	case len(args) == 0 && f.search != "":
		return a.searchNotes(firmwarenotes.All(), f.search)
	case len(args) == 0:
		a.listNotes()
		return nil
	}
	n, dev, err := a.note(args[0])
	switch {
	case err != nil:
		return usageError{err}
	case f.search != "":
		return a.searchNotes([]firmwarenotes.Note{n}, f.search)
	case f.set != "":
		if set.Dev == "" {
			set.Dev = dev
		}
		return a.setSteps(n, f.set, set)
	case a.set.JSON:
		a.noteJSON(n)
		return nil
	}
	a.printf("%s", termdoc.Render(noteDocument(n, args[0]), termdoc.Options{
		Width: a.page(), Color: a.terminal() > 0 && os.Getenv("NO_COLOR") == "",
	}))
	return nil
}

// page is how wide text is: as the terminal, but not so wide that lines are hard to follow,
// and 80 columns elsewhere.
func (a *app) page() int {
	if w := a.terminal(); w > 0 {
		return min(w, 120)
	}
	return 80
}

// note returns the note that an argument is about: its name, that of a profile, a file of
// the user's, or a NIC of the lab, of which the device is returned, too.
func (a *app) note(name string) (n firmwarenotes.Note, dev string, err error) {
	if path, ok := firmwarenotes.Path(name); ok {
		if path != name { // a profile of it: which has to be there
			if _, err := firmwarenotes.Find(name); err != nil {
				return n, "", err
			}
		}
		n, err = firmwarenotes.Get(path)
		return n, "", err
	}
	all := firmwarenotes.All()
	for _, n := range all {
		if n.Name == name {
			return n, "", nil
		}
		for _, p := range n.Profiles {
			if p.Name == name {
				return n, "", nil
			}
		}
	}
	file, err := a.file()
	if err != nil {
		return n, "", err
	}
	if file == nil || !strings.Contains(name, "/") {
		_, err := firmwarenotes.Get(name)
		if file == nil && strings.Contains(name, "/") {
			err = fmt.Errorf("%w; a NIC needs --lab FILE", err)
		}
		return n, "", err
	}
	nic, err := file.NIC(name)
	if err != nil {
		return n, "", err
	}
	firmware := file.Firmware(nic)
	if firmware == "" {
		return n, "", fmt.Errorf("NIC %s has no firmware in the lab file: add firmware: NAME to it, one of %s",
			nic.FullName(), strings.Join(firmwarenotes.Names(), ", "))
	}
	if path, ok := firmwarenotes.Path(firmware); ok {
		if _, err := firmwarenotes.Find(firmware); err != nil {
			return n, "", fmt.Errorf("NIC %s: %w", nic.FullName(), err)
		}
		n, err = firmwarenotes.Get(path)
		return n, nic.Name, err
	}
	for _, n := range all {
		for _, p := range n.Profiles {
			if p.Name == firmware {
				return n, nic.Name, nil
			}
		}
	}
	_, err = firmwarenotes.Find(firmware)
	return n, "", fmt.Errorf("NIC %s: %w", nic.FullName(), err)
}

// subject says what a note is of.
func subject(n firmwarenotes.Note) string {
	if n.Kind == "" {
		return "-"
	}
	kind := string(n.Kind)
	if n.Kind == firmwarenotes.NIC {
		kind = "NIC"
	}
	return kind
}

func (a *app) listNotes() {
	notes := firmwarenotes.All()
	if a.set.JSON {
		for _, n := range notes {
			a.json(noteLineOf(n))
		}
		return
	}
	t := table{align: "<<<>>><"}
	t.row("note", "of", "title", "facts", "profiles", "settings", "weakest")
	for _, n := range notes {
		t.row(n.Name, subject(n), n.Title, fmt.Sprint(len(n.Facts)), fmt.Sprint(len(n.Profiles)), fmt.Sprint(len(n.Settings)), string(n.Weakest()))
	}
	t.fit(a.page(), 3, 4, 1, 3) // facts, settings, of, weakest: what it is and what can be emulated stay
	t.write(a.out, "")
	a.printf("\nocslab notes NAME prints one; ocslab notes --search WORDS looks through all.\n")
}

func (a *app) searchNotes(notes []firmwarenotes.Note, words string) error {
	fields := strings.Fields(words)
	hits := firmwarenotes.Search(notes, fields...)
	if len(hits) == 0 {
		in := "no note has"
		if len(notes) == 1 {
			in = "note " + notes[0].Name + " does not have"
		}
		if len(fields) == 1 {
			return fmt.Errorf("%s %q", in, fields[0])
		}
		return fmt.Errorf("%s all of %q in one place: give fewer words", in, strings.Join(fields, " "))
	}
	last := ""
	for _, h := range hits {
		if a.set.JSON {
			a.json(hitLine{"note-hit", h.Note, h.In, h.Heading, h.Line, h.Text})
			continue
		}
		if h.Note != last {
			if last != "" {
				a.printf("\n")
			}
			a.printf("%s\n", h.Note)
			last = h.Note
		}
		in := h.In
		if h.Heading != "" {
			in += " of " + strconv.Quote(h.Heading)
		}
		a.printf("%s", termdoc.Hanging("  "+in+": ", h.Text, a.page()))
	}
	return nil
}

// setSteps prints the commands that change a setting.
func (a *app) setSteps(n firmwarenotes.Note, set string, target firmwarenotes.Target) error {
	name, value, ok := strings.Cut(set, "=")
	if !ok || name == "" || value == "" {
		return usagef("--set %q: want SETTING=VALUE, such as PHY_AUTO_NEG=AUTO_NEG_DISABLED", set)
	}
	s, err := n.Setting(name)
	if err != nil {
		return usageError{err}
	}
	target.Value = value
	steps, err := s.Steps(target)
	if err != nil {
		return usageError{err}
	}
	if a.set.JSON {
		for _, step := range steps {
			a.json(noteStepLine{"note-step", n.Name, s.Name, value, step})
		}
		return nil
	}
	where := "on the host of the card"
	switch n.Kind {
	case firmwarenotes.Module:
		where = "on the host that the module is in"
	case firmwarenotes.Switch:
		where = "in a " + s.Tool + " session of the switch"
	}
	a.printf("Nothing is run: these are for you, %s.\n\n", where)
	open := map[string]bool{}
	for i, step := range steps {
		a.printf("%d. %s\n", i+1, step.What)
		for _, c := range step.Commands {
			a.printf("   %s\n", c)
			for _, p := range []string{"{pci}", "{dev}", "{port}"} {
				open[p] = open[p] || strings.Contains(c, p)
			}
		}
	}
	a.printf("\n")
	if s.After != "" {
		a.printf("%s", termdoc.Hanging("", s.After, a.page()))
	}
	if s.BothEnds {
		a.printf("The other end of the link needs the same.\n")
	}
	a.printf("%s", termdoc.Hanging("", fmt.Sprintf("Source: %s (confidence %s).", n.Cite(s.Source), s.Confidence), a.page()))
	for _, p := range []struct{ open, flag, how string }{
		{"{pci}", "--pci", "lspci finds the address"}, {"{dev}", "--dev", "ip link finds the name"}, {"{port}", "--port", "1 on a card with one port"},
	} {
		if open[p.open] {
			a.printf("Fill in %s, or give %s: %s.\n", p.open, p.flag, p.how)
		}
	}
	return nil
}
