package netconfswitch

import (
	"context"

	"github.com/ocslab/ocslab/drivers/internal/polatiscard"
	"github.com/ocslab/ocslab/ocs"
	"github.com/ocslab/ocslab/wire/netconf"
)

// Identify returns what the device says of itself. It is asked when a session
// begins, and until it has told a model that names its size, then no more.
func (sw *Switch) Identify(ctx context.Context) (ocs.Identity, error) {
	if id := sw.id.Load(); id != nil {
		if err := sw.life.Gone(ctx); err != nil {
			return ocs.Identity{}, sw.fail("identify", "", "", err)
		}
		return *id, nil
	}
	a, err := sw.do(ctx, get("identify", "product-information", ""))
	if err != nil {
		return ocs.Identity{}, err
	}
	return sw.learn(a.reply), nil
}

// learn returns what a device says of itself, and keeps it if that names its
// size.
func (sw *Switch) learn(reply netconf.Reply) ocs.Identity {
	info := reply.Data.Child("", "product-information")
	id := ocs.Identity{
		Vendor: info.Value("manufacturer"), Model: info.Value("model-name"),
		Serial: info.Value("serial-number"), Firmware: info.Value("software-version"),
	}
	if id.Geometry = polatiscard.Geometry(id.Model); id.Geometry.Known() {
		sw.id.Store(&id)
	}
	return id
}
