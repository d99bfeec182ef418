package ocstrx

import (
	"time"

	"github.com/ocslab/ocslab/wire/cmis/ocst"
)

// record writes a switch into the log, the newest first, and its duration into the register:
// they are the same number.
func (m *Module) record(r *run, f ocst.Fault) {
	m.duration = (m.now - r.begun).Truncate(ocst.DurationUnit)
	e := ocst.LogEntry{
		At:       uint32((r.begun - m.started) / time.Microsecond),
		Sequence: m.sequence,
		From:     pathOf(&r.from, r.lanes), To: pathOf(&r.to, r.lanes),
		Mask: r.lanes, Result: f, Duration: m.duration,
	}
	if len(m.log) < ocst.LogSize {
		m.log = append(m.log, ocst.LogEntry{})
	}
	copy(m.log[1:], m.log)
	m.log[0] = e
}

// pathOf is what all of these lanes have in common, or Mixed; without lanes, of all.
func pathOf(paths *[ocst.Lanes]ocst.Path, lanes uint8) ocst.Path {
	if lanes == 0 {
		lanes = 0xff
	}
	common, first := ocst.Dark, true
	for lane, p := range paths {
		switch {
		case lanes>>lane&1 == 0:
		case first:
			common, first = p, false
		case p != common:
			return ocst.Mixed
		}
	}
	return common
}
