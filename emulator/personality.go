package emulator

import (
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/ocslab/ocslab/internal/builtin"
	"github.com/ocslab/ocslab/internal/strictyaml"
	"github.com/ocslab/ocslab/ocs"
	"github.com/ocslab/ocslab/timeline/dist"
)

// Personality is how a model of switch behaves. It is read from a YAML file;
// durations carry their unit, powers are dBm, ratios dB.
type Personality struct {
	Model       string `yaml:"model,required"`
	Description string `yaml:"description"`
	Vendor      string `yaml:"vendor,required"`
	Product     string `yaml:"product,required"` // product code, as in RTRV-NETYPE and *IDN?
	Firmware    string `yaml:"firmware,required"`
	Size        string `yaml:"size,required"` // "32x32", or "48xCC" for single-sided

	Switching Switching `yaml:"switching,required"`
	Optics    Optics    `yaml:"optics,required"`
	Monitors  Monitors  `yaml:"monitors"`
	Control   Control   `yaml:"control"`
	// Speaks are the protocols it has; default tl1, scpi and netconf.
	Speaks  []Protocol `yaml:"speaks"`
	TL1     TL1        `yaml:"tl1"`
	SCPI    SCPI       `yaml:"scpi"`
	NETCONF NETCONF    `yaml:"netconf"`
}

// Protocol is a language that a device can be asked in.
type Protocol string

const (
	SpeaksTL1     Protocol = "tl1"
	SpeaksSCPI    Protocol = "scpi"
	SpeaksNETCONF Protocol = "netconf"
)

func (p *Personality) checkSpeaks() error {
	for _, s := range p.Speaks {
		if s != SpeaksTL1 && s != SpeaksSCPI && s != SpeaksNETCONF {
			return fmt.Errorf("speaks: %q: want tl1, scpi or netconf", s)
		}
	}
	return nil
}

// Has reports whether the device speaks a protocol.
func (p *Personality) Has(s Protocol) bool { return slices.Contains(p.Speaks, s) }

// Switching is how long the matrix takes, from a command to settled light.
//
// A file says either Single and Jitter or Modes. Durations that are drawn below 0 are 0.
// In a command with several cross-connects each path takes a time of its own, and the
// command takes as long as the slowest.
type Switching struct {
	Single time.Duration `yaml:"single"` // one cross-connect; with Modes their median
	// Bulk is for each path of a command with several; default as Single. A path with modes
	// takes a draw from these then, and what Bulk is longer than Single.
	Bulk   time.Duration `yaml:"bulk"`
	Jitter time.Duration `yaml:"jitter"` // standard deviation, clipped at 3
	Rise   time.Duration `yaml:"rise"`   // time constant of the return of light; default 1 % of Single
	Ack    AckMode       `yaml:"ack"`    // default after

	Modes dist.Mixture    `yaml:"modes"` // of one cross-connect, in place of Single and Jitter
	Paths []PathSwitching `yaml:"paths"` // those that differ
}

// PathSwitching is how long the mirrors of one path take.
type PathSwitching struct {
	Path  Path         `yaml:"path,required"`
	Modes dist.Mixture `yaml:"modes,required"`
}

// Path is a cross-connect as files write it: "12>45".
type Path ocs.CrossConnect

// String returns the text form, "12>45".
func (p Path) String() string { return ocs.CrossConnect(p).String() }

// MarshalText returns the text form; it never fails.
func (p Path) MarshalText() ([]byte, error) { return []byte(p.String()), nil }

// UnmarshalText reads the text form of one cross-connect.
func (p *Path) UnmarshalText(text []byte) error {
	m, err := ocs.ParseMap(string(text))
	if err != nil || m.Len() != 1 {
		return fmt.Errorf("%.40q is no path: want INGRESS>EGRESS, such as 12>45", text)
	}
	*p = Path(m.Slice()[0])
	return nil
}

// AckMode is when a device acknowledges a switching command.
type AckMode string

const (
	AckBefore AckMode = "before" // at once, while the mirrors still move
	AckAfter  AckMode = "after"  // when every path of the command has settled
)

