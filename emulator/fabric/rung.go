package fabric

import "fmt"

// Rung is how close to real hardware a fabric is. The lower, the closer.
type Rung uint8

// The rungs, best first.
const (
	// TAP: each NIC is a TAP device, whose carrier the kernel treats as that of a
	// NIC. It needs /dev/net/tun and the right to make network namespaces.
	TAP Rung = iota + 1
	// Veth: each NIC is one end of a veth pair. Its carrier follows the far end, and
	// the kernel tells of it at once, while it holds back that of a NIC for up to a
	// second. It needs the right to make network namespaces.
	Veth
	// Memory: no network devices at all; carriers and counters in this process
	// ([Fabric.Counts]), and frames through [Fabric.Wire].
	Memory
)

// String names the rung and what it leaves out, as a part of a sentence.
func (r Rung) String() string {
	switch r {
	case TAP:
		return "TAP devices in network namespaces"
	case Veth:
		return "veth pairs in network namespaces, which hide the kernel's limit of one carrier event per second"
	case Memory:
		return "NICs in memory, without any kernel interface"
	}
	return fmt.Sprintf("rung %d, which does not exist", uint8(r))
}

// Available says whether a rung is to be had here.
type Available struct {
	Rung Rung
	Err  error // why not, in one sentence; nil if it is
}

// Rungs tries each rung, best first.
func Rungs() []Available {
	var all []Available
	for r := TAP; r <= Memory; r++ {
		all = append(all, Available{r, try(r)})
	}
	return all
}

// pick returns the rung to use when want is asked for; 0 is the best that there is.
func pick(want Rung) (Rung, error) {
	if want > Memory {
		return 0, fmt.Errorf("fabric: %v; want %d to %d, or 0 for the best that is to be had", want, TAP, Memory)
	}
	if want != 0 {
		if err := try(want); err != nil {
			return 0, fmt.Errorf("fabric: %w", err)
		}
		return want, nil
	}
	for r := TAP; r < Memory; r++ {
		if try(r) == nil {
			return r, nil
		}
	}
	return Memory, nil
}
