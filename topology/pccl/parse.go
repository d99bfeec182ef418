package pccl

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/ocslab/ocslab/internal/strictyaml"
)

// ParseTopology reads a topology of that many GPUs: "ring", "torus 8x16", "grid 4x4x8", "torus 2d" and "torus" (the evenest
// one), "hypercube", "dark" (no circuits), or circuits: "0-1,1-2" for duplex ones and "0>1" for one direction. Case and the
// space before sizes do not count. What cannot be read is an error that matches [ErrArgument], and sizes that are not
// those of that many GPUs one that matches [ErrSize].
func ParseTopology(text string, gpus int) (*Topology, error) {
	if err := checkGPUs("a topology", gpus); err != nil {
		return nil, err
	}
	if strings.ContainsAny(text, "->") && strings.Trim(text, "0123456789->, ") == "" {
		return parseCircuits(text, gpus)
	}
	name, rest := nameAndSizes(text)
	if rest != "" && (name == "ring" || name == "hypercube" || name == "dark") {
		if rest == strconv.Itoa(gpus) {
			rest = ""
		} else {
			return nil, fmt.Errorf("%w: %s takes nothing after its name but the number of GPUs, %d, and there is %.40q",
				ErrArgument, name, gpus, rest)
		}
	}
	switch name {
	case "ring":
		return Ring(gpus)
	case "hypercube":
		return Hypercube(gpus)
	case "dark":
		return Dark(gpus)
	case "torus", "grid":
		if rest == "" {
			rest = "2d"
		}
		dims, err := dimsFor(name, rest, gpus)
		if err != nil {
			return nil, err
		}
		if name == "grid" {
			return Grid(dims...)
		}
		return Torus(dims...)
	}
	return nil, fmt.Errorf("%w: topology %.40q%s: want ring, torus 8x16, grid 8x16, hypercube, dark, or circuits, such as 0-1,1-2",
		ErrArgument, text, strictyaml.DidYouMean(name, []string{"ring", "torus", "grid", "hypercube", "dark"}))
}

// parseCircuits reads "0-1,1>2".
func parseCircuits(text string, gpus int) (*Topology, error) {
	var all []Transfer
	for part := range strings.SplitSeq(text, ",") {
		part = strings.TrimSpace(part)
		at := strings.IndexAny(part, "->")
		if at < 0 {
			return nil, badCircuit(part)
		}
		a, errA := strconv.ParseUint(part[:at], 10, 31)
		b, errB := strconv.ParseUint(part[at+1:], 10, 31)
		if errA != nil || errB != nil {
			return nil, badCircuit(part)
		}
		all = append(all, Transfer{Src: int(a), Dst: int(b)})
		if part[at] == '-' {
			all = append(all, Transfer{Src: int(b), Dst: int(a)})
		}
	}
	return NewTopology("circuits", gpus, all)
}

func badCircuit(text string) error {
	return fmt.Errorf("%w: %.40q is no circuit: want 0-1 for a duplex one, 0>1 for one direction", ErrArgument, text)
}
