package watch

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Account holds what was reported of the carriers of a host against what its kernel
// counted.
type Account struct {
	Host      string `json:"host"`
	Counted   int    `json:"counted"`   // transitions, by the counters
	Reported  int    `json:"reported"`  // by a mark each
	Merged    int    `json:"merged"`    // told of by a gap, too many for one sweep
	Announced int    `json:"announced"` // by the kernel to those who listen (rtnetlink)
	Missing   int    `json:"missing"`   // counted and not accounted for, over all interfaces
}

// ErrIncomplete: marks do not account for every transition of carrier that the
// kernel counted.
var ErrIncomplete = errors.New("the marks are not complete")

// Incomplete is the error of accounts that do not add up, nil when all do. It
// matches [ErrIncomplete].
func Incomplete(accounts []Account) error {
	var hosts []string
	for _, a := range accounts {
		if a.Missing > 0 {
			hosts = append(hosts, fmt.Sprintf("%s counted %d carrier transitions, and %d were reported", a.Host, a.Counted, a.Reported+a.Merged))
		}
	}
	if len(hosts) == 0 {
		return nil
	}
	return fmt.Errorf("%w: %s", ErrIncomplete, strings.Join(hosts, "; "))
}

// Accounts returns the account of each host, by name. It is exact after Flush, and
// after Close.
func (w *Watch) Accounts() []Account {
	byHost := map[string]*Account{}
	if w.monitor != nil {
		for _, h := range w.hosts {
			byHost[h.Name] = &Account{Host: h.Name}
		}
		for _, l := range w.monitor.Account().PerLink {
			a := byHost[l.Host]
			a.Counted += l.Counted
			a.Reported += l.Reported
			a.Merged += l.Merged
			a.Announced += l.Announced
			missing := l.Counted - l.Reported - l.Merged
			a.Missing += max(missing, -missing)
		}
	}
	for _, x := range w.running() {
		x.mu.Lock()
		account := x.account
		x.mu.Unlock()
		byHost[x.host.Name] = &account
	}
	var list []Account
	for _, a := range byHost {
		list = append(list, *a)
	}
	slices.SortFunc(list, func(a, b Account) int { return strings.Compare(a.Host, b.Host) })
	return list
}
