package tl1server

import (
	"maps"
	"strings"

	"github.com/ocslab/ocslab/emulator"
	"github.com/ocslab/ocslab/ocs"
	"github.com/ocslab/ocslab/wire/tl1"
)

// attenuating is the dialect of Polatis units that have attenuators.
var attenuating = func() dialect {
	d := polatis
	d.commands = maps.Clone(polatisCommands)
	d.commands["SET-PORT-ATTEN"] = command{emulator.Operator, (*session).setAttenuator}
	d.commands["RTRV-PORT-ATTEN"] = command{emulator.Viewer, (*session).rtrvAttenuator}
	return d
}()

// attenuatorModes are the modes by their names in TL1.
var attenuatorModes = map[string]emulator.VOAMode{
	"NONE": emulator.VOANone, "FIX": emulator.VOAFixed, "MAX": emulator.VOAMaximum,
	"ABS": emulator.VOAAbsolute, "CONV": emulator.VOAConverged, "REL": emulator.VOARelative,
}

// attenuatorConfig is the best mode that the attenuators have.
func (ss *session) attenuatorConfig() string {
	if ss.dev.Personality().Optics.VOAMax > 0 {
		return string(emulator.VOAConverged)
	}
	return "NONE"
}

func (ss *session) setAttenuator(c *tl1.Command) (reply, *denial) {
	ports, bad := ss.fitted(c.AID, ss.dev.HasVOA)
	if bad != nil {
		return reply{}, bad
	}
	b, bad := named(c, "MODE", "LEVEL", "REFS")
	if bad != nil {
		return reply{}, bad
	}
	mode, _ := b.Value("MODE")
	v := emulator.VOA{Mode: attenuatorModes[strings.ToUpper(mode)]}
	_, leveled := b.Value("LEVEL")
	needsLevel := v.Mode == emulator.VOAAbsolute || v.Mode == emulator.VOAConverged || v.Mode == emulator.VOARelative
	switch {
	case mode == "" || needsLevel && !leveled:
		return reply{}, deny(tl1.IPMS, "Too few parameters (%d/%d) in block 2", len(b.Params), len(b.Params)+1)
	case v.Mode == "" || !number(b, "LEVEL", &v.Level):
		return reply{}, notValid()
	}
	if !needsLevel {
		v.Level = 0
	}
	var refs []ocs.Port
	if list, ok := b.Value("REFS"); ok {
		if v.Mode != emulator.VOARelative {
			return reply{}, deny(tl1.IPNV, "Unexpected parameter REFS in block 2")
		}
		if refs, bad = ss.portList(list); bad != nil {
			return reply{}, bad
		}
		if len(refs) != 1 && len(refs) != len(ports) {
			return reply{}, deny(tl1.IDNV, "Port lists differ in length (%d/%d)", len(ports), len(refs))
		}
	}
	set := make(map[ocs.Port]emulator.VOA, len(ports))
	for i, p := range ports {
		if len(refs) > 0 {
			v.Reference = refs[min(i, len(refs)-1)]
		}
		set[p] = v
	}
	return reply{}, refusal(ss.edit(emulator.Edit{VOAs: set}))
}

func (ss *session) rtrvAttenuator(c *tl1.Command) (reply, *denial) {
	return ss.each(c.AID, func(p ocs.Port) string {
		if !ss.dev.HasVOA(p) {
			return ""
		}
		v := ss.dev.VOA(p)
		for name, mode := range attenuatorModes {
			if mode != v.Mode {
				continue
			}
			level, ref := "", ""
			switch {
			case v.Mode == emulator.VOARelative && v.Reference != 0:
				ref = v.Reference.String()
				fallthrough
			case v.Mode == emulator.VOARelative, v.Mode == emulator.VOAAbsolute, v.Mode == emulator.VOAConverged:
				level = decimal(v.Level)
			}
			return name + "," + level + "," + ref
		}
		return ""
	})
}
