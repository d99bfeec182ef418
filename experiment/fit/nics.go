package fit

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"regexp"
	"slices"
	"strings"
	"time"

	firmwarenotes "github.com/ocslab/ocslab/firmware-notes"
	"github.com/ocslab/ocslab/internal/natural"
	"github.com/ocslab/ocslab/timeline/dist"
)

// defaultWindow is within what time link-ups are looked for that may slow the next, when the
// base does not say.
const defaultWindow = 20 * time.Second

// group is NICs that are fitted as one.
type group struct {
	Profile
	main *group // of the same firmware, for what this one has too few values of; nil: this is it
	nics []*nicValues
}

func (g *group) values(of func(*nicValues) []value) []value {
	var list []value
	for _, n := range g.nics {
		list = append(list, of(n)...)
	}
	return list
}

// fitNICs fits the firmware of NICs: those of one firmware together, but for NICs that differ.
func (f *Fit) fitNICs(few *TooFewError) error {
	byFirmware := map[string][]*nicValues{}
	unseen := 0
	for _, name := range slices.SortedFunc(maps.Keys(f.measured.nics), natural.Compare) {
		n := f.measured.nics[name]
		if !n.sawCarrier && !n.sawFirmware && len(n.lightCarrier) == 0 {
			unseen++
			continue
		}
		byFirmware[n.firmware] = append(byFirmware[n.firmware], n)
	}
	if unseen > 0 {
		f.remark("Of %s no link was seen to come up after light, so nothing of their firmware is fitted.", natural.Count(unseen, "NIC"))
	}
	for _, firmware := range slices.SortedFunc(maps.Keys(byFirmware), natural.Compare) {
		key := "fitted"
		if len(byFirmware) > 1 {
			key = plain(cmp.Or(firmware, "unknown"))
		}
		if err := f.fitFirmware(key, firmware, byFirmware[firmware], few); err != nil {
			return err
		}
	}
	return nil
}

// fitFirmware fits NICs of one firmware.
func (f *Fit) fitFirmware(key, firmware string, nics []*nicValues, few *TooFewError) error {
	main := &group{Profile: Profile{Key: key, Firmware: firmware}, nics: nics}
	groups := []*group{main}
	if len(nics) > 1 {
		_, apart := f.differing(main.values(linkUps))
		for _, name := range slices.SortedFunc(maps.Keys(apart), natural.Compare) {
			i := slices.IndexFunc(main.nics, func(n *nicValues) bool { return n.name == name })
			if len(main.nics) == 1 {
				break
			}
			groups = append(groups, &group{Profile: Profile{Key: plain(name), Firmware: firmware}, main: main, nics: main.nics[i : i+1 : i+1]})
			main.nics = slices.Delete(slices.Clone(main.nics), i, i+1)
			f.remark("%s differs from the other NICs of its firmware, and has a profile of its own.", name)
		}
	}
	for _, g := range groups {
		for _, n := range g.nics {
			g.NICs = append(g.NICs, n.name)
		}
		base, err := firmwarenotes.Find(f.baseFirmware(&g.Profile))
		if err != nil {
			return fmt.Errorf("the firmware that a fit is built on: %w", err)
		}
		f.fitLinkUp(g, base, few)
		if values := g.values(func(n *nicValues) []value { return n.debounce }); len(values) > 0 {
			short := &TooFewError{}
			if s := f.fit(short, Stage{Subject: g.Key, Quantity: Debounce}, values); s != nil {
				f.Stages = append(f.Stages, *s)
			} else {
				f.remark("%s %s has %d of %d values that a fit needs, and is taken from the base.", g.Key, Debounce, short.Stages[0].Have, short.Stages[0].Need)
			}
		}
		f.Profiles = append(f.Profiles, g.Profile)
	}
	return nil
}

// linkUps are the durations from light to what was seen of the link first.
func linkUps(n *nicValues) []value {
	if len(n.firmwareUp) >= len(n.lightCarrier)/2 && len(n.firmwareUp) >= dist.MinCount {
		return n.firmwareUp
	}
	return n.lightCarrier
}

// fitLinkUp fits light to link, without link-ups that are slow because others were shortly
// before, and these.
func (f *Fit) fitLinkUp(g *group, base firmwarenotes.Profile, few *TooFewError) {
	split := true // firmware was seen
	for _, n := range g.nics {
		split = split && len(n.firmwareUp) >= len(n.lightCarrier)/2 && len(n.firmwareUp) > 0
	}
	link := g.values(func(n *nicValues) []value { return n.lightCarrier })
	quantity := LightToCarrier
	if split {
		link, quantity = g.values(func(n *nicValues) []value { return n.firmwareUp }), LightToFirmware
	}
	link = f.bursts(g, base, quantity, link)
	if s := f.fit(few, Stage{Subject: g.Key, Quantity: quantity}, link); s != nil {
		f.Stages = append(f.Stages, *s)
	}
	if !split {
		return
	}
	short := &TooFewError{}
	if s := f.fit(short, Stage{Subject: g.Key, Quantity: Carrier}, g.values(func(n *nicValues) []value { return n.carrier })); s != nil {
		f.Stages = append(f.Stages, *s)
	} else {
		f.remark("%s %s has %d of %d values that a fit needs, and is taken from the base.", g.Key, Carrier, short.Stages[0].Have, short.Stages[0].Need)
	}
}

