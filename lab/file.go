package lab

import (
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/ocslab/ocslab/drivers"
	"github.com/ocslab/ocslab/emulator"
	"github.com/ocslab/ocslab/internal/secret"
	"github.com/ocslab/ocslab/internal/strictyaml"
	"github.com/ocslab/ocslab/ocs"
)

type (
	// Error is one problem in a lab file: its position, path and sentence.
	Error = strictyaml.Error
	// Errors are all problems in a lab file, in order of position.
	Errors = strictyaml.Errors
	// Pos is a line and a column, both from 1.
	Pos = strictyaml.Pos
)

// File is a lab file; see the package for an example.
type File struct {
	Path           string                   `yaml:"-"` // relative files are beside it
	Name           string                   `yaml:"name"`
	Switches       []Switch                 `yaml:"switches,required"`
	Hosts          []Host                   `yaml:"hosts"`
	Cables         []Cable                  `yaml:"cables"`  // between boards of transceivers
	Protect        []PortRef                `yaml:"protect"` // nobody may move these
	Configurations map[string]Configuration `yaml:"configurations"`
}

// Switch is a switch of the lab: real at URL, or emulated, or either.
type Switch struct {
	Name     string     `yaml:"name,required"`
	URL      string     `yaml:"url"`  // without a password
	Also     []string   `yaml:"also"` // other URLs of the same device, as in another protocol
	Password secret.Ref `yaml:"password"`
	Emulate  *Emulate   `yaml:"emulate"` // how to emulate it, if it can be
	Pos      Pos        `yaml:"-,pos"`
}

// Emulate says how to emulate a switch. What is not set is as the model has it.
type Emulate struct {
	Model     string         `yaml:"model,required"` // of the program, or a .yaml file beside the lab file
	Switching *time.Duration `yaml:"switching"`
	Jitter    *time.Duration `yaml:"jitter"` // standard deviation of it
	Seed      *uint64        `yaml:"seed"`
	Ack       string         `yaml:"ack"`  // acknowledge "before" or "after" the light has settled
	Busy      string         `yaml:"busy"` // "takeover" or "deny" busy ports

	// Planted faults in dB: of each path through a port, and of one path; see
	// [emulator.Optics]. They add to those of the model.
	PortLoss map[ocs.Port]float64      `yaml:"port_loss_db,inf"`
	PathLoss map[emulator.Path]float64 `yaml:"path_loss_db,inf"`
}

// Host is a machine with NICs: with an Agent another machine, with a NetNS that
// namespace of this one, else the machine of that name.
type Host struct {
	Name string `yaml:"name,required"`
	// NetNS is the network namespace on this machine that the NICs are in: a name
	// of ip-netns(8), a path, or pid:N.
	NetNS string `yaml:"netns"`
	// Agent is the command that runs ocslab on another machine, such as
	// [ssh, gpu1, ocslab]. Its time comes over the same connection.
	Agent []string `yaml:"agent"`
	// Tree is a directory with class/infiniband and module/, as an emulated host
	// publishes them, in place of the machine's own.
	Tree string `yaml:"tree"`
	NICs []NIC  `yaml:"nics"`
}

// NIC is a network interface with its two fibres.
type NIC struct {
	Host     string  `yaml:"-"` // set by Parse
	Name     string  `yaml:"name,required"`
	Tx       PortRef `yaml:"tx,required"` // the NIC sends into this port
	Rx       PortRef `yaml:"rx,required"` // and receives from this
	Firmware string  `yaml:"firmware"`    // a profile of package firmwarenotes, or FILE.md[#PROFILE]
	// Emulate says what is really there, where that is not what the lab file says. Only the
	// emulation reads it: Tx and Rx are what everybody believes.
	Emulate *NICEmulate `yaml:"emulate"`
}

// NICEmulate is where the fibres of an emulated NIC really are, and how bad: what a tool
// that checks the wiring is to find.
type NICEmulate struct {
	Tx     PortRef  `yaml:"tx"`             // the fibre goes there; zero: where the lab file says
	Rx     PortRef  `yaml:"rx"`             // likewise
	TxLoss float64  `yaml:"tx_loss_db,inf"` // of the fibre, dB, 0 to emulator.MaxExtraLoss or infinity
	RxLoss float64  `yaml:"rx_loss_db,inf"`
	Dead   []string `yaml:"dead"` // "tx", "rx": no light passes that fibre
}

// Configuration is what shall be connected; see [File.Config].
type Configuration struct {
	Maps  map[string]ocs.Map `yaml:"maps"`  // by switch
	Links [][]string         `yaml:"links"` // pairs of NICs
}

