package optics

import (
	"context"

	"github.com/ocslab/ocslab/wire/cmis"
)

// Reader is access to the memory of a module. [Ethtool] and [File] are Readers.
type Reader interface {
	// ReadPage fills buf from a. What one read may ask for tells [cmis.Address.Check].
	// It returns an error that matches [cmis.ErrNoModule] when no module is there, and one
	// that matches [errors.ErrUnsupported] when none can be read here at all.
	ReadPage(ctx context.Context, a cmis.Address, buf []byte) error
	Close() error
}