// UnmarshalText accepts "before" and "after".
func (m *AckMode) UnmarshalText(text []byte) error { return oneOf(m, text, AckBefore, AckAfter) }

// BusyMode is what a device does with a new cross-connect on a busy port.
type BusyMode string

const (
	Takeover BusyMode = "takeover" // drops the old ones (Polatis)
	Deny     BusyMode = "deny"     // refuses the whole command (SONiC OCS)
)

// UnmarshalText accepts "takeover" and "deny".
func (m *BusyMode) UnmarshalText(text []byte) error { return oneOf(m, text, Takeover, Deny) }

// MonitorSides says which ports have power monitors.
type MonitorSides string

const (
	MonitorsNone   MonitorSides = "none"
	MonitorsEgress MonitorSides = "egress"
	MonitorsBoth   MonitorSides = "both"
)

// UnmarshalText accepts "none", "egress" and "both".
func (m *MonitorSides) UnmarshalText(text []byte) error {
	return oneOf(m, text, MonitorsNone, MonitorsEgress, MonitorsBoth)
}

func oneOf[T ~string](into *T, text []byte, allowed ...T) error {
	if v := T(text); slices.Contains(allowed, v) {
		*into = v
		return nil
	}
	return fmt.Errorf("%q: want one of %v", text, allowed)
}

// Optics is the light path.
type Optics struct {
	Loss          float64 `yaml:"loss_db,required"`     // typical insertion loss
	LossMax       float64 `yaml:"loss_max_db,required"` // of the worst path
	LossSpread    float64 `yaml:"loss_spread_db"`       // standard deviation between paths; default 0.3
	Repeatability float64 `yaml:"repeatability_db"`     // change of a path's loss each time it is made, +-
	Launch        float64 `yaml:"launch_dbm"`           // light at ingress ports when nobody says otherwise
	LaunchSpread  float64 `yaml:"launch_spread_db"`     // +- between ports
	VOAMax        float64 `yaml:"voa_max_db"`           // of the attenuators at egress ports; 0 is none fitted

	// What is bad inside, in dB beyond the losses above: 0 to MaxExtraLoss, or infinity,
	// when no light passes. It lies between the power monitors, so they show it as
	// insertion loss: PortLoss of each path that uses the port at either end, PathLoss of
	// that path. Fibres outside are another matter: see [Device.SetInput].
	PortLoss map[ocs.Port]float64 `yaml:"port_loss_db,inf"`
	PathLoss map[Path]float64     `yaml:"path_loss_db,inf"`
}

// MaxExtraLoss is the greatest finite loss in dB that a file can plant; more than that is
// no light, which is written .inf.
const MaxExtraLoss = 60

// Monitors are the optical power monitors.
type Monitors struct {
	Sides    MonitorSides `yaml:"sides"`     // default both
	Accuracy float64      `yaml:"error_db"`  // largest fixed error of a monitor, +-
	Noise    float64      `yaml:"noise_db"`  // standard deviation between readings
	Floor    float64      `yaml:"floor_dbm"` // what a dark monitor reads; default -60
	Default  int          `yaml:"averaging"` // step 1..8 of 10 ms .. 2 s; default 4 (100 ms)
}

// Control is everything around the matrix.
type Control struct {
	Busy   BusyMode      `yaml:"busy"`   // default takeover
	Boot   ocs.BootMode  `yaml:"boot"`   // default restore
	Reboot time.Duration `yaml:"reboot"` // of the network card; default 65 s
	Users  []User        `yaml:"users"`  // default admin with password root
	Failed []uint32      `yaml:"failed_ports"`
	// Largest number of cross-connects in one command; 0 is no limit.
	MaxPairs int `yaml:"max_pairs"`
}

// User is an account on the device.
type User struct {
	Name     string `yaml:"name,required"`
	Password string `yaml:"password"`
	Group    Group  `yaml:"group,required"`
}

// Group is what a user may do: ADMIN everything, USER all but system
// configuration, VIEW read.
type Group string

