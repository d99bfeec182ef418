package phy

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// MST is what NVIDIA's tools print of a ConnectX port. Fields that the text does not have
// are empty.
type MST struct {
	State         string // "Active"
	PhysicalState string // "LinkUp", "ETH_AN_FSM_ENABLE"
	Speed         string // "100G"
	FEC           string // "Standard RS-FEC - RS(528,514)"

	// Of the last link-up, by the firmware's timers.
	LinkUp            Timer // disable to physical link up
	DisableToSignal   Timer // disable to signal detect
	DisableToProtocol Timer // disable to protocol detect (InfiniBand)
	SignalToPhysical  Timer // signal detect to physical link up
	PhysicalToActive  Timer // physical link up to active
	ModuleConfigured  Timer // until the module was configured

	// Other is everything else, in order.
	Other []MSTField
}

// MSTField is a key with its value as text.
type MSTField struct{ Key, Value string }

// Timer is one of the firmware's timers, in whole milliseconds.
type Timer struct {
	Milliseconds uint32
	Present      bool // the text has it
}

// Duration returns the time, if the timer ran. A timer that shows 0 did not: the
// firmware resets them when the port is disabled, and each is 0 until its state is reached.
func (t Timer) Duration() (time.Duration, bool) {
	return time.Duration(t.Milliseconds) * time.Millisecond, t.Present && t.Milliseconds != 0
}

// target returns where the value of a key goes; both results are nil for any other key.
//
// The names with underscores are certain: they are the field names of register PDDR, page
// "link up info", which mstreg and mstlink's amber collection show. So are State,
// Physical state, Speed and FEC, which plain mstlink and mlxlink print. "Time to link
// up" and its like in plain words are assumed.
func (m *MST) target(key string) (*string, *Timer) {
	switch strings.ReplaceAll(strings.ToLower(key), " ", "_") {
	case "state":
		return &m.State, nil
	case "physical_state":
		return &m.PhysicalState, nil
	case "speed":
		return &m.Speed, nil
	case "fec":
		return &m.FEC, nil
	case "time_to_link_up", "time_to_link_up_msec":
		return nil, &m.LinkUp
	case "time_to_link_up_disable_to_sd":
		return nil, &m.DisableToSignal
	case "time_to_link_up_disable_to_pd":
		return nil, &m.DisableToProtocol
	case "time_to_link_up_sd_to_phy_up":
		return nil, &m.SignalToPhysical
	case "time_to_link_up_phy_up_to_active":
		return nil, &m.PhysicalToActive
	case "time_of_module_conf_done_up":
		return nil, &m.ModuleConfigured
	}
	return nil, nil
}

// maxMST is more than any of the tools prints.
const maxMST = 1 << 20

// ParseMST reads the saved output of one run for one port: of mstlink or mlxlink, plain
// or with --json, or of `mstreg --reg_name PDDR --get --indexes ...,page_select=8`. Lines
// are "key : value" or "key | value", colours and headings do not matter. A timer that is
// not a number of milliseconds, decimal or with 0x, is an error, as is a key of ours with
// two different values, for then these are two reports. "N/A" is as if it were missing.
func ParseMST(text []byte) (MST, error) {
	if len(text) > maxMST {
		return MST{}, fmt.Errorf("%d bytes are too much for the output of mstlink; want at most %d", len(text), maxMST)
	}
	var m MST
	var err error
	if s := bytes.TrimSpace(text); len(s) > 0 && s[0] == '{' {
		err = m.parseJSON(s)
	} else {
		err = m.parseLines(string(text))
	}
	if err != nil {
		return MST{}, err
	}
	return m, nil
}

var ansi = regexp.MustCompile("\x1b\\[[0-9;]*[A-Za-z]")

func (m *MST) parseLines(text string) error {
	number := 0
	for l := range strings.Lines(ansi.ReplaceAllString(text, "")) {
		number++
		i := strings.IndexAny(l, ":|")
		if i < 0 {
			continue
		}
		key, value := strings.TrimSpace(l[:i]), strings.TrimSpace(l[i+1:])
		if key == "" {
			continue
		}
		if err := m.put(key, value); err != nil {
			return fmt.Errorf("line %d: %w", number, err)
		}
	}
	return nil
}

func (m *MST) put(key, value string) error {
	text, timer := m.target(key)
	switch {
	case text == nil && timer == nil:
		m.Other = append(m.Other, MSTField{key, value})
	case value == "N/A":
	case text != nil:
		if *text != "" && *text != value {
			return fmt.Errorf("%s is %q here and was %q before; give the output for one port", key, value, *text)
		}
		*text = value
	default:
		ms, err := milliseconds(value)
		if err != nil {
			return fmt.Errorf("%s: %w", key, err)
		}
		if timer.Present && timer.Milliseconds != ms {
			return fmt.Errorf("%s is %d here and was %d before; give the output for one port", key, ms, timer.Milliseconds)
		}
		*timer = Timer{ms, true}
	}
	return nil
}

func milliseconds(s string) (uint32, error) {
	digits, ok := strings.CutSuffix(s, "msec")
	if !ok {
		digits = strings.TrimSuffix(s, "ms")
	}
	digits = strings.TrimSpace(digits)
	base := 10
	if hex, ok := strings.CutPrefix(digits, "0x"); ok {
		digits, base = hex, 16
	}
	v, err := strconv.ParseUint(digits, base, 32)
	if err != nil {
		return 0, fmt.Errorf("%.40q is not a number of milliseconds", s)
	}
	return uint32(v), nil
}

// parseJSON takes every value of every object, however deep, with the last key before it.
func (m *MST) parseJSON(text []byte) error {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	if err := m.value(d, "", 0); err != nil {
		return fmt.Errorf("JSON: %w", err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return errors.New("JSON: more follows after the first object; give the output for one port")
	}
	return nil
}

func (m *MST) value(d *json.Decoder, key string, depth int) error {
	t, err := d.Token()
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	if err != nil {
		return err
	}
	delim, nested := t.(json.Delim)
	if !nested {
		if t == nil {
			return nil
		}
		return m.put(key, fmt.Sprint(t))
	}
	if depth > 32 {
		return errors.New("nested too deep")
	}
	for d.More() {
		inner := key
		if delim == '{' {
			k, err := d.Token()
			if err != nil {
				return err
			}
			inner, _ = k.(string)
		}
		if err := m.value(d, inner, depth+1); err != nil {
			return err
		}
	}
	_, err = d.Token()
	return err
}
