package crosswiring

import (
	"bufio"
	"fmt"
	"io"
	"iter"
)

// Tx returns where the Tx fibre of a spine port goes: a switch and its input. With DualLink input p is of the even port of
// pod p, and input P+p of the odd one.
func (f Fabric) Tx(p Port) (s Switch, in int) {
	if f.Wiring == DualLink {
		return Switch{p.Group, p.Index / 2}, p.Pod + p.Index%2*f.Pods
	}
	return Switch{p.Group, p.Index}, p.Pod
}

// Rx returns where the Rx fibre of a spine port comes from: a switch and its output. With Cross wiring it is the other
// switch of the pair.
func (f Fabric) Rx(p Port) (s Switch, out int) {
	if f.Wiring == Cross {
		return Switch{p.Group, p.Index ^ 1}, p.Pod
	}
	return f.Tx(p)
}

// AtInput returns the spine port that sends into an input of a switch.
func (f Fabric) AtInput(s Switch, in int) Port {
	if f.Wiring == DualLink {
		return Port{in % f.Pods, s.Group, 2*s.Index + in/f.Pods}
	}
	return Port{in, s.Group, s.Index}
}

// AtOutput returns the spine port that receives from an output of a switch.
func (f Fabric) AtOutput(s Switch, out int) Port {
	if f.Wiring == Cross {
		return Port{out, s.Group, s.Index ^ 1}
	}
	return f.AtInput(s, out)
}

// Fibre is a simplex fibre between a spine port and an optical switch. The duplex fibre of a port is split into two of
// them at the rack of the switches, where they are labelled; the switches of a pair stand in one rack (section 4.3).
type Fibre struct {
	Port   Port
	Rx     bool   // it leads to the port, from an output; or else from the port, to an input
	Switch Switch // the far end
	Number int    // the input or output of the switch
}

// SpineEnd returns what is printed on the end at the spine, such as "p3.s2.k5 tx".
func (x Fibre) SpineEnd() string {
	way := "tx"
	if x.Rx {
		way = "rx"
	}
	return fmt.Sprintf("p%d.s%d.k%d %s", x.Port.Pod, x.Port.Group, x.Port.Index, way)
}

// SwitchEnd returns what is printed on the end at the switch, such as "g2.o5 in3".
func (x Fibre) SwitchEnd() string {
	way := "in"
	if x.Rx {
		way = "out"
	}
	return fmt.Sprintf("g%d.o%d %s%d", x.Switch.Group, x.Switch.Index, way, x.Number)
}

// AllFibres yields every simplex fibre: by group, port and pod, Tx before Rx.
func (f Fabric) AllFibres() iter.Seq[Fibre] {
	return func(yield func(Fibre) bool) {
		for h := range f.Groups {
			for k := range f.SpinePorts {
				for p := range f.Pods {
					port := Port{p, h, k}
					tx, in := f.Tx(port)
					rx, out := f.Rx(port)
					if !yield(Fibre{port, false, tx, in}) || !yield(Fibre{port, true, rx, out}) {
						return
					}
				}
			}
		}
	}
}

// Fibres returns all of AllFibres: 2·P·S·G.
func (f Fabric) Fibres() []Fibre {
	all := make([]Fibre, 0, 2*f.Ports())
	for x := range f.AllFibres() {
		all = append(all, x)
	}
	return all
}

// WriteFibres writes the fibres as CSV, with a header: a line for each, in the order of AllFibres, of the spine port, Tx
// or Rx, the rack, the switch, its side and number, and what is printed on both ends. A rack holds a pair of switches.
func (f Fabric) WriteFibres(w io.Writer) error {
	b := bufio.NewWriter(w)
	fmt.Fprintln(b, "pod,spine,port,fibre,rack,group,switch,side,number,spine label,switch label")
	for x := range f.AllFibres() {
		fibre, side := "tx", "in"
		if x.Rx {
			fibre, side = "rx", "out"
		}
		rack := f.PairOf(x.Switch)
		fmt.Fprintf(b, "%d,%d,%d,%s,g%d.r%d,%d,%d,%s,%d,%s,%s\n", x.Port.Pod, x.Port.Group, x.Port.Index, fibre,
			rack.Group, rack.Index, x.Switch.Group, x.Switch.Index, side, x.Number, x.SpineEnd(), x.SwitchEnd())
	}
	return b.Flush()
}
