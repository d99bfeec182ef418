package tl1server

import (
	"slices"
	"strings"

	"github.com/ocslab/ocslab/emulator"
	"github.com/ocslab/ocslab/wire/tl1"
)

// command is an entry of the command table.
type command struct {
	need emulator.Group // least group that may; "" is anybody, also without login
	run  func(ss *session, c *tl1.Command) (reply, *denial)
}

// dialect is what differs between kinds of TL1 beside the way in which a reply is
// cut and decorated, which the personality says.
type dialect struct {
	commands  map[string]command
	nullCTAG  bool   // a command may come without a CTAG, and is answered with nullTag
	marksLast bool   // each block of a long reply but the last ends with > in the place of ;
	plainEcho bool   // the echo is as typed in a terminal, and a password is not echoed
	noLogin   string // before login
	badLogin  string // of a user or password
	unknown   string // of a verb
}

var polatis = dialect{commands: polatisCommands, noLogin: "Not logged in", badLogin: "Permission denied", unknown: "Unknown command %.40s"}

// dialectOf returns the dialect of a device.
func dialectOf(p *emulator.Personality) *dialect {
	switch p.TL1.Dialect {
	case emulator.CalientTL1:
		return &calient
	case emulator.GlimmerglassTL1:
		return &glimmerglass
	}
	if p.Optics.VOAMax > 0 {
		return &attenuating
	}
	return &polatis
}

var polatisCommands = map[string]command{
	"ACT-USER":  {"", (*session).actUser},
	"CANC-USER": {emulator.Viewer, (*session).cancUser},
	"RTRV-HDR":  {emulator.Viewer, nothing},

	"ENT-PATCH":  {emulator.Operator, (*session).entPatch},
	"DLT-PATCH":  {emulator.Operator, (*session).dltPatch},
	"RTRV-PATCH": {emulator.Viewer, (*session).rtrvPatch},

	"OPR-PORT-SHUTTER":  {emulator.Operator, shutter(true)},
	"RLS-PORT-SHUTTER":  {emulator.Operator, shutter(false)},
	"RTRV-PORT-SHUTTER": {emulator.Viewer, (*session).rtrvShutter},
	"ENT-PORT-FLAP":     {emulator.Operator, (*session).entFlap},
	"OPR-PORT-FLAP":     {emulator.Operator, (*session).oprFlap},
	"RLS-PORT-FLAP":     {emulator.Operator, (*session).rlsFlap},
	"RTRV-PORT-FLAP":    {emulator.Viewer, (*session).rtrvFlap},
	"ED-PORT-LABEL":     {emulator.Operator, (*session).edLabel},
	"DLT-PORT-LABEL":    {emulator.Operator, (*session).dltLabel},
	"RTRV-PORT-LABEL":   {emulator.Viewer, (*session).rtrvLabel},

	"RTRV-PORT-POWER":    {emulator.Viewer, power((*emulator.Device).Power)},
	"RTRV-PORT-REVPOWER": {emulator.Viewer, power((*emulator.Device).ReversePower)},
	"RTRV-PORT-PMON":     {emulator.Viewer, (*session).rtrvMonitor},
	"RTRV-PORT-REVPMON":  {emulator.Viewer, (*session).rtrvMonitor},
	"SET-PORT-PMON":      {emulator.Operator, (*session).setMonitor},
	"SET-PORT-REVPMON":   {emulator.Operator, (*session).setMonitor},
	"SET-TH-PMON":        {emulator.Operator, (*session).setThreshold},
	"SET-TH-REVPMON":     {emulator.Operator, (*session).setThreshold},
	"RTRV-TH-PMON":       {emulator.Viewer, (*session).rtrvThreshold},
	"RTRV-TH-REVPMON":    {emulator.Viewer, (*session).rtrvThreshold},
	"SET-STATE-PMON":     {emulator.Operator, (*session).clearAlarms},
	"SET-STATE-REVPMON":  {emulator.Operator, (*session).clearAlarms},
	"RTRV-STATE-PMON":    {emulator.Viewer, (*session).rtrvAlarmState},
	"RTRV-STATE-REVPMON": {emulator.Viewer, (*session).rtrvAlarmState},

	"RTRV-EQPT":   {emulator.Viewer, (*session).rtrvEqpt},
	"ED-EQPT":     {emulator.Admin, (*session).edEqpt},
	"RTRV-INV":    {emulator.Viewer, (*session).rtrvInv},
	"RTRV-NETYPE": {emulator.Viewer, (*session).rtrvNetype},
	"SET-SID":     {emulator.Admin, (*session).setSID},
	"ED-DAT":      {emulator.Admin, (*session).edDat},
	"RTRV-TOD":    {emulator.Viewer, (*session).rtrvTod},
	"RTRV-IP":     {emulator.Viewer, netInterface("NAME=eth0,IP=127.0.0.1,GATEWAY=0.0.0.0,MASK=255.0.0.0,BROADCAST=127.255.255.255")},
	"RTRV-IPPORT": {emulator.Viewer, netInterface("NAME=eth0,TL1=3082")},
	"RTRV-MAC":    {emulator.Viewer, netInterface("NAME=eth0,MAC=02:00:00:00:00:01")},
	"INIT-SYS":    {emulator.Admin, (*session).initSys},

	"ENT-USER-SECU":  {emulator.Admin, (*session).entUser},
	"ED-USER-SECU":   {emulator.Admin, (*session).edUser},
	"DLT-USER-SECU":  {emulator.Admin, (*session).dltUser},
	"RTRV-USER-SECU": {emulator.Admin, (*session).rtrvUsers},
	"ED-SECU-PID":    {emulator.Viewer, (*session).edPassword},
	"RTRV-USER":      {emulator.Viewer, (*session).rtrvUser},

	"OPR-ARC-EQPT":  {emulator.Viewer, (*session).oprArc},
	"RLS-ARC-EQPT":  {emulator.Viewer, (*session).rlsArc},
	"RTRV-ARC-EQPT": {emulator.Viewer, (*session).rtrvArc},
	"RTRV-ALM-EQPT": {emulator.Viewer, (*session).rtrvAlarms},
	"RTRV-ALM-ENV":  {emulator.Viewer, (*session).rtrvAlarms},
	"RTRV-ALM-ALL":  {emulator.Viewer, (*session).rtrvAlarms},
}

