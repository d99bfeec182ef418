package decode

import (
	"math"
	"strconv"
	"strings"

	"github.com/ocslab/ocslab/internal/natural"
	"github.com/ocslab/ocslab/wire/netconf"
)

// netconfMessage says what a message is, in either direction.
func netconfMessage(message string) string {
	root, err := netconf.Parse(unframe(message))
	if err != nil {
		return ""
	}
	switch root.Name.Local {
	case "hello":
		return netconfHello(root)
	case "rpc":
		rpc, rerr := netconf.ParseRPC(root)
		if rerr != nil || rpc.Operation == nil {
			return ""
		}
		return "rpc " + rpc.MessageID + ": " + operation(rpc.Operation)
	case "rpc-reply":
		r, err := netconf.ParseReply(root)
		if err != nil {
			return ""
		}
		return "reply " + r.MessageID + ": " + reply(r)
	case "notification":
		n, _ := netconf.ParseNotification(root) // without its time it is one all the same
		if n.Event == nil {
			return ""
		}
		return "report: " + event(n.Event)
	}
	return ""
}

// unframe takes the framing off a message.
func unframe(message string) []byte {
	text := strings.TrimLeft(message, " \t\r\n")
	for strings.HasPrefix(text, endOfMessage) { // that of the message before
		text = strings.TrimLeft(text[len(endOfMessage):], " \t\r\n")
	}
	if !strings.HasPrefix(text, "#") {
		text, _, _ = strings.Cut(text, endOfMessage)
		return []byte(strings.TrimSpace(text))
	}
	var d netconf.Decoder
	d.SetFraming(netconf.Chunked)
	d.Feed([]byte("\n" + text))
	msg, ok, err := d.Next()
	if !ok || err != nil {
		return []byte(text)
	}
	return msg
}

func netconfHello(root *netconf.Node) string {
	h, err := netconf.ParseHello(root)
	if err != nil {
		return ""
	}
	text := "hello, " + natural.Count(len(h.Capabilities), "capability")
	if len(h.Capabilities) != 1 {
		text = "hello, " + strconv.Itoa(len(h.Capabilities)) + " capabilities"
	}
	if h.SessionID != 0 {
		text += ", session " + strconv.FormatUint(uint64(h.SessionID), 10)
	}
	for _, c := range h.Capabilities {
		if m := netconf.ParseCapability(c); m.Module == "optical-switch" {
			text += ", " + m.Module + " " + m.Revision
		}
	}
	return text
}

// operation says what a request asks for.
func operation(op *netconf.Node) string {
	switch op.Name.Local {
	case "get", "get-config":
		f := op.Child("", "filter")
		if f == nil {
			return op.Name.Local + " everything"
		}
		return op.Name.Local + " " + wanted(f)
	case "edit-config":
		e, err := netconf.ParseEditConfig(op)
		if err != nil {
			return op.Name.Local
		}
		var all []string
		for _, c := range e.Config {
			all = append(all, edit(c))
		}
		return "edit-config " + strings.Join(all, "; ")
	case "port-set-state":
		var all []string
		for _, x := range []struct{ leaf, does string }{{"port-disab", "close shutters "}, {"port-enab", "open shutters "}} {
			var names []string
			for _, c := range op.Children {
				if c.Name.Local == x.leaf {
					names = append(names, strings.TrimSpace(c.Text))
				}
			}
			if len(names) > 0 {
				all = append(all, x.does+list(names, mostNamed))
			}
		}
		return strings.TrimSpace("port-set-state " + strings.Join(all, "; "))
	}
	return leaves(op)
}

// wanted names what a filter selects: "cross-connects", "opm-power of 32 ports".
func wanted(filter *netconf.Node) string {
	var all []string
	for _, c := range filter.Children {
		text := c.Name.Local
		n := 0
		for _, e := range c.Children {
			if len(e.Children) > 0 && e.Children[0].Text != "" {
				n++
			}
		}
		if n > 0 {
			text += " of " + natural.Count(n, "entry")
			if n > 1 {
				text = c.Name.Local + " of " + strconv.Itoa(n) + " entries"
			}
		}
		all = append(all, text)
	}
	if len(all) == 0 {
		return "nothing"
	}
	return strings.Join(all, ", ")
}

