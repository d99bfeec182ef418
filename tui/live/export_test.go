package live

import "github.com/ocslab/ocslab/linkmon/watch"

// SeenRecord enters a record as if a watch had seen it.
func (s *Session) SeenRecord(r watch.Record) { s.seenRecord(r) }
