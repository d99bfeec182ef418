package mzi

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/ocslab/ocslab/internal/pause"
	"github.com/ocslab/ocslab/ocs"
	"github.com/ocslab/ocslab/wire/cmis"
	"github.com/ocslab/ocslab/wire/cmis/ocst"
)

// ErrLost is a module that has left its session by itself: it was restarted, or somebody else
// has ended the session. It matches [ocs.ErrDenied].
var ErrLost = fmt.Errorf("%w: the module has left the calibration", ocs.ErrDenied)

// Config of a session.
type Config struct {
	Memory cmis.Memory
	// Sleep waits until d has passed or ctx has ended, and returns the error of ctx then.
	// Nil waits in real time; a virtual clock is put forward here.
	Sleep    func(ctx context.Context, d time.Duration) error
	Password uint32 // of the host; 0 is [ocst.HostPassword]
	// AllowDark says that a module may be darkened which carries light.
	AllowDark bool
	Progress  func(Progress) // called by the goroutine that calibrates; may be nil
}

// Progress is how far a calibration is.
type Progress struct {
	Step        string // "dark", "sweep", "network", "coupling", ...
	Done, Total int
	Detail      string    // a few words: the element, what is wrong
	Fit         *SweepFit // when one is ready
}

// ErrInUse is a module that carries light and must not be darkened.
var ErrInUse = errors.New("module carries light")

// ErrSession is a module in a calibration session of somebody else, or one that its host has
// left just now. It matches [ocs.ErrDenied].
var ErrSession = fmt.Errorf("%w: another calibration is under way", ocs.ErrDenied)

// Powers are optical powers in µW, by photodiode array and lane.
type Powers [ocst.Photodiodes][ocst.Lanes]float64

// Session is the heaters and photodiodes of one module, in State Cal. It is not safe for
// concurrent use.
type Session struct {
	cfg    Config
	serial string
	open   bool
	lit    uint8
	codes  [2][ocst.Elements]uint16 // of arms A and B, as the module has them
	dark   Powers                   // what the photodiodes give in the dark
	floor  Powers                   // standard deviation of one reading in the dark
	known  *receivers               // how they compare, once that was measured
	idle   time.Duration            // since the module was last touched on the pages that keep the session
	reads  int
	writes int
}

const (
	countPower = 0.1 // µW, unit of the power registers
	// keepAlive is how long the session waits without touching the module: the module
	// gives up after [ocst.CalTimeout].
	keepAlive = ocst.CalTimeout / 3
	// enterTimeout is how long a module may take to come into State Cal.
	enterTimeout = 2 * time.Second
	pollInterval = time.Millisecond
)

// Begin brings a module into State Cal: heaters off, laser on, every lane dark. A module
// that carries light on any lane is refused, with an error that matches ErrInUse, unless
// cfg.AllowDark is set. The session must be ended with End.
func Begin(ctx context.Context, cfg Config) (*Session, error) {
	if cfg.Memory == nil {
		return nil, errors.New("calibration session: no module is given")
	}
	if cfg.Sleep == nil {
		cfg.Sleep = pause.For
	}
	if cfg.Password == 0 {
		cfg.Password = ocst.HostPassword
	}
	s := &Session{cfg: cfg}
	if err := s.identify(ctx); err != nil {
		return nil, err
	}
	s.writes++
	if err := cmis.EnterPassword(ctx, cfg.Memory, cfg.Password); err != nil {
		return nil, fmt.Errorf("password of module %s: %w", s.serial, err)
	}
	s.open = true // from here on the module may be in State Cal
	if err := s.enter(ctx); errors.Is(err, ErrSession) {
		return nil, err // to end the session that is open is not for us
	} else if err != nil {
		// ctx may be what failed, and the module must not stay as it is.
		_ = s.End(context.WithoutCancel(ctx))
		return nil, err
	}
	return s, nil
}

