package netconf_test

import (
	"encoding/xml"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/ocslab/ocslab/wire/netconf"
)

const (
	opsw = "http://www.polatis.com/yang/optical-switch"
	plts = "http://www.polatis.com/yang/polatis-switch"
)

// parse parses XML that is known to be right.
func parse(t testing.TB, s string) *netconf.Node {
	t.Helper()
	n, err := netconf.Parse([]byte(s))
	if err != nil {
		t.Fatalf("%v in %s", err, s)
	}
	return n
}

func TestParse(t *testing.T) {
	attr := func(space, local, value string) xml.Attr {
		return xml.Attr{Name: xml.Name{Space: space, Local: local}, Value: value}
	}
	for _, tt := range []struct {
		text string
		want *netconf.Node
	}{
		{"<a/>", netconf.El("", "a")},
		{"\n<?xml version='1.0' encoding=\"utf-8\" standalone='no' ?>\n<!-- x - y --><a></a >\r\n<!---->", netconf.El("", "a")},
		{"<a> x </a>", netconf.Leaf("", "a", " x ")},
		{"<a>\n <b/>\n <c/>\n</a>", netconf.El("", "a", netconf.El("", "b"), netconf.El("", "c"))},
		{"<a>x<b/> <c/>y</a>", &netconf.Node{Name: xml.Name{Local: "a"}, Text: "xy", Children: []*netconf.Node{netconf.El("", "b"), netconf.El("", "c")}}},
		{"<a> <![CDATA[ ]]><b/></a>", netconf.El("", "a", netconf.El("", "b"))},
		{"<a>&lt;&gt;&amp;&apos;&quot;&#65;&#x41;&#x1F600;]]&gt;</a>", netconf.Leaf("", "a", "<>&'\"AA😀]]>")},
		{"<a><![CDATA[<b>&amp;\r\n]]]]>x<!-- -->y<![CDATA[z\r]]></a>", netconf.Leaf("", "a", "<b>&amp;\n]]xyz\n")},
		{"<a>1\r\n2\r3\n4&#13;</a>", netconf.Leaf("", "a", "1\n2\n3\n4\r")},
		{"<é:ü xmlns:é='u'/>", &netconf.Node{Name: xml.Name{Space: "u", Local: "ü"}, Attrs: []xml.Attr{attr("xmlns", "é", "u")}}},
		{"<a x = 'a\tb\r\nc\r&#9;&quot;\"' y=\"'é\" />", &netconf.Node{Name: xml.Name{Local: "a"}, Attrs: []xml.Attr{attr("", "x", "a b c \t\"\""), attr("", "y", "'é")}}},
		{"<a xml:lang='en'/>", &netconf.Node{Name: xml.Name{Local: "a"}, Attrs: []xml.Attr{attr("http://www.w3.org/XML/1998/namespace", "lang", "en")}}},
		{
			"<a xmlns='u' xmlns:p='v' p:x='1' x='2'><p:b><c xmlns=''><d/></c></p:b><p:b xmlns:p='w'/><p:b/></a>",
			&netconf.Node{
				Name:  xml.Name{Space: "u", Local: "a"},
				Attrs: []xml.Attr{attr("xmlns", "p", "v"), attr("v", "x", "1"), attr("", "x", "2")},
				Children: []*netconf.Node{
					netconf.El("v", "b", netconf.El("", "c", netconf.El("", "d"))),
					{Name: xml.Name{Space: "w", Local: "b"}, Attrs: []xml.Attr{attr("xmlns", "p", "w")}},
					netconf.El("v", "b"),
				},
			},
		},
	} {
		got, err := netconf.Parse([]byte(tt.text))
		if err != nil {
			t.Errorf("%q: %v", tt.text, err)
			continue
		}
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("%q: %s", tt.text, diff)
		}
		again := parse(t, got.String())
		if !netconf.Equal(got, again) {
			t.Errorf("%q, written as %s, is read as %s", tt.text, got, again)
		}
	}
}

