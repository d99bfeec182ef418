package lab

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ocslab/ocslab/drivers"
	"github.com/ocslab/ocslab/drivers/drift"
	"github.com/ocslab/ocslab/internal/secret"
	"github.com/ocslab/ocslab/internal/statedir"
	"github.com/ocslab/ocslab/ocs"
)

// Options are how the switches of a lab are opened.
type Options struct {
	// Emulated replaces every switch by an emulated one on a loopback socket.
	Emulated bool
	// StateDir is where emulated switches keep their configuration, as real
	// ones do; "" forgets it with the program.
	StateDir string
	// Offer lets other processes reach the emulated switches of this one, while it has
	// them: it is for a process that keeps them for long.
	Offer bool
	// Join reaches an emulated switch that another process has and offers, in place of
	// waiting for it. [Opened.Emulated] is nil then.
	Join bool
	// Password is used where the lab file gives none.
	Password secret.Secret
	Timeout  time.Duration // for one reply; 0 is the driver's default
	// Authority is what the gate of the lab asks; nil is that of StateDir.
	Authority Authority
	Command   string // the command line, for the history
	Verify    Verify // of changes that do not say how; "" is VerifyLight
	// Trace, when set, is called with what is sent to and received from a
	// switch, secrets masked. It must not keep p. The name is that of the switch for
	// the session of [Lab.Switch]; those of [Lab.Session] have a number behind it, in the
	// order in which they were opened: "rail0#2", "rail0#3".
	Trace func(name string, sent bool, p []byte)
}

// Forgetful returns options for emulated switches that start without memory and forget with the program. The authority
// stays that of the state directory, so their changes are recorded there.
func (o Options) Forgetful() Options {
	if o.Authority == nil {
		o.Authority = Files(o.StateDir)
	}
	return Options{Emulated: true, Timeout: o.Timeout, Authority: o.Authority, Command: o.Command, Verify: o.Verify, Trace: o.Trace}
}

// Lab is a lab file with its switches, opened when they are first asked for.
// It is safe for concurrent use.
type Lab struct {
	File *File
	opt  Options

	cabling *Cabling // of emulated boards
	gate    *Gate

	mu       sync.Mutex        // guards what follows
	switches map[string]*place // by name, and those of URLs by URL
}

// place is where a switch of a lab is, once it is open.
type place struct {
	mu     sync.Mutex // guards opened, and is held while it is being opened
	opened *Opened

	more atomic.Int32 // sessions that were begun beside that of opened
}

// Opened is a switch of a lab that is open.
type Opened struct {
	ocs.Switch // with the guard of the gate around it

	Name string
	// Device is what stays the same however the switch is spoken of:
	// "tl1://192.0.2.10:3082", "emulated:opus-testbed-5f3a91d0/rail0".
	Device string
	// Emulated is the emulation behind it; nil for a real switch, and for one that
	// another process emulates.
	Emulated *Emulated
	gate     *Gate
	at       *site
	url      string                                    // by which it was opened, of one that is no switch of the lab: the history has that
	again    func(context.Context) (ocs.Switch, error) // opens one more session
	joined   *BusyError                                // who emulates it, if that is another process
	memory   *fileMemory
	unlock   func() // the memory of the emulation; nil if it has none
}

// Unwrap returns the switch inside.
func (o *Opened) Unwrap() ocs.Switch { return o.Switch }

// Close ends the session and, of an emulated switch, the emulation.
func (o *Opened) Close() error {
	var err error
	if o.Switch != nil { // it is while it is being opened
		err = o.Switch.Close()
	}
	if o.memory != nil {
		o.memory.withdraw()
	}
	if o.Emulated != nil {
		err = errors.Join(err, o.Emulated.Close())
	}
	if o.unlock != nil {
		o.unlock()
	}
	return err
}

// New returns a lab with nothing opened yet. Without a file it has no switches but those of URLs; see [Lab.Open].
func New(f *File, opt Options) *Lab {
	l := &Lab{File: f, opt: opt, switches: map[string]*place{}}
	if f != nil {
		l.cabling = f.Cabling()
	}
	l.gate = newGate(l, opt)
	return l
}

// Emulated reports whether the switches of the lab are emulated.
func (l *Lab) Emulated() bool { return l.opt.Emulated }

// Switch returns the switch of that name, opening it if it is not open. The
// lab keeps it: do not close it. One that does not answer holds up nobody who
// wants another.
func (l *Lab) Switch(ctx context.Context, name string) (*Opened, error) {
	if l.File == nil {
		return nil, fmt.Errorf("the switch %.60q %w: there is no lab file", name, ErrUnknown)
	}
	s, ok := l.File.Switch(name)
	if !ok {
		return nil, l.File.unknownSwitch(name)
	}
	return l.once(name, func() (*Opened, error) { return l.open(ctx, s) })
}

