//go:build !linux

package probe

// metronome returns what waits for the instants at which to send.
func (p *Probe) metronome() func(due int64) bool {
	if p.opt.Spin {
		return p.spinTo
	}
	return p.sleepTo
}