// identify checks that this is a module that can be calibrated, and may be.
func (s *Session) identify(ctx context.Context) error {
	head := make([]byte, ocst.RegCaps+1-ocst.RegMagic)
	if err := s.read(ctx, ocst.At(ocst.RegMagic), head); err != nil {
		return fmt.Errorf("vendor page of the module: %w", err)
	}
	switch caps := ocst.Capabilities(head[5]); {
	case string(head[:4]) != ocst.Magic:
		return fmt.Errorf("calibration session: the module has %q at %v where an OCSTrx has %q", head[:4], ocst.At(ocst.RegMagic), ocst.Magic)
	case head[4] != ocst.MapVersion:
		return fmt.Errorf("calibration session: the module has version %d of the vendor map, and only %d is known", head[4], ocst.MapVersion)
	case caps&ocst.CanHeaters == 0:
		return errors.New("calibration session: the module gives no access to its heaters")
	case caps&ocst.LoopOnly != 0:
		return errors.New("calibration session: modules without fibres cannot be calibrated yet")
	}
	serial := make([]byte, 16)
	if err := s.read(ctx, cmis.Address{Offset: 166}, serial); err != nil {
		return fmt.Errorf("serial number of the module: %w", err)
	}
	s.serial = strings.TrimSpace(string(serial))
	span := make([]byte, ocst.LanesSpan.Length)
	if err := s.read(ctx, ocst.LanesSpan.Address, span); err != nil {
		return fmt.Errorf("lanes of module %s: %w", s.serial, err)
	}
	lanes, err := ocst.DecodeLanes(span)
	if err != nil {
		return err
	}
	if lanes.State == ocst.StateFault {
		return fmt.Errorf("calibration session: module %s is in state fault (%v), reset it first", s.serial, lanes.Fault)
	}
	for lane, path := range lanes.Path {
		if path != ocst.Dark && !s.cfg.AllowDark {
			return fmt.Errorf("calibration session: %w: lane %d of module %s is on %v, and calibration would darken it", ErrInUse, lane+1, s.serial, path)
		}
	}
	return nil
}

func (s *Session) enter(ctx context.Context) error {
	err := s.calibrate(ctx, 1)
	var refused *cmis.CDBError
	if errors.As(err, &refused) && len(refused.Reply) == 1 && ocst.Fault(refused.Reply[0]) == ocst.FaultBusy {
		return fmt.Errorf("state cal of module %s: %w; if nobody is at work, the module leaves the session within %v", s.serial, ErrSession, ocst.CalTimeout)
	}
	if err != nil {
		return fmt.Errorf("state cal of module %s: %w", s.serial, err)
	}
	for waited := time.Duration(0); ; waited += pollInterval {
		state, err := s.State(ctx)
		switch {
		case err != nil:
			return err
		case state == ocst.StateCal:
			return s.Light(ctx, 0)
		case waited >= enterTimeout:
			return fmt.Errorf("state cal of module %s: it is in state %v %v after the command", s.serial, state, enterTimeout)
		}
		if err := s.Wait(ctx, pollInterval); err != nil {
			return err
		}
	}
}

// calibrate enters (1) or leaves (0) State Cal.
func (s *Session) calibrate(ctx context.Context, on byte) error {
	_, err := cmis.DoCDB(ctx, s.cfg.Memory, ocst.CDBCalibrate, []byte{on}, func(ctx context.Context) error {
		return s.cfg.Sleep(ctx, pollInterval)
	})
	return err
}

// End makes the module dark and leaves State Cal; the module goes back to the table that it
// has. It may be called more than once, and after errors. A session whose context has ended
// wants a fresh one here.
func (s *Session) End(ctx context.Context) error {
	if !s.open {
		return nil
	}
	dark := s.write(ctx, heaters(0, ocst.RegLit), []byte{0})
	err := s.calibrate(ctx, 0)
	if err != nil {
		// A module that gave the session up by itself refuses the command.
		if state, e := s.State(ctx); e == nil && state != ocst.StateCal {
			err = nil
		}
	}
	if err == nil {
		s.open, s.lit = false, 0
		s.codes = [2][ocst.Elements]uint16{}
		return nil
	}
	return fmt.Errorf("end of the calibration session with module %s: %w", s.serial, errors.Join(dark, err))
}

