package crosswiring

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// NewConfig returns the configuration in which every switch is dark. The error matches ErrFabric.
func NewConfig(f Fabric) (*Config, error) {
	if err := f.Check(); err != nil {
		return nil, err
	}
	return darkConfig(f), nil
}

// darkConfig is NewConfig of a fabric that was checked.
func darkConfig(f Fabric) *Config {
	c := &Config{fabric: f, out: make([]int32, f.Ports())}
	for i := range c.out {
		c.out[i] = Dark
	}
	return c
}

// FromCircuits returns the configuration of circuits, such as real switches hold. Switches that are not named are dark.
// The error matches ErrFabric, or ErrConfig if a switch or port is none of the fabric or has two circuits, and names it.
func FromCircuits(f Fabric, circuits map[Switch][]Circuit) (*Config, error) {
	c, err := NewConfig(f)
	if err != nil {
		return nil, err
	}
	taken := make([]int32, f.Radix())
	for _, s := range slices.SortedFunc(maps.Keys(circuits), compareSwitches) {
		if !f.has(s) {
			return nil, fmt.Errorf("%w: there is no switch %v: want group 0 to %d, switch 0 to %d",
				ErrConfig, s, f.Groups-1, f.GroupSwitches()-1)
		}
		for o := range taken {
			taken[o] = Dark
		}
		out := c.at(s)
		for _, x := range circuits[s] {
			switch {
			case x.In < 0 || x.In >= len(out) || x.Out < 0 || x.Out >= len(out):
				return nil, fmt.Errorf("%w: circuit %v of switch %v: want ports 0 to %d", ErrConfig, x, s, len(out)-1)
			case out[x.In] != Dark:
				return nil, fmt.Errorf("%w: input %d of switch %v leads to outputs %d and %d: want one",
					ErrConfig, x.In, s, out[x.In], x.Out)
			case taken[x.Out] != Dark:
				return nil, fmt.Errorf("%w: output %d of switch %v has light from inputs %d and %d: want one",
					ErrConfig, x.Out, s, taken[x.Out], x.In)
			}
			out[x.In], taken[x.Out] = int32(x.Out), int32(x.In)
		}
	}
	return c, nil
}

func compareSwitches(a, b Switch) int {
	return cmp.Or(cmp.Compare(a.Group, b.Group), cmp.Compare(a.Index, b.Index))
}

// Fabric returns what it is a configuration of.
func (c *Config) Fabric() Fabric { return c.fabric }

// at returns where the inputs of a switch lead; it is no copy.
func (c *Config) at(s Switch) []int32 {
	n := c.fabric.Radix()
	at := (s.Group*c.fabric.GroupSwitches() + s.Index) * n
	return c.out[at : at+n : at+n]
}

// both returns where the inputs of a pair lead: those that its even port sends into, and those of its odd port. They
// are no copies. In even the entry of pod i is j+far when it leads to pod j by a link, and in odd the other way it is j:
// far is Pods with DualLink, where the odd ports follow on the same switch, and 0 with Cross.
func (c *Config) both(p Pair) (even, odd []int32, far int32) {
	n := c.fabric.Pods
	at := (p.Group*c.fabric.Pairs() + p.Index) * 2 * n
	if c.fabric.Wiring == DualLink {
		far = int32(n)
	}
	return c.out[at : at+n : at+n], c.out[at+n : at+2*n : at+2*n], far
}

// peers writes for each pod to which one the even port of a pair leads by a circuit, or Dark. Of a configuration that
// passed Check these are the links of the pair, each once.
func (c *Config) peers(p Pair, into []int32) {
	even, _, far := c.both(p)
	for i, o := range even {
		into[i] = Dark
		if o != Dark {
			into[i] = o - far
		}
	}
}

// setPeers gives a pair the links from its even port of each pod to its odd port of peers of it, and no others: the
// odd switch gets the transpose of the even one. It is for Cross and DualLink.
func (c *Config) setPeers(p Pair, peers []int32) {
	even, odd, far := c.both(p)
	for i := range odd {
		odd[i] = Dark
	}
	for i, j := range peers {
		if j == Dark {
			even[i] = Dark
			continue
		}
		even[i], odd[j] = j+far, int32(i)
	}
}

// clone returns a copy that can be changed.
func (c *Config) clone() *Config { return &Config{fabric: c.fabric, out: slices.Clone(c.out)} }

// At returns the output that an input of a switch leads to, or Dark; also for a switch or an input that there is not.
func (c *Config) At(s Switch, in int) int {
	if !c.fabric.has(s) || in < 0 || in >= c.fabric.Radix() {
		return Dark
	}
	return int(c.at(s)[in])
}

// Matching returns the output that each input of a switch leads to, or Dark; nil if there is no such switch.
func (c *Config) Matching(s Switch) []int {
	if !c.fabric.has(s) {
		return nil
	}
	all := make([]int, c.fabric.Radix())
	for in, out := range c.at(s) {
		all[in] = int(out)
	}
	return all
}

