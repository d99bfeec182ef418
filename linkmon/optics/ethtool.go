package optics

import (
	"context"
	"errors"
	"fmt"
	"syscall"

	"github.com/ocslab/ocslab/internal/netns"
	"github.com/ocslab/ocslab/linkmon/internal/genl"
	"github.com/ocslab/ocslab/wire/cmis"
)

// From linux/ethtool_netlink.h (Linux 5.13).
const (
	msgModuleEEPROMGet = 31 // ETHTOOL_MSG_MODULE_EEPROM_GET
	attrOffset         = 2  // ETHTOOL_A_MODULE_EEPROM_OFFSET, u32
	attrLength         = 3  // ETHTOOL_A_MODULE_EEPROM_LENGTH, u32
	attrPage           = 4  // ETHTOOL_A_MODULE_EEPROM_PAGE, u8
	attrBank           = 5  // ETHTOOL_A_MODULE_EEPROM_BANK, u8
	attrI2C            = 6  // ETHTOOL_A_MODULE_EEPROM_I2C_ADDRESS, u8
	attrData           = 7  // ETHTOOL_A_MODULE_EEPROM_DATA, binary
)

// i2cAddress is where modules of both memory maps answer (SFF-8636, section 4.5).
const i2cAddress = 0x50

// Ethtool reads the module of a network interface through the kernel: one
// ETHTOOL_MSG_MODULE_EEPROM_GET of generic netlink per read. It needs Linux 5.13 and
// CAP_NET_ADMIN over the namespace. It is safe for concurrent use; reads wait for each
// other.
type Ethtool struct {
	nic asker
}

// asker is a [*genl.Interface].
type asker interface {
	Ask(ctx context.Context, command uint8, attrs []byte) (map[uint16][]byte, error)
	String() string
	Close() error
}

// OpenEthtool prepares to read the module of an interface; ns is where it is, nil for
// where the program runs. Nothing is read yet, so the interface and the module may come
// later. The interface goes by its name: one that vanishes and comes back is the same.
func OpenEthtool(ns *netns.NS, iface string) (*Ethtool, error) {
	nic, err := genl.Open(ns, iface)
	if err != nil {
		return nil, err
	}
	return &Ethtool{nic}, nil
}

// ReadPage reads from the module. The context is looked at before; a read that is under
// way cannot be stopped, since the kernel does it at once.
func (e *Ethtool) ReadPage(ctx context.Context, a cmis.Address, buf []byte) error {
	if err := a.Check(len(buf)); err != nil {
		return err
	}
	attrs, err := e.nic.Ask(ctx, msgModuleEEPROMGet, eepromRequest(a, len(buf)))
	if err != nil {
		return e.explain(err)
	}
	// Some drivers give what they have and call it success.
	data := attrs[attrData]
	if len(data) != len(buf) {
		return fmt.Errorf("the module of %s gave %d bytes of %d at %v", e.nic, len(data), len(buf), a)
	}
	copy(buf, data)
	return nil
}

func eepromRequest(a cmis.Address, n int) []byte {
	b := genl.AppendUint32(nil, attrOffset, uint32(a.Offset))
	b = genl.AppendUint32(b, attrLength, uint32(n))
	b = genl.AppendAttr(b, attrPage, []byte{a.Page})
	b = genl.AppendAttr(b, attrBank, []byte{a.Bank})
	return genl.AppendAttr(b, attrI2C, []byte{i2cAddress})
}

// explain says what an error means here. What a driver says of an empty cage differs; an
// I/O error is the most common.
func (e *Ethtool) explain(err error) error {
	switch {
	case errors.Is(err, syscall.ENODEV):
		return err // which says it all
	case errors.Is(err, errors.ErrUnsupported):
		return fmt.Errorf("the driver of %s gives no access to a module's memory: %w", e.nic, err)
	case errors.Is(err, syscall.EPERM):
		return fmt.Errorf("to read the module of %s needs CAP_NET_ADMIN; run as root: %w", e.nic, err)
	case errors.Is(err, syscall.EIO), errors.Is(err, syscall.ENXIO):
		return fmt.Errorf("%w at %s: %w", cmis.ErrNoModule, e.nic, err)
	}
	return fmt.Errorf("read the module of %s: %w", e.nic, err)
}

// DisturbsLinkTiming returns true: while the kernel reads a module it holds the RTNL lock,
// and announces no link of any interface.
func (e *Ethtool) DisturbsLinkTiming() bool { return true }

// Close closes the connection to the kernel, after a read that is under way.
func (e *Ethtool) Close() error { return e.nic.Close() }