// lost reports whether the module has left the session without being told to, other than by a
// fault. Heaters read 0 then and draw no current, which looks as if they were all open.
func (s *Session) lost(ctx context.Context) bool {
	state, err := s.State(ctx)
	if err != nil || state == ocst.StateFault {
		return false
	}
	var laser [1]byte
	if err := s.read(ctx, heaters(0, ocst.RegLaser), laser[:]); err != nil {
		return false
	}
	return state != ocst.StateCal || laser[0] == 0
}

// Serial is the serial number of the module.
func (s *Session) Serial() string { return s.serial }

// Transactions returns how many reads and writes of the module were made, without those of
// commands.
func (s *Session) Transactions() (reads, writes int) { return s.reads, s.writes }

// State reads the state of the module.
func (s *Session) State(ctx context.Context) (ocst.State, error) {
	var b [1]byte
	if err := s.read(ctx, ocst.At(ocst.RegState), b[:]); err != nil {
		return 0, fmt.Errorf("state of module %s: %w", s.serial, err)
	}
	return ocst.State(b[0]), nil
}

// Wait lets time pass. The module does not give up the session meanwhile.
func (s *Session) Wait(ctx context.Context, d time.Duration) error {
	for d > 0 {
		if s.idle >= keepAlive {
			var b [1]byte
			if err := s.read(ctx, heaters(0, ocst.RegLit), b[:]); err != nil {
				return err
			}
		}
		part := min(d, keepAlive)
		if err := s.cfg.Sleep(ctx, part); err != nil {
			return err
		}
		s.idle += part
		d -= part
	}
	return nil
}

// Temperature reads the temperature of the case, °C.
func (s *Session) Temperature(ctx context.Context) (float64, error) {
	b := make([]byte, cmis.TemperatureSpan.Length)
	if err := s.read(ctx, cmis.TemperatureSpan.Address, b); err != nil {
		return 0, fmt.Errorf("temperature of module %s: %w", s.serial, err)
	}
	return cmis.DecodeTemperature(b)
}

// current reads the current through an arm of an element, µA.
func (s *Session) current(ctx context.Context, e ocst.Element, arm int) (float64, error) {
	var b [2]byte
	at := cmis.Address{Page: ocst.PageCurrents, Bank: uint8(arm), Offset: uint8(ocst.RegCodes + 2*int(e))}
	if err := s.read(ctx, at, b[:]); err != nil {
		return 0, fmt.Errorf("heater current of %v: %w", e, err)
	}
	return float64(binary.BigEndian.Uint16(b[:])), nil
}

// Light lets the light of the lanes given through, bit 0 is lane 1, and blanks all others.
// The laser stays on, or comes on.
func (s *Session) Light(ctx context.Context, lanes uint8) error {
	if err := s.write(ctx, heaters(0, ocst.RegLit), []byte{lanes, 1}); err != nil {
		return fmt.Errorf("modulators of module %s: %w", s.serial, err)
	}
	s.lit = lanes
	return nil
}

// Powers reads all photodiodes n times and returns the mean, less what they give in the
// dark once DarkReadings has found that out.
func (s *Session) Powers(ctx context.Context, n int) (Powers, error) {
	raw, err := s.readings(ctx, n, allArrays)
	for i := range raw {
		for lane := range raw[i] {
			raw[i][lane] -= s.dark[i][lane]
		}
	}
	return raw, err
}

