package genl

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"syscall"

	"github.com/ocslab/ocslab/internal/netns"
)

// Interface asks ethtool about one network interface, by its name: one that vanishes and
// comes back is the same. It is safe for concurrent use.
type Interface struct {
	conn        *Conn
	name, where string
}

// Open prepares to ask about an interface; ns is where it is, nil for where the program
// runs. Nothing is asked yet, so the interface may come later.
func Open(ns *netns.NS, name string) (*Interface, error) {
	if err := checkName(name); err != nil {
		return nil, err
	}
	conn, err := Dial(ns)
	if err != nil {
		return nil, err
	}
	where := name
	if ns != nil && ns.String() != "" {
		where += " in " + ns.String()
	}
	return &Interface{conn, name, where}, nil
}

// Ask sends an ETHTOOL_MSG_*_GET about the interface, with more attributes if need be. For
// the rest see [Conn.Ethtool].
func (i *Interface) Ask(ctx context.Context, command uint8, more []byte) (map[uint16][]byte, error) {
	attrs, err := i.conn.Ethtool(ctx, command, append(appendName(nil, i.name), more...))
	if errors.Is(err, syscall.ENODEV) {
		// ethtool says so of a name that it does not know, and of a driver that detached
		// its device for a while.
		return nil, fmt.Errorf("there is no network interface %s, or its driver has let go of it: %w", i.where, err)
	}
	return attrs, err
}

// String says which interface: "ens1f0 in gpu1".
func (i *Interface) String() string { return i.where }

// Close closes the connection to the kernel, after a request that is under way.
func (i *Interface) Close() error { return i.conn.Close() }

// appendName appends the header attribute of an ethtool request, which names the
// interface. b must be at a multiple of 4 bytes.
func appendName(b []byte, name string) []byte {
	return AppendAttr(b, attrHeader|nested, AppendAttr(nil, headerDevName, append([]byte(name), 0)))
}

// checkName returns an error unless the kernel would take name (dev_valid_name).
func checkName(name string) error {
	if name == "" || len(name) > maxInterfaceLen || name == "." || name == ".." || strings.ContainsAny(name, "/ \t\n\v\f\r:\x00") {
		return fmt.Errorf("%.40q cannot be the name of a network interface: want 1 to %d characters without blanks, slashes and colons", name, maxInterfaceLen)
	}
	return nil
}
