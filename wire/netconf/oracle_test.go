package netconf_test

import (
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/ocslab/ocslab/wire/netconf"
)

// oracle parses text with encoding/xml.
func oracle(text []byte) (*netconf.Node, error) {
	d := xml.NewDecoder(strings.NewReader(string(text)))
	var root *netconf.Node
	var open []*netconf.Node
	for {
		tok, err := d.Token()
		if err != nil {
			if root != nil && len(open) == 0 && errors.Is(err, io.EOF) {
				return root, nil
			}
			return nil, err
		}
		switch tok := tok.(type) {
		case xml.StartElement:
			n := &netconf.Node{Name: tok.Name}
			for _, a := range tok.Attr {
				if a.Name != (xml.Name{Local: "xmlns"}) {
					n.Attrs = append(n.Attrs, a)
				}
			}
			if len(open) > 0 {
				top := open[len(open)-1]
				if len(top.Children) == 0 && strings.Trim(top.Text, " \t\r\n") == "" {
					top.Text = ""
				}
				top.Children = append(top.Children, n)
			} else if root == nil {
				root = n
			} else {
				return nil, fmt.Errorf("two roots")
			}
			open = append(open, n)
		case xml.EndElement:
			open = open[:len(open)-1]
		case xml.CharData:
			text := string(tok)
			blank := strings.Trim(text, " \t\r\n") == ""
			switch {
			case len(open) == 0 && !blank:
				return nil, fmt.Errorf("text outside the root")
			case len(open) == 0:
			case blank && len(open[len(open)-1].Children) > 0:
			default:
				open[len(open)-1].Text += text
			}
		case xml.Directive, xml.ProcInst:
			if p, ok := tok.(xml.ProcInst); !ok || p.Target != "xml" {
				return nil, fmt.Errorf("a directive or processing instruction")
			}
		}
	}
}
