package wiring

import (
	"context"

	"github.com/ocslab/ocslab/lab"
	"github.com/ocslab/ocslab/ocs"
)

// Plant is the switches and NICs whose wiring is looked for. [OpenTestbed] makes one of a lab;
// tests make theirs. It is used by one goroutine at a time.
type Plant interface {
	// Set brings about that of the ports in question exactly these circuits are there, and
	// returns when the light has settled and modules had time to notice.
	Set(ctx context.Context, maps map[string]ocs.Map) error
	// Power reads the monitors. A port without one is left out; minus infinity is no light.
	Power(ctx context.Context, ports []lab.PortRef) (map[lab.PortRef]ocs.DBm, error)
	// Look returns what each of the NICs sees now, by full name.
	Look(ctx context.Context, nics []string) (map[string]Look, error)
	// Hail has every NIC that has a carrier send its name, after those of lit, which should get
	// one, had time for it, and returns who heard whom. An error that matches [ErrMute] says why
	// there can be no frames at all.
	Hail(ctx context.Context, lit []string) (Hail, error)
}

// Look is what a NIC sees.
type Look struct {
	// Rx are a few readings of the module's received power in a row, lane by lane; none
	// if it cannot be read.
	Rx [][]ocs.DBm
	// Tx is what the module sends on each lane; nil if it does not say.
	Tx []ocs.DBm
	// Carrier is for NICs whose module cannot be read: Lit for a carrier.
	Carrier Bit
	// Err is why the module cannot be read.
	Err error
}

// Hail is what came of the NICs' saying their names.
type Hail struct {
	// Sent are the NICs that had a carrier and sent.
	Sent map[string]bool
	// Heard has the names that came in at each NIC that listened; one that had no
	// carrier is not in it.
	Heard map[string][]string
	// Mute says of NICs why they could neither send nor listen, if not for want of a carrier.
	Mute map[string]string
}

// Bit is what a NIC saw in a step.
type Bit uint8

// The bits.
const (
	Unsure Bit = iota // neither, or it changed
	Dark
	Lit
)

// String returns "?", "0" or "1".
func (b Bit) String() string { return [...]string{"?", "0", "1"}[min(b, Lit)] }