// Load reads the lab file at path; see [Parse]. A file that cannot be read
// gives an error of package os.
func Load(path string) (*File, error) {
	data, err := strictyaml.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("lab file: %w", err)
	}
	return Parse(path, data)
}

// Parse reads a lab file. The error, if any, is [Errors] with all problems of
// form or, if there are none of these, all problems of meaning.
func Parse(name string, data []byte) (*File, error) {
	f := &File{Path: name}
	at, err := strictyaml.DecodePositions(name, data, f)
	if err != nil {
		return nil, err
	}
	for i := range f.Hosts {
		for j := range f.Hosts[i].NICs {
			f.Hosts[i].NICs[j].Host = f.Hosts[i].Name
		}
	}
	c := checker{f: f, at: at}
	c.file()
	if err := c.errs.Err(); err != nil {
		return nil, err
	}
	return f, nil
}

// checker finds problems of meaning.
type checker struct {
	f      *File
	at     *strictyaml.Positions
	errs   Errors
	boards map[string]int // modules by model, see modules
}

// value reports a problem of the value at path.
func (c *checker) value(path, format string, args ...any) {
	c.errs = append(c.errs, strictyaml.Errorf(c.f.Path, c.at.Value(path), path, format, args...))
}

// key reports a problem of the key at path.
func (c *checker) key(path, format string, args ...any) {
	c.errs = append(c.errs, strictyaml.Errorf(c.f.Path, c.at.Key(path), path, format, args...))
}

func (c *checker) file() {
	if c.f.Name != "" {
		c.name("name", c.f.Name, nil)
	}
	if len(c.f.Switches) == 0 {
		c.value("switches", "a lab needs at least one switch")
	}
	switches, hosts := map[string]string{}, map[string]string{}
	for i := range c.f.Switches {
		path := strictyaml.Index("switches", i)
		c.name(path+".name", c.f.Switches[i].Name, switches)
		c.oneSwitch(path, &c.f.Switches[i])
	}
	tx, rx := map[PortRef]*NIC{}, map[PortRef]*NIC{}
	for i, h := range c.f.Hosts {
		path := strictyaml.Index("hosts", i)
		c.name(path+".name", h.Name, hosts)
		if len(h.Agent) > 0 && (h.NetNS != "" || h.Tree != "") {
			c.value(path+".agent", "an agent is for another machine, and netns and tree are on this one: want one or the other")
		}
		names := map[string]string{}
		for j := range h.NICs {
			path, n := strictyaml.Index(path+".nics", j), &h.NICs[j]
			c.name(path+".name", n.Name, names)
			c.fibre(path+".tx", n.Tx, n, tx, "sends into")
			c.fibre(path+".rx", n.Rx, n, rx, "receives from")
			if n.Tx == n.Rx {
				c.value(path+".rx", "rx is the same port as tx, %v: a NIC has two fibres", n.Rx)
			}
		}
	}
	c.plants()
	c.cables()
	for i, p := range c.f.Protect {
		c.port(strictyaml.Index("protect", i), p)
	}
	for _, name := range c.f.ConfigNames() {
		path := strictyaml.Key("configurations", name)
		if err := checkName(name); err != nil {
			c.key(path, "%w", err)
		}
		c.f.Expand(c.f.Configurations[name], func(where string, key bool, err error) {
			if key {
				c.key(path+"."+where, "%w", err)
			} else {
				c.value(path+"."+where, "%w", err)
			}
		})
	}
}

// name checks a name and that it is none of seen, which maps names to paths.
func (c *checker) name(path, name string, seen map[string]string) {
	if err := checkName(name); err != nil {
		c.value(path, "%w", err)
		return
	}
	if first, dup := seen[name]; dup {
		c.value(path, "the name %q is taken by %s on line %d", name, strings.TrimSuffix(first, ".name"), c.at.Value(first).Line)
		return
	}
	if seen != nil {
		seen[name] = path
	}
}

