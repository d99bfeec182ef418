package emulator

import (
	"fmt"
	"time"

	"github.com/ocslab/ocslab/ocs"
)

// TL1 is how the TL1 front end speaks.
type TL1 struct {
	SID         string        `yaml:"sid"`          // default: the device's name
	NoSID       bool          `yaml:"no_sid"`       // the header shows ( nil )
	ShortLead   bool          `yaml:"short_lead"`   // CR LF before the header instead of CR LF LF
	Echo        bool          `yaml:"echo"`         // repeats each command
	Prompt      string        `yaml:"prompt"`       // after each message
	Idle        time.Duration `yaml:"idle"`         // logs a session out after; 0 is never
	IdleCloses  bool          `yaml:"idle_closes"`  // and closes it
	MaxSessions int           `yaml:"max_sessions"` // 0 is no limit
	Quiet       bool          `yaml:"quiet"`        // autonomous messages are off at login
	// OwnCircuits keeps what other clients do to cross-connects out of the
	// autonomous messages.
	OwnCircuits bool `yaml:"own_circuits"`

	// Dialect is the kind of TL1; default polatis. What follows concerns the others.
	Dialect TL1Dialect `yaml:"dialect"`
	// Block is how many bytes of data lines a block of a long reply has at most,
	// but always one line; 0 is no limit.
	Block int `yaml:"block"`
	// Fail are ports whose connections are listed as failed, and stay dark.
	Fail []uint32 `yaml:"fail"`

	TwoStep bool   `yaml:"two_step"` // Calient: a connection must be activated, and deactivated before it is deleted
	Notice  string `yaml:"notice"`   // Calient: what the login says
	// Shelf and Slot are how many slots a shelf and how many ports a slot has (Calient);
	// zero numbers the ports plainly.
	Shelf int `yaml:"shelf"`
	Slot  int `yaml:"slot"`

	Greet bool      `yaml:"greet"` // Glimmerglass: the prompt comes before the first command, too
	Locks []TL1Lock `yaml:"locks"` // Glimmerglass
}

// TL1Dialect is a kind of TL1.
type TL1Dialect string

const (
	PolatisTL1      TL1Dialect = "polatis"
	CalientTL1      TL1Dialect = "calient"
	GlimmerglassTL1 TL1Dialect = "glimmerglass"
)

// UnmarshalText accepts "polatis", "calient" and "glimmerglass".
func (d *TL1Dialect) UnmarshalText(text []byte) error {
	return oneOf(d, text, PolatisTL1, CalientTL1, GlimmerglassTL1)
}

// TL1Lock locks the connection of an ingress port: nobody but User can change
// it.
type TL1Lock struct {
	Port uint32 `yaml:"port,required"`
	User string `yaml:"user,required"`
}

func (p *Personality) checkTL1() error {
	t := &p.TL1
	g, err := ocs.ParseGeometry(p.Size)
	switch {
	case err != nil:
		return err
	case t.MaxSessions < 0:
		return fmt.Errorf("tl1.max_sessions: want 0 (no limit) or more")
	case len(t.SID) > MaxSID || !printable(t.SID):
		return fmt.Errorf("tl1.sid: %.40q: want at most %d printable ASCII characters", t.SID, MaxSID)
	case t.Dialect != "" && t.Dialect != PolatisTL1 && t.Dialect != CalientTL1 && t.Dialect != GlimmerglassTL1:
		return fmt.Errorf("tl1.dialect: %.40q: want one of %v", t.Dialect, []TL1Dialect{PolatisTL1, CalientTL1, GlimmerglassTL1})
	case t.Dialect != "" && t.Dialect != PolatisTL1 && (len(p.Speaks) != 1 || p.Speaks[0] != SpeaksTL1):
		return fmt.Errorf("speaks: a %s switch speaks tl1 and nothing else", t.Dialect)
	case t.Dialect == CalientTL1 && (g.SingleSided || g.Ingress != g.Egress):
		return fmt.Errorf("tl1.dialect: a calient switch has as many ingress as egress ports, not %v", g)
	case t.Dialect == GlimmerglassTL1 && (g.SingleSided || g.Ingress > 9999 || g.Egress > 9999):
		return fmt.Errorf("tl1.dialect: a glimmerglass switch has at most 9999 ingress and egress ports, not %v", g)
	case t.Block < 0:
		return fmt.Errorf("tl1.block: want 0 (no limit) or more bytes")
	case t.Shelf < 0 || t.Slot < 0 || (t.Shelf == 0) != (t.Slot == 0):
		return fmt.Errorf("tl1.shelf, tl1.slot: want the slots of a shelf and the ports of a slot, or neither")
	case !printable(t.Notice):
		return fmt.Errorf("tl1.notice: want printable ASCII characters")
	}
	for _, n := range t.Fail {
		if !g.Has(ocs.Port(n)) {
			return fmt.Errorf("tl1.fail: a %v switch has no port %d", g, n)
		}
	}
	for _, l := range t.Locks {
		if !g.IsIngress(ocs.Port(l.Port)) {
			return fmt.Errorf("tl1.locks: a %v switch has no ingress port %d", g, l.Port)
		}
		if !wordLike(l.User, 1) {
			return fmt.Errorf("tl1.locks: user name %.40q: want 1 to 32 letters, digits and -_.", l.User)
		}
	}
	return nil
}
