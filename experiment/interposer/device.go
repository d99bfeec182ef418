package interposer

import (
	"context"
	"fmt"
	"math"

	emulated "github.com/ocslab/ocslab/emulator/mesh"
	"github.com/ocslab/ocslab/ocs"
	"github.com/ocslab/ocslab/topology/pccl/mesh"
)

// Sheet is what the data sheet of a device says.
type Sheet struct {
	Rows, Columns int
	Layout        mesh.Layout // what MZIs do in bar (phase 0) and in cross (phase π)
	Launch        ocs.DBm     // of a source
	Loss          ocs.DB      // of an MZI that is crossed, what goes the wrong way included
}

// Ray is the light that a tap gets of a source.
type Ray struct {
	Source, Sink int // taps, by index
	Power        ocs.DBm
}

// Device is a mesh that can be set.
type Device interface {
	Sheet() Sheet
	// Set sends heaters to phases, in radians, by node, and has those taps on and no others. It does not wait for the heaters.
	Set(ctx context.Context, phases map[int]float64, taps []mesh.Tap) error
	// Read returns the phases of all nodes and the taps that are on.
	Read(ctx context.Context) (phases []float64, taps []mesh.Tap, err error)
	// Light returns what receivers see: sources and sinks are taps as they are read.
	Light(ctx context.Context) ([]Ray, error)
}

// Emulated is an emulated mesh as a Device.
type Emulated struct{ *emulated.Device }

// The sides of the two packages, one by one: neither knows the other.
var (
	toSide   = map[mesh.Side]emulated.Side{mesh.North: emulated.North, mesh.East: emulated.East, mesh.South: emulated.South, mesh.West: emulated.West}
	fromSide = map[emulated.Side]mesh.Side{emulated.North: mesh.North, emulated.East: mesh.East, emulated.South: mesh.South, emulated.West: mesh.West}
)

// Sheet implements [Device].
func (e Emulated) Sheet() Sheet {
	rows, columns := e.Size()
	return Sheet{Rows: rows, Columns: columns, Layout: mesh.Alternate, Launch: 0, Loss: 0.1 - ocs.DB(10*math.Log10(1-1e-3))}
}

// Set implements [Device].
func (e Emulated) Set(_ context.Context, phases map[int]float64, taps []mesh.Tap) error {
	all := make([]emulated.Tap, len(taps))
	for i, t := range taps {
		side, is := toSide[t.Side]
		if !is {
			return fmt.Errorf("a tap at node %d: the node has no such side", t.Node)
		}
		all[i] = emulated.Tap{Node: t.Node, Side: side, Wavelength: t.Wavelength, Adds: t.Adds}
	}
	return e.Device.Set(phases, all)
}

// Read implements [Device].
func (e Emulated) Read(context.Context) ([]float64, []mesh.Tap, error) {
	taps := e.Taps()
	all := make([]mesh.Tap, len(taps))
	for i, t := range taps {
		all[i] = mesh.Tap{Node: t.Node, Side: fromSide[t.Side], Wavelength: t.Wavelength, Adds: t.Adds}
	}
	return e.Phases(), all, nil
}

// Light implements [Device].
func (e Emulated) Light(context.Context) ([]Ray, error) {
	rays := e.Device.Light()
	all := make([]Ray, len(rays))
	for i, r := range rays {
		all[i] = Ray{r.Source, r.Sink, ocs.DBm(10 * math.Log10(r.Power))}
	}
	return all, nil
}
