// Package netns opens and makes network namespaces of Linux and runs code in
// them. On other systems everything but [Current] fails with
// [errors.ErrUnsupported].
//
// A namespace made by [New] has no name and no process of its own: it lives as
// long as somebody holds it open, so it is gone when the program ends, however
// it ends. See network_namespaces(7).
package netns

import (
	"fmt"
	"os"
	"strconv"
	"strings"
)

// NS is an open network namespace. It is safe for concurrent use. The zero NS
// is not valid; close what [New] and [Open] return.
type NS struct {
	f    *os.File // nil: the namespace the program began in, on systems without any
	name string
}

// String returns what the namespace was opened by: "" for the one that the
// program runs in, "gpu1" or "/run/netns/gpu1" or "pid:4711", or the label of an
// anonymous one.
func (n *NS) String() string { return n.name }

// Path returns a path that other programs can open while this one holds the
// namespace, such as /proc/4711/fd/8: `nsenter --net=PATH ip link`.
func (n *NS) Path() string {
	if n.f == nil {
		return ""
	}
	return fmt.Sprintf("/proc/%d/fd/%d", os.Getpid(), n.f.Fd())
}

// Close lets go of the namespace. One made by New ends when nobody else holds
// it, and its interfaces with it.
func (n *NS) Close() error {
	if n.f == nil {
		return nil
	}
	return n.f.Close()
}

// dir is where ip-netns(8) keeps the namespaces that have a name.
const dir = "/run/netns"

// path returns the file of the namespace that ref refers to.
func path(ref string) (string, error) {
	switch pid, isPID := strings.CutPrefix(ref, "pid:"); {
	case ref == "":
		return "/proc/thread-self/ns/net", nil
	case isPID:
		if n, err := strconv.ParseUint(pid, 10, 31); err != nil || n == 0 {
			return "", fmt.Errorf("network namespace %.60q: want pid: and the number of a process", ref)
		}
		return "/proc/" + pid + "/ns/net", nil
	case strings.Contains(ref, "/"):
		return ref, nil
	case ref == "." || ref == "..":
		return "", fmt.Errorf("network namespace %q: not a name", ref)
	}
	return dir + "/" + ref, nil
}