// once opens what is to be kept under a key, if it is not open.
func (l *Lab) once(key string, open func() (*Opened, error)) (*Opened, error) {
	at := l.place(key)
	at.mu.Lock()
	defer at.mu.Unlock()
	if at.opened == nil {
		o, err := open()
		if err != nil {
			return nil, err
		}
		at.opened = o
	}
	return at.opened, nil
}

// Open returns a switch by its name in the lab or by its URL, opening it if it is not open. A URL that leads to a
// switch of the lab, or is among what the lab file lists for it as also, is that switch: it has its name, its
// protection, leases, panics, history and turn, whichever protocol it is spoken to in. The lab keeps it.
func (l *Lab) Open(ctx context.Context, nameOrURL string) (*Opened, error) {
	if !drivers.IsURL(nameOrURL) {
		return l.Switch(ctx, nameOrURL)
	}
	t, err := drivers.Parse(nameOrURL)
	if err != nil {
		return nil, err
	}
	return l.once(nameOrURL, func() (*Opened, error) {
		o := &Opened{Name: t.String(), Device: t.String(), gate: l.gate}
		opt, s := l.driverOptions(t.Host+t.Path), l.SwitchAt(ctx, nameOrURL)
		if s != nil {
			if o.Name = s.Name; l.opt.Emulated {
				o.Device = l.emulatedDevice(s.Name)
			} else if lab, err := drivers.Parse(s.URL); err == nil {
				o.Device = lab.String()
			}
			if opt.Password, err = l.passwordOf(s); err != nil {
				return nil, err
			}
		}
		if s == nil {
			o.url = nameOrURL
		}
		opt.Name = o.Name
		if opt.Password.IsZero() && t.Loopback() {
			opt.Password = secret.New(EmulatedPassword)
		}
		o.again = func(ctx context.Context) (ocs.Switch, error) { return drivers.Open(ctx, nameOrURL, opt) }
		sw, err := drivers.Open(ctx, nameOrURL, opt)
		if err != nil {
			return nil, err
		}
		l.enclose(ctx, o, sw)
		return o, nil
	})
}

// SwitchAt returns the switch of the lab that a URL leads to, nil if it leads to none.
func (l *Lab) SwitchAt(ctx context.Context, url string) *Switch {
	if l.File == nil {
		return nil
	}
	for i := range l.File.Switches {
		s := &l.File.Switches[i]
		urls := append([]string{s.URL}, s.Also...)
		if l.opt.Emulated {
			urls = []string{l.memory(s.Name).offered().URL}
		}
		for _, of := range urls {
			if of != "" && drivers.SameAddress(ctx, of, url) {
				return s
			}
		}
	}
	return nil
}

// identifyTimeout is how long a switch may take to say what its lock is known by, before that is its address.
const identifyTimeout = 2 * time.Second

// enclose puts around a session what a switch of the lab has around it.
func (l *Lab) enclose(ctx context.Context, o *Opened, sw ocs.Switch) {
	identity := drivers.AddressOf(ctx, o.Device)
	ctx, cancel := context.WithTimeout(ctx, identifyTimeout)
	defer cancel()
	if id, err := sw.Identify(ctx); err == nil && id.Serial != "" && !l.opt.Emulated {
		identity = id.Vendor + " " + id.Serial
	}
	o.at = l.siteOf(o.Name, o.Device, identity)
	o.Switch = l.gate.guarded(o.at, drift.Watch(sw, 0))
}

// place returns where the switch of that name is.
func (l *Lab) place(name string) *place {
	l.mu.Lock()
	defer l.mu.Unlock()
	at := l.switches[name]
	if at == nil {
		at = &place{}
		l.switches[name] = at
	}
	return at
}

// open opens a switch and, where it is emulated, begins to emulate it.
func (l *Lab) open(ctx context.Context, s *Switch) (_ *Opened, err error) {
	name := s.Name
	o := &Opened{Name: name}
	defer func() {
		if err != nil {
			err = errors.Join(err, o.Close())
		}
	}()
	if l.opt.Emulated {
		if err := l.emulate(ctx, o); err != nil {
			return nil, err
		}
	}
	sw, device, err := l.session(ctx, s, o, name)
	if err != nil {
		return nil, err
	}
	o.Device, o.gate = device, l.gate
	o.again = func(ctx context.Context) (ocs.Switch, error) { return l.Session(ctx, name) }
	l.enclose(ctx, o, sw)
	return o, nil
}

// Session opens one more session with a switch, by name or URL: for reading while the first is busy, since a switch that
// acknowledges late answers nothing else until then, or for several changes at once by who has the lease. The guard of
// the gate is around it; what passes is not recorded. The caller closes it.
func (l *Lab) Session(ctx context.Context, name string) (ocs.Switch, error) {
	o, err := l.Open(ctx, name)
	if err != nil {
		return nil, err
	}
	if drivers.IsURL(name) {
		sw, err := o.again(ctx)
		if err != nil {
			return nil, err
		}
		return l.gate.guarded(o.at, sw), nil
	}
	s, _ := l.File.Switch(name)
	sw, _, err := l.session(ctx, s, o, fmt.Sprintf("%s#%d", name, 1+l.place(name).more.Add(1)))
	if err != nil {
		return nil, err
	}
	return l.gate.guarded(o.at, sw), nil
}

