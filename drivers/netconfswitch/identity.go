package netconfswitch

import (
	"context"
	"strings"

	"github.com/ocslab/ocslab/ocs"
)

// Identify returns what the device says of itself. It is asked until it has
// told a model that names its size, then no more.
func (sw *Switch) Identify(ctx context.Context) (ocs.Identity, error) {
	if id := sw.id.Load(); id != nil {
		if err := sw.gone(ctx); err != nil {
			return ocs.Identity{}, sw.fail("identify", "", "", err)
		}
		return *id, nil
	}
	a, err := sw.do(ctx, get("identify", "product-information", ""))
	if err != nil {
		return ocs.Identity{}, err
	}
	info := a.reply.Data.Child("", "product-information")
	id := ocs.Identity{
		Vendor: info.Value("manufacturer"), Model: info.Value("model-name"),
		Serial: info.Value("serial-number"), Firmware: info.Value("software-version"),
	}
	if id.Geometry = geometryOf(id.Model); id.Geometry.Known() {
		sw.id.Store(&id)
	}
	return id, nil
}

// geometryOf reads the size out of a product code such as
// N-VST-192x192-LU1-DMHNV-801.
func geometryOf(product string) ocs.Geometry {
	for part := range strings.SplitSeq(product, "-") {
		if g, err := ocs.ParseGeometry(part); err == nil {
			return g
		}
	}
	return ocs.Geometry{}
}
