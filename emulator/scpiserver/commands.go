package scpiserver

import (
	"errors"
	"math"
	"strconv"
	"strings"

	"github.com/ocslab/ocslab/emulator"
	"github.com/ocslab/ocslab/ocs"
	"github.com/ocslab/ocslab/wire/scpi"
)

// command is an entry of the command table.
type command struct {
	least, most int // parameters
	run         func(*call) (result, error)
}

// call is one command that is carried out.
type call struct {
	*session
	params  []scpi.Param // as many as the command has
	waiting bool         // a reply of the same line is not sent yet
}

// result is what a command comes to.
type result struct {
	reply []byte             // of a query
	op    emulator.Operation // of a command to the matrix
}

// commands are those of IEEE 488.2, of SCPI-99, and of the switch.
var commands = func() *scpi.Tree[command] {
	t := new(scpi.Tree[command])
	for pattern, c := range map[string]command{
		"*IDN?": {0, 0, (*call).identify},
		"*CLS":  {0, 0, (*call).clear},
		"*RST":  {0, 0, (*call).reset},
		"*OPC":  {0, 0, (*call).complete},
		"*OPC?": {0, 0, (*call).completed},
		"*WAI":  {0, 0, (*call).wait},
		"*STB?": {0, 0, (*call).statusByte},
		"*ESR?": {0, 0, (*call).events},
		"*ESE":  {1, 1, (*call).enableEvents},
		"*ESE?": {0, 0, (*call).eventEnable},
		"*SRE":  {1, 1, (*call).enableService},
		"*SRE?": {0, 0, (*call).serviceEnable},
		"*TST?": {0, 0, (*call).selfTest},

		"SYSTem:ERRor[:NEXT]?":                 {0, 0, (*call).nextError},
		"SYSTem:ERRor:COUNt?":                  {0, 0, (*call).countErrors},
		"SYSTem:ERRor:ALL?":                    {0, 0, (*call).allErrors},
		"SYSTem:VERSion?":                      {0, 0, (*call).version},
		"SYSTem:COMMunicate:NETWork:ADDRess?":  {0, 0, (*call).address},
		"SYSTem:COMMunicate:NETWork:ADDRess":   {1, 4, (*call).setAddress},
		"SYSTem:COMMunicate:NETWork2:ADDRess?": {0, 0, (*call).noInterface},
		"SYSTem:COMMunicate:NETWork2:ADDRess":  {1, 4, (*call).noInterface},

		"OXC:SWITch:SIZE?":          {0, 0, (*call).size},
		"OXC:SWITch:CONNect:ADD":    {2, 3, (*call).add},
		"OXC:SWITch:CONNect:ONLY":   {2, 2, (*call).only},
		"OXC:SWITch:CONNect:SUB":    {2, 2, (*call).sub},
		"OXC:SWITch:CONNect:STATe?": {0, 0, (*call).circuits},
		"OXC:SWITch:CONNect:PORT?":  {1, 1, (*call).partner},
		"OXC:SWITch:DISConnect:ALL": {0, 0, (*call).disconnectAll},
		"OXC:SWITch:PORT:DISable":   {1, 1, (*call).disable},
		"OXC:SWITch:PORT:ENABle":    {1, 1, (*call).enable},
		"OXC:SWITch:PORT:STATe?":    {0, 1, (*call).portStates},
		"OXC:BOOT:MODE":             {1, 1, (*call).setBootMode},
		"OXC:BOOT:MODE?":            {0, 0, (*call).bootMode},
		"PMON:POWer?":               {1, 1, (*call).power},
	} {
		t.Add(pattern, c)
	}
	return t
}()

func say(s string) (result, error) { return result{reply: []byte(s)}, nil }

func sayNumber(n int) (result, error) { return say(strconv.Itoa(n)) }

// ---- parameters

func wrongType(p scpi.Param, want string) error {
	return scpi.NewError(scpi.DataTypeError, "want "+want+", not "+p.Kind.String())
}

// whole reads a number, which is rounded as IEEE 488.2 (7.7.2.4.3) says, and must
// be in lo..hi.
func whole(p scpi.Param, lo, hi float64) (int, error) {
	switch {
	case p.Kind != scpi.Number:
		return 0, wrongType(p, "a number")
	case p.Suffix != "":
		return 0, scpi.NewError(scpi.SuffixNotAllowed, p.Suffix)
	}
	text := strings.Map(func(c rune) rune { // blanks around an exponent
		if c <= ' ' {
			return -1
		}
		return c
	}, p.Text())
	x, err := strconv.ParseFloat(text, 64)
	if x = math.Round(x); err != nil || x < lo || x > hi {
		return 0, scpi.NewError(scpi.DataOutOfRange, text)
	}
	return int(x), nil
}

// ports reads a channel list of ports that fit, which role says in words.
func (c *call) ports(i int, fits func(ocs.Port) bool, role string) ([]ocs.Port, error) {
	p := c.params[i]
	if p.Kind != scpi.Expression {
		return nil, wrongType(p, "a list (@...)")
	}
	list, err := scpi.ParseChannelList(p.Raw)
	if err != nil {
		return nil, err
	}
	ps := make([]ocs.Port, len(list))
	for k, n := range list {
		ps[k] = ocs.Port(n)
		if !fits(ps[k]) {
			return nil, &ocs.PortError{Port: ps[k], Geometry: c.dev.Geometry(), Reason: "is not " + role}
		}
	}
	return ps, nil
}

// anyPorts is ports for those of either side.
func (c *call) anyPorts(i int) ([]ocs.Port, error) { return c.ports(i, c.dev.Geometry().Has, "a port") }

// word reads one of several words and returns which.
func word(p scpi.Param, patterns ...string) (int, error) {
	if p.Kind != scpi.Word {
		return 0, wrongType(p, "one of "+strings.Join(patterns, ", "))
	}
	for i, pattern := range patterns {
		if scpi.Matches(pattern, p.Raw) {
			return i, nil
		}
	}
	return 0, scpi.NewError(scpi.IllegalParameterValue, p.Raw)
}

// ---- errors

// deviceRefusal is the entry of the error queue for what the device has refused.
func deviceRefusal(err error) scpi.Error {
	var conflict *ocs.ConflictError
	var failed *emulator.FailedPortError
	var limit *emulator.LimitError
	code := scpi.ExecutionError
	switch {
	case errors.As(err, &conflict) && conflict.Where != "": // within the command
		code = scpi.IllegalParameterValue
	case errors.Is(err, ocs.ErrConflict):
		code = scpi.SettingsConflict
	case errors.Is(err, ocs.ErrPort):
		code = scpi.DataOutOfRange
	case errors.As(err, &failed):
		code = scpi.HardwareError
	case errors.As(err, &limit):
		code = scpi.TooMuchData
	}
	return scpi.NewError(code, err.Error())
}
