// Package decode makes of the bytes that go to a switch and come from it messages, and of
// messages a line for people.
//
//	f := decode.New("tl1", true)
//	for _, m := range f.Add(p) {
//		fmt.Println(decode.Text("tl1", true, m))
//	}
//
// Bytes are those that drivers trace: secrets are masked in them. Schemes are those of
// switch URLs; what carries the bytes ("tl1+ssh") makes no difference, and of a scheme
// that is not known each line is a message.
//
// The codecs of package wire take messages apart. What they cannot read, and what is not
// known here, is given as it is, shortened and with control characters shown: a line of a
// log must never hide that something strange was said.
package decode

import (
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// MaxText is how long a text is at most, in characters.
const MaxText = 160

// language returns what is spoken on a scheme: "tl1" of "tl1+ssh".
func language(scheme string) string {
	name, _, _ := strings.Cut(scheme, "+")
	return name
}

// Text says in one line what a message means: "connect 1>33 (ENT-PATCH)", "completed",
// "14 cross-connects". A message is what a [Framer] gives; sent tells which way it went.
// Any bytes are a message, and the text is never empty unless the message is.
func Text(scheme string, sent bool, message string) string {
	var text string
	switch language(scheme) {
	case "tl1":
		if sent {
			text = tl1Command(message)
		} else {
			text = tl1Message(message)
		}
	case "scpi":
		if sent {
			text = scpiMessage(message)
		} else {
			text = scpiReply(message)
		}
	case "netconf":
		text = netconfMessage(message)
	case "ocstrx":
		text = trxFrame(message)
	}
	if text == "" {
		text = message
	}
	return short(text)
}

// short makes of any text one line of at most MaxText characters: runs of blanks and line
// ends become one blank, other control characters "·", and bytes that are no UTF-8 "�".
func short(text string) string {
	var b strings.Builder
	n, blank := 0, false
	for _, r := range text {
		switch {
		case unicode.IsSpace(r):
			blank = b.Len() > 0
			continue
		case unicode.IsControl(r):
			r = '·'
		}
		if n >= MaxText-2 {
			b.WriteRune('…')
			return b.String()
		}
		if blank {
			b.WriteByte(' ')
			n++
		}
		blank = false
		b.WriteRune(r)
		n++
	}
	if b.Len() == 0 && text != "" {
		return "blank line"
	}
	return b.String()
}

// list joins things, and counts them when they are more than most.
func list(things []string, most int) string {
	if len(things) <= most {
		return strings.Join(things, ",")
	}
	return strings.Join(things[:most], ",") + ",… of " + strconv.Itoa(len(things))
}

// cutText shortens a text within another one.
func cutText(s string, n int) string {
	if utf8.RuneCountInString(s) <= n {
		return s
	}
	return string([]rune(s)[:n-1]) + "…"
}