func TestParseErrors(t *testing.T) {
	deep := strings.Repeat("<a>", netconf.MaxDepth)
	var attrs, prefixes strings.Builder
	for i := range netconf.MaxAttrs + 1 {
		fmt.Fprintf(&attrs, " a%d=''", i)
	}
	for i := range netconf.MaxPrefixes + 1 {
		fmt.Fprintf(&prefixes, "<a xmlns:p%d='u'>", i)
		if i%100 == 99 {
			prefixes.WriteString("<!-- \n -->")
		}
	}
	for _, tt := range []struct {
		text   string
		offset int
		msg    string
	}{
		{"", 0, "no element"},
		{" \n", 2, "no element"},
		{"x", 0, "text before the first element"},
		{"\ufeff<a/>", 0, "text before the first element"},
		{"<a/>x", 4, "behind the end"},
		{"<a/><b/>", 4, "behind the end"},
		{"<a>\n<b>", 7, `"b" is not closed`},
		{"<a>x", 4, `"a" is not closed`},
		{"<a></b>", 3, `"a" is not closed`},
		{"<a></ab>", 3, `"a" is not closed`},
		{"<a></a", 3, `"a" is not closed`},
		{"<a><", 3, "a tag is not closed"},
		{"<a", 0, `the tag of "a" is not closed`},
		{"<a/", 0, `the tag of "a" is not closed`},
		{"<a?>", 0, `the tag of "a" is not closed`},
		{"< a/>", 1, "the name of an element is expected"},
		{"<1/>", 1, "the name of an element is expected"},
		{"<a×/>", 2, "white space must precede an attribute"},
		{"<\xff/>", 1, "the name of an element is expected"},
		{"<:a/>", 1, "a colon too many"},
		{"<a:/>", 1, "ends with a colon"},
		{"<a:b:c/>", 1, "a colon too many"},
		{"<a:b/>", 1, `the prefix "a" is not declared`},
		{"<a><b xmlns:p='u'></b><p:c/></a>", 23, `the prefix "p" is not declared`},
		{"<a><b xmlns:p='u'/><p:c/></a>", 20, `the prefix "p" is not declared`},
		{"<a b:c=''/>", 3, `the prefix "b" is not declared`},
		{"<a b='' b=''/>", 8, "given twice"},
		{"<a xmlns:b='u' xmlns:c='u' b:x='' c:x=''/>", 34, "given twice, with two prefixes"},
		{"<a b/>", 4, "an attribute has no value"},
		{"<a b=c/>", 5, "must be in quotes"},
		{"<a b='c/>", 5, "is not closed"},
		{"<a b='<'/>", 6, `"&lt;"`},
		{"<a b='&x;'/>", 6, `the entity "x" is unknown`},
		{"<a b='\x01'/>", 6, "U+0001 is not allowed"},
		{"<a b=''c=''/>", 7, "white space must precede"},
		{"<a 1=''/>", 3, "the name of an attribute is expected"},
		{"<a xmlns:b=''/>", 3, "declared without a namespace"},
		{"<a xmlns:xmlns='u'/>", 3, "reserved"},
		{"<a xmlns:xml='u'/>", 3, "reserved"},
		{"<a xmlns:x='http://www.w3.org/XML/1998/namespace'/>", 3, "reserved"},
		{"<a xmlns='http://www.w3.org/2000/xmlns/'/>", 3, "reserved"},
		{"<xml:a/>", 0, "cannot have the prefix xml"},
		{"<a>]]></a>", 3, `"]]&gt;"`},
		{"<a>&</a>", 3, `"&amp;"`},
		{"<a>&lt</a>", 3, `"&amp;"`},
		{"<a>&nbsp;</a>", 3, `the entity "nbsp" is unknown`},
		{"<a>&#0;</a>", 3, "is not a character"},
		{"<a>&#xD800;</a>", 3, "is not a character"},
		{"<a>&#x110000;</a>", 3, "is not a character"},
		{"<a>&#+65;</a>", 3, "is not a character"},
		{"<a>&#X41;</a>", 3, "is not a character"},
		{"<a>\n\x00</a>", 4, "U+0000 is not allowed"},
		{"<a>x\x01</a>", 4, "U+0001 is not allowed"},
		{"<a>\xff</a>", 3, "not UTF-8"},
		{"<a>\uffff</a>", 3, "U+FFFF is not allowed"},
		{"<a><!-- -- --></a>", 8, `"--" is not allowed`},
		{"<a><!-- </a>", 3, "a comment is not closed"},
		{"<!-- \x01 --><a/>", 5, "U+0001"},
		{"<a><![CDATA[</a>", 3, "a CDATA section is not closed"},
		{"<a><![CDATA[\x01]]></a>", 12, "U+0001"},
		{"<![CDATA[x]]>", 1, "the name of an element is expected"},
		{"<!DOCTYPE a><a/>", 1, "a document type is not allowed"},
		{`<?xml version="1.0"?><!DOCTYPE lolz [<!ENTITY lol "lol">]><lolz>&lol;</lolz>`, 22, "a document type is not allowed"},
		{"<a><?php ?></a>", 4, "processing instructions are not allowed"},
		{"<?xml-stylesheet href='x'?><a/>", 1, "processing instructions are not allowed"},
		{"<?xml version='1.1'?><a/>", 6, "only XML 1.0"},
		{"<?xml version='1.0' encoding='latin1'?><a/>", 20, "only UTF-8"},
		{"<?xml encoding='utf-8'?><a/>", 0, "no version"},
		{"<?xml version='1.0' x='1'?><a/>", 20, "unknown attribute"},
		{"<?xml version='1.0' x:y='1'?><a/>", 20, "unknown attribute"},
		{"<?xml version='1.0'><a/>", 19, "not closed"},
		{"<?xml version=1.0?><a/>", 14, "in quotes"},
		{deep + "<a/>" + "<b><c/>", 3*netconf.MaxDepth + 4, "more than 128 elements are within each other"},
		{"<a" + attrs.String() + "/>", -1, "more than 64 attributes"},
		{prefixes.String(), -1, "more than 128 declarations"},
		{"<a>" + strings.Repeat("<a/>", netconf.MaxNodes), -1, "more than 262144 elements and attributes"},
		{"<a>" + strings.Repeat("<a b='' c=''/>", netconf.MaxNodes/2), -1, "more than 262144 elements and attributes"},
	} {
		n, err := netconf.Parse([]byte(tt.text))
		var se *netconf.SyntaxError
		if !errors.As(err, &se) || n != nil || !strings.Contains(err.Error(), tt.msg) {
			t.Errorf("%.60q: %v, want %q", tt.text, err, tt.msg)
			continue
		}
		if tt.offset >= 0 && se.Offset != tt.offset {
			t.Errorf("%.60q: %q at %d, want %d", tt.text, se.Msg, se.Offset, tt.offset)
		}
		if want := 1 + strings.Count(tt.text[:se.Offset], "\n"); se.Line != want {
			t.Errorf("%.60q: line %d, want %d", tt.text, se.Line, want)
		}
	}
}

