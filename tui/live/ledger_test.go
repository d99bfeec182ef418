package live

import (
	"errors"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/ocslab/ocslab/ocs"
)

// Ensure that, whatever we and others do and however readings and changes overlap, what is
// told as foreign is what others did on ports that we let alone, nothing of it is missing
// in the end, and none of ours is told.
func TestLedger_Properties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		// We use ports 1 to 4 and 11 to 14, others 5 to 8 and 15 to 18.
		device, l, now := ocs.Map{}, newLedger(), time.Now()
		foreign := ocs.Map{} // what others have, as it was told
		draw := func(base ocs.Port) ocs.Change {
			c := ocs.CrossConnect{
				Ingress: base + ocs.Port(rapid.IntRange(0, 3).Draw(t, "ingress")),
				Egress:  base + 10 + ocs.Port(rapid.IntRange(0, 3).Draw(t, "egress")),
			}
			if device.Has(c) {
				return ocs.Change{Remove: ocs.MustMap(c)}
			}
			return ocs.Change{Add: ocs.MustMap(c)}
		}
		saw := func(m ocs.Map, before glance) {
			d := l.saw(m, before)
			for _, p := range d.Ports() {
				if p%10 < 5 {
					t.Fatalf("a change of ours was told as foreign: %v", d)
				}
			}
			foreign = d.Over(foreign)
		}
		saw(device, l.look(now))
		for range rapid.IntRange(1, 40).Draw(t, "steps") {
			now = now.Add(time.Duration(rapid.IntRange(1, 1500).Draw(t, "ms")) * time.Millisecond)
			switch rapid.IntRange(0, 3).Draw(t, "what") {
			case 0: // others
				device = draw(5).Over(device)
			case 1: // ours, as a whole, or failed and done or not
				c := draw(1)
				ports := l.sending(c)
				var err error
				if rapid.Bool().Draw(t, "fails") {
					err = errors.New("no reply")
				}
				if err == nil || rapid.Bool().Draw(t, "done all the same") {
					device = c.Over(device)
				}
				l.sent(c, ports, 1, err, now)
			case 2: // a reading
				saw(device, l.look(now))
			case 3: // a reading of before or after that ends while a change is sent
				before := l.look(now)
				old := device
				c := draw(1)
				ports := l.sending(c)
				device = c.Over(device)
				if rapid.Bool().Draw(t, "old") {
					saw(old, before)
				} else {
					saw(device, before)
				}
				l.sent(c, ports, 1, nil, now)
			}
		}
		now = now.Add(2 * calm)
		saw(device, l.look(now))
		var theirs []ocs.CrossConnect
		for c := range device.All() {
			if c.Ingress >= 5 {
				theirs = append(theirs, c)
			}
		}
		if !slices.Equal(foreign.Slice(), theirs) {
			t.Fatalf("told: %v, others have: %v", foreign, theirs)
		}
	})
}

// Ensure a change that another client makes at our ports is told once these have calmed.
func TestLedger_Calm(t *testing.T) {
	l, now := newLedger(), time.Now()
	l.saw(ocs.Map{}, l.look(now))
	c := ocs.Change{Add: mustMap(t, "1>9")}
	l.sent(c, l.sending(c), 1, nil, now)
	taken := mustMap(t, "1>10")
	if d := l.saw(taken, l.look(now.Add(calm/2))); !d.Empty() {
		t.Errorf("told %v while the device may be late", d)
	}
	d := l.saw(taken, l.look(now.Add(2*calm)))
	if !d.Remove.Equal(mustMap(t, "1>9")) || !d.Add.Equal(taken) {
		t.Errorf("told %v", d)
	}
	if d = l.saw(taken, l.look(now.Add(3*calm))); !d.Empty() {
		t.Errorf("told %v again", d)
	}
}
