package scpiserver

import (
	"net/netip"
	"slices"
	"strings"

	"github.com/ocslab/ocslab/emulator"
	"github.com/ocslab/ocslab/ocs"
	"github.com/ocslab/ocslab/wire/scpi"
)

// ---- IEEE 488.2

func (c *call) identify() (result, error) {
	p := c.dev.Personality()
	return say(strings.Join([]string{p.Vendor, p.Product, c.dev.Serial(), p.Firmware}, ","))
}

func (c *call) clear() (result, error) {
	c.status.Clear()
	return result{}, nil
}

func (c *call) reset() (result, error) {
	return c.edit(emulator.Edit{Only: true, Closed: shutters(false, c.dev.Geometry().Ports())})
}

func (c *call) complete() (result, error) {
	c.status.Complete()
	return result{}, nil
}

// What was asked for before is done when these are looked at.
func (c *call) completed() (result, error) { return sayNumber(1) }
func (c *call) wait() (result, error)      { return result{}, nil }

func (c *call) selfTest() (result, error) { return sayNumber(0) }

func (c *call) statusByte() (result, error)    { return sayNumber(int(c.status.Byte(c.waiting))) }
func (c *call) events() (result, error)        { return sayNumber(int(c.status.Events())) }
func (c *call) eventEnable() (result, error)   { return sayNumber(int(c.status.EventEnable())) }
func (c *call) serviceEnable() (result, error) { return sayNumber(int(c.status.ServiceEnable())) }

func (c *call) enableEvents() (result, error)  { return c.mask(c.status.EnableEvents) }
func (c *call) enableService() (result, error) { return c.mask(c.status.EnableService) }

func (c *call) mask(set func(byte)) (result, error) {
	n, err := whole(c.params[0], 0, 255)
	if err == nil {
		set(byte(n))
	}
	return result{}, err
}

// ---- errors

func (c *call) nextError() (result, error) { return c.list(c.status.Errors.Pop()) }

func (c *call) allErrors() (result, error) {
	all := c.status.Errors.Drain()
	if len(all) == 0 {
		all = []scpi.Error{scpi.NewError(scpi.NoError, "")}
	}
	return c.list(all...)
}

func (c *call) list(all ...scpi.Error) (result, error) {
	var reply []byte
	for i, e := range all {
		if i > 0 {
			reply = append(reply, ',')
		}
		reply = scpi.AppendError(reply, e, !c.dev.Personality().SCPI.NoBlank)
	}
	return result{reply: reply}, nil
}

func (c *call) countErrors() (result, error) { return sayNumber(c.status.Errors.Len()) }

// ---- system

func (c *call) version() (result, error) { return say("1999.0") }

func (c *call) address() (result, error) {
	return say(`IP="127.0.0.1" Gateway="0.0.0.0" Mask="255.0.0.0" Broadcast="127.255.255.255"`)
}

func (c *call) setAddress() (result, error) {
	for _, p := range c.params {
		if p.Kind != scpi.Dotted && p.Kind != scpi.String {
			return result{}, wrongType(p, "an address")
		}
		if a, err := netip.ParseAddr(p.Text()); err != nil || !a.Is4() {
			return result{}, scpi.NewError(scpi.IllegalParameterValue, p.Text())
		}
	}
	return result{}, scpi.NewError(scpi.CommandProtected, "an emulated switch is where it was started")
}

func (c *call) noInterface() (result, error) {
	return result{}, scpi.NewError(scpi.HardwareMissing, "there is no second network interface")
}

// bootModes in the order of bootWords.
var (
	bootModes = []ocs.BootMode{ocs.BootDark, ocs.BootRestore, ocs.BootAutosave}
	bootWords = []string{"DARK", "RESTore", "AUTosave"}
)

func (c *call) bootMode() (result, error) {
	w := bootWords[slices.Index(bootModes, c.dev.BootMode())]
	if c.dev.Personality().SCPI.LongForm {
		return say(strings.ToUpper(w))
	}
	return say(scpi.Short(w))
}

func (c *call) setBootMode() (result, error) {
	i, err := word(c.params[0], bootWords...)
	if err != nil {
		return result{}, err
	}
	return c.edit(emulator.Edit{Boot: bootModes[i]})
}