func TestAppendNode(t *testing.T) {
	el, leaf := netconf.El, netconf.Leaf
	with := func(n *netconf.Node, attrs ...xml.Attr) *netconf.Node {
		n.Attrs = attrs
		return n
	}
	attr := func(space, local, value string) xml.Attr {
		return xml.Attr{Name: xml.Name{Space: space, Local: local}, Value: value}
	}
	for _, tt := range []struct {
		n              *netconf.Node
		indent, expect string
	}{
		{el("", "a"), "", "<a/>"},
		{leaf("u", "a", ""), "", `<a xmlns="u"/>`},
		{el("u", "a", el("u", "b"), el("", "c", el("", "d")), el("v&\"", "e")), "",
			`<a xmlns="u"><b/><c xmlns=""><d/></c><e xmlns="v&amp;&quot;"/></a>`},
		{leaf("", "a", "<&>]]>'\"\r\n\t\x00\xffé\ufffd"), "", "<a>&lt;&amp;&gt;]]&gt;'\"&#13;\n\t\ufffd\ufffdé\ufffd</a>"},
		{with(el("", "a"), attr("", "b", "<\"'\t\n\r>")), "", `<a b="&lt;&quot;'&#9;&#10;&#13;&gt;"/>`},
		{with(el("", "a"), attr("", "xmlns", "u"), attr("xmlns", "p", "u"), attr("u", "x", "1")), "", `<a xmlns:p="u" p:x="1"/>`},
		{with(el("", "a"), attr(netconf.Base, "operation", "delete")), "",
			`<a xmlns:nc="urn:ietf:params:xml:ns:netconf:base:1.0" nc:operation="delete"/>`},
		{with(el("", "a", with(el("", "b"), attr("v", "x", "1"), attr("u", "x", "2"), attr("v", "y", "3"))), attr("xmlns", "ns1", "u")), "",
			`<a xmlns:ns1="u"><b xmlns:ns2="v" ns2:x="1" ns1:x="2" ns2:y="3"/></a>`},
		{with(el("", "a", with(el("", "b"), attr("xmlns", "p", "v"), attr("u", "x", "1"))), attr("xmlns", "p", "u")), "",
			`<a xmlns:p="u"><b xmlns:p="v" xmlns:ns1="u" ns1:x="1"/></a>`},
		{el("", "a", el("", "b", leaf("", "c", "x")), leaf("", "d", "")), "  ", "<a>\n  <b>\n    <c>x</c>\n  </b>\n  <d/>\n</a>"},
		{&netconf.Node{Name: xml.Name{Local: "a"}, Text: "x", Children: []*netconf.Node{el("", "b", el("", "c"))}}, "  ", "<a>x<b><c/></b></a>"},
	} {
		if got := string(tt.n.Append([]byte("."), tt.indent)); got != "."+tt.expect {
			t.Errorf("got  %q\nwant %q", got, "."+tt.expect)
		}
		if _, err := netconf.Parse(tt.n.Append(nil, tt.indent)); err != nil {
			t.Errorf("%s: %v", tt.n, err)
		}
	}
}

