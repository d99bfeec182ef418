package live

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/ocslab/ocslab/lab"
	"github.com/ocslab/ocslab/lab/history"
	"github.com/ocslab/ocslab/ocs"
)

// task is what a wish asks of one switch.
type task struct {
	sw string
	// plan is given what the switch holds; nil brings want about under the policy.
	plan   func(have ocs.Map) (ocs.Change, error)
	want   ocs.Map
	policy ocs.Policy
	ports  []ocs.Port // must exist on the device
	undo   int        // change in the history that is taken back
	// away says that what goes dark was wished away, so that nobody is taken by surprise.
	away bool
	// cli is the command that does this; nil if one for several switches does.
	cli func(c ocs.Change) words
}

// resolved is a wish in terms of switches.
type resolved struct {
	wish  Wish // with the policy that holds
	title string
	tasks []task
	cli   []words // for all switches; else that of the tasks
	empty error   // why there is nothing to do when no switch changes; nil if that is well
}

// resolve finds out what a wish asks of which switches, without asking them.
func (s *Session) resolve(w Wish) (resolved, error) {
	f := s.file()
	r := resolved{wish: w}
	if r.wish.Policy == "" {
		r.wish.Policy = ocs.Safe
	}
	if _, err := ocs.ParsePolicy(string(r.wish.Policy)); err != nil {
		return r, err
	}
	switch w.Verb {
	case Connect:
		r.title = fmt.Sprintf("connect %s %v", w.Switch, w.Map)
		if w.Map.Len() == 0 {
			return r, fmt.Errorf("%w: no circuit to connect", ErrNothing)
		}
		r.wants(map[string]ocs.Map{w.Switch: w.Map})
	case Disconnect:
		r.title = fmt.Sprintf("disconnect %s %s", w.Switch, ocs.FormatPorts(w.Ports))
		if len(w.Ports) == 0 {
			return r, fmt.Errorf("%w: no port to disconnect", ErrNothing)
		}
		r.tasks = []task{{
			sw: w.Switch, ports: w.Ports, away: true,
			plan: func(have ocs.Map) (ocs.Change, error) { return planDisconnect(w.Switch, have, w.Ports) },
		}}
		r.cli = []words{{"disconnect", w.Switch, ocs.FormatPorts(w.Ports)}}
	case Link:
		if len(w.NICs) != 2 {
			return r, fmt.Errorf("a link joins two NICs: select two, not %d", len(w.NICs))
		}
		r.title = "link " + strings.Join(w.NICs, " ")
		maps, err := f.Link(w.NICs[0], w.NICs[1])
		if err != nil {
			return r, err
		}
		r.wants(maps)
		r.cli = []words{words{"link", w.NICs[0], w.NICs[1]}.withMode(w.Policy)}
	case Unlink:
		return r, r.unlink(f, w.NICs)
	case Configure:
		r.title = "configure " + w.Configuration
		maps, err := f.Config(w.Configuration)
		if err != nil {
			return r, err
		}
		r.wants(maps)
	case Restore:
		return r, r.restore(f, w)
	default:
		return r, fmt.Errorf("%q is nothing that can be wished for", w.Verb)
	}
	return r, r.known(f)
}

// known checks that the lab has all switches.
func (r *resolved) known(f *lab.File) error {
	for _, t := range r.tasks {
		if _, ok := f.Switch(t.sw); !ok {
			return fmt.Errorf("the switch %.60q %w", t.sw, lab.ErrUnknown)
		}
	}
	return nil
}

// wants asks for a map on each of several switches.
func (r *resolved) wants(all map[string]ocs.Map) {
	for _, name := range slices.Sorted(maps.Keys(all)) {
		want, policy := all[name], r.wish.Policy
		r.tasks = append(r.tasks, task{
			sw: name, want: want, policy: policy,
			cli: func(c ocs.Change) words { return circuitsCommand(name, want, policy, c) },
		})
	}
}

// planDisconnect is ocs.PlanDisconnect; that nothing is connected is ErrNothing, too.
func planDisconnect(sw string, have ocs.Map, ports []ocs.Port) (ocs.Change, error) {
	c, err := ocs.PlanDisconnect(have, ports...)
	if errors.Is(err, ocs.ErrNotConnected) {
		err = fmt.Errorf("%w: %s: %w", ErrNothing, sw, err)
	}
	return c, err
}

// unlink asks for the circuits of NICs to go.
func (r *resolved) unlink(f *lab.File, names []string) error {
	if len(names) == 0 {
		return fmt.Errorf("%w: no NIC to unlink", ErrNothing)
	}
	r.title = "unlink " + strings.Join(names, " ")
	ports := map[string][]ocs.Port{}
	for _, name := range names {
		n, err := f.NIC(name)
		if err != nil {
			return err
		}
		ports[n.Tx.Switch] = append(ports[n.Tx.Switch], n.Tx.Port)
		ports[n.Rx.Switch] = append(ports[n.Rx.Switch], n.Rx.Port)
		r.cli = append(r.cli, words{"unlink", name})
	}
	r.empty = fmt.Errorf("%w: %s: %w", ErrNothing, strings.Join(names, ", "), ocs.ErrNotConnected)
	for _, sw := range slices.Sorted(maps.Keys(ports)) {
		r.tasks = append(r.tasks, task{sw: sw, away: true, plan: func(have ocs.Map) (ocs.Change, error) {
			var used []ocs.Port
			for _, p := range ports[sw] {
				if len(have.At(p)) > 0 {
					used = append(used, p)
				}
			}
			return ocs.PlanDisconnect(have, used...)
		}})
	}
	return nil
}

// restore asks for what a plan file or snapshot says. Its own mode holds unless another is
// wished for, as on the command line.
func (r *resolved) restore(f *lab.File, w Wish) error {
	r.title = "restore " + w.File
	plan, err := lab.LoadWish(w.File, f)
	if err != nil {
		return err
	}
	if w.Policy == "" && plan.Mode != "" {
		r.wish.Policy = plan.Mode
	}
	all, err := plan.Maps(f)
	if err != nil {
		return err
	}
	r.wants(all)
	command := words{"restore", w.File}
	if w.Policy != "" {
		command = append(command, "--mode", string(w.Policy))
	}
	r.cli = []words{command}
	return r.known(f)
}

// takeBack asks for changes of the history to be taken back: an undo, or a redo, which
// takes back undos.
func takeBack(w Wish, title string, entries []history.Entry, names map[string]string) resolved {
	r := resolved{wish: w, title: title}
	device := map[int]string{} // of each entry
	for _, e := range entries {
		device[e.ID] = e.Device
	}
	for _, i := range lab.Undo(entries, entries[0]) {
		r.tasks = append(r.tasks, task{
			sw: names[device[i.UndoOf]], undo: i.UndoOf, away: true, plan: i.Plan,
			cli: func(ocs.Change) words { return words{"undo", strconv.Itoa(i.UndoOf)} },
		})
	}
	slices.SortFunc(r.tasks, func(a, b task) int { return strings.Compare(a.sw, b.sw) })
	return r
}
