package main

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/pflag"

	"github.com/ocslab/ocslab/emulator"
	"github.com/ocslab/ocslab/emulator/fabric"
	"github.com/ocslab/ocslab/lab"
)

// hostFlags say how the hosts of a lab are emulated by the emulate command.
type hostFlags struct {
	on      bool
	rung    string
	options lab.FabricOptions
}

func (h *hostFlags) add(f *pflag.FlagSet) {
	f.BoolVar(&h.on, "fabric", false, "emulate the hosts of the lab, too: network namespaces with real interfaces")
	f.StringVar(&h.options.Firmware, "firmware", "", "firmware of all emulated NICs, in place of the lab file's")
	f.StringVar(&h.rung, "rung", "", "what emulated NICs are: `tap|veth` (default the best there is here)")
}

func (h *hostFlags) check(model string) error {
	if !h.on {
		if h.options.Firmware != "" || h.rung != "" {
			return usagef("--firmware and --rung go with --fabric")
		}
		return nil
	}
	if model != "" {
		return usagef("--fabric needs a lab file: only that says which hosts there are")
	}
	rung, ok := rungs[h.rung]
	if !ok || rung == fabric.Memory {
		return usagef("--rung %q: want tap or veth", h.rung)
	}
	h.options.Rung = rung
	return nil
}

type hostLine struct {
	Kind  string   `json:"kind"` // "host"
	Host  string   `json:"host"`
	NetNS string   `json:"netns"`
	Tree  string   `json:"tree"`
	NICs  []string `json:"nics"`
}

type labLine struct {
	Kind string `json:"kind"` // "lab"
	Path string `json:"path"`
}

// serveHosts emulates the hosts of the lab on switches that run, and writes a lab
// file that leads to all of them.
func (a *app) serveHosts(h *hostFlags, running []*lab.Emulated) (_ *fabric.Fabric, err error) {
	file, err := a.file()
	if err != nil {
		return nil, err
	}
	devices := map[string]*emulator.Device{}
	for _, r := range running {
		if r.Device == nil {
			return nil, usagef("--fabric: %s is emulated as a transceiver, and hosts can be emulated on a matrix only", r.Name())
		}
		devices[r.Name()] = r.Device
		if s, ok := file.Switch(r.Name()); ok {
			s.URL, s.Password, s.Emulate = r.URL(), "", nil
		}
	}
	f, err := file.Fabric(devices, h.options)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			f.Close()
		}
	}()
	if f.Rung() == fabric.Memory {
		return nil, fmt.Errorf("hosts that others can enter need network namespaces: run as root, or allow user namespaces; %w", rungsNotHere(fabric.Memory))
	}
	a.printf("%s\n", fabricLine(f))
	var dir string
	for _, x := range f.Hosts() {
		dir = filepath.Dir(x.Root)
		l := hostLine{Kind: "host", Host: x.Name, NetNS: x.NS.Path(), Tree: x.Root}
		for _, n := range x.NICs {
			l.NICs = append(l.NICs, n.Name)
			a.printf("%s has %v: nsenter --net=%s ip addr\n", n.FullName, n.Addr, x.NS.Path())
		}
		if a.set.JSON {
			a.json(l)
		}
		for i := range file.Hosts {
			if g := &file.Hosts[i]; g.Name == x.Name {
				g.NetNS, g.Tree, g.Agent = l.NetNS, l.Tree, nil
			}
		}
	}
	path := filepath.Join(dir, "lab.yaml")
	if err := os.WriteFile(path, file.Anchored().YAML(), 0o600); err != nil {
		return nil, err
	}
	if a.set.JSON {
		a.json(labLine{"lab", path})
	}
	a.printf("a lab file that leads here: %s\n", path)
	if inUserNamespace() {
		a.printf("from another terminal, enter first: nsenter -t %d -U -m --preserve-credentials\n", os.Getpid())
	}
	a.printf("  ocslab --lab %s watch\n", path)
	return f, nil
}
