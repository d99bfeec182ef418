//go:build !linux

package ocstrx

import (
	"fmt"

	"github.com/ocslab/ocslab/ocs"
)

func openAdapter(string) (adapter, error) {
	return nil, fmt.Errorf("I2C adapters are known on Linux only: %w", ocs.ErrNotSupported)
}
