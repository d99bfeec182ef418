package drivers

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/ocslab/ocslab/drivers/netconfswitch"
	"github.com/ocslab/ocslab/drivers/ocstrx"
	"github.com/ocslab/ocslab/drivers/scpiswitch"
	"github.com/ocslab/ocslab/drivers/tl1switch"
	"github.com/ocslab/ocslab/drivers/transport"
	"github.com/ocslab/ocslab/internal/secret"
	"github.com/ocslab/ocslab/ocs"
)

// Options are what a URL does not say.
type Options struct {
	Name     string // of the device in messages; default its address
	Password secret.Secret
	Timeout  time.Duration // for one reply; 0 is the driver's default
	Dir      string        // paths in the options of the URL are relative to it, unless they begin with "~/"; default the working directory
	// Trace, when set, is called with what is sent and received, one piece at a
	// time, with secrets masked. It must not keep p nor call the switch.
	Trace func(sent bool, p []byte)
}

// A protocol is what is said, a carrier is what that travels on, and a scheme
// is one of each.
type (
	optionChecks map[string]func(value string) (wrong string)

	protocol struct {
		options   optionChecks
		subsystem string // of SSH
		baud      int    // of a serial line, unless the URL tells
		open      func(ctx context.Context, t Target, d transport.Dialer, opt Options) (ocs.Switch, error)
	}

	carrier struct {
		options optionChecks
		dial    func(t Target, p protocol, opt Options) transport.Dialer
	}

	scheme struct {
		protocol
		port    string // default
		options optionChecks
		dial    func(t Target, p protocol, opt Options) transport.Dialer
		path    string // example of an address that is a path: a serial line, a bus, a file
	}
)

var (
	tl1 = protocol{
		options: optionChecks{"max-pairs": positive, "dialect": word("polatis", "calient", "glimmerglass")},
		open:    openTL1,
	}
	scpi    = protocol{options: optionChecks{"max-pairs": positive, "gap": duration}, open: openSCPI}
	netconf = protocol{subsystem: "netconf", open: openNETCONF}
	trx     = protocol{options: trxOptions, baud: 921600, open: openTransceivers}
	// The modules' memory itself, without a board that speaks for them.
	trxI2C    = protocol{options: and(trxOptions, optionChecks{"addr": addresses}), open: openI2C}
	trxEEPROM = protocol{options: and(trxOptions, optionChecks{"also": anything}), open: openEEPROM}

	tcp = carrier{dial: func(t Target, _ protocol, _ Options) transport.Dialer { return transport.TCP{Addr: t.Host} }}
	ssh = carrier{
		options: optionChecks{
			"hostkey": hostKey, "known-hosts": anything, "any-hostkey": yes,
			"key": anything, "agent": yes, "legacy": algorithms,
		},
		dial: dialSSH,
	}
	tls = carrier{
		options: optionChecks{"ca": anything, "cert": anything, "key": anything, "server-name": anything, "pin": anything},
		dial:    dialTLS,
	}
	direct = carrier{dial: func(Target, protocol, Options) transport.Dialer { return nil }}
	serial = carrier{
		options: optionChecks{
			"baud": positive, "data-bits": word("5", "6", "7", "8"),
			"parity": word("none", "odd", "even", "mark", "space"), "stop-bits": word("1", "1.5", "2"),
		},
		dial: dialSerial,
	}
)

var schemes = map[string]scheme{
	"tl1":         on(tl1, tcp, "3082"),
	"tl1+ssh":     on(tl1, ssh, "6252"),
	"tl1+serial":  onLine(tl1),
	"scpi":        on(scpi, tcp, "5025"),
	"scpi+serial": onLine(scpi),
	"netconf":     on(netconf, ssh, "830"),
	"netconf+tls": on(netconf, tls, "6513"),

	"ocstrx":        on(trx, tcp, "4001"), // that of the first line of most serial device servers
	"ocstrx+serial": onLine(trx),
	"ocstrx+i2c":    at("/dev/i2c-1", on(trxI2C, direct, "")),
	"ocstrx+eeprom": at("/sys/bus/i2c/devices/1-0050/eeprom", on(trxEEPROM, direct, "")),
}

