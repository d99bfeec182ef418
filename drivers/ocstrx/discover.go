package ocstrx

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/ocslab/ocslab/ocs"
	"github.com/ocslab/ocslab/wire/cmis"
	"github.com/ocslab/ocslab/wire/cmis/ocst"
	"github.com/ocslab/ocslab/wire/trxlink"
)

// plugged is what is in a slot.
type plugged struct {
	there                          bool
	vendor, part, serial, firmware string
}

// discover reads what each slot holds, and makes the identity of it.
func (sw *Switch) discover(ctx context.Context) error {
	sw.in = make([]plugged, sw.cfg.Bus.Slots())
	if len(sw.in) == 0 {
		return sw.fail(opConnect, errors.New("there is no slot for a module"))
	}
	for slot := range sw.in {
		p, err := sw.identify(ctx, slot)
		if err != nil && !errors.Is(err, cmis.ErrNoModule) {
			return err
		}
		sw.in[slot] = p
	}
	if len(sw.present()) == 0 {
		return sw.fail(opConnect, fmt.Errorf("there is no module in any of %d slots: %w", len(sw.in), cmis.ErrNoModule))
	}
	sw.id = sw.identity()
	return nil
}

// Where a module says what it is (OIF-CMIS-05.2, lower memory and page 00h).
var (
	spanIdentifier = cmis.Span{Address: cmis.Address{Offset: cmis.RegIdentifier}, Length: 1}
	spanFirmware   = cmis.Span{Address: cmis.Address{Offset: cmis.RegFirmware}, Length: 2}
	spanVendor     = cmis.Span{Address: cmis.Address{Offset: 129}, Length: 16}
	spanPart       = cmis.Span{Address: cmis.Address{Offset: 148}, Length: 16}
	spanSerial     = cmis.Span{Address: cmis.Address{Offset: 166}, Length: 16}
	spanMagic      = cmis.Span{Address: ocst.At(ocst.RegMagic), Length: ocst.RegCaps + 1 - ocst.RegMagic}
)

// identify reads what a slot holds. Nothing there is an error that matches
// cmis.ErrNoModule.
func (sw *Switch) identify(ctx context.Context, slot int) (plugged, error) {
	var b batch
	identifier, firmware := b.read(slot, spanIdentifier), b.read(slot, spanFirmware)
	vendor, part, serial := b.read(slot, spanVendor), b.read(slot, spanPart), b.read(slot, spanSerial)
	_, err := sw.do(ctx, opConnect, b...)
	switch {
	case err != nil: // perhaps cmis.ErrNoModule
		return plugged{}, err
	case identifier[0] == 0 || identifier[0] == 0xff: // a bus that nobody drives
		return plugged{}, cmis.ErrNoModule
	}
	p := plugged{true, text(vendor), text(part), text(serial), fmt.Sprintf("%d.%d", firmware[0], firmware[1])}
	not := func(format string, args ...any) error {
		return sw.fail(opConnect, fmt.Errorf("%s (%s %s) is no OCSTrx: %w", moduleName(slot), p.vendor, p.part, fmt.Errorf(format, args...)))
	}
	var c batch
	magic := c.read(slot, spanMagic)
	_, err = sw.do(ctx, opConnect, c...)
	switch {
	case errors.Is(err, cmis.ErrNoModule): // just pulled out
		return plugged{}, err
	case errors.Is(err, ocs.ErrDenied), errors.Is(err, ocs.ErrNotSupported):
		return p, not("it has no page %02Xh: %w", ocst.PageControl, cause(err))
	case err != nil:
		return p, err
	case string(magic[:4]) != ocst.Magic:
		return p, not("%v reads %q, not %q: %w", spanMagic.Address, magic[:4], ocst.Magic, ocs.ErrNotSupported)
	case magic[4] != ocst.MapVersion:
		return p, sw.fail(opConnect, fmt.Errorf("%s has version %d of the register map, and only %d is known: %w", moduleName(slot), magic[4], ocst.MapVersion, ocs.ErrNotSupported))
	}
	return p, nil
}

// cause returns what an *ocs.OpError is about.
func cause(err error) error {
	var op *ocs.OpError
	if errors.As(err, &op) {
		return op.Err
	}
	return err
}

// text is a field that blanks or zeros fill.
func text(p []byte) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r > '~' {
			return '?'
		}
		return r
	}, strings.Trim(string(p), " \x00"))
}

// identity joins what the modules and the board say.
func (sw *Switch) identity() ocs.Identity {
	id := ocs.Identity{Geometry: sw.geo}
	collect := func(of func(plugged) string, distinct bool) string {
		var list []string
		for _, slot := range sw.present() {
			if s := of(sw.in[slot]); s != "" && !(distinct && slices.Contains(list, s)) {
				list = append(list, s)
			}
		}
		return strings.Join(list, "+")
	}
	id.Vendor = collect(func(p plugged) string { return p.vendor }, true)
	id.Model = collect(func(p plugged) string { return p.part }, true)
	id.Firmware = collect(func(p plugged) string { return p.firmware }, true)
	id.Serial = collect(func(p plugged) string { return p.serial }, false)
	if board, told := sw.cfg.Bus.(boarded); told && len(sw.in) > 1 {
		if s := board.Info().Serial; s != "" {
			id.Serial = s
		}
	}
	return id
}

// boarded is a Bus on a board that says of itself what it is, such as a [Link].
type boarded interface{ Info() trxlink.Info }

// present returns the slots that hold a module.
func (sw *Switch) present() []int {
	slots := make([]int, 0, len(sw.in))
	for slot, p := range sw.in {
		if p.there {
			slots = append(slots, slot)
		}
	}
	return slots
}