func (c *checker) oneSwitch(path string, s *Switch) {
	switch {
	case s.URL != "":
		if err := checkURL(s.URL); err != nil {
			c.value(path+".url", "%w", err)
		}
	case s.Emulate == nil:
		c.value(path, "the switch has neither url nor emulate: it needs one of them")
	}
	for i, u := range s.Also {
		at := strictyaml.Index(path+".also", i)
		if err := checkURL(u); err != nil {
			c.value(at, "%w", err)
		} else if s.URL == "" {
			c.value(at, "also lists other URLs of a device: url is missing")
		}
	}
	e := s.Emulate
	if e == nil {
		return
	}
	path += ".emulate"
	if e.Model == "" {
		c.value(path+".model", "the model is empty")
	}
	if e.Switching != nil && *e.Switching < 0 {
		c.value(path+".switching", "%v is negative", *e.Switching)
	}
	if e.Jitter != nil && *e.Jitter < 0 {
		c.value(path+".jitter", "%v is negative", *e.Jitter)
	}
	c.choice(path+".ack", e.Ack, "before", "after")
	c.choice(path+".busy", e.Busy, "takeover", "deny")
	c.losses(path, e)
}

func (c *checker) choice(path, got string, choices ...string) {
	if got != "" && !slices.Contains(choices, got) {
		c.value(path, "want %s, found %.60q", strings.Join(choices, " or "), got)
	}
}

// port checks that the lab has the switch of p.
func (c *checker) port(path string, p PortRef) bool {
	_, ok := c.f.Switch(p.Switch)
	if !ok {
		c.value(path, "%w", c.f.unknownSwitch(p.Switch))
	}
	return ok
}

// fibre checks the port p at which n is the first NIC to do so.
func (c *checker) fibre(path string, p PortRef, n *NIC, seen map[PortRef]*NIC, does string) {
	if !c.port(path, p) {
		return
	}
	if other := seen[p]; other != nil {
		c.value(path, "%s %s %v, and so does %s: a port has one fibre", n.FullName(), does, p, other.FullName())
		return
	}
	seen[p] = n
}

// transport is what a URL scheme leads to.
type transport int

const (
	network transport = iota // scheme://user@host:port
	device                   // scheme:///dev/...
	replay                   // replay:FILE
)

var (
	schemes     = append(drivers.Schemes(), "replay") // a recorded session, which no driver opens yet
	examples    = map[transport]string{network: "://user@host:port", replay: ":FILE"}
	secretParam = []string{"password", "passwd", "pass", "pw", "secret", "token"}
)

var errURLPassword = errors.New("the URL holds a password: take it out and put password: env:NAME or password: file:PATH beside the url")

// checkURL returns what is wrong with the URL of a switch, if anything. No
// error holds a part of the URL that may be a password.
func checkURL(text string) error {
	scheme, rest, ok := strings.Cut(text, ":")
	if !ok || strings.Contains(scheme, "/") {
		return errors.New("the URL has no scheme: want one such as tl1://user@host:3082")
	}
	if !slices.Contains(schemes, scheme) {
		return fmt.Errorf("the scheme of the URL is not known%s: want one of %s",
			strictyaml.DidYouMean(scheme, schemes), strings.Join(schemes, ", "))
	}
	kind := network
	switch {
	case scheme == "replay":
		kind = replay
	case drivers.PathExample(scheme) != "":
		kind = device
	}
	example := examples[kind]
	if kind == device {
		example = "://" + drivers.PathExample(scheme)
	}
	malformed := fmt.Errorf("the URL is malformed: want %s%s", scheme, example)

	if kind == replay {
		if rest == "" {
			return malformed
		}
		return nil
	}
	// Before it is parsed, as a password with a '/' or '?' in it ends the
	// host part early.
	if at := strings.LastIndexByte(rest, '@'); kind == network && at >= 0 && strings.Contains(rest[:at], ":") {
		return errURLPassword
	}
	u, err := url.Parse(text)
	if err != nil {
		return malformed // err may quote any part of it
	}
	query, err := url.ParseQuery(u.RawQuery)
	if err != nil {
		return malformed
	}
	for key := range query {
		if slices.Contains(secretParam, strings.ToLower(key)) {
			return errURLPassword
		}
	}
	switch _, hasPassword := u.User.Password(); {
	case hasPassword:
		return errURLPassword
	case u.Fragment != "":
		return fmt.Errorf("%w, without #", malformed)
	case kind == device && (u.Host != "" || len(u.Path) < 2):
		return fmt.Errorf("%w, with three slashes", malformed)
	case kind == network && u.Hostname() == "":
		return malformed
	case kind == network && u.Path != "" && u.Path != "/":
		return fmt.Errorf("%w, without a path", malformed)
	}
	if p := u.Port(); p != "" {
		if n, err := strconv.ParseUint(p, 10, 16); err != nil || n == 0 {
			return errors.New("the port in the URL is not in 1 to 65535")
		}
	}
	var bad *drivers.URLError // the drivers know the options
	if _, err := drivers.Parse(text); errors.As(err, &bad) {
		return errors.New(bad.Reason)
	}
	return nil
}
