package lab

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strings"

	"github.com/ocslab/ocslab/emulator"
	"github.com/ocslab/ocslab/emulator/ocstrx"
	"github.com/ocslab/ocslab/internal/builtin"
	"github.com/ocslab/ocslab/internal/strictyaml"
)

// Transceivers is how to emulate a board of transceivers.
type Transceivers struct {
	Personality ocstrx.Personality
	// Table is the calibration that the modules come with; default that of the
	// factory.
	Table   ocstrx.TableState
	Ambient *float64                    // °C; nil is the usual
	Faults  []func(*ocstrx.Board) error // of ocstrx.ParseFault
}

// Model is what is emulated.
func (e Emulation) Model() string {
	if e.Transceivers != nil {
		return e.Transceivers.Personality.Model
	}
	return e.Personality.Model
}

// Models are the names of all that can be emulated.
func Models() []string { return slices.Concat(emulator.Models(), ocstrx.Models()) }

// ModelError says why a model cannot be emulated: there is none of that name, or what is
// wrong with the file that describes it.
type ModelError struct{ Err error }

func (e *ModelError) Error() string { return e.Err.Error() }
func (e *ModelError) Unwrap() error { return e.Err }

// EmulationOf returns how to emulate a model, or what a .yaml file describes: a matrix, or
// a board of transceivers. Errors are a [ModelError].
func EmulationOf(model string) (Emulation, error) {
	e, err := emulationOf(model)
	if err != nil {
		return Emulation{}, &ModelError{err}
	}
	return e, nil
}

func emulationOf(model string) (Emulation, error) {
	transceivers := slices.Contains(ocstrx.Models(), model)
	if builtin.IsFile(model) {
		text, err := os.ReadFile(model)
		transceivers = err == nil && boardKey.Match(text)
	} else if all := Models(); !slices.Contains(all, model) {
		return Emulation{}, fmt.Errorf("there is no model %.60q%s: want one of %s, or a .yaml file",
			model, strictyaml.DidYouMean(model, all), strings.Join(all, ", "))
	}
	if transceivers {
		p, err := ocstrx.LoadPersonality(model)
		return Emulation{Transceivers: &Transceivers{Personality: p}}, err
	}
	p, err := emulator.LoadPersonality(model)
	return Emulation{Personality: p}, err
}

// boardKey is a key that only the personality of a board has.
var boardKey = regexp.MustCompile(`(?m)^["']?(modules|trigger|plate|device)["']?\s*:`)

// startBoard is [Emulation.Start] for transceivers.
func (e Emulation) startBoard() (*Emulated, error) {
	t := e.Transceivers
	if e.Name == "" {
		e.Name = t.Personality.Model
	}
	b, err := ocstrx.NewBoard(t.Personality, ocstrx.Options{Name: e.Name, Seed: e.Seed, Table: t.Table, Ambient: t.Ambient})
	if err != nil {
		return nil, err
	}
	for _, inject := range t.Faults {
		if err := inject(b); err != nil {
			return nil, fmt.Errorf("emulated switch %s: %w", e.Name, err)
		}
	}
	if e.First == "" {
		e.First = OCSTrx
	}
	if e.Listen == nil {
		e.Listen = map[Endpoint]string{e.First: ""}
	}
	if err := e.Cabling.plug(e.Name, b); err != nil {
		return nil, fmt.Errorf("emulated switch %s: %w", e.Name, err)
	}
	r := &Emulated{Board: b, cabling: e.Cabling}
	if err := r.serve(e, func(at Endpoint, address string) (func(context.Context) error, string, error) {
		return listenBoard(b, at, address)
	}); err != nil {
		return nil, err
	}
	return r, nil
}

func listenBoard(b *ocstrx.Board, at Endpoint, address string) (serve func(context.Context) error, where string, err error) {
	switch at {
	case Serial:
		return onSerialLine(address, b)
	case OCSTrx:
	default:
		return nil, "", errors.New("a board of transceivers has its controller link only: ocstrx, or a serial line")
	}
	l, err := listenTCP(address)
	if err != nil {
		return nil, "", err
	}
	return func(ctx context.Context) error { return emulator.Serve(ctx, l, b) }, l.Addr().String(), nil
}

// boardURLs is [Emulated.URLs] of transceivers.
func (e *Emulated) boardURLs() map[Endpoint]string {
	urls := map[Endpoint]string{}
	if address, there := e.Endpoints[OCSTrx]; there {
		urls[OCSTrx] = (&url.URL{Scheme: string(OCSTrx), Host: address}).String()
	}
	if path, there := e.Endpoints[Serial]; there {
		urls[OCSTrxSerial] = (&url.URL{Scheme: string(OCSTrxSerial), Path: path}).String()
		urls[Serial] = urls[OCSTrxSerial]
	}
	return urls
}
