package netconf

import (
	"slices"
	"strings"
)

// EditConfig is the parameters of <edit-config>.
type EditConfig struct {
	Target      string    // the datastore, "running" for example
	Default     Operation // Merge, Replace or None; "" is Merge
	TestOption  string    // "" if not given
	ErrorOption string    // "" if not given
	Config      []*Node   // what is in <config>
}

// ParseEditConfig reads an <edit-config>. Whether the device has the
// capabilities for the target and the test option has to be checked elsewhere.
func ParseEditConfig(op *Node) (EditConfig, *Error) {
	e := EditConfig{Default: Merge}
	config := false
	var seen []string
	for _, c := range op.Children {
		if c.Name.Space != Base || slices.Contains(seen, c.Name.Local) {
			return e, unexpected(c)
		}
		seen = append(seen, c.Name.Local)
		var err *Error
		switch c.Name.Local {
		case "target":
			e.Target, err = datastore(c)
		case "default-operation":
			var text string
			text, err = oneOf(c, string(Merge), string(Replace), string(None))
			e.Default = Operation(text)
		case "test-option":
			e.TestOption, err = oneOf(c, "test-then-set", "set", "test-only")
		case "error-option":
			e.ErrorOption, err = oneOf(c, "stop-on-error", "continue-on-error", "rollback-on-error")
		case "config":
			config = true
			e.Config = c.Children
		case "url":
			err = NewError(TypeProtocol, OperationNotSupported, "the capability :url is not supported")
		default:
			err = unexpected(c)
		}
		if err != nil {
			return e, err
		}
	}
	switch {
	case e.Target == "":
		return e, NewMissingElement(TypeProtocol, "target")
	case !config:
		return e, NewMissingElement(TypeProtocol, "config")
	}
	return e, nil
}

// oneOf returns the text of a leaf that must be one of values.
func oneOf(n *Node, values ...string) (string, *Error) {
	text := trim(n.Text)
	if len(n.Children) > 0 || !slices.Contains(values, text) {
		return "", NewError(TypeProtocol, InvalidValue, "%s must be one of %s, but is %.40q", n.Name.Local, strings.Join(values, ", "), text).
			with("bad-element", n.Name.Local)
	}
	return text, nil
}
