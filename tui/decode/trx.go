package decode

import (
	"encoding/hex"
	"fmt"
	"math/bits"
	"regexp"
	"strconv"
	"strings"

	"github.com/ocslab/ocslab/internal/natural"
	"github.com/ocslab/ocslab/wire/cmis"
	"github.com/ocslab/ocslab/wire/cmis/ocst"
	"github.com/ocslab/ocslab/wire/trxlink"
)

// frameText is a frame as [trxlink.Frame.String] writes it, which is how it is traced.
var frameText = regexp.MustCompile(`^#(\d{1,3}) ([A-Za-z]+|kind [0-9A-F]{2}h)( reply)? (board|slot \d{1,3}): ?([0-9a-f ]*)$`)

// trxFrame says what a frame on the controller link is: "module 1: read 20 bytes at page B0h".
func trxFrame(message string) string {
	m := frameText.FindStringSubmatch(strings.TrimRight(message, "\r\n"))
	if m == nil {
		return ""
	}
	payload, err := hex.DecodeString(strings.ReplaceAll(m[5], " ", ""))
	if err != nil {
		return ""
	}
	where := m[4]
	if n, found := strings.CutPrefix(where, "slot "); found {
		slot, _ := strconv.Atoi(n) // three digits at most
		where = fmt.Sprintf("module %d", slot+1)
	}
	what := ""
	if m[3] == "" {
		what = trxRequest(m[2], payload)
	} else {
		what = trxReply(m[2], payload)
	}
	if what == "" {
		return ""
	}
	return where + ": " + what + " (#" + m[1] + ")"
}

// trxRequest says what a request asks for; "" if that cannot be read.
func trxRequest(kind string, p []byte) string {
	switch kind {
	case "hello":
		return "hello"
	case "read":
		if a, n, err := trxlink.ParseRead(p); err == nil {
			return "read " + natural.Count(n, "byte") + " at " + register(a)
		}
	case "write":
		if a, data, err := trxlink.ParseWrite(p); err == nil {
			return "write " + trxWrite(a, data)
		}
	case "CDB":
		if c, data, err := trxlink.ParseCDB(p); err == nil {
			return fmt.Sprintf("CDB %s, %s", cdbName(c), natural.Count(len(data), "byte"))
		}
	case "trigger":
		if mask, err := trxlink.ParseTrigger(p); err == nil {
			return "trigger of " + natural.Count(bits.OnesCount16(mask), "module")
		}
	case "plate":
		if s, err := trxlink.ParsePlate(p); err == nil {
			return plate(s)
		}
	}
	return ""
}

// trxReply says what a reply is: how it went, and what it brings.
func trxReply(kind string, p []byte) string {
	if len(p) == 0 {
		return ""
	}
	code, data := trxlink.Code(p[0]), p[1:]
	if code != trxlink.CodeOK {
		text := kind + " refused: " + code.String()
		if code == trxlink.CodeNotArmed && len(data) > 0 {
			text += fmt.Sprintf(", module %d", int(data[0])+1)
		}
		return text
	}
	switch kind {
	case "hello":
		if i, _, err := trxlink.ParseInfo(data); err == nil {
			return fmt.Sprintf("board %s, firmware %s, %s", i.Serial, i.Firmware, natural.Count(i.Slots, "slot"))
		}
	case "read":
		text := natural.Count(len(data), "byte")
		if len(data) > 0 {
			text += ": " + hexOf(data)
		}
		return text
	case "write":
		return "written"
	case "CDB":
		if len(data) > 0 {
			return fmt.Sprintf("CDB status %02Xh, %s", data[0], natural.Count(len(data)-1, "byte"))
		}
	case "trigger":
		return "triggered"
	case "plate":
		if s, err := trxlink.ParsePlateStatus(data); err == nil {
			return fmt.Sprintf("plate at %.1f °C, to hold %s", s.Now, plateAt(s.Set))
		}
	}
	return "ok"
}

// hexOf writes some bytes.
func hexOf(p []byte) string {
	if len(p) > 16 {
		return fmt.Sprintf("% x …", p[:16])
	}
	return fmt.Sprintf("% x", p)
}

func plate(s trxlink.PlateSetting) string {
	if s == trxlink.PlateLeave {
		return "read the plate"
	}
	return "hold the plate at " + plateAt(s)
}

func plateAt(s trxlink.PlateSetting) string {
	if c, ok := s.Celsius(); ok {
		return fmt.Sprintf("%.1f °C", c)
	}
	return "no temperature"
}

// register names the place of a read or write: "page B0h, state".
func register(a cmis.Address) string {
	if a.Offset < 128 {
		return "lower memory, byte " + strconv.Itoa(int(a.Offset))
	}
	text := fmt.Sprintf("page %02Xh:%d", a.Page, a.Offset)
	if a.Bank != 0 {
		text += fmt.Sprintf(", bank %d", a.Bank)
	}
	if name := pages[a.Page]; name != "" {
		text += " (" + name + ")"
	}
	return text
}

// pages are the pages of a transceiver.
var pages = map[uint8]string{
	ocst.PageControl: "control", ocst.PageMonitors: "powers", ocst.PageElements: "settings of elements", ocst.PageLog: "log of switches",
	ocst.PageHeaters: "heaters", ocst.PageCurrents: "heater currents", ocst.PageTable: "calibration table", ocst.PageScope: "transient",
	cmis.CDBPage: "CDB", 0x00: "identity", 0x10: "lane control",
}

// trxWrite says what a write does: one of the commit register commits.
func trxWrite(a cmis.Address, data []byte) string {
	end := int(a.Offset) + len(data)
	if a.Page == ocst.PageControl && int(a.Offset) <= ocst.RegCommit && end > ocst.RegCommit {
		commits := map[ocst.Commit]string{
			ocst.CommitNow: "switch now", ocst.CommitArm: "arm", ocst.CommitTrigger: "trigger", ocst.CommitDisarm: "disarm",
		}
		if c := commits[ocst.Commit(data[ocst.RegCommit-int(a.Offset)])]; c != "" {
			text := c
			if at := ocst.RegStaged - int(a.Offset); at >= 0 && at+1 < len(data) {
				text += fmt.Sprintf(", lanes %08b to %v", data[at+1], ocst.Path(data[at]))
			}
			return hexOf(data) + " at " + register(a) + ": " + text
		}
	}
	return hexOf(data) + " at " + register(a)
}

// cdbName names a CDB command.
func cdbName(c uint16) string {
	names := map[uint16]string{
		ocst.CDBSwitch: "switch", ocst.CDBCalibrate: "calibrate", ocst.CDBReadTable: "read table", ocst.CDBVerification: "verification",
		ocst.CDBHeaterTest: "heater test", ocst.CDBPermute: "permute the loop", ocst.CDBLoadTable: "load table",
	}
	if n := names[c]; n != "" {
		return n
	}
	return fmt.Sprintf("%04Xh", c)
}