// DarkReadings blanks all lanes and finds out what the photodiodes give in the dark, in
// counts of 0.1 µW. It is taken off what Powers returns from then on.
func (s *Session) DarkReadings(ctx context.Context) (dark [ocst.Photodiodes][ocst.Lanes]uint16, err error) {
	if err := s.Light(ctx, 0); err != nil {
		return dark, err
	}
	if err := s.Wait(ctx, pollInterval); err != nil {
		return dark, err
	}
	const n = 32
	var sum, squares Powers
	for range n {
		p, err := s.readings(ctx, 1, allArrays)
		if err != nil {
			return dark, err
		}
		for i := range p {
			for lane, y := range p[i] {
				sum[i][lane] += y
				squares[i][lane] += y * y
			}
		}
	}
	for i := range sum {
		for lane := range sum[i] {
			mean := sum[i][lane] / n
			s.dark[i][lane] = mean
			s.floor[i][lane] = math.Sqrt(max(squares[i][lane]/n-mean*mean, 0) * n / (n - 1))
			dark[i][lane] = uint16(min(max(math.Round(mean/countPower), 0), math.MaxUint16))
		}
	}
	return dark, nil
}

// Which photodiodes are to be read.
type arrays uint8

const (
	allArrays arrays = iota
	loopOnly         // received from the loop, and launched: in one transaction
)

// batch is how many reads are asked for at once, where the way to the module allows that.
const batch = 64

// readings reads photodiodes n times and returns the mean in µW, as it is.
func (s *Session) readings(ctx context.Context, n int, which arrays) (Powers, error) {
	spans := [...]struct {
		at            cmis.Address
		array, arrays int
	}{
		{ocst.At(ocst.RegOut1), ocst.PDOut1, 1},
		{cmis.Address{Page: ocst.PageMonitors, Offset: ocst.RegOut2}, ocst.PDOut2, ocst.Photodiodes - 1},
		{cmis.Address{Page: ocst.PageMonitors, Offset: ocst.RegRxLoop}, ocst.PDRxLoop, 2},
	}
	wanted := spans[:2]
	if which == loopOnly {
		wanted = spans[2:]
	}
	const size = 2 * ocst.Lanes // bytes of an array
	n = max(n, 1)
	var p Powers
	var buf [batch][128]byte
	var reads [batch]cmis.ReadRequest
	for left := n * len(wanted); left > 0; {
		list := reads[:min(left, batch)] // batch is even, so that a reading is not torn
		for i := range list {
			span := wanted[i%len(wanted)]
			list[i] = cmis.ReadRequest{At: span.at, Data: buf[i][:size*span.arrays]}
		}
		if err := s.readEach(ctx, list); err != nil {
			return p, fmt.Errorf("powers of module %s: %w", s.serial, err)
		}
		for i, r := range list {
			for k := range wanted[i%len(wanted)].arrays {
				for lane := range ocst.Lanes {
					p[wanted[i%len(wanted)].array+k][lane] += float64(binary.BigEndian.Uint16(r.Data[size*k+2*lane:])) * countPower / float64(n)
				}
			}
		}
		left -= len(list)
	}
	return p, nil
}

// readEach reads, all at once where the way to the module allows that.
func (s *Session) readEach(ctx context.Context, list []cmis.ReadRequest) error {
	together, ok := s.cfg.Memory.(cmis.BatchReader)
	if !ok {
		for _, r := range list {
			if err := s.read(ctx, r.At, r.Data); err != nil {
				return err
			}
		}
		return nil
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	for _, r := range list {
		s.reads++
		s.touch(r.At)
	}
	return together.ReadEach(ctx, list)
}

func (s *Session) read(ctx context.Context, a cmis.Address, buf []byte) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	s.reads++
	s.touch(a)
	return s.cfg.Memory.Read(ctx, a, buf)
}

func (s *Session) write(ctx context.Context, a cmis.Address, data []byte) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	s.writes++
	s.touch(a)
	return s.cfg.Memory.Write(ctx, a, data)
}

func (s *Session) touch(a cmis.Address) {
	if a.Page >= ocst.PageHeaters && a.Page <= ocst.PageTable && a.Offset >= 128 {
		s.idle = 0
	}
}

func heaters(arm int, reg uint8) cmis.Address {
	return cmis.Address{Page: ocst.PageHeaters, Bank: uint8(arm), Offset: reg}
}

func checkElement(e ocst.Element) error {
	if e < 0 || e >= ocst.Elements {
		return fmt.Errorf("calibration session: %v", e)
	}
	return nil
}
