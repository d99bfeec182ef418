package mzi

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/ocslab/ocslab/wire/cmis"
	"github.com/ocslab/ocslab/wire/cmis/ocst"
)

// ErrRefused is a table that the module did not take; it uses the one before.
var ErrRefused = errors.New("the module refused the calibration table")

// ReadTable returns the table that a module uses, whatever its state is. An error matches
// [ocst.ErrTable] when what the module holds is no table, or a damaged one.
func ReadTable(ctx context.Context, mem cmis.Memory) (*ocst.Table, error) {
	pages, err := readPages(ctx, mem)
	if err != nil {
		return nil, fmt.Errorf("read table: %w", err)
	}
	t, err := ocst.ParsePages(pages)
	if err != nil {
		return nil, fmt.Errorf("read table: %w", err)
	}
	return t, nil
}

// readPages reads as many pages as the first one says that there are, or the first alone
// when that makes no sense; [ocst.ParsePages] says then what is wrong with it.
func readPages(ctx context.Context, mem cmis.Memory) ([][]byte, error) {
	count := 1
	var pages [][]byte
	for bank := 0; bank < count; bank++ {
		page := make([]byte, ocst.PageData+2)
		if err := mem.Read(ctx, tablePage(bank), page); err != nil {
			return nil, err
		}
		pages = append(pages, page)
		if n, err := ocst.TablePages(page); bank == 0 && err == nil {
			count = n
		}
	}
	return pages, nil
}

func tablePage(bank int) cmis.Address {
	return cmis.Address{Bank: uint8(bank), Page: ocst.PageTable, Offset: 128}
}

// LoadTable has a module take a table, keep it over restarts, and use it. The table must
// have passed verification, must not have expired and must be of that module: errors match
// [ocst.ErrTable] otherwise, and [ErrRefused] when the module does not want it. The module
// is in its calibration session meanwhile and dark afterwards. It takes the table as a whole
// or not at all: after an error it uses the one before, unless the error says that it is not
// known whether the command arrived.
func LoadTable(ctx context.Context, cfg Config, t *ocst.Table) (err error) {
	s, err := Begin(ctx, cfg)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.end(ctx)) }()
	if err := t.Usable(s.Serial(), time.Now()); err != nil {
		return fmt.Errorf("load table: %w", err)
	}
	return s.load(ctx, t)
}

// load writes a table to the module of a session, has it taken, and reads it back.
func (s *Session) load(ctx context.Context, t *ocst.Table) error {
	pages, err := t.Pages()
	if err != nil {
		return fmt.Errorf("load table: %w", err)
	}
	for bank, page := range pages {
		if err := s.write(ctx, tablePage(bank), page); err != nil {
			return fmt.Errorf("load table: page %d of %d: %w; the module uses its old table", bank+1, len(pages), err)
		}
	}
	reply, err := cmis.DoCDB(ctx, s.cfg.Memory, ocst.CDBLoadTable, []byte{byte(len(pages))}, s.poll)
	var refused *cmis.CDBError
	switch {
	case errors.As(err, &refused):
		return fmt.Errorf("load table: %w: %w%s", ErrRefused, err, faultOf(refused.Reply))
	case err != nil:
		return fmt.Errorf("load table: no answer to the command that takes the table, read it back to learn which one is in use: %w", err)
	case len(reply) > 0 && ocst.Fault(reply[0]) != ocst.NoFault:
		return fmt.Errorf("load table: %w%s", ErrRefused, faultOf(reply))
	}
	kept, err := readPages(ctx, s.cfg.Memory)
	if err != nil { // once more: it would be a pity about the table
		kept, err = readPages(ctx, s.cfg.Memory)
	}
	if err != nil {
		return fmt.Errorf("load table: the module has taken it, but it could not be read back: %w", err)
	}
	for i, page := range pages {
		if i >= len(kept) || !bytes.Equal(page, kept[i]) {
			return fmt.Errorf("load table: the module says that it has taken it, but holds another on page %d", i+1)
		}
	}
	return nil
}

// poll waits before the next look at how a command goes.
func (s *Session) poll(ctx context.Context) error { return s.Wait(ctx, pollInterval) }

// faultOf tells what a command's reply says beyond its status.
func faultOf(reply []byte) string {
	if len(reply) == 0 || ocst.Fault(reply[0]) == ocst.NoFault {
		return ""
	}
	return ": " + ocst.Fault(reply[0]).String()
}

// endTimeout is how long a session is given to darken the module when its own context has
// ended.
const endTimeout = 5 * time.Second

// end ends the session even when the context has ended.
func (s *Session) end(ctx context.Context) error {
	fresh, cancel := context.WithTimeout(context.WithoutCancel(ctx), endTimeout)
	defer cancel()
	return s.End(fresh)
}
