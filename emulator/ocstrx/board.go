package ocstrx

import (
	"context"
	"fmt"
	"io"
	"sync"

	"github.com/ocslab/ocslab/emulator"
)

// Board is a controller board with modules in its slots. It speaks the controller link, see
// package wire/trxlink. All methods are safe for concurrent use.
type Board struct {
	name, serial string
	seed         uint64
	clock        Clock
	ambient      float64 // °C
	personality  Personality
	modules      []*Module // set once

	mu    sync.Mutex // guards what follows; a module's is taken after it
	noise *noise     // nil: none
	plate plate
	holds bool // the plate is on

	power    sync.Mutex // guards what follows; held while power comes and goes, before all others
	off      bool
	sessions map[*boardSession]struct{}
}

// boardFirmware is what the board says of itself.
const boardFirmware = "1.0"

var _ emulator.FrontEnd = (*Board)(nil)

// NewBoard returns a board of that model with all its modules, which have just been given
// power. Module i has a seed and a serial number of its own, derived from those of opt. The
// error names what is wrong with p or opt.
func NewBoard(p Personality, opt Options) (*Board, error) {
	switch {
	case p.Modules < 1 || p.Modules > MaxModules:
		return nil, fmt.Errorf("board %s: %d modules, want 1 to %d", p.Model, p.Modules, MaxModules)
	case opt.Table != "" && opt.Table != TableFactory && opt.Table != TableNone && opt.Table != TableDamaged:
		return nil, fmt.Errorf("board %s: table %q, want %s, %s or %s", p.Model, opt.Table, TableFactory, TableNone, TableDamaged)
	case len(opt.Serial) > maxBoardSerial || !printable(opt.Serial):
		return nil, fmt.Errorf("board %s: serial number %q, want at most %d letters and digits", p.Model, opt.Serial, maxBoardSerial)
	}
	if err := p.Params.check(); err != nil {
		return nil, fmt.Errorf("board %s: %w", p.Model, err)
	}
	opt = opt.filled(p.Model)
	b := &Board{name: opt.Name, serial: opt.Serial, seed: opt.Seed, clock: opt.Clock, ambient: *opt.Ambient, personality: p}
	b.plate = plate{at: opt.Clock.Now(), from: *opt.Ambient, to: *opt.Ambient}
	for i := range p.Modules {
		o := opt
		o.Name = fmt.Sprintf("%s module %d", opt.Name, i+1)
		o.Serial = fmt.Sprintf("%s-%02d", opt.Serial, i+1)
		o.Seed = opt.Seed + uint64(i)*0x9e3779b97f4a7c15
		b.modules = append(b.modules, NewModule(p.Params, o))
	}
	return b, nil
}

// maxBoardSerial leaves room for the number of a module.
const maxBoardSerial = 13

func printable(s string) bool {
	for _, c := range []byte(s) {
		if c <= ' ' || c > '~' {
			return false
		}
	}
	return true
}

// Modules returns the modules, by slot. The slice is the caller's own.
func (b *Board) Modules() []*Module { return append([]*Module(nil), b.modules...) }

// Name returns what the board is called in messages, Model what kind it is.
func (b *Board) Name() string  { return b.name }
func (b *Board) Model() string { return b.personality.Model }

// ServeSession implements [emulator.FrontEnd]: it speaks the controller link on conn until
// conn breaks or ctx ends, and closes it.
func (b *Board) ServeSession(ctx context.Context, conn io.ReadWriteCloser, _ emulator.SessionInfo) {
	newBoardSession(b, conn).serve(ctx)
}