var rank = map[emulator.Group]int{"": 0, emulator.Viewer: 1, emulator.Operator: 2, emulator.Admin: 3}

// dispatch checks what holds for every command and runs it.
func (ss *session) dispatch(c *tl1.Command) (reply, *denial) {
	if err := ss.checkTID(c); err != nil {
		return reply{}, err
	}
	if ctag := strings.TrimSpace(c.CTAG.Raw); !validCTAG(ctag) && (ctag != "" || !ss.dialect.nullCTAG) {
		return reply{}, badField(tl1.IICT, c.CTAG.Offset)
	}
	user, group := ss.who()
	cmd, known := ss.dialect.commands[c.Code]
	switch {
	case user == "" && (!known || cmd.need != ""):
		return reply{}, deny(tl1.PLNA, "%s", ss.dialect.noLogin)
	case !known:
		return reply{}, deny(tl1.IICM, ss.dialect.unknown, c.Code)
	case rank[group] >= rank[cmd.need]:
		return cmd.run(ss, c)
	case c.Code == "RTRV-USER-SECU":
		return reply{}, deny(tl1.SRCN, "User not in the admin group")
	case strings.HasSuffix(c.Code, "-USER-SECU"):
		return reply{}, deny(tl1.PICC, "User not in the admin group")
	}
	return reply{}, permissionDenied()
}

func nothing(*session, *tl1.Command) (reply, *denial) { return reply{}, nil }

func permissionDenied() *denial { return deny(tl1.PICC, "Permission denied") }

