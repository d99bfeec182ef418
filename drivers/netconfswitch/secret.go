package netconfswitch

import (
	"regexp"
	"strings"
)

// The driver never asks for accounts, but a device may answer with more than was
// asked for. What stands in an element whose name ends in password or secret is
// masked, also when the element does not end.
var secretElement = regexp.MustCompile(`(?is)(<(?:[\w.-]+:)?[\w.-]*(?:password|secret)(?:\s(?:[^>]*[^/>])?)?>).*?(</|$)`)

// secretName is the name of such an element.
var secretName = regexp.MustCompile(`(?i)(?:password|secret)$`)

// The headers of chunks may stand anywhere, also in the name of an element.
var chunkHeader = regexp.MustCompile(`\n#[1-9]\d{0,9}\n`)

// mask takes secrets out of text for people.
func mask(s string) string {
	if s == "" {
		return s
	}
	low := strings.ToLower(s)
	if !strings.Contains(low, "<") {
		return s
	}
	if strings.Contains(s, "\n#") {
		low = strings.ToLower(chunkHeader.ReplaceAllString(s, ""))
	}
	if !strings.Contains(low, "password") && !strings.Contains(low, "secret") {
		return s
	}
	return secretElement.ReplaceAllString(chunkHeader.ReplaceAllString(s, ""), "$1***$2")
}

// sent traces a message with its framing.
func (sw *Switch) sent(p []byte) { sw.trace(true, p) }

// received traces a message, or the part of one with which a session ended.
func (sw *Switch) received(p []byte) { sw.trace(false, p) }

func (sw *Switch) trace(sent bool, p []byte) {
	if sw.cfg.Trace == nil || len(p) == 0 {
		return
	}
	text := []byte(mask(string(p)))
	sw.tracing.Lock()
	defer sw.tracing.Unlock()
	sw.cfg.Trace(sent, text)
}
