package decode

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/ocslab/ocslab/internal/natural"
	"github.com/ocslab/ocslab/ocs"
	"github.com/ocslab/ocslab/wire/tl1"
)

// tl1Verbs say what commands do; %s is what they are about.
var tl1Verbs = map[string]string{
	"ENT-PATCH": "connect %s", "ENT-CRS": "connect %s", "ENT-CRS-FIBER": "connect %s", "ACT-CRS": "activate %s",
	"DLT-PATCH": "disconnect %s", "DLT-CRS": "disconnect %s", "DLT-CRS-FIBER": "disconnect %s", "CANC-CRS": "deactivate %s",
	"RTRV-PATCH": "read cross-connects %s", "RTRV-CRS": "read cross-connects %s", "RTRV-CRS-FIBER": "read cross-connects %s",
	"RTRV-PORT-POWER": "read power %s", "RTRV-PORT-SUM": "read power %s", "RTRV-PORT": "read ports %s", "RTRV-CFG-FIBER": "read ports %s",
	"RTRV-PORT-PMON": "read monitor settings %s", "SET-PORT-PMON": "set monitors %s",
	"RTRV-PORT-SHUTTER": "read shutters %s", "OPR-PORT-SHUTTER": "close shutters %s", "RLS-PORT-SHUTTER": "open shutters %s",
	"RTRV-PORT-LABEL": "read labels %s", "ED-PORT-LABEL": "set labels %s", "DLT-PORT-LABEL": "delete labels %s",
	"RTRV-PORT-ATTEN": "read attenuators %s", "SET-PORT-ATTEN": "set attenuators %s",
	"RTRV-HDR": "are you there", "RTRV-NETYPE": "read identity", "RTRV-NE": "read identity", "RTRV-INV": "read inventory %s",
	"RTRV-SYSTEM-INFO": "read identity", "RTRV-EQPT": "read setting %s", "ED-EQPT": "change setting %s", "INIT-SYS": "restart %s",
	"RTRV-ALM-ALL": "read alarms %s", "RTRV-ALM-EQPT": "read alarms %s", "ACT-USER": "log in as %s", "CANC-USER": "log out %s",
	"RLS-ARC-EQPT": "allow reports", "OPR-ARC-EQPT": "inhibit reports", "RTRV-TH-PMON": "read alarm thresholds %s",
	"SET-TH-PMON": "set alarm thresholds %s", "RTRV-STATE-PMON": "read alarm states %s", "SET-STATE-PMON": "reset alarm states %s",
}

// tl1Command says what a command does.
func tl1Command(message string) string {
	c, err := tl1.ParseCommand([]byte(message))
	if c.Code == "" {
		return ""
	}
	verb, known := tl1Verbs[c.Code]
	if err != nil || !known {
		return ""
	}
	about := tl1About(&c)
	text := strings.TrimSpace(strings.Replace(verb, "%s", about, 1))
	return text + " (" + c.Code + ")"
}

// tl1About is what a command is about: circuits, ports, a name.
func tl1About(c *tl1.Command) string {
	aid := c.AID.Text()
	if c.Code == "RTRV-PORT" || c.Code == "RTRV-PORT-SUM" {
		if aid == "0" {
			aid = "all"
		}
	}
	switch c.Code {
	case "ENT-PATCH", "ENT-CRS", "ENT-CRS-FIBER", "ACT-CRS", "CANC-CRS", "DLT-CRS":
		if text, ok := tl1Pairs(c.AID.Raw); ok {
			return text
		}
	case "RTRV-EQPT", "ED-EQPT":
		return strings.TrimSpace(strings.ToLower(aid) + " " + strings.ToLower(tl1Params(c)))
	case "SET-PORT-PMON", "SET-PORT-ATTEN", "SET-TH-PMON", "ED-PORT-LABEL":
		return cutText(aid, 40) + ": " + cutText(tl1Params(c), 80)
	}
	if aid == "" && len(c.Blocks) > 0 {
		// Calient names connections in the first block.
		aid = strings.Trim(c.Blocks[0].Raw, ", ")
	}
	if strings.EqualFold(aid, "ALL") {
		aid = "all"
	}
	return tl1Ports(aid)
}

// tl1Params are the parameters of a command as they are written.
func tl1Params(c *tl1.Command) string {
	var all []string
	for _, b := range c.Blocks {
		for _, p := range b.Params {
			v := p.Value.Text()
			if p.Name != "" && p.Name != "PARAMETER" {
				v = p.Name + "=" + v
			}
			if v != "" {
				all = append(all, v)
			}
		}
	}
	return strings.Join(all, ",")
}

