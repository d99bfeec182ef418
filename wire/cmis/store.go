package cmis

import (
	"errors"
	"fmt"
)

// ErrNoPage is a page, or a bank of it, that a module does not have.
var ErrNoPage = errors.New("the module has no such page")

// Store is the memory of an emulated module: pages and banks of 128 bytes, and what reading
// and writing does to them. Not safe for concurrent use.
//
// Flags are cleared by reading, whatever they stand for: a device writes those that still
// are so again, through Bytes.
type Store struct {
	lower stored
	upper [256][]*stored // by page and bank; nil where there is none
}

// stored is the lower memory or one upper page.
type stored struct {
	data   [half]byte
	access [half]rule
}

// rule is the access to a byte; unnamed is that of bytes in no register.
type rule uint8

const unnamed rule = 0

func ruleOf(a Access) rule { return rule(a) + 1 }

// NewStore returns the memory of a module with these registers, all bytes 0. Bytes in no
// register read 0 and cannot be written; pages without any register do not exist. Where two
// registers overlap, the later one counts. A register that does not lie within one page, or
// is of banks that cannot be, is a mistake of the program, and panics.
func NewStore(regs []Register) *Store {
	s := new(Store)
	for _, r := range regs {
		if err := r.Check(r.Length); err != nil || r.Bank != 0 || r.Banks > 256 || r.Offset < half && r.Banks > 1 || r.Access > ReadClear {
			panic(fmt.Sprintf("cmis: register %s at %v of %d bytes cannot be", r.Name, r.Address, r.Length))
		}
		for bank := range max(r.Banks, 1) {
			p := s.add(r, bank)
			for i := range r.Length {
				p.access[int(r.Offset)%half+i] = ruleOf(r.Access)
			}
		}
	}
	return s
}

// add returns the page of a register, which it makes if need be.
func (s *Store) add(r Register, bank int) *stored {
	if r.Offset < half {
		return &s.lower
	}
	banks := &s.upper[r.Page]
	for len(*banks) <= bank {
		*banks = append(*banks, nil)
	}
	if (*banks)[bank] == nil {
		(*banks)[bank] = new(stored)
	}
	return (*banks)[bank]
}

// Has reports whether there is an upper page, in that bank.
func (s *Store) Has(bank, page uint8) bool { return s.page(bank, page) != nil }

func (s *Store) page(bank, page uint8) *stored {
	if banks := s.upper[page]; int(bank) < len(banks) {
		return banks[bank]
	}
	return nil
}

// find returns the page that n bytes at a are on, and where on it they begin.
func (s *Store) find(a Address, n int) (*stored, int, error) {
	if err := a.Check(n); err != nil {
		return nil, 0, err
	}
	if a.Offset < half {
		return &s.lower, int(a.Offset), nil
	}
	p := s.page(a.Bank, a.Page)
	if p == nil {
		return nil, 0, fmt.Errorf("module memory %v: %w", a, ErrNoPage)
	}
	return p, int(a.Offset) - half, nil
}

// Read fills buf as the host reads: it clears ReadClear bytes that it returns, and WriteOnly
// bytes read 0. A page that is not there matches [ErrNoPage]: CMIS modules fall back to page
// 0, and this one says so instead. On an error nothing was cleared.
func (s *Store) Read(a Address, buf []byte) error {
	p, at, err := s.find(a, len(buf))
	if err != nil {
		return err
	}
	for i := range buf {
		switch p.access[at+i] {
		case unnamed, ruleOf(WriteOnly):
			buf[i] = 0
		case ruleOf(ReadClear):
			buf[i], p.data[at+i] = p.data[at+i], 0
		default:
			buf[i] = p.data[at+i]
		}
	}
	return nil
}

// Write writes as the host does: only ReadWrite and WriteOnly bytes change, the rest is
// ignored without error. A page that is not there matches [ErrNoPage].
func (s *Store) Write(a Address, data []byte) error {
	p, at, err := s.find(a, len(data))
	if err != nil {
		return err
	}
	for i, b := range data {
		switch p.access[at+i] {
		case ruleOf(ReadWrite), ruleOf(WriteOnly):
			p.data[at+i] = b
		}
	}
	return nil
}

// Bytes returns the live bytes at a for the device itself: what it writes to them the host
// reads, and no access rule holds. It returns nil if they are not there.
func (s *Store) Bytes(a Address, n int) []byte {
	p, at, err := s.find(a, n)
	if err != nil {
		return nil
	}
	return p.data[at : at+n : at+n]
}
