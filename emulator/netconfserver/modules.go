package netconfserver

import (
	_ "embed"
	"fmt"
	"slices"
	"strings"

	"github.com/ocslab/ocslab/emulator"
)

// Names of the YANG modules of a device.
const (
	opticalSwitch = "optical-switch"
	polatisSwitch = "polatis-switch"
)

// Their namespaces.
const (
	opsw = "http://www.polatis.com/yang/optical-switch"
	plts = "http://www.polatis.com/yang/polatis-switch"
)

//go:embed yang/optical-switch.yang
var opticalSwitchText string

//go:embed yang/polatis-switch.yang
var polatisSwitchText string

// Modules returns the text of the YANG modules that a device has, by name.
// Revisions that are empty are the newest.
//
// The files are of the newest revision; the others follow from comments in
// them. Lines from "//@since D" to "//@end" are in revision D and later. Lines
// from "//@before D" to "//@end" are in those before D, without the "//|" that
// they begin with.
func Modules(n emulator.NETCONF) (map[string]string, error) {
	texts := map[string]string{}
	for _, m := range []struct {
		name, text, revision string
		known                []string
	}{
		{opticalSwitch, opticalSwitchText, n.OpticalSwitch, emulator.OpticalSwitchRevisions},
		{polatisSwitch, polatisSwitchText, n.PolatisSwitch, emulator.PolatisSwitchRevisions},
	} {
		if m.revision == "" {
			m.revision = m.known[len(m.known)-1]
		}
		if !slices.Contains(m.known, m.revision) {
			return nil, fmt.Errorf("module %s has no revision %.40q: want one of %v", m.name, m.revision, m.known)
		}
		texts[m.name] = revise(m.text, m.revision)
	}
	return texts, nil
}

// revise returns the text of a revision.
func revise(text, revision string) string {
	var b strings.Builder
	in := true
	for line := range strings.Lines(text) {
		bare := strings.TrimSpace(line)
		if date, ok := strings.CutPrefix(bare, "//@since "); ok {
			in = revision >= date
			continue
		}
		if date, ok := strings.CutPrefix(bare, "//@before "); ok {
			in = revision < date
			continue
		}
		if strings.HasPrefix(bare, "//@") { // the end, or a comment on the comments
			in = true
			continue
		}
		if in {
			b.WriteString(strings.Replace(line, "//|", "", 1))
		}
	}
	return b.String()
}
