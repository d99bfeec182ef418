package netconf_test

import (
	"bytes"
	"encoding/xml"
	"errors"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/ocslab/ocslab/wire/netconf"
)

// FuzzDecoder checks that results do not depend on how a stream is cut, and
// that messages framed again come out the same.
func FuzzDecoder(f *testing.F) {
	f.Add([]byte("<hello/>]]>]]>"+rfcChunks), true, uint16(0), uint8(3))
	f.Add([]byte("<hello/>]]>]]>\n<a/>]]>]]>"), false, uint16(9), uint8(0))
	f.Add([]byte("]]>]]>\r\n\n#1\nx\n#2\nyz\n##\n\n#4294967295\n"), true, uint16(3), uint8(1))
	f.Fuzz(func(t *testing.T, stream []byte, chunked bool, limit uint16, size uint8) {
		framing := netconf.EndOfMessage
		if chunked {
			framing = netconf.Chunked
		}
		var ends [2]netconf.Decoder
		var msgs [2][]string
		var errs [2]error
		for i, step := range []func(int) int{whole, func(rest int) int { return min(rest, int(size)+1) }} {
			ends[i].MaxMessage = int(limit)
			msgs[i], errs[i] = decode(&ends[i], framing, slices.Clone(stream), step)
		}
		var a, b *netconf.FramingError
		switch {
		case !slices.Equal(msgs[0], msgs[1]):
			t.Fatalf("in one piece %q, in pieces of %d %q", msgs[0], int(size)+1, msgs[1])
		case errors.As(errs[0], &a) != errors.As(errs[1], &b) || a != nil && (a.Offset != b.Offset || a.Msg != b.Msg):
			t.Fatalf("in one piece %v, in pieces of %d %v", errs[0], int(size)+1, errs[1])
		case a == nil && ends[0].Pending() != ends[1].Pending():
			t.Fatalf("in one piece pending %t, in pieces of %d %t", ends[0].Pending(), int(size)+1, ends[1].Pending())
		case a != nil && (a.Offset < 0 || a.Offset >= int64(len(stream))):
			t.Fatalf("error at %d of %d bytes", a.Offset, len(stream))
		}
		var again []byte
		want := []string{""}
		again = append(again, "]]>]]>"...)
		for _, m := range msgs[0] {
			if limit > 0 && len(m) > int(limit) {
				t.Fatalf("a message of %d bytes is let through", len(m))
			}
			if m != "" && (chunked || !strings.Contains(m+"]]>]]", "]]>]]>")) {
				want = append(want, m)
				if chunked {
					again = netconf.AppendChunks(again, []byte(m), int(size))
				} else {
					again = netconf.AppendMessage(again, []byte(m), framing)
				}
			}
		}
		got, err := decode(new(netconf.Decoder), framing, again, whole)
		if err != nil || !slices.Equal(got, want) {
			t.Fatalf("%q, framed as %q, comes out as %q, %v", want, again, got, err)
		}
	})
}

// stricter has the errors of Parse for what encoding/xml takes, and why it does.
var stricter = regexp.MustCompile(strings.Join([]string{
	"is not declared",                    // takes the prefix for a namespace
	"given twice",                        // does not look
	"reserved", "cannot have the prefix", // does not look
	"declared without a namespace",  // does not look
	"is not a character of XML",     // reads a surrogate as U+FFFD
	"is not allowed in XML",         // does not look into comments
	"not UTF-8",                     // does not look into comments
	"processing instructions",       // an XML declaration that is not at the beginning
	"the name of an",                // has the fourth edition of XML 1.0
	"a colon too many|with a colon", // reads them as a part of the name
	"white space must precede",      // does not need it
	"more than \\d+ ",               // has no limits
}, "|"))

// isStricter reports whether an error of Parse is one that encoding/xml does not
// have. Of an XML declaration that reads only what it needs.
func isStricter(text []byte, err error) bool {
	if text = bytes.TrimLeft(text, " \t\r\n"); bytes.HasPrefix(text, []byte("<?xml")) {
		_, rest, _ := bytes.Cut(text, []byte("?>"))
		_, err = netconf.Parse(rest)
	}
	return err == nil || stricter.MatchString(err.Error())
}

