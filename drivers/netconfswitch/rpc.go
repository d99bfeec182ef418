package netconfswitch

import (
	"encoding/xml"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	juniper "github.com/Juniper/go-netconf/netconf"

	"github.com/ocslab/ocslab/ocs"
	"github.com/ocslab/ocslab/wire/netconf"
)

// request is one operation.
type request struct {
	op   string // for messages: "read power"
	body string // the element in <rpc>
	// read is true when it changes nothing, and is answered with data.
	read bool
	// about is the container that data is wanted of.
	about string
}

// answer is the reply to a request.
type answer struct {
	reply   netconf.Reply
	raw     []byte
	receipt ocs.Receipt
	givenUp bool // the session went on, but nobody waited any longer
}

// judge says whether a reply is a success. Warnings are none of our business.
// Data with an error next to it is good if the error is about something else:
// some devices complain about parts that they do not have.
func (r request) judge(reply netconf.Reply) error {
	var errs []*netconf.Error
	for _, e := range reply.Errors {
		if !e.Warning() && !(reply.Data.Child("", r.about) != nil && r.foreign(e)) {
			errs = append(errs, e)
		}
	}
	switch {
	case len(errs) > 0:
		return newDenial(errs)
	case r.read && reply.Data == nil:
		return errors.New("the device replied without data")
	case !r.read && !reply.OK:
		return errors.New("the device replied neither ok nor an error")
	}
	return nil
}

// foreign reports whether an error names something else than what was asked
// for. The known one is about OpenFlow, on devices that do not have it.
func (r request) foreign(e *netconf.Error) bool {
	return e.Path != "" && !strings.Contains(e.Path, r.about) ||
		strings.Contains(strings.ToLower(e.Path+e.Message), "openflow")
}

// fail makes the error for an operation.
func (sw *Switch) fail(op, request, reply string, err error) error {
	return &ocs.OpError{Op: op, Device: sw.cfg.Device, Request: mask(request), Reply: mask(reply), Err: err}
}

// get is a request for what the filter selects of one container, which is in
// the namespace of optical-switch. Only running configuration and state of that
// container are read: an unfiltered get takes some devices seconds, and is
// answered with an error next to the data by others.
func get(op, container, selection string) request {
	filter := `<` + container + ` xmlns="` + opticalNS + `">` + selection + `</` + container + `>`
	if selection == "" {
		filter = `<` + container + ` xmlns="` + opticalNS + `"/>`
	}
	return request{op: op, body: string(juniper.MethodGet("subtree", filter)), read: true, about: container}
}

// edit is a request that merges content into one container of a module.
func (a *announced) edit(op, namespace, container, content string) request {
	var b strings.Builder
	b.WriteString(`<edit-config><target><running/></target>`)
	if a.rollback {
		b.WriteString(`<error-option>rollback-on-error</error-option>`)
	}
	b.WriteString(`<config><` + container + ` xmlns="` + namespace + `" xmlns:nc="` + netconf.Base + `">`)
	b.WriteString(content)
	b.WriteString(`</` + container + `></config></edit-config>`)
	return request{op: op, body: b.String()}
}

// entries selects ports in a container with a list of them: those named, or
// all when there are none. Leaves says what of them.
func entries(ports []ocs.Port, leaves string) string {
	if len(ports) == 0 {
		return `<port><port-id/>` + leaves + `</port>`
	}
	var b strings.Builder
	for _, p := range ports {
		b.WriteString(`<port><port-id>`)
		b.WriteString(p.String())
		b.WriteString(`</port-id>`)
		b.WriteString(leaves)
		b.WriteString(`</port>`)
	}
	return b.String()
}

// escape makes text fit to stand in XML.
func escape(s string) (string, error) {
	for _, r := range s {
		if r < ' ' && r != '\t' && r != '\n' && r != '\r' || r == utf8.RuneError || r == 0xFFFE || r == 0xFFFF {
			return "", fmt.Errorf("the text %.60q has a character that cannot be sent in XML: want printable ones", s)
		}
	}
	var b strings.Builder
	_ = xml.EscapeText(&b, []byte(s)) // a Builder does not fail
	return b.String(), nil
}

// parsePort reads a port number.
func parsePort(s string) (ocs.Port, error) {
	n, err := strconv.ParseUint(strings.TrimSpace(s), 10, 16)
	if err == nil && n == 0 {
		err = strconv.ErrRange
	}
	if err != nil {
		return 0, err
	}
	return ocs.Port(n), nil
}

// garbled is the error for a part of a reply that cannot be understood.
func (sw *Switch) garbled(op string, a answer, part *netconf.Node) error {
	return sw.fail(op, "", string(a.raw), fmt.Errorf("cannot understand %.80q in the reply", mask(part.String())))
}