const (
	Admin    Group = "ADMIN"
	Operator Group = "USER"
	Viewer   Group = "VIEW"
)

// UnmarshalText accepts ADMIN, USER and VIEW in any case.
func (g *Group) UnmarshalText(text []byte) error {
	return oneOf(g, []byte(strings.ToUpper(string(text))), Admin, Operator, Viewer)
}

//go:embed personalities/*.yaml
var embedded embed.FS

var personalities = builtin.Files{FS: embedded, Dir: "personalities", What: "model"}

// Models returns the names of the personalities that come with ocslab.
func Models() []string { return personalities.Names() }

// LoadPersonality returns the personality that comes with ocslab under the
// name model or, when model ends in .yaml, reads the file of that path. Errors
// in a file name its line and column.
func LoadPersonality(model string) (Personality, error) {
	file, data, err := personalities.Read(model)
	if err != nil {
		if file := (*fs.PathError)(nil); errors.As(err, &file) {
			return Personality{}, fmt.Errorf("the personality %s cannot be read: %w", file.Path, file.Err)
		}
		return Personality{}, fmt.Errorf("personality: %w", err)
	}
	return ParsePersonality(file, data)
}

// ParsePersonality reads a personality, fills in the defaults and checks it.
// The name is for error messages.
func ParsePersonality(name string, data []byte) (Personality, error) {
	p := defaults()
	at, err := strictyaml.DecodePositions(name, data, &p)
	if err != nil {
		return Personality{}, err
	}
	if err := p.Switching.said(name, at); err != nil {
		return Personality{}, err
	}
	p.fill()
	if _, err := p.check(); err != nil {
		return Personality{}, fmt.Errorf("%s: %w", name, err)
	}
	return p, nil
}

// defaults returns what a file that says nothing of it means, where that is not zero.
func defaults() Personality {
	return Personality{
		Optics:   Optics{LossSpread: 0.3},
		Monitors: Monitors{Sides: MonitorsBoth, Floor: -60, Default: 4},
		Control:  Control{Busy: Takeover, Boot: ocs.BootRestore, Reboot: 65 * time.Second},
	}
}

// fill fills in where zero stands for a default.
func (p *Personality) fill() {
	p.Switching.fill()
	if p.Switching.Ack == "" {
		p.Switching.Ack = AckAfter
	}
	if p.Switching.Bulk == 0 {
		p.Switching.Bulk = p.Switching.Single
	}
	if p.Switching.Rise == 0 {
		p.Switching.Rise = p.Switching.Single / 100
	}
	if len(p.Control.Users) == 0 {
		p.Control.Users = []User{{Name: "admin", Password: "root", Group: Admin}}
	}
	p.fillProtocols()
}

func (p *Personality) fillProtocols() {
	if len(p.Speaks) == 0 {
		p.Speaks = []Protocol{SpeaksTL1, SpeaksSCPI, SpeaksNETCONF}
	}
	p.SCPI.fill()
	p.NETCONF.fill()
}

// mostDB is the greatest power in dBm, or loss in dB, of a personality, up or down. No light
// comes near it, and what is computed from such is finite.
const mostDB = 200

// powers reports whether all powers and losses are numbers that can be.
func (p *Personality) powers() bool {
	o, m := &p.Optics, &p.Monitors
	for _, db := range []float64{o.Loss, o.LossMax, o.LossSpread, o.Repeatability, o.Launch, o.LaunchSpread, m.Accuracy, m.Noise, m.Floor} {
		if !(math.Abs(db) <= mostDB) {
			return false
		}
	}
	return true
}

// Check reports what no device can be; [New] refuses it, too.
func (p *Personality) Check() error {
	q := *p
	_, err := q.check()
	return err
}

