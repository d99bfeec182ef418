package lab

import (
	"cmp"
	"context"
	"fmt"

	"github.com/ocslab/ocslab/emulator"
	"github.com/ocslab/ocslab/emulator/fabric"
	firmwarenotes "github.com/ocslab/ocslab/firmware-notes"
	"github.com/ocslab/ocslab/ocs"
)

// DefaultFirmware is the profile of NICs whose lab file says none.
const DefaultFirmware = "quick"

// FabricOptions say how the hosts of a lab are emulated.
type FabricOptions struct {
	Firmware string      // a profile for every NIC; "": that of the lab file, or DefaultFirmware
	Seed     uint64      // of what varies in the firmware
	Rung     fabric.Rung // 0: the best there is here
}

// Fabric starts the hosts and NICs of an emulated lab, on the emulated switches
// that the NICs hang on. The caller closes it before the lab.
func (l *Lab) Fabric(ctx context.Context, opt FabricOptions) (*fabric.Fabric, error) {
	devices := map[string]*emulator.Device{}
	for n := range l.File.nics {
		plant := n.plant()
		for _, p := range []PortRef{plant.tx, plant.rx} {
			o, err := l.Switch(ctx, p.Switch)
			if err != nil {
				return nil, err
			}
			if o.joined != nil {
				return nil, fmt.Errorf("hosts cannot be emulated twice: %w", o.joined)
			}
			if o.Emulated != nil && o.Emulated.Board != nil {
				return nil, fmt.Errorf("NIC %s is on %v, which is emulated as a transceiver: NICs cannot be emulated there, only on a matrix", n.FullName(), p)
			}
			if o.Emulated != nil {
				devices[p.Switch] = o.Emulated.Device
			}
		}
	}
	return l.File.Fabric(devices, opt)
}

// Fabric starts the hosts and NICs of the lab on emulated switches, by name, with the
// fibres where they really are: see [NICEmulate]. A profile that is not known is an error
// that matches [firmwarenotes.ErrUnknown].
func (f *File) Fabric(devices map[string]*emulator.Device, opt FabricOptions) (*fabric.Fabric, error) {
	cfg := fabric.Config{Switches: devices, Seed: opt.Seed, Rung: opt.Rung}
	for n := range f.nics {
		name := cmp.Or(opt.Firmware, f.Firmware(n), DefaultFirmware)
		profile, err := firmwarenotes.Find(name)
		if err != nil {
			return nil, fmt.Errorf("NIC %s: %w", n.FullName(), err)
		}
		p := n.plant()
		cfg.NICs = append(cfg.NICs, fabric.NIC{
			Host: n.Host, Name: n.Name, Profile: profile,
			Tx: fabric.Port(p.tx), Rx: fabric.Port(p.rx), TxLoss: p.txLoss, RxLoss: p.rxLoss,
		})
	}
	return fabric.Start(cfg)
}

// Sender returns the full name of the NIC that sends into a port, "" for none.
func (f *File) Sender(switchName string, p ocs.Port) string {
	if tx, _ := f.NICAt(PortRef{switchName, p}); tx != nil {
		return tx.FullName()
	}
	return ""
}

// Receiver returns the full name of the NIC that receives from a port, "" for
// none.
func (f *File) Receiver(switchName string, p ocs.Port) string {
	if _, rx := f.NICAt(PortRef{switchName, p}); rx != nil {
		return rx.FullName()
	}
	return ""
}