// Circuits returns the circuits of a switch by input.
func (c *Config) Circuits(s Switch) []Circuit {
	var all []Circuit
	for in, out := range c.Matching(s) {
		if out != Dark {
			all = append(all, Circuit{in, out})
		}
	}
	return all
}

// AllCircuits returns the circuits of all switches, of dark ones none, as FromCircuits takes them.
func (c *Config) AllCircuits() map[Switch][]Circuit {
	all := make(map[Switch][]Circuit, c.fabric.Groups*c.fabric.GroupSwitches())
	for _, s := range c.fabric.Switches() {
		all[s] = c.Circuits(s)
	}
	return all
}

// Count returns how many circuits there are: two for each link.
func (c *Config) Count() (n int) {
	for _, out := range c.out {
		if out != Dark {
			n++
		}
	}
	return n
}

// Equal tells whether two configurations are the same.
func (c *Config) Equal(o *Config) bool { return c.fabric == o.fabric && slices.Equal(c.out, o.out) }

// peer returns to which port a port sends, if it has a circuit.
func (c *Config) peer(p Port) (Port, bool) {
	s, in := c.fabric.Tx(p)
	if out := c.at(s)[in]; out != Dark {
		return c.fabric.AtOutput(s, int(out)), true
	}
	return Port{}, false
}

// Peer returns to which port a spine port sends, and whether it sends to any.
func (c *Config) Peer(p Port) (Port, bool) {
	if !c.fabric.HasPort(p) {
		return Port{}, false
	}
	return c.peer(p)
}

// named is how many offenders an error names.
const named = 4

// Check returns why ports cannot use the circuits: those that have no partner, by which the port that receives would
// send back to the one that sends (L2 compatibility, equation 6), and those within a pod. With DualLink a link joins an
// even port and an odd one, as with Cross. The error matches ErrConfig and names the first few.
func (c *Config) Check() error {
	var wrong []string
	count := 0
	for _, s := range c.fabric.Switches() {
		for in, out := range c.at(s) {
			if out == Dark {
				continue
			}
			if why := c.wrong(s, in, int(out)); why != "" {
				if count++; count <= named {
					wrong = append(wrong, fmt.Sprintf("circuit %d>%d of switch %v: %s", in, out, s, why))
				}
			}
		}
	}
	if count == 0 {
		return nil
	}
	return fmt.Errorf("%w: %s", ErrConfig, list(wrong, count))
}

// list joins the first offenders and says how many more there are.
func list(shown []string, count int) string {
	text := strings.Join(shown, "; ")
	if more := count - len(shown); more > 0 {
		text += fmt.Sprintf("; and %d more", more)
	}
	return text
}

// wrong says what is wrong with a circuit, if anything.
func (c *Config) wrong(s Switch, in, out int) string {
	from, to := c.fabric.AtInput(s, in), c.fabric.AtOutput(s, out)
	if from.Pod == to.Pod {
		return fmt.Sprintf("it leads from pod %d back to it", from.Pod)
	}
	if c.fabric.Wiring == DualLink && from.Index == to.Index {
		return fmt.Sprintf("it joins port %d of two pods: want an even port and the odd one after it", from.Index)
	}
	back, any := c.peer(to)
	if any && back == from {
		return ""
	}
	tx, txIn := c.fabric.Tx(to)
	_, txOut := c.fabric.Rx(from)
	if !any {
		return fmt.Sprintf("%v sends to %v, which sends to nobody: want circuit %d>%d of switch %v", from, to, txIn, txOut, tx)
	}
	return fmt.Sprintf("%v sends to %v, which sends to %v: want circuit %d>%d of switch %v", from, to, back, txIn, txOut, tx)
}

// Links returns the links between spine ports, those that send to and hear from each other, each once: by the port whose
// Tx comes first. Circuits that are no link are left out; see Check.
func (c *Config) Links() []PortLink {
	var all []PortLink
	for h := range c.fabric.Groups {
		for k := range c.fabric.SpinePorts {
			for p := range c.fabric.Pods {
				a := Port{p, h, k}
				b, any := c.peer(a)
				if !any || comparePorts(b, a) <= 0 {
					continue
				}
				if back, any := c.peer(b); any && back == a {
					all = append(all, PortLink{a, b})
				}
			}
		}
	}
	return all
}

// comparePorts orders ports by group, number and pod.
func comparePorts(a, b Port) int {
	return cmp.Or(cmp.Compare(a.Group, b.Group), cmp.Compare(a.Index, b.Index), cmp.Compare(a.Pod, b.Pod))
}

// Demand returns the links that the circuits make, found by following the light both ways. Light that does not come
// back is no link, and neither is one within a pod.
func (c *Config) Demand() *Demand {
	d := newDemand(c.fabric.Pods, c.fabric.Groups)
	for _, l := range c.Links() {
		if l.A.Pod == l.B.Pod {
			continue
		}
		d.group(l.A.Group)[l.A.Pod*d.pods+l.B.Pod]++
		d.group(l.A.Group)[l.B.Pod*d.pods+l.A.Pod]++
	}
	return d
}
