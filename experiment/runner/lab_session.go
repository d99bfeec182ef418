package runner

import (
	"os"
	"time"

	"github.com/ocslab/ocslab/experiment/runs"
	"github.com/ocslab/ocslab/timeline"
)

// ThisSession describes the process that is about to work on a run: where and when, and by
// which version of ocslab.
func ThisSession(version, revision string) runs.Session {
	s := runs.Session{Version: version, Revision: revision}
	s.Host, _ = os.Hostname()
	s.Kernel, s.Boot = machine()
	now := time.Now()
	s.Begun, s.MonoNS = now.UTC(), timeline.HostAxis().NS(now)
	return s
}