// nodes draws trees as Parse returns them.
func nodes() *rapid.Generator[*netconf.Node] {
	space := rapid.SampledFrom([]string{"", "u", opsw, netconf.Base})
	local := rapid.SampledFrom([]string{"a", "pair", "ingress", "é-1"})
	text := rapid.OneOf(rapid.SampledFrom([]string{"", " ", "1", "]]>", "<&>\"'", "\r\n\t"}),
		rapid.StringOf(rapid.RuneFrom([]rune("ab \n<é😀]>"))))
	var tree func(depth int) *rapid.Generator[*netconf.Node]
	tree = func(depth int) *rapid.Generator[*netconf.Node] {
		return rapid.Custom(func(t *rapid.T) *netconf.Node {
			n := netconf.Leaf(space.Draw(t, "space"), local.Draw(t, "name"), text.Draw(t, "text"))
			for _, name := range rapid.SliceOfNDistinct(local, 0, 2, rapid.ID).Draw(t, "attributes") {
				n.Attrs = append(n.Attrs, xml.Attr{
					Name:  xml.Name{Space: space.Draw(t, "space"), Local: name},
					Value: text.Draw(t, "value"),
				})
			}
			if depth > 0 {
				n.Children = rapid.SliceOfN(tree(depth-1), 0, 3).Draw(t, "children")
			}
			if len(n.Children) == 0 {
				n.Children = nil
			} else if strings.TrimSpace(n.Text) == "" {
				n.Text = ""
			}
			return n
		})
	}
	return tree(3)
}

func TestNodeRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := nodes().Draw(t, "node")
		for _, indent := range []string{"", "\t"} {
			wire := n.Append(nil, indent)
			if strings.Contains(string(wire), "]]>") {
				t.Fatalf("%q contains ]]>", wire)
			}
			got, err := netconf.Parse(wire)
			if err != nil || !netconf.Equal(n, got) {
				t.Fatalf("%s\nis read as\n%v, %v", wire, got, err)
			}
		}
		c := n.Clone()
		if diff := cmp.Diff(n, c); diff != "" {
			t.Fatal(diff)
		}
		c.Children = append(c.Children, netconf.El("", "x"))
		if netconf.Equal(n, c) || netconf.Equal(c, n) {
			t.Fatal("a node is equal to one with a child more")
		}
	})
}

func TestNode(t *testing.T) {
	n := parse(t, `<a xmlns="u" x="1"><b/><b>1</b><b xmlns="v">2</b></a>`)
	if c := n.Child("v", "b"); c == nil || c.Text != "2" {
		t.Errorf("Child(v, b) = %v", c)
	}
	if got := n.Value("b"); got != "" {
		t.Errorf("Value(b) = %q", got)
	}
	two := parse(t, `<a><b x="1"><c/></b><d y="1"><e/></d></a>`)
	b := two.Children[0]
	b.Children = append(b.Children, n)
	b.Attrs = append(b.Attrs, n.Attrs...)
	if s := two.Children[1].String(); s != `<d y="1"><e/></d>` {
		t.Errorf("appending to a node has changed the next one to %s", s)
	}
	var none *netconf.Node
	if none.Child("", "b").Value("c") != "" || none.Is("", "a") || none.Clone() != nil || none.String() != "" {
		t.Error("a nil node is something")
	}
	if v, ok := n.Attr("", "x"); v != "1" || !ok {
		t.Errorf("Attr(x) = %q, %t", v, ok)
	}
	if _, ok := n.Attr("u", "x"); ok {
		t.Error("an attribute without prefix is in the default namespace")
	}
	if netconf.Equal(n, nil) || !netconf.Equal(none, nil) {
		t.Error("Equal is wrong about nil")
	}
	for _, other := range []string{
		`<a xmlns="u" x="2"><b/><b>1</b><b xmlns="v">2</b></a>`,
		`<a xmlns="u"><b/><b>1</b><b xmlns="v">2</b></a>`,
		`<a xmlns="u" x="1"><b>1</b><b/><b xmlns="v">2</b></a>`,
		`<a x="1"><b xmlns="u"/><b xmlns="u">1</b><b xmlns="v">2</b></a>`,
	} {
		if o := parse(t, other); netconf.Equal(n, o) || netconf.Equal(o, n) {
			t.Errorf("%s equals %s", n, o)
		}
	}
	if o := parse(t, `<p:a xmlns:p="u" x="1"><p:b/><p:b>1</p:b><q:b xmlns:q="v">2</q:b></p:a>`); !netconf.Equal(n, o) {
		t.Errorf("%s does not equal %s", n, o)
	}
}