// tl1Pairs reads "1&2,17&18" as circuits.
func tl1Pairs(aid string) (string, bool) {
	left, right, found := strings.Cut(aid, ",")
	if !found {
		return "", false
	}
	from, err := tl1.ParseList(left)
	to, err2 := tl1.ParseList(right)
	if err != nil || err2 != nil || len(from) != len(to) {
		return "", false
	}
	var all []string
	for i := range from {
		if from[i].Last != "" || to[i].Last != "" {
			return "", false
		}
		all = append(all, from[i].First+">"+to[i].First)
	}
	return list(all, mostNamed), true
}

// tl1Ports writes a list of ports as ocslab does: 1-4,7. What is no list of ports is as it was.
func tl1Ports(aid string) string {
	items, err := tl1.ParseList(aid)
	if err != nil {
		return aid
	}
	var all []string
	for _, x := range items {
		if x.Last != "" {
			all = append(all, x.First+"-"+x.Last)
		} else {
			all = append(all, x.First)
		}
	}
	if ports, ok := portsOf(all); ok {
		all = strings.Split(ocs.FormatPorts(ports), ",")
	}
	return list(all, mostNamed)
}

// portsOf reads numbers of ports; false if one is none, or they are too many to be worth it.
func portsOf(names []string) ([]ocs.Port, bool) {
	if len(names) > 1<<12 {
		return nil, false
	}
	var ports []ocs.Port
	for _, n := range names {
		x, err := strconv.ParseUint(n, 10, 16)
		if err != nil || x == 0 {
			return nil, false
		}
		ports = append(ports, ocs.Port(x))
	}
	return ports, len(ports) > 0
}

// tl1Message says what a switch has said.
func tl1Message(message string) string {
	d := tl1.Decoder{MaxLen: 2 * MaxMessage}
	d.Feed([]byte(message))
	m, ok, err := d.Next()
	if !ok || err != nil {
		if c, err := tl1.ParseCommand([]byte(strings.TrimLeft(message, "\r\n <>"))); err == nil && tl1Verbs[c.Code] != "" {
			return "echo: " + c.Raw
		}
		return ""
	}
	more := ""
	if m.More {
		more = ", more follows"
	}
	switch m.Kind {
	case tl1.Acknowledgement:
		means := map[tl1.Ack]string{tl1.IP: "in progress", tl1.PF: "the reply follows", tl1.OK: "all right", tl1.NA: "no acknowledgement", tl1.NG: "no good", tl1.RL: "repeat later"}
		return fmt.Sprintf("command %s: %s (%s)", m.CTAG, means[m.Ack], m.Ack)
	case tl1.Autonomous:
		return "report, " + tl1Severity(m.Alarm) + ": " + strings.Join(m.Text, "; ") + tl1Comments(&m) + more
	}
	if m.Completion == tl1.DENY || m.Completion == tl1.PRTL {
		return tl1Refused(&m) + more
	}
	text := map[tl1.Completion]string{tl1.COMPLD: "completed", tl1.DELAY: "accepted, done later", tl1.RTRV: "goes on"}[m.Completion]
	if text == "" {
		text = string(m.Completion)
	}
	if data := tl1Data(m.Text); data != "" {
		text = data
	}
	return text + tl1Comments(&m) + more
}

func tl1Comments(m *tl1.Message) string {
	if len(m.Comments) == 0 {
		return ""
	}
	return " (" + strings.Join(m.Comments, "; ") + ")"
}

func tl1Severity(alarm string) string {
	switch alarm {
	case "*C":
		return "critical"
	case "**":
		return "major"
	case "*":
		return "minor"
	}
	return "event"
}

// tl1Refused: "denied: IIAC Invalid value OTHER (input, invalid access identifier)".
func tl1Refused(m *tl1.Message) string {
	text := "denied"
	if m.Completion == tl1.PRTL {
		text = "done in part"
	}
	means := tl1.Code(m.Code).Meaning()
	for i, x := range []string{m.Code, means, strings.Join(append(m.Comments, m.Text...), "; ")} {
		if x != "" {
			text += [...]string{": ", ", ", ": "}[i] + x
		}
	}
	return text
}

// tl1Data says what lines of data are.
func tl1Data(lines []string) string {
	if len(lines) == 0 {
		return ""
	}
	var t tally
	for _, l := range lines {
		t.add(tl1Line(l))
	}
	if text := t.String(); text != "" {
		return text
	}
	return strings.Join(lines, "; ")
}

