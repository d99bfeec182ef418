package decode

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"sync"

	"github.com/ocslab/ocslab/internal/natural"
	"github.com/ocslab/ocslab/ocs"
	"github.com/ocslab/ocslab/wire/scpi"
)

// scpiCommands are commands in the order in which they are told, and what they do; a pattern
// that ends with '?' is a query.
var scpiCommands = []struct{ pattern, does string }{
	{"*IDN?", "read identity"}, {"*CLS", "clear errors"}, {"*RST", "reset"}, {"*OPC?", "are you done"}, {"*OPC", "tell when done"},
	{"*ESR?", "read events"}, {"*STB?", "read status"},
	{"OXC:SWITch:SIZE?", "read size"},
	{"OXC:SWITch:CONNect:ADD", "connect"}, {"OXC:SWITch:CONNect:SUB", "disconnect"}, {"OXC:SWITch:CONNect:ONLY", "connect only"},
	{"OXC:SWITch:CONNect:STATe?", "read cross-connects"}, {"OXC:SWITch:CONNect:PORT?", "read what is connected to"},
	{"OXC:SWITch:DISConnect:ALL", "disconnect all"},
	{"OXC:SWITch:PORT:DISable", "close shutters"}, {"OXC:SWITch:PORT:ENABle", "open shutters"}, {"OXC:SWITch:PORT:STATe?", "read shutters"},
	{"PMON:POWer?", "read power"}, {"OXC:BOOT:MODE?", "read boot mode"}, {"OXC:BOOT:MODE", "set boot mode"},
	{"SYSTem:ERRor[:NEXT]?", "read an error"}, {"SYSTem:ERRor:ALL?", "read errors"}, {"SYSTem:VERSion?", "read version"},
	{"SYSTem:COMMunicate:NETWork:ADDRess?", "read network address"},
}

// scpiTree finds what a command does. It is only read once it is made.
var scpiTree = sync.OnceValue(func() *scpi.Tree[string] {
	t := &scpi.Tree[string]{}
	for _, c := range scpiCommands {
		t.Add(c.pattern, c.does)
	}
	return t
})

// scpiMessage says what a line of commands does, "" if one is not known.
func scpiMessage(message string) string {
	line := strings.TrimSpace(message)
	m, err := scpi.ParseMessage([]byte(line))
	if err != nil || len(m.Units) == 0 {
		return ""
	}
	var path scpi.Path
	var all []string
	for _, u := range m.Units {
		does, _, next, err := scpiTree().Find(path, u)
		if err != nil {
			return ""
		}
		path = next
		all = append(all, strings.TrimSpace(does+" "+scpiAbout(u)))
	}
	header := cutText(m.Units[0].Header.String(), 40)
	if m.Units[0].Query {
		header += "?"
	}
	return strings.Join(all, "; ") + " (" + header + ")"
}

// scpiAbout writes the parameters of a command: circuits, ports, or as they are.
func scpiAbout(u scpi.Unit) string {
	var lists [][]uint32
	var rest []string
	for _, p := range u.Params {
		if p.Kind == scpi.Expression {
			if l, err := scpi.ParseChannelList(p.Raw); err == nil {
				lists = append(lists, l)
				continue
			}
		}
		rest = append(rest, p.Text())
	}
	var text string
	switch {
	case len(lists) == 2 && len(lists[0]) == len(lists[1]):
		text = pairs(lists[0], lists[1])
	case len(lists) == 2 && len(lists[1]) == 0:
		text = portText(lists[0])
	case len(lists) == 2 && len(lists[0]) == 0:
		text = portText(lists[1])
	default:
		for _, l := range lists {
			rest = append(rest, portText(l))
		}
	}
	return strings.TrimSpace(text + " " + strings.Join(rest, " "))
}

func pairs(from, to []uint32) string {
	var all []string
	for i := range from {
		all = append(all, fmt.Sprintf("%d>%d", from[i], to[i]))
	}
	return list(all, mostNamed)
}

func portText(l []uint32) string {
	var ports []ocs.Port
	for _, p := range l {
		if p == 0 || p > math.MaxUint16 {
			return list(strings.Split(strings.Trim(strings.ReplaceAll(fmt.Sprint(l), " ", ","), "[]"), ","), mostNamed)
		}
		ports = append(ports, ocs.Port(p))
	}
	return list(strings.Split(ocs.FormatPorts(ports), ","), mostNamed)
}

// scpiReply says what a reply is, as far as its form tells.
func scpiReply(message string) string {
	line := strings.TrimSpace(message)
	var all []string
	for _, part := range scpiParts(line) {
		text := scpiPart(part)
		if text == "" {
			return ""
		}
		all = append(all, text)
	}
	return strings.Join(all, "; ")
}

// scpiParts cuts a reply at semicolons that are in no string.
func scpiParts(line string) []string {
	var parts []string
	quote, at := false, 0
	for i := range len(line) {
		switch {
		case line[i] == '"':
			quote = !quote
		case line[i] == ';' && !quote:
			parts, at = append(parts, line[at:i]), i+1
		}
	}
	return append(parts, line[at:])
}

func scpiPart(part string) string {
	if errs, err := scpi.ParseError(part); err == nil {
		if len(errs) == 0 {
			return "no error"
		}
		var all []string
		for _, e := range errs {
			all = append(all, e.Error())
		}
		return strings.Join(all, "; ")
	}
	if strings.HasPrefix(part, "(@") {
		lists, err := scpi.ParseLists(part)
		if err != nil {
			return ""
		}
		if len(lists) == 2 && len(lists[0]) == len(lists[1]) {
			text := natural.Count(len(lists[0]), "cross-connect")
			if len(lists[0]) > 0 {
				text += ": " + pairs(lists[0], lists[1])
			}
			return text
		}
		return part
	}
	if !strings.HasPrefix(part, "(") {
		return part
	}
	values, err := scpi.ParseValues(part)
	if err != nil || len(values) == 0 {
		return part
	}
	closed := 0
	letters := true
	least, most := math.Inf(1), math.Inf(-1)
	for _, v := range values {
		if v == "D" {
			closed++
		}
		letters = letters && len(v) == 1 && strings.Contains("DEF", v)
		if x, err := strconv.ParseFloat(v, 64); err == nil {
			least, most = min(least, x), max(most, x)
		} else if !letters {
			return part
		}
	}
	if letters {
		return fmt.Sprintf("%d of %s closed", closed, natural.Count(len(values), "shutter"))
	}
	return powersText(len(values), least, most)
}
