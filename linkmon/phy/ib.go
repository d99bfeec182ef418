package phy

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"strconv"
	"strings"
	"time"

	"github.com/ocslab/ocslab/internal/netns"
	"github.com/ocslab/ocslab/timeline"
)

// PortState is the logical state of an RDMA port (enum ib_port_state).
type PortState uint8

const (
	Down        PortState = 1
	Init        PortState = 2
	Armed       PortState = 3
	Active      PortState = 4
	ActiveDefer PortState = 5
)

// String is the state as sysfs shows it.
func (s PortState) String() string {
	return stateName(uint8(s), "NOP", "DOWN", "INIT", "ARMED", "ACTIVE", "ACTIVE_DEFER")
}

// PhysState is the physical state of an RDMA port (enum ib_port_phys_state).
type PhysState uint8

const (
	Sleep             PhysState = 1
	Polling           PhysState = 2
	Disabled          PhysState = 3
	Training          PhysState = 4
	LinkUp            PhysState = 5
	LinkErrorRecovery PhysState = 6
	PhyTest           PhysState = 7
)

// String is the state as sysfs shows it.
func (s PhysState) String() string {
	return stateName(uint8(s), "<unknown>", "Sleep", "Polling", "Disabled", "PortConfigurationTraining", "LinkUp", "LinkErrorRecovery", "Phy Test")
}

func stateName(n uint8, names ...string) string {
	if int(n) < len(names) {
		return names[n]
	}
	return fmt.Sprintf("<unknown %d>", n)
}

// State is what an RDMA port says of itself.
type State struct {
	Port PortState
	Phys PhysState
}

// LinkUp reports whether the physical link is up.
func (s State) LinkUp() bool { return s.Phys == LinkUp }

// String shows both: "ACTIVE, LinkUp".
func (s State) String() string { return s.Port.String() + ", " + s.Phys.String() }

// IBPort is a port of an RDMA device, with its files open. Read may be called
// concurrently.
type IBPort struct {
	Device    string // "mlx5_0"
	Number    int    // from 1
	LinkLayer string // "Ethernet" (RoCE), "InfiniBand", or "" when the tree does not say

	state, phys *os.File
}

// OpenSys opens /sys as seen from within a namespace, nil for that of the program.
func OpenSys(ns *netns.NS) (*os.Root, error) {
	if ns == nil {
		here, err := netns.Current()
		if err != nil {
			return nil, err
		}
		defer here.Close()
		ns = here
	}
	dir, err := ns.Sysfs()
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	return os.OpenRoot(fmt.Sprintf("/proc/self/fd/%d", dir.Fd()))
}

const infiniband = "class/infiniband"

// FindIB finds the RDMA port that belongs to a network interface and opens its state
// files. root is /sys ([OpenSys]) or the tree of an emulated host, and may be closed
// afterwards. The port is the one whose first GID names the interface, or else the one
// of the interface's own device. An error that matches [fs.ErrNotExist] says that there
// is none.
func FindIB(root *os.Root, iface string) (*IBPort, error) {
	device, number, err := findIB(root, iface)
	if err != nil {
		return nil, err
	}
	dir := portDir(device, number)
	p := &IBPort{Device: device, Number: number, LinkLayer: line(root, dir+"/link_layer")}
	if p.state, err = root.Open(dir + "/state"); err == nil {
		p.phys, err = root.Open(dir + "/phys_state")
	}
	if err != nil {
		p.Close()
		return nil, fmt.Errorf("RDMA port %s/%d of %s: %w", device, number, iface, err)
	}
	return p, nil
}

func portDir(device string, number int) string {
	return path.Join(infiniband, device, "ports", strconv.Itoa(number))
}

func findIB(root *os.Root, iface string) (device string, number int, err error) {
	devices, err := fs.ReadDir(root.FS(), infiniband)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", 0, fmt.Errorf("RDMA devices: %w", err)
	}
	for _, d := range devices {
		for _, n := range ports(root, d.Name()) {
			if iface != "" && line(root, portDir(d.Name(), n)+"/gid_attrs/ndevs/0") == iface {
				return d.Name(), n, nil
			}
		}
	}
	// A port that is down may have no GID yet. dev_port tells the ports of one device
	// apart, from 0; drivers with a device per port leave it at 0.
	if fs.ValidPath(iface) && !strings.Contains(iface, "/") {
		own, _ := fs.ReadDir(root.FS(), path.Join("class/net", iface, "device/infiniband"))
		for _, d := range own {
			devPort, _ := strconv.Atoi(line(root, path.Join("class/net", iface, "dev_port")))
			for _, n := range ports(root, d.Name()) {
				if n == devPort+1 {
					return d.Name(), n, nil
				}
			}
		}
	}
	return "", 0, fmt.Errorf("there is no RDMA device for %.40q, so no port state to read: %w", iface, fs.ErrNotExist)
}