// driverOptions returns how to open a session that is traced under a name.
func (l *Lab) driverOptions(traced string) drivers.Options {
	opt := drivers.Options{Password: l.opt.Password, Timeout: l.opt.Timeout}
	if l.File != nil {
		opt.Dir = filepath.Dir(l.File.Path)
	}
	if trace := l.opt.Trace; trace != nil {
		opt.Trace = func(sent bool, p []byte) { trace(traced, sent, p) }
	}
	return opt
}

// passwordOf returns the password of a switch of the lab.
func (l *Lab) passwordOf(s *Switch) (secret.Secret, error) {
	if s.Password == "" {
		return l.opt.Password, nil
	}
	p, err := s.Password.Resolve(filepath.Dir(l.File.Path))
	if err != nil {
		return p, fmt.Errorf("password of switch %s: %w", s.Name, err)
	}
	return p, nil
}

// emulatedDevice is what [Opened.Device] of an emulated switch is.
func (l *Lab) emulatedDevice(name string) string { return "emulated:" + l.File.key() + "/" + name }

// session opens a session with the switch or, if it has one, its emulation, and
// returns what [Opened.Device] is to be. It is traced under a name.
func (l *Lab) session(ctx context.Context, s *Switch, o *Opened, traced string) (_ ocs.Switch, device string, _ error) {
	url, opt := s.URL, l.driverOptions(traced)
	opt.Name = s.Name
	if l.opt.Emulated {
		if o.joined != nil {
			url = o.joined.URL
		} else {
			url = o.Emulated.URL()
		}
		device, opt.Password = l.emulatedDevice(s.Name), secret.New(EmulatedPassword)
		sw, err := drivers.Open(ctx, url, opt)
		return sw, device, err
	}
	if url == "" {
		return nil, "", fmt.Errorf("switch %s has no url in the lab file: add one, or use --emulated", s.Name)
	}
	t, err := drivers.Parse(url)
	if err != nil {
		return nil, "", err
	}
	if opt.Password, err = l.passwordOf(s); err != nil {
		return nil, "", err
	}
	if opt.Password.IsZero() && t.Loopback() {
		opt.Password = secret.New(EmulatedPassword)
	}
	sw, err := drivers.Open(ctx, url, opt)
	return sw, t.String(), err
}

// EmulatedPassword is the password of the user admin of emulated switches.
const EmulatedPassword = "root"

// emulate starts the emulation of a switch, with its memory, or joins that of another
// process.
func (l *Lab) emulate(ctx context.Context, o *Opened) error {
	e, err := l.File.Emulation(o.Name)
	if err != nil {
		return err
	}
	if l.opt.StateDir != "" {
		m, unlock, err := l.takeMemory(ctx, o.Name)
		if errors.As(err, &o.joined) && l.opt.Join && o.joined.URL != "" {
			return nil
		}
		if err != nil {
			return err
		}
		e.Memory, o.unlock = m, unlock
		if l.opt.Offer {
			o.memory = m
		}
	}
	e.Cabling = l.cabling
	if o.Emulated, err = e.Start(); err == nil && o.memory != nil {
		o.memory.offer(o.Emulated.URL())
	}
	return err
}

// title is the name of the lab, or of its file when it has none.
func (f *File) title() string {
	if f.Name != "" {
		return f.Name
	}
	base := filepath.Base(f.Path)
	return base[:len(base)-len(filepath.Ext(base))]
}

// key tells apart labs of the same name by the path of their file. A lab that
// is no file has its name only.
func (f *File) key() string {
	if f.Path == "" {
		return f.title()
	}
	path := f.Path
	if abs, err := filepath.Abs(path); err == nil {
		path = abs
	}
	sum := sha256.Sum256([]byte(path))
	return f.title() + "-" + hex.EncodeToString(sum[:4])
}

// Close ends every session and emulation.
func (l *Lab) Close() error {
	l.mu.Lock()
	open := l.switches
	l.switches = map[string]*place{}
	l.mu.Unlock()
	var errs []error
	for _, at := range open {
		at.mu.Lock() // until it is open, if it is about to be
		if at.opened != nil {
			errs = append(errs, at.opened.Close())
			at.opened = nil
		}
		at.mu.Unlock()
	}
	return errors.Join(errs...)
}

// fileMemory is the memory of an emulated switch in a file.
type fileMemory struct{ path string }

// Load returns the content of the file, nil if there is none.
func (m *fileMemory) Load() ([]byte, error) {
	data, err := os.ReadFile(m.path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return data, err
}

// Save replaces the file.
func (m *fileMemory) Save(data []byte) {
	if err := statedir.WriteFile(m.path, data); err != nil {
		slog.Warn("the emulated switch will not remember this change", "file", m.path, "error", err)
	}
}
