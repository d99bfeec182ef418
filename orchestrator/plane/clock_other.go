//go:build !linux

package plane

import "errors"

func newNap() (nap, error) { return nil, errors.ErrUnsupported }