// ports lists the port numbers of a device.
func ports(root *os.Root, device string) (numbers []int) {
	entries, _ := fs.ReadDir(root.FS(), path.Join(infiniband, device, "ports"))
	for _, e := range entries {
		if n, err := strconv.Atoi(e.Name()); err == nil && n > 0 {
			numbers = append(numbers, n)
		}
	}
	return numbers
}

// line returns the first line of a small file, or "" when it cannot be read: sysfs
// answers EINVAL for a GID without an interface.
func line(root *os.Root, name string) string {
	f, err := root.Open(name)
	if err != nil {
		return ""
	}
	defer f.Close()
	b := make([]byte, 64)
	n, err := f.Read(b)
	if err != nil {
		return ""
	}
	first, _, _ := strings.Cut(string(b[:n]), "\n")
	return strings.TrimSpace(first)
}

// Read asks for the state. The interval, on the host's axis, is that of the asking. A
// device may need a firmware command for the answer. An error means that the device is
// gone; find the port again when it is back.
func (p *IBPort) Read() (State, timeline.Interval, error) {
	from := time.Now()
	phys, err := readState(p.phys)
	var port uint8
	if err == nil {
		port, err = readState(p.state)
	}
	at := timeline.HostAxis().Span(from, time.Now())
	if err != nil {
		return State{}, at, fmt.Errorf("RDMA port %s: %w", p, err)
	}
	return State{PortState(port), PhysState(phys)}, at, nil
}

func readState(f *os.File) (uint8, error) {
	var b [64]byte
	n, err := f.ReadAt(b[:], 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return 0, err
	}
	v, ok := parseState(b[:n])
	if !ok {
		return 0, fmt.Errorf("%s holds %.40q; want a number, a colon and a word", path.Base(f.Name()), b[:n])
	}
	return v, nil
}

// parseState takes "4: ACTIVE\n" apart; what follows the line does not matter.
func parseState(b []byte) (uint8, bool) {
	first, _, _ := strings.Cut(string(b), "\n")
	digits, word, ok := strings.Cut(first, ":")
	if !ok || strings.TrimSpace(word) == "" {
		return 0, false
	}
	v, err := strconv.ParseUint(digits, 10, 8)
	return uint8(v), err == nil
}

// String is the port as RDMA tools write it: "mlx5_0/1".
func (p *IBPort) String() string { return fmt.Sprintf("%s/%d", p.Device, p.Number) }

// Close closes the files.
func (p *IBPort) Close() error {
	var errs []error
	for _, f := range []*os.File{p.state, p.phys} {
		if f != nil {
			errs = append(errs, f.Close())
		}
	}
	return errors.Join(errs...)
}

// SourceIB is the source of marks made from the state of an RDMA port.
const SourceIB = "ib-phys"

// Tracker turns what an RDMA port says into marks. It is not safe for concurrent use.
type Tracker struct {
	Subject string // of the marks: "gpu1/ens1f0"
	Host    string // of the marks

	last   timeline.Interval
	up     bool
	primed bool
	lost   timeline.Interval
	losses int
}

// Add takes in the next state, as [IBPort.Read] returned it without an error, and reports
// a firmware mark when it shows that the link came up: from the start of the read before,
// which did not, to the end of this one. The first state makes no mark.
func (t *Tracker) Add(s State, at timeline.Interval) (timeline.Mark, bool) {
	was, first, before := t.up, !t.primed, t.last
	t.up, t.primed, t.last = s.LinkUp(), true, at
	if first || was == t.up {
		return timeline.Mark{}, false
	}
	since := timeline.Between(before.Earliest, at.Latest)
	if !t.up {
		t.lost, t.losses = since, t.losses+1
		return timeline.Mark{}, false
	}
	return timeline.Mark{
		Stage: timeline.Firmware, Subject: t.Subject, Host: t.Host, Interval: since,
		Source: SourceIB, Detail: s.String(),
	}, true
}

// Lost returns how often the link was seen to go down, and when last; there is no stage
// of that name. Of no loss at all the interval is zero.
func (t *Tracker) Lost() (times int, last timeline.Interval) { return t.losses, t.lost }
