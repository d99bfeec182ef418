package live

import (
	"slices"
	"strconv"
	"strings"

	"github.com/ocslab/ocslab/internal/shell"
	"github.com/ocslab/ocslab/lab"
	"github.com/ocslab/ocslab/ocs"
)

// words are the arguments of ocslab that do the same as something that is done here.
type words []string

// line is the whole command line for a shell, with what says which lab it is about.
func (s *Session) line(args words) string {
	return command(s.opt.program(s.file()), args)
}

// command writes a program and its arguments for a shell.
func command(program, args []string) string {
	if len(program) == 0 {
		program = []string{"ocslab"}
	}
	return shell.Line(slices.Concat(program, args)...)
}

// lines are several commands for a shell.
func (s *Session) lines(commands []words) []string {
	var all []string
	for _, c := range commands {
		all = append(all, s.line(c))
	}
	return all
}

// program is ocslab, and what makes it open a lab as it is open here.
func (o Options) program(f *lab.File) []string {
	all := []string{"ocslab"}
	if f.Path != "" {
		all = append(all, "--lab", f.Path)
	}
	if o.Lab.Emulated {
		all = append(all, "--emulated")
	}
	return all
}

// recorded is how a command stands in the history: as package main writes it there, without
// the program and what a shell wants quoted.
func (w words) recorded() string { return strings.Join(w, " ") }

// unquoted is a command line as it stands in the history.
func unquoted(line string) string {
	line = strings.TrimPrefix(line, "ocslab ")
	line = strings.ReplaceAll(line, `'\''`, "\x00")
	line = strings.ReplaceAll(line, "'", "")
	return strings.ReplaceAll(line, "\x00", "'")
}

// withMode adds the policy, unless that is what is so without.
func (w words) withMode(p ocs.Policy) words {
	if p == "" || p == ocs.Safe {
		return w
	}
	return append(w, "--mode", string(p))
}

// circuitsCommand brings a map about on one switch.
func circuitsCommand(sw string, want ocs.Map, policy ocs.Policy, c ocs.Change) words {
	if want.Len() == 0 { // connect takes no empty map; only overwrite comes to something then
		var ports []ocs.Port
		for x := range c.Remove.All() {
			ports = append(ports, x.Ingress)
		}
		return words{"disconnect", sw, ocs.FormatPorts(ports)}
	}
	return words{"connect", sw, want.String()}.withMode(policy)
}

// panicCommand calls a panic.
func panicCommand(reason string) words { return words{"panic", "--reason", reason} }

// liftCommand lifts one panic, or with 0 all.
func liftCommand(n int) words {
	if n == 0 {
		return words{"panic", "--lift"}
	}
	return words{"panic", "--lift", "--id", strconv.Itoa(n)}
}
