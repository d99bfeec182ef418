package fabric

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// tree is the part of a host's published tree that belongs to one NIC. Its files
// stay open and are changed by one write each, so whoever has one open sees the
// change and never an empty file.
type tree struct {
	dirs                []string
	state, phys, memory *os.File
}

// Contents of the files. Those of one file are equally long: what is short has
// blanks behind its newline. The kernel copies a file's aligned words of eight bytes
// whole, so the number, which is what counts, is never that of one and the rest of
// the other.
const (
	stateDown   = "1: DOWN\n  "
	stateActive = "4: ACTIVE\n"
	physPolling = "2: Polling\n"
	physLinkUp  = "5: LinkUp\n "
)

// newRoot makes the tree of a host without NICs.
func newRoot(root string) error {
	for _, dir := range []string{"class/infiniband", "module"} {
		if err := os.MkdirAll(filepath.Join(root, filepath.FromSlash(dir)), 0o755); err != nil {
			return fmt.Errorf("published tree: %w", err)
		}
	}
	return nil
}

// newTree adds a NIC that is down. With an error nothing is left.
func newTree(root string, n *nic) (*tree, error) {
	rdma := filepath.Join(root, "class", "infiniband", fmt.Sprintf("ocs%d", n.rdma))
	port := filepath.Join(rdma, "ports", "1")
	names := filepath.Join(port, "gid_attrs", "ndevs")
	mod := filepath.Join(root, "module", n.Name)
	t := &tree{dirs: []string{rdma, mod}}
	err := errors.Join(os.MkdirAll(names, 0o755), os.MkdirAll(mod, 0o755))
	create := func(into **os.File, path, content string) {
		if err == nil {
			*into, err = os.Create(path)
		}
		if err == nil {
			_, err = (*into).WriteAt([]byte(content), 0)
		}
	}
	var name *os.File
	create(&name, filepath.Join(names, "0"), n.Name+"\n")
	if name != nil {
		err = errors.Join(err, name.Close())
	}
	create(&t.state, filepath.Join(port, "state"), stateDown)
	create(&t.phys, filepath.Join(port, "phys_state"), physPolling)
	create(&t.memory, filepath.Join(mod, "eeprom"), string(n.module.memory[:]))
	if err != nil {
		return nil, fmt.Errorf("published tree: %w", errors.Join(err, t.remove()))
	}
	return t, nil
}

// setActive says whether the port has carrier.
func (t *tree) setActive(on bool) error {
	if on {
		return write(t.state, stateActive)
	}
	return write(t.state, stateDown)
}

// setLink says whether the firmware reports a link.
func (t *tree) setLink(up bool) error {
	if up {
		return write(t.phys, physLinkUp)
	}
	return write(t.phys, physPolling)
}

// setModule publishes the lower memory; the rest of it is constant.
func (t *tree) setModule(memory []byte) error { return write(t.memory, string(memory[:128])) }

func write(f *os.File, content string) error {
	if _, err := f.WriteAt([]byte(content), 0); err != nil {
		return fmt.Errorf("published tree: %w", err)
	}
	return nil
}

// remove removes the NIC from the tree.
func (t *tree) remove() error {
	var errs []error
	for _, f := range []*os.File{t.state, t.phys, t.memory} {
		if f != nil {
			errs = append(errs, f.Close())
		}
	}
	for _, dir := range t.dirs {
		errs = append(errs, os.RemoveAll(dir))
	}
	return errors.Join(errs...)
}