// tl1Line reads one line of data: "1,17", "1:-3.2", "1>2:SRCPORT=1,…", "17:CLOSED".
func tl1Line(line string) item {
	head, rest, found := strings.Cut(line, ":")
	if !found {
		from, to, found := strings.Cut(line, ",")
		if found && numeral(from) && numeral(to) {
			return item{kind: circuits, text: from + ">" + to}
		}
		return item{}
	}
	if !strings.Contains(rest, "=") {
		switch {
		case rest == "OPEN" || rest == "CLOSED":
			return item{kind: shutters, closed: rest == "CLOSED"}
		case !numeral(head):
			return item{}
		}
		if p, err := strconv.ParseFloat(rest, 64); err == nil && !strings.Contains(rest, ",") && strings.Contains(rest, ".") {
			return item{kind: powers, power: p}
		}
		if f := strings.Split(rest, ","); len(f) == 3 && numeral(f[0]) && strings.Contains(f[0], ".") {
			return item{kind: settings}
		}
		return item{}
	}
	v := map[string]string{}
	for _, kv := range strings.Split(rest, ",") {
		if k, x, ok := strings.Cut(kv, "="); ok {
			v[k] = x
		}
	}
	switch {
	case v["SRCPORT"] != "" && v["DSTPORT"] != "":
		return item{kind: circuits, text: v["SRCPORT"] + ">" + v["DSTPORT"]}
	case v["IPORTID"] != "" && v["OPORTID"] != "":
		if v["IPORTID"] == "0" || v["OPORTID"] == "0" {
			return item{kind: unused}
		}
		return item{kind: circuits, text: v["IPORTID"] + ">" + v["OPORTID"]}
	case v["INPWR"] != "" && v["OUTPWR"] != "":
		p, err := strconv.ParseFloat(v["INPWR"], 64)
		if err == nil {
			return item{kind: powers, power: p}
		}
	case v["POWER"] != "":
		if p, err := strconv.ParseFloat(v["POWER"], 64); err == nil {
			return item{kind: powers, power: p}
		}
	case v["PORTID"] != "", v["INAS"] != "":
		return item{kind: ports}
	}
	return item{}
}

// numeral reports whether s names a port: digits, perhaps with dots between.
func numeral(s string) bool {
	return s != "" && strings.Trim(s, "0123456789.") == ""
}

// kind is what a line of a reply is.
type kind int

const (
	unknown kind = iota
	circuits
	powers
	shutters
	ports
	settings // of a monitor
	unused   // a port in no circuit
)

type item struct {
	kind   kind
	text   string
	power  float64
	closed bool
}

// tally counts items of a reply.
type tally struct {
	n           map[kind]int
	named       []string
	least, most float64
	closed      int
}

func (t *tally) add(i item) {
	if t.n == nil {
		t.n = map[kind]int{}
	}
	if i.kind == powers {
		if t.n[powers] == 0 {
			t.least, t.most = i.power, i.power
		}
		t.least, t.most = min(t.least, i.power), max(t.most, i.power)
	}
	if i.closed {
		t.closed++
	}
	if i.text != "" {
		t.named = append(t.named, i.text)
	}
	t.n[i.kind]++
}

// mostNamed is how many circuits and ports are named.
const mostNamed = 8

// String is what the items are, "" if that is not known of each.
func (t *tally) String() string {
	switch {
	case t.n[unknown] > 0 || len(t.n) == 0:
		return ""
	case t.n[circuits] > 0 && len(t.n) == 1, t.n[circuits] > 0 && len(t.n) == 2 && t.n[unused] > 0:
		return natural.Count(t.n[circuits], "cross-connect") + ": " + list(t.named, mostNamed)
	case t.n[unused] > 0 && len(t.n) == 1:
		return "0 cross-connects"
	case t.n[powers] > 0 && len(t.n) == 1:
		return powersText(t.n[powers], t.least, t.most)
	case t.n[shutters] > 0 && len(t.n) == 1:
		return fmt.Sprintf("%d of %s closed", t.closed, natural.Count(t.n[shutters], "shutter"))
	case t.n[ports] > 0 && len(t.n) == 1:
		return natural.Count(t.n[ports], "port")
	case t.n[settings] > 0 && len(t.n) == 1:
		return "settings of " + natural.Count(t.n[settings], "monitor")
	}
	return ""
}

// powersText: "power of 32 ports, -14.00 to -1.20 dBm".
func powersText(n int, least, most float64) string {
	text := fmt.Sprintf("power of %s, %.2f", natural.Count(n, "port"), least)
	if most > least {
		text += fmt.Sprintf(" to %.2f", most)
	}
	return text + " dBm"
}
