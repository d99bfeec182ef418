package experiment

import (
	"fmt"
	"runtime/debug"
)

// Panic is a panic as an error, so that the light can be put back after one.
type Panic struct {
	Value any
	Stack []byte // where it was
}

func (p *Panic) Error() string { return fmt.Sprintf("panic: %v", p.Value) }

// Guard calls fn and makes a [Panic] of its panic. A goroutine without it would end the
// program.
func Guard(fn func() error) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = &Panic{v, debug.Stack()}
		}
	}()
	return fn()
}
