package panels

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/ocslab/ocslab/lab"
	"github.com/ocslab/ocslab/topology/pccl/fibre"
)

// ErrRoom: the lab, or a lab of the models that there are, cannot hold the fibres.
var ErrRoom = errors.New("there is no room for the fibres")

// Room is a grid of servers, and how many fibres two neighbours can have.
type Room struct{ Rows, Columns, Fibres int }

// LabOptions of [LabFile].
type LabOptions struct {
	Switching time.Duration // of the switches; 0 is the model's own
	Seed      uint64
}

// maxPanels is how many a lab file may get: each is a server when it is emulated.
const maxPanels = 4096

// fits returns the panels of one row or column of n servers: their model and how many fibres of each two neighbours hang on one.
func (r Room) fits(n int) (model string, size, fibres int, err error) {
	for _, m := range lab.SquareModels {
		model, size, fibres = m.Name, m.Ports, m.Ports/(2*n)
		if fibres >= r.Fibres {
			return model, size, r.Fibres, nil
		}
	}
	if fibres == 0 {
		return "", 0, 0, fmt.Errorf("%w: %d servers in a row or column take %d ports a side of a panel for one fibre between each two, "+
			"and no model has more than %d: want 192 servers or fewer", ErrRoom, n, 2*n, size)
	}
	return model, size, fibres, nil
}

// LabFile returns a lab file for servers, with emulated switches as patch panels. The error matches [ErrRoom], and says
// what can be.
func LabFile(r Room, opt LabOptions) ([]byte, error) {
	if r.Rows < 1 || r.Columns < 1 || r.Rows > fibre.MaxServers || r.Columns > fibre.MaxServers || r.Rows*r.Columns > fibre.MaxServers || r.Fibres < 1 || r.Fibres > fibre.MaxRequests {
		return nil, fmt.Errorf("%w: %d x %d servers with %d fibres: want 2 to %d servers, and 1 to %d fibres",
			ErrRoom, r.Rows, r.Columns, r.Fibres, fibre.MaxServers, fibre.MaxRequests)
	}
	w := writer{room: r, opt: opt, nics: make([][]string, r.Rows*r.Columns)}
	lines := []struct {
		letter, ahead, behind     string
		count, length, step, next int // how many, of how many servers; from line to line, from server to server
	}{{"h", "e", "w", r.Rows, r.Columns, r.Columns, 1}, {"v", "s", "n", r.Columns, r.Rows, 1, r.Columns}}
	total := 0 // counted first: of a room that is too large nothing is written
	for _, l := range lines {
		if l.length < 2 {
			continue
		}
		_, _, fibres, err := r.fits(l.length)
		if err != nil {
			return nil, err
		}
		total += l.count * ((r.Fibres + fibres - 1) / fibres)
	}
	if total == 0 || total > maxPanels {
		return nil, fmt.Errorf("%w: they would take %d patch panels: want 1 to %d", ErrRoom, total, maxPanels)
	}
	for _, l := range lines {
		if l.length < 2 {
			continue
		}
		model, size, fibres, _ := r.fits(l.length) // it did above
		for line := range l.count {
			for first := 0; first < r.Fibres; first += fibres {
				name := fmt.Sprintf("%s%d-%d", l.letter, line, first/fibres)
				w.panel(name, model)
				for k := first; k < min(first+fibres, r.Fibres); k++ {
					for i := range l.length {
						server, in := line*l.step+i*l.next, 2*((k-first)*l.length+i)+1
						if i > 0 {
							w.nic(server, l.behind, k, name, in, size)
						}
						if i < l.length-1 {
							w.nic(server, l.ahead, k, name, in+1, size)
						}
					}
				}
			}
		}
	}
	return w.text(), nil
}

// writer writes a lab file.
type writer struct {
	room     Room
	opt      LabOptions
	switches strings.Builder
	nics     [][]string // by server
}

func (w *writer) panel(name, model string) {
	timing := ""
	if w.opt.Switching > 0 {
		timing = fmt.Sprintf(", switching: %v", w.opt.Switching)
	}
	fmt.Fprintf(&w.switches, "  - {name: %s, emulate: {model: %s%s, seed: %d}}\n", name, model, timing, w.opt.Seed)
}

func (w *writer) nic(server int, side string, k int, panel string, in, size int) {
	w.nics[server] = append(w.nics[server], fmt.Sprintf("{name: %s%d, tx: %s/%d, rx: %s/%d}", side, k, panel, in, panel, in+size))
}

func (w *writer) text() []byte {
	var b strings.Builder
	fmt.Fprintf(&b, "# %d rows and %d columns of servers with up to %d fibres between neighbours. Switch h3-0 is a patch panel of row 3, v2-0\n"+
		"# one of column 2. NIC e0 of server s5 is its fibre 0 toward the east. Give the switches a url to drive real ones.\n"+
		"name: fibres\n\nswitches:\n%s\nhosts:\n", w.room.Rows, w.room.Columns, w.room.Fibres, w.switches.String())
	for server, nics := range w.nics {
		fmt.Fprintf(&b, "  - name: s%d\n    nics:\n", server)
		for _, n := range nics {
			fmt.Fprintf(&b, "      - %s\n", n)
		}
	}
	return []byte(b.String())
}

// Cable is a fibre, and where its ends are.
type Cable struct {
	fibre.Fibre
	Sender, Receiver *lab.NIC // full of Tx and Rx: on the same switch
}

// nicOf returns the NIC of a server for a fibre to a neighbour.
func (r Room) nicOf(f *lab.File, server, neighbour, number int) (*lab.NIC, error) {
	side := "e"
	row := server/r.Columns == neighbour/r.Columns
	switch {
	case row && neighbour < server:
		side = "w"
	case !row && neighbour < server:
		side = "n"
	case !row:
		side = "s"
	}
	name := fmt.Sprintf("s%d/%s%d", server, side, number)
	n, err := f.NIC(name)
	if err != nil {
		return nil, fmt.Errorf("%w: fibre %d from server %d to %d wants NIC %s, which lab %s does not have: "+
			"\"ocslab topology pccl fibres ... --write-lab FILE\" writes a lab that has", ErrRoom, number, server, neighbour, name, f.Name)
	}
	return n, nil
}

// Cables returns where in a lab the fibres of a patch list are. The error matches [ErrRoom] and says what the lab lacks.
func Cables(f *lab.File, r Room, p *fibre.Patch) ([]Cable, error) {
	all := make([]Cable, len(p.Fibres))
	for i, x := range p.Fibres {
		c := Cable{Fibre: x}
		var err error
		if c.Sender, err = r.nicOf(f, x.From, x.To, x.Number); err != nil {
			return nil, err
		}
		if c.Receiver, err = r.nicOf(f, x.To, x.From, x.Number); err != nil {
			return nil, err
		}
		if c.Sender.Tx.Switch != c.Receiver.Rx.Switch {
			return nil, fmt.Errorf("%w: %s sends into %v and %s receives from %v: want both on one switch",
				ErrRoom, c.Sender.FullName(), c.Sender.Tx, c.Receiver.FullName(), c.Receiver.Rx)
		}
		all[i] = c
	}
	return all, nil
}