// check fills in the defaults of the protocols and what follows from modes, reports what no device can be,
// and returns the ports it has.
func (p *Personality) check() (ocs.Geometry, error) {
	p.Switching.fill()
	p.fillProtocols()
	g, err := ocs.ParseGeometry(p.Size)
	if err != nil {
		return g, err
	}
	if err := p.Switching.check(g); err != nil {
		return g, err
	}
	for _, d := range []struct {
		key string
		d   time.Duration
	}{
		{"switching.single", p.Switching.Single}, {"switching.bulk", p.Switching.Bulk},
		{"switching.jitter", p.Switching.Jitter}, {"switching.rise", p.Switching.Rise},
		{"control.reboot", p.Control.Reboot}, {"tl1.idle", p.TL1.Idle}, {"scpi.gap", p.SCPI.Gap},
		{"netconf.hello", p.NETCONF.Hello},
	} {
		if d.d < 0 || d.d > time.Hour {
			return g, fmt.Errorf("%s: %v is outside 0s to 1h", d.key, d.d)
		}
	}
	switch {
	case p.Switching.Ack != AckBefore && p.Switching.Ack != AckAfter:
		return g, fmt.Errorf("switching.ack: %q: want before or after", p.Switching.Ack)
	case p.Control.Busy != Takeover && p.Control.Busy != Deny:
		return g, fmt.Errorf("control.busy: %q: want takeover or deny", p.Control.Busy)
	case !p.powers():
		return g, fmt.Errorf("optics, monitors: a power or a loss is not within -%d to %[1]d dB or dBm", mostDB)
	case p.Optics.Loss < 0 || p.Optics.LossMax < p.Optics.Loss:
		return g, fmt.Errorf("optics: want 0 <= loss_db <= loss_max_db")
	case p.Optics.LossSpread < 0 || p.Optics.Repeatability < 0 || p.Optics.LaunchSpread < 0:
		return g, fmt.Errorf("optics: a spread or repeatability is negative")
	case p.Monitors.Accuracy < 0 || p.Monitors.Noise < 0:
		return g, fmt.Errorf("monitors: an error or noise is negative")
	case p.Monitors.Default < 1 || p.Monitors.Default > len(averagingSteps):
		return g, fmt.Errorf("monitors.averaging: %d is outside 1 to %d", p.Monitors.Default, len(averagingSteps))
	case p.Optics.VOAMax < 0 || p.Optics.VOAMax > 60:
		return g, fmt.Errorf("optics.voa_max_db: %g is outside 0 to 60", p.Optics.VOAMax)
	case !validBoot(p.Control.Boot):
		return g, fmt.Errorf("control.boot: %q: want dark, restore or autosave", p.Control.Boot)
	case p.Control.MaxPairs < 0:
		return g, fmt.Errorf("control.max_pairs: want 0 (no limit) or more")
	}
	for _, check := range []func() error{
		func() error { return p.Optics.checkLosses(g) }, p.checkSpeaks, p.checkTL1, p.SCPI.check, p.NETCONF.check,
	} {
		if err := check(); err != nil {
			return g, err
		}
	}
	for _, s := range []string{p.Vendor, p.Product, p.Firmware} {
		if strings.Contains(s, ",") || !printable(s) {
			return g, fmt.Errorf("vendor, product, firmware: %.40q: want printable ASCII characters and no comma", s)
		}
	}
	if err := checkUsers(p.Control.Users); err != nil {
		return g, fmt.Errorf("control.users: %w", err)
	}
	for _, f := range p.Control.Failed {
		if !g.Has(ocs.Port(f)) {
			return g, fmt.Errorf("control.failed_ports: a %s switch has no port %d", p.Size, f)
		}
	}
	return g, nil
}

func validBoot(m ocs.BootMode) bool {
	return m == ocs.BootDark || m == ocs.BootRestore || m == ocs.BootAutosave
}

// averagingSteps are the averaging times of a power monitor by step, 1 first
// (Polatis TL1 ATIME).
var averagingSteps = [...]time.Duration{
	10 * time.Millisecond, 20 * time.Millisecond, 50 * time.Millisecond, 100 * time.Millisecond,
	200 * time.Millisecond, 500 * time.Millisecond, time.Second, 2 * time.Second,
}

// AveragingTime returns the averaging time of step 1..8.
func AveragingTime(step int) time.Duration { return averagingSteps[step-1] }