// checkTID accepts no TID, a quoted empty one, and the SID. A SID with blanks or
// dashes must be quoted.
func (ss *session) checkTID(c *tl1.Command) *denial {
	raw := strings.TrimSpace(c.TID.Raw)
	quoted := tl1.Unquote(raw) != raw
	switch text := c.TID.Text(); {
	case !quoted && !identifier(raw):
		return badField(tl1.IITA, c.TID.Offset)
	case text != "" && text != ss.dev.SID():
		return deny(tl1.IITA, "Mismatched TID")
	}
	return nil
}

// identifier reports whether s is empty or a TL1 identifier: a letter, then
// letters, digits, underscores and dots.
func identifier(s string) bool {
	return s == "" || isLetter(s[0]) && wordOf(s, "_.")
}

// validCTAG accepts a quoted string, or a word of letters, digits and -_. of
// any length.
func validCTAG(s string) bool {
	return tl1.Unquote(s) != s || s != "" && wordOf(s, "-_.")
}

func isLetter(c byte) bool { return 'a' <= c|0x20 && c|0x20 <= 'z' }

// wordOf reports whether s has only ASCII letters, digits and what is in more.
func wordOf(s, more string) bool {
	for i := range len(s) {
		if c := s[i]; !isLetter(c) && (c < '0' || c > '9') && strings.IndexByte(more, c) < 0 {
			return false
		}
	}
	return true
}

// ---- parts of commands

// The payload blocks as TL1 texts count them: by position first, by name second.
const (
	block1 = iota
	block2
)

func isOneOf(f tl1.Field, words ...string) bool {
	return slices.ContainsFunc(words, func(w string) bool { return strings.EqualFold(w, f.Text()) })
}

// badAID refuses an AID that is none of those that a command has.
func badAID(c *tl1.Command) *denial {
	if c.AID.Text() == "" {
		return tooFew(tl1.IIAC, 0, 1)
	}
	return deny(tl1.IIAC, "Invalid value %.40s", c.AID.Text())
}

func tooFew(code tl1.Code, have, want int) *denial {
	return deny(code, "Too few parameters (%d/%d)", have, want)
}

func invalidValue(s string) *denial { return deny(tl1.IDNV, "Invalid value %.40s", s) }

func notValid() *denial { return deny(tl1.IPNV, "Parameter not valid") }

// text1 returns block 1, which must not be empty.
func text1(c *tl1.Command) (string, *denial) {
	s := c.Block(block1).Text()
	if s == "" {
		return "", deny(tl1.IPMS, "Too few parameters (0/1) in block 1")
	}
	return s, nil
}

// positions returns the parameters of block 1 as they stand: there an '=' is a
// character like any other. There are n at least.
func positions(c *tl1.Command, n int) []string {
	b := c.Block(block1)
	var ps []string
	for i := range b.Params {
		ps = append(ps, tl1.Field{Raw: whole(b, i)}.Text())
	}
	return append(ps, make([]string, max(n-len(ps), 0))...)
}

// whole returns parameter i of b with its name.
func whole(b tl1.Block, i int) string {
	from := 0
	if i > 0 {
		p := b.Params[i-1].Value
		from = p.Offset - b.Offset + len(p.Raw) + 1
	}
	p := b.Params[i].Value
	return b.Raw[from : p.Offset-b.Offset+len(p.Raw)]
}

// named returns block 2, in which every parameter must have one of names, and
// at least one must be there.
func named(c *tl1.Command, names ...string) (tl1.Block, *denial) {
	b := c.Block(block2)
	if b.Text() == "" {
		return b, deny(tl1.IPMS, "Too few parameters (0/1) in block 2")
	}
	for i, p := range b.Params {
		if !slices.Contains(names, p.Name) {
			name, _, _ := strings.Cut(whole(b, i), "=")
			return b, deny(tl1.IPNV, "Unexpected parameter %.40s in block 2", strings.TrimSpace(name))
		}
	}
	return b, nil
}