// FuzzParse checks Parse against encoding/xml, and that what it takes can be
// written and read again.
func FuzzParse(f *testing.F) {
	for _, s := range []string{
		helloText, notificationText, usersData, statsData, editOf(pairs(2)), closeSession,
		"<?xml version='1.0' encoding='utf-8'?>\r\n<a x='&#9;\t' y=\"'\">1\r2&lt;&#x41;]] <!-- c --><![CDATA[<]]]]><b/>\u00e9</a>",
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		was := bytes.Clone(text)
		got, err := netconf.Parse(text)
		want, oerr := oracle(text)
		var se *netconf.SyntaxError
		switch {
		case !bytes.Equal(text, was):
			t.Fatal("the message has changed")
		case err != nil && (!errors.As(err, &se) || got != nil || se.Offset < 0 || se.Offset > len(text) || se.Line < 1):
			t.Fatalf("%q: error %#v", text, err)
		case err != nil && oerr == nil && !isStricter(text, err):
			t.Fatalf("%q: refused with %v, encoding/xml reads %s", text, err, want)
		case err != nil:
			return
		case oerr != nil && !isASCIIOnly(text) && strings.Contains(oerr.Error(), "invalid XML name"):
			// The fifth edition of XML 1.0 has more names.
		case oerr != nil:
			t.Fatalf("%q: read as %s, encoding/xml refuses: %v", text, got, oerr)
		case !netconf.Equal(normal(got), normal(want)):
			t.Fatalf("%q: read as %s, by encoding/xml as %s", text, got, want)
		}
		for _, indent := range []string{"", " "} {
			wire := got.Append(nil, indent)
			again, err := netconf.Parse(wire)
			if err != nil && strings.Contains(err.Error(), "more than") {
				continue // prefixes that had to be made up
			}
			if err != nil || !netconf.Equal(got, again) {
				t.Fatalf("%q, written as %q, is read as %s, %v", text, wire, again, err)
			}
		}
		if c := got.Clone(); !netconf.Equal(c, got) {
			t.Fatalf("%s is cloned to %s", got, c)
		}
	})
}

func isASCIIOnly(text []byte) bool {
	return !slices.ContainsFunc(text, func(c byte) bool { return c >= 0x80 })
}

// normal returns n with all white space in attributes as blanks, which
// encoding/xml leaves as it is.
func normal(n *netconf.Node) *netconf.Node {
	c := n.Clone()
	var walk func(n *netconf.Node)
	walk = func(n *netconf.Node) {
		n.Name = blanks(n.Name)
		for i, a := range n.Attrs {
			n.Attrs[i] = xml.Attr{Name: blanks(a.Name), Value: whites.Replace(a.Value)}
		}
		for _, c := range n.Children {
			walk(c)
		}
	}
	walk(c)
	return c
}

var whites = strings.NewReplacer("\r\n", " ", "\r", " ", "\n", " ", "\t", " ")

func blanks(n xml.Name) xml.Name {
	n.Space = whites.Replace(n.Space)
	return n
}

// FuzzEdit checks that no edit and no filter can do harm: the old tree stays
// as it is, an error changes nothing, what is unchanged leads to no changes,
// and the result can be edited and written again.
func FuzzEdit(f *testing.F) {
	f.Add([]byte("<d>"+cc("", pairs(3))+"</d>"), []byte(`<f xmlns:nc="`+base+`">`+cc(` nc:operation="replace"`, pairs(2))+"</f>"), uint8(0))
	f.Add([]byte("<d>"+usersData+"</d>"), []byte("<f>"+usersData+"</f>"), uint8(1))
	f.Add([]byte("<d/>"), []byte("<f>"+sys("<user operation='create'><name>bob</name><p:group>user</p:group><authorized-key operation='remove'><name>k</name></authorized-key></user>")+"</f>"), uint8(2))
	f.Fuzz(func(t *testing.T, data, edit []byte, op uint8) {
		first, err := netconf.Parse(data)
		if err != nil {
			return
		}
		n, err := netconf.Parse(edit)
		if err != nil {
			return
		}
		was := first.String() + n.String()
		selected := netconf.Filter(n, first.Children)
		if !subset(selected, first.Children) {
			t.Fatalf("%s selects %s of %s", n, texts(selected), first)
		}

		// The first makes a valid configuration of the data.
		config, _, rerr := netconf.Edit(nil, netconf.EditConfig{Config: first.Children}, model)
		if rerr != nil {
			config = nil
		}
		before := texts(config)
		e := netconf.EditConfig{Default: []netconf.Operation{"", netconf.Merge, netconf.Replace, netconf.None}[op%4], Config: n.Children}
		got, changes, rerr := netconf.Edit(config, e, model)
		if s := texts(config); s != before || first.String()+n.String() != was {
			t.Fatalf("the old configuration is now %s, was %s; or the edit has changed", s, before)
		}
		if rerr != nil {
			if _, err := netconf.Parse([]byte(rerr.Node().String())); err != nil || got != nil || changes != nil || rerr.Tag == "" {
				t.Fatalf("error %v, with %s; %v", rerr, texts(got), err)
			}
			return
		}
		if slices.EqualFunc(got, config, netconf.Equal) && len(changes) > 0 {
			t.Fatalf("nothing has changed, but %v", changeTexts(changes))
		}
		same, changes, rerr := netconf.Edit(got, netconf.EditConfig{Config: got}, model)
		if rerr != nil || len(changes) > 0 || texts(same) != texts(got) {
			t.Fatalf("%s, merged into itself, is %s; %v, %v", texts(got), texts(same), changeTexts(changes), rerr)
		}
	})
}