// bursts finds out whether link-ups in rapid succession are slower, fits that, and returns
// the values that are not concerned.
func (f *Fit) bursts(g *group, base firmwarenotes.Profile, quantity Quantity, values []value) []value {
	window, free := defaultWindow, 0
	if base.Burst != nil {
		window, free = base.Burst.Window, base.Burst.Free
	}
	of := map[string]*nicValues{}
	for _, n := range g.nics {
		of[n.name] = n
	}
	by := map[int][]value{} // by how many link-ups there were shortly before
	most := 0
	for _, v := range values {
		if v.Latest != math.MaxInt64 {
			k := of[v.of].recent(v, int64(window))
			by[k] = append(by[k], v)
			most = max(most, k)
		}
	}
	upTo := func(from, to int) []value {
		var list []value
		for k := from; k <= to; k++ {
			list = append(list, by[k]...)
		}
		return list
	}
	best, at, tested := 0.0, 0, false
	for k := range most {
		few, many := upTo(0, k), upTo(k+1, most)
		if len(few) < dist.MinOfMode || len(many) < dist.MinOfMode {
			continue
		}
		tested = tested || k == free || base.Burst == nil
		a, sa := middle(few)
		b, sb := middle(many)
		if z := (b - a) / math.Hypot(sa, sb); z > best && b-a > a/20 && b-a > 2*float64(widest(many)) {
			best, at = z, k
		}
	}
	switch {
	case best > 5:
		slow := upTo(at+1, most)
		a, _ := middle(upTo(0, at))
		b := &firmwarenotes.Burst{Window: window, Free: at}
		for k := at + 1; k <= most; k++ {
			if len(by[k]) < 3 {
				continue
			}
			x, _ := middle(by[k])
			if more := time.Duration(x - a); more > 0 {
				if b.Step == 0 {
					b.Step = (more / time.Duration(k-at)).Round(time.Microsecond)
				}
				b.Most = max(b.Most, more.Round(time.Microsecond))
			}
		}
		if b.Step > 0 {
			g.Burst, g.BurstFitted = b, true
			g.BurstText = fmt.Sprintf("%s after more than %s within %v were %v slower at the median, up to %v",
				natural.Count(len(slow), "link-up"), natural.Count(at, "other"), window, b.Step.Round(time.Millisecond), b.Most.Round(time.Millisecond))
			f.remark("%s: %s. They are kept out of %s, which is that without them.", g.Key, g.BurstText, quantity)
			return upTo(0, at)
		}
	case base.Burst == nil:
		g.BurstText = "none in the base, and none seen"
		return values
	case tested || len(upTo(free+1, most)) > len(values)/2:
		g.BurstText = fmt.Sprintf("link-ups after as many as %d others within %v were not seen to be slower", most, window)
		if !tested {
			g.BurstText = fmt.Sprintf("nearly all link-ups came after more than %d others within %v, and are fitted as they are", free, window)
		}
		f.remark("%s: %s, so the base's slowness in rapid succession is left out.", g.Key, g.BurstText)
		return values
	}
	g.Burst, g.BurstText = base.Burst, "too few link-ups came in rapid succession to tell"
	if rapid := upTo(free+1, most); len(rapid) > 0 && len(upTo(0, free)) >= dist.MinCount {
		f.remark("%s: %s in rapid succession, too few to tell whether they are slower, are kept out of %s.", g.Key, natural.Count(len(rapid), "link-up"), quantity)
		return slices.DeleteFunc(slices.Clone(values), func(v value) bool { return slices.Contains(rapid, v) })
	}
	return values
}

// middle returns the median of what there is, in nanoseconds, and about how far off it is.
func middle(values []value) (median, off float64) {
	mids := make([]float64, len(values))
	for i, v := range values {
		mids[i] = float64(v.Mid())
	}
	slices.Sort(mids)
	n := len(mids)
	spread := (mids[n*3/4] - mids[n/4]) / 1.349
	return mids[n/2], 1.2533*spread/math.Sqrt(float64(n)) + 1
}

// widest is the median width.
func widest(values []value) time.Duration {
	widths := make([]time.Duration, len(values))
	for i, v := range values {
		widths[i] = v.Width()
	}
	slices.Sort(widths)
	return widths[len(widths)/2]
}

var notPlain = regexp.MustCompile(`[^a-z0-9]+`)

// plain makes a name of letters, digits and single hyphens.
func plain(name string) string {
	return cmp.Or(strings.Trim(notPlain.ReplaceAllString(strings.ToLower(name), "-"), "-"), "fitted")
}