var trxOptions = optionChecks{"pre-emphasis": word("on", "off"), "settle-timeout": microseconds}

// dialectPorts are the default ports of TL1 dialects over TCP.
var dialectPorts = map[string]string{"calient": "3083", "glimmerglass": "10034"}

func on(p protocol, c carrier, port string) scheme {
	options := optionChecks{}
	maps.Copy(options, p.options)
	maps.Copy(options, c.options)
	return scheme{protocol: p, port: port, options: options, dial: c.dial}
}

func onLine(p protocol) scheme {
	return at("/dev/ttyUSB0", on(p, serial, ""))
}

// at makes the address of a scheme a path.
func at(example string, s scheme) scheme {
	s.path = example
	return s
}

// and joins options.
func and(a, b optionChecks) optionChecks {
	all := maps.Clone(a)
	maps.Copy(all, b)
	return all
}

// Open connects to the switch at a URL. Errors are a *[URLError] or, from the
// wire, an *[ocs.OpError].
func Open(ctx context.Context, rawURL string, opt Options) (ocs.Switch, error) {
	t, err := Parse(rawURL)
	if err != nil {
		return nil, err
	}
	opt.Name = cmp.Or(opt.Name, t.address())
	for _, key := range []string{"key", "known-hosts", "ca", "cert"} {
		if path := t.file(key, opt); path != "" {
			if _, err := os.Stat(path); err != nil {
				return nil, &URLError{t.String(), fmt.Sprintf("%s: %v", key, err)}
			}
		}
	}
	sc := schemes[t.Scheme]
	return sc.open(ctx, t, sc.dial(t, sc.protocol, opt), opt)
}

// opened makes the nil of a driver that could not be opened a nil Switch.
func opened[T ocs.Switch](sw T, err error) (ocs.Switch, error) {
	if err != nil {
		return nil, err
	}
	return sw, nil
}

// number returns an option that Parse has checked; 0 if it is not set.
func (t Target) number(key string) int {
	n, _ := strconv.Atoi(t.options[key])
	return n
}

// file returns an option that is a path; "~/" is the home folder.
func (t Target) file(key string, opt Options) string {
	path := t.options[key]
	if rest, inHome := strings.CutPrefix(path, "~/"); inHome {
		if home, err := os.UserHomeDir(); err == nil {
			return filepath.Join(home, rest)
		}
	}
	if path == "" || filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(opt.Dir, path)
}

func dialSSH(t Target, p protocol, opt Options) transport.Dialer {
	d := transport.SSH{
		Addr: t.Host, User: cmp.Or(t.User, "admin"), Password: opt.Password,
		KeyFile: t.file("key", opt), Agent: t.options["agent"] != "",
		// A plus sign of base64 that nobody has escaped reads as a blank.
		HostKey:    unblank(t.options["hostkey"]),
		AnyHostKey: t.options["any-hostkey"] != "", Subsystem: p.subsystem,
	}
	if f := t.file("known-hosts", opt); f != "" {
		d.KnownHosts = []string{f}
	}
	if l := t.options["legacy"]; l != "" {
		d.Legacy = strings.Split(l, ",")
	}
	return d
}

// unblank puts back the plus signs of a fingerprint or key in base64.
func unblank(key string) string {
	kind, rest, found := strings.Cut(key, " ")
	if found && (strings.HasPrefix(kind, "ssh-") || strings.HasPrefix(kind, "ecdsa-")) {
		return kind + " " + strings.ReplaceAll(rest, " ", "+")
	}
	return strings.ReplaceAll(key, " ", "+")
}

func dialTLS(t Target, _ protocol, opt Options) transport.Dialer {
	return transport.TLS{
		Addr: t.Host, ServerName: t.options["server-name"], CAFile: t.file("ca", opt),
		CertFile: t.file("cert", opt), KeyFile: t.file("key", opt), Pin: unblank(t.options["pin"]),
	}
}

func dialSerial(t Target, p protocol, _ Options) transport.Dialer {
	return transport.Serial{
		Path: t.Path, Baud: cmp.Or(t.number("baud"), p.baud), DataBits: t.number("data-bits"),
		Parity: t.options["parity"], StopBits: t.options["stop-bits"],
	}
}

