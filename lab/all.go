package lab

import (
	"context"
	"errors"
	"sync"

	"github.com/ocslab/ocslab/ocs"
)

// SquareModel is a model of switches that the program comes with, for labs that programs write.
type SquareModel struct {
	Name  string
	Ports int // ingress, and as many egress
}

// SquareModels are those with as many ingress as egress ports, the smallest first. They are not all there are. It is not to be changed.
var SquareModels = []SquareModel{{"polatis-6000-32x32", 32}, {"fast-mems-25ms", 64}, {"polatis-7000-192x192", 192}, {"polatis-7000-384x384", 384}}

// CrossConnects reads the circuits of switches, all at the same time, and opens those that are not open. The error is of all
// that could not be read; the others are in the result.
func (l *Lab) CrossConnects(ctx context.Context, names ...string) (map[string]ocs.Map, error) {
	held := make([]ocs.Map, len(names))
	errs := make([]error, len(names))
	var all sync.WaitGroup
	for i, name := range names {
		all.Go(func() {
			sw, err := l.Switch(ctx, name)
			if err == nil {
				held[i], err = sw.CrossConnects(ctx)
			}
			errs[i] = err
		})
	}
	all.Wait()
	maps := make(map[string]ocs.Map, len(names))
	for i, name := range names {
		if errs[i] == nil {
			maps[name] = held[i]
		}
	}
	return maps, errors.Join(errs...)
}
