package tl1switch

import (
	"bytes"
	"strings"

	"github.com/ocslab/ocslab/wire/tl1"
)

// hider takes the password out of text for people. What the device says may
// hold it, too: in the echo of the login, or in a complaint about it.
type hider struct{ find, put []string }

func newHider(password string) hider {
	var h hider
	if password == "" {
		return h
	}
	add := func(find, put string) { h.find, h.put = append(h.find, find), append(h.put, put) }
	wire := tl1.Quote(password)
	if len(password) < 4 {
		// Would hide ordinary text: only where it stands as in the login.
		add(":"+wire+";", ":***;")
		return h
	}
	add(wire, "***")
	if wire != password {
		add(wire[1:len(wire)-1], "***")
		add(password, "***")
	}
	return h
}

func (h hider) text(s string) string {
	for i, find := range h.find {
		s = strings.ReplaceAll(s, find, h.put[i])
	}
	return s
}

// open returns how many bytes at the end of p may be the beginning of the
// password.
func (h hider) open(p []byte) int {
	most := 0
	for _, find := range h.find {
		for n := min(len(find)-1, len(p)); n > most; n-- {
			if bytes.HasSuffix(p, []byte(find[:n])) {
				most = n
			}
		}
	}
	return most
}

// sent traces a request.
func (sw *Switch) sent(p []byte) {
	if sw.cfg.Trace != nil {
		sw.trace(Sent, []byte(sw.hide.text(string(p))))
	}
}

// received returns a function that traces what one session receives, piece by
// piece; nil is the end. What may be half of the password waits for the next
// piece.
func (sw *Switch) received() func(p []byte) {
	if sw.cfg.Trace == nil {
		return func([]byte) {}
	}
	var held []byte
	return func(p []byte) {
		text := []byte(sw.hide.text(string(append(held, p...))))
		keep := 0
		if p != nil {
			keep = sw.hide.open(text)
		}
		sw.trace(Received, text[:len(text)-keep])
		held = text[len(text)-keep:]
	}
}

func (sw *Switch) trace(d Direction, p []byte) {
	if len(p) == 0 {
		return
	}
	sw.tracing.Lock()
	defer sw.tracing.Unlock()
	sw.cfg.Trace(d, p)
}