func openTL1(ctx context.Context, t Target, d transport.Dialer, opt Options) (ocs.Switch, error) {
	cfg := tl1switch.Config{
		Dialer: d, Device: opt.Name, User: t.User, Password: opt.Password, Timeout: opt.Timeout,
		MaxPairs: t.number("max-pairs"), Dialect: tl1switch.Dialect(t.options["dialect"]),
	}
	if opt.Trace != nil {
		cfg.Trace = func(d tl1switch.Direction, p []byte) { opt.Trace(d == tl1switch.Sent, p) }
	}
	return opened(tl1switch.Open(ctx, cfg))
}

func openSCPI(ctx context.Context, t Target, d transport.Dialer, opt Options) (ocs.Switch, error) {
	gap, _ := time.ParseDuration(t.options["gap"])
	return opened(scpiswitch.Open(ctx, scpiswitch.Config{
		Dialer: d, Device: opt.Name, Timeout: opt.Timeout, Gap: gap, MaxPairs: t.number("max-pairs"), Trace: opt.Trace,
	}))
}

func openNETCONF(ctx context.Context, _ Target, d transport.Dialer, opt Options) (ocs.Switch, error) {
	return opened(netconfswitch.Open(ctx, netconfswitch.Config{Dialer: d, Device: opt.Name, Timeout: opt.Timeout, Trace: opt.Trace}))
}

// openTransceivers opens the modules behind a board.
func openTransceivers(ctx context.Context, t Target, d transport.Dialer, opt Options) (ocs.Switch, error) {
	cfg := ocstrx.LinkConfig{Dialer: d, Device: opt.Name, Trace: frames(opt.Trace)}
	cfg.Timeout, cfg.Retries = linkTimes(opt.Timeout, t.number("baud"))
	bus, err := ocstrx.OpenLink(ctx, cfg)
	if err != nil {
		return nil, err
	}
	return openModules(ctx, t, bus, opt)
}

// linkTimes returns when a request to a board is to be sent again, and how often, if a reply
// may take patience, 0 the driver's default, at baud, 0 unknown. A request or reply that noise
// has spoilt must not cost all of the patience: modules that are armed wait for a second.
func linkTimes(patience time.Duration, baud int) (timeout time.Duration, retries int) {
	timeout, retries = ocstrx.DefaultReplyTimeout, ocstrx.DefaultRetries
	if patience > 0 {
		timeout = min(timeout, patience/(ocstrx.DefaultRetries+1))
	}
	if baud > 0 {
		// Twice what eight replies take: sooner, repeats would fill a slow line.
		timeout = max(timeout, 2*8*160*10*time.Second/time.Duration(baud))
	}
	return timeout, max(retries, int(patience/max(timeout, 1))-1)
}

func openI2C(ctx context.Context, t Target, _ transport.Dialer, opt Options) (ocs.Switch, error) {
	var addrs []uint16
	for a := range strings.SplitSeq(t.options["addr"], ",") {
		if n, err := strconv.ParseUint(a, 0, 7); err == nil {
			addrs = append(addrs, uint16(n))
		}
	}
	bus, err := ocstrx.OpenI2C(t.Path, addrs...)
	if err != nil {
		return nil, err
	}
	return openModules(ctx, t, bus, opt)
}

func openEEPROM(ctx context.Context, t Target, _ transport.Dialer, opt Options) (ocs.Switch, error) {
	paths := []string{t.Path}
	if also := t.options["also"]; also != "" {
		paths = append(paths, strings.Split(also, ",")...)
	}
	bus, err := ocstrx.OpenEEPROM(paths...)
	if err != nil {
		return nil, err
	}
	return openModules(ctx, t, bus, opt)
}

// openModules makes a switch of what is on a bus.
func openModules(ctx context.Context, t Target, bus ocstrx.Bus, opt Options) (ocs.Switch, error) {
	cfg := ocstrx.Config{Bus: bus, Device: opt.Name}
	if word := t.options["pre-emphasis"]; word != "" {
		on := word == "on"
		cfg.PreEmphasis = &on
	}
	cfg.Settle, _ = time.ParseDuration(t.options["settle-timeout"])
	return opened(ocstrx.Open(ctx, cfg))
}