// edit says what an edit of one part of the configuration does.
func edit(n *netconf.Node) string {
	if n.Name.Local != "cross-connects" {
		return leaves(n)
	}
	if op := operationOf(n); op == "delete" || op == "remove" {
		return "disconnect all"
	}
	var add, remove []string
	for _, p := range n.Children {
		in, out := strings.TrimSpace(p.Value("ingress")), strings.TrimSpace(p.Value("egress"))
		switch op := operationOf(p); {
		case op == "delete" || op == "remove":
			if out != "" {
				in += ">" + out
			}
			remove = append(remove, in)
		default:
			add = append(add, in+">"+out)
		}
	}
	var all []string
	if op := operationOf(n); op == "replace" {
		all = append(all, "replace all")
	}
	if len(remove) > 0 {
		all = append(all, "disconnect "+list(remove, mostNamed))
	}
	if len(add) > 0 {
		all = append(all, "connect "+list(add, mostNamed))
	}
	if len(all) == 0 {
		return n.Name.Local
	}
	return strings.Join(all, ", ")
}

// operationOf is the operation attribute of an element, with its namespace or without.
func operationOf(n *netconf.Node) string {
	if op, ok := n.Attr(netconf.Base, "operation"); ok {
		return op
	}
	op, _ := n.Attr("", "operation")
	return op
}

// reply says what a reply brings.
func reply(r netconf.Reply) string {
	var all []string
	for _, e := range r.Errors {
		word := "error: "
		if e.Warning() {
			word = "warning: "
		}
		all = append(all, word+e.Error())
	}
	if r.OK {
		all = append(all, "ok")
	}
	if r.Data != nil {
		if len(r.Data.Children) == 0 {
			all = append(all, "nothing there")
		}
		for _, c := range r.Data.Children {
			all = append(all, data(c))
		}
	}
	for _, b := range r.Body {
		all = append(all, leaves(b))
	}
	if len(all) == 0 {
		return "empty"
	}
	return strings.Join(all, "; ")
}

// data says what one part of the data is.
func data(n *netconf.Node) string {
	switch n.Name.Local {
	case "cross-connects":
		var named []string
		for _, p := range n.Children {
			named = append(named, strings.TrimSpace(p.Value("ingress"))+">"+strings.TrimSpace(p.Value("egress")))
		}
		text := natural.Count(len(named), "cross-connect")
		if len(named) > 0 {
			text += ": " + list(named, mostNamed)
		}
		return text
	case "opm-power":
		count, least, most := 0, math.Inf(1), math.Inf(-1)
		for _, p := range n.Children {
			if x, err := strconv.ParseFloat(strings.TrimSpace(p.Value("power")), 64); err == nil {
				count, least, most = count+1, min(least, x), max(most, x)
			}
		}
		if count > 0 {
			return powersText(count, least, most)
		}
	}
	return leaves(n)
}

// event says what a notification tells: who, and what.
func event(n *netconf.Node) string {
	if n.Name.Local == "activity-log-notification" {
		text := strings.TrimSpace(n.Value("notification-activity"))
		who := strings.TrimSpace(n.Value("notification-username"))
		if at := strings.TrimSpace(n.Value("notification-ip-address")); at != "" {
			who += "@" + at
		}
		if who != "" {
			text += " by " + who
		}
		return text
	}
	return leaves(n)
}

// leaves writes an element as its name and the texts below it: "port-config 17 spine". Many
// entries of a list are counted.
func leaves(n *netconf.Node) string {
	if len(n.Children) > 2 && n.Children[0].Name.Local == n.Children[len(n.Children)-1].Name.Local && len(n.Children[0].Children) > 0 {
		return n.Name.Local + ": " + strconv.Itoa(len(n.Children)) + " of " + n.Children[0].Name.Local
	}
	var b strings.Builder
	b.WriteString(n.Name.Local)
	texts(&b, n)
	return b.String()
}

// texts appends the texts below n as "name value", as far as a line of the log goes.
func texts(b *strings.Builder, n *netconf.Node) {
	for _, c := range n.Children {
		if b.Len() > 2*MaxText {
			return
		}
		if text := strings.TrimSpace(c.Text); text != "" {
			b.WriteString(" " + c.Name.Local + " " + cutText(text, MaxText))
		} else if len(c.Children) == 0 {
			b.WriteString(" " + c.Name.Local)
		}
		texts(b, c)
	}
}
