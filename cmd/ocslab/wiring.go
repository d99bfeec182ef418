package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/ocslab/ocslab/examples"
	"github.com/ocslab/ocslab/experiment/wiring"
	"github.com/ocslab/ocslab/internal/natural"
	"github.com/ocslab/ocslab/internal/strictyaml"
	"github.com/ocslab/ocslab/lab"
	"github.com/ocslab/ocslab/ocs"
)

// wiringFlags are what wiring is told.
type wiringFlags struct {
	out             string
	force, dry      bool
	nics            []string
	dirty, accuracy float64
	threshold       float64
	carrierWait     time.Duration
	firmware, rung  string
	seed            uint64
}

// differsError is wiring that is not as the lab file says.
type differsError struct{ why string }

func (e differsError) Error() string        { return e.why }
func (e differsError) Is(target error) bool { return target == ocs.ErrVerify }

func (a *app) wiringCommand() *cobra.Command {
	var f wiringFlags
	c := &cobra.Command{
		Use:   "wiring",
		Short: "Find out by light which NIC hangs on which ports",
		Long: `Find out which fibre of which NIC is on which port, without believing the lab file. Each
egress port gets a word of bits and is lit in the steps whose bit is 1; what the NICs' modules
receive tells where they are. Then the NICs that were found say their names over the light,
which tells whose light comes in where. Dead and dirty fibres, swaps, light of nobody and
whatever cannot be are named; nothing is guessed.

The tx and rx of the lab file are only what is compared with: of a new lab, write any
ports, each once, and let --out write the right ones.

Every port of the switches is lit in turn, but for protected and leased ones. Circuits that
are there are refused unless --mode update moves them; at the end all is put back as
it was. Exit code 5: not all is as the lab file says.`,
		Example: "  ocslab --lab lab.yaml wiring --dry-run\n  ocslab --lab lab.yaml wiring --out corrected.yaml\n  ocslab --emulated wiring",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			l, err := a.needLab()
			if err != nil {
				return err
			}
			opt, err := a.wiringOptions(l, f)
			if err != nil {
				return err
			}
			if done, err := a.mayMove(l); done || err != nil {
				return err
			}
			return a.wiring(cmd.Context(), l, f, opt)
		},
	}
	fl := c.Flags()
	fl.StringVar(&f.out, "out", "", "write the lab file with tx and rx corrected to `FILE`; all else stays as it is written")
	fl.BoolVar(&f.force, "force", false, "replace the file of --out if it is there")
	fl.StringSliceVar(&f.nics, "nics", nil, "look for these NICs or hosts only, a `LIST`; the ports of others are left alone")
	fl.BoolVar(&f.dry, "dry-run", false, "say what would be done, and move nothing")
	fl.Float64Var(&f.dirty, "dirty", float64(wiring.DefaultDirty), "a fibre is dirty when it loses so many `dB` more than its peers")
	fl.Float64Var(&f.accuracy, "accuracy", float64(wiring.DefaultAccuracy), "how far monitors may be off, plus or minus, in `dB`")
	fl.Float64Var(&f.threshold, "threshold", float64(wiring.DefaultThreshold), "power in `dBm` of a lane around which, by 2 dB, a module is taken to see neither light nor dark")
	fl.DurationVar(&f.carrierWait, "carrier-wait", wiring.DefaultCarrierWait, "how long NICs may take from light to carrier")
	fl.StringVar(&f.firmware, "firmware", "", "firmware of all emulated NICs, in place of the lab file's")
	fl.StringVar(&f.rung, "rung", "", "what emulated NICs are: `tap|veth|memory` (default the best there is here)")
	fl.Uint64Var(&f.seed, "seed", 1, "seed of all that is random")
	fl.String("mode", "safe", "what may happen to circuits that are there: `safe|update`; safe refuses, update moves them and puts them back")
	return c
}

// wiringOptions checks what was said before anything is opened.
func (a *app) wiringOptions(l *lab.Lab, f wiringFlags) (opt wiring.TestbedOptions, err error) {
	for _, x := range []struct {
		flag  string
		value float64
	}{{"dirty", f.dirty}, {"accuracy", f.accuracy}} {
		if !(x.value > 0) || math.IsInf(x.value, 0) {
			return opt, usagef("--%s %v: want dB above zero", x.flag, x.value)
		}
	}
	switch {
	case !(f.threshold < 10 && f.threshold > -41):
		return opt, usagef("--threshold %v: want -40 to 9 dBm", f.threshold)
	case f.carrierWait <= 0:
		return opt, usagef("--carrier-wait %v: want a time above zero", f.carrierWait)
	case f.force && f.out == "":
		return opt, usagef("--force goes with --out")
	case f.out != "" && f.dry:
		return opt, usagef("--out does not go with --dry-run: nothing is found out")
	case f.out != "" && !f.force && exists(f.out):
		return opt, usagef("--out %s: it is there already; --force replaces it", f.out)
	}
	if f.out != "" { // before light is moved for minutes
		if _, err := outFile(f.out); err != nil {
			return opt, usageError{fmt.Errorf("--out: %w", err)}
		}
	}
	if opt.Policy, err = a.moveMode(); err != nil {
		return opt, err
	}
	if opt.Fabric.Rung, err = rungOf(f.rung); err != nil {
		return opt, err
	}
	for _, name := range f.nics {
		if slices.ContainsFunc(l.File.Hosts, func(h lab.Host) bool { return h.Name == name }) {
			continue
		}
		if _, err := l.File.NIC(name); err != nil {
			return opt, usageError{fmt.Errorf("--nics: %w", err)}
		}
	}
	if !slices.ContainsFunc(l.File.Hosts, func(h lab.Host) bool { return len(h.NICs) > 0 }) {
		return opt, usagef("the lab file has no NICs, so there are no fibres to look for: name them under hosts, with any tx and rx")
	}
	opt.Only, opt.CarrierWait = f.nics, f.carrierWait
	opt.Fabric.Firmware, opt.Fabric.Seed = f.firmware, f.seed
	return opt, nil
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// wiring looks, tells, and writes the corrected file.
func (a *app) wiring(ctx context.Context, l *lab.Lab, f wiringFlags, opt wiring.TestbedOptions) (err error) {
	moreProcessors()
	began := time.Now()
	t, err := wiring.OpenTestbed(ctx, l, opt)
	if err != nil {
		return err
	}
	closed := false
	put := func() error {
		if closed {
			return nil
		}
		closed = true
		return t.Close()
	}
	defer func() { err = errors.Join(err, put()) }()
	what := t.Options()
	what.Dirty, what.Accuracy, what.Threshold = ocs.DB(f.dirty), ocs.DB(f.accuracy), ocs.DBm(f.threshold)
	plan, err := wiring.Survey(ctx, t, what)
	if errors.Is(err, wiring.ErrDark) {
		return differsError{err.Error()}
	}
	if err != nil {
		return err
	}
	a.wiringPlan(t, plan, len(what.NICs))
	if f.dry {
		if a.set.JSON {
			a.json(a.wiringSummary(l, plan, true, time.Since(began)))
		}
		a.printf("nothing was moved\n")
		return nil
	}
	show := a.progress()
	what.Progress = func(s wiring.Step) {
		show.set("%s", stepText(s))
		if a.set.JSON {
			a.json(wiringStep(s))
		}
	}
	r, err := wiring.Find(ctx, t, what)
	show.done()
	back := put()
	took := time.Since(began)
	if a.set.JSON { // people were told with the plan
		r.Notes = append(t.Notes(), r.Notes...)
	}
	if err != nil && len(r.Maps) == 0 {
		return errors.Join(err, back)
	}
	a.wiringFound(l, r, took)
	if err = errors.Join(err, back); err != nil {
		return err
	}
	if f.out != "" {
		if err := a.writeCorrected(l, f, r); err != nil {
			return err
		}
	}
	if r.OK() {
		return nil
	}
	return differsError{wrongText(r)}
}

// wiringPlan says what will be done.
func (a *app) wiringPlan(t *wiring.Testbed, r *wiring.Result, nics int) {
	if t.Fabric != nil {
		a.printf("%s\n", fabricLine(t.Fabric))
	}
	maps := r.Bits + 2
	a.printf("%s to look for, on %s, with the light of %s\n", natural.Count(nics, "NIC"), natural.Count(r.Ports, "egress port"), natural.Count(r.Sources, "ingress port"))
	a.printf("%s\n", natural.Wrap(fmt.Sprintf("%d steps, each port lit in %d of them (%s), then 2 or more to confirm and to say names: about %v",
		r.Bits, r.Weight, stepsText(r), t.Expect(maps).Round(time.Second)), a.width80(), ""))
	for _, line := range leftOutText(r.LeftOut) {
		a.printf("left out: %s\n", line)
	}
	if !a.set.JSON {
		for _, n := range t.Notes() {
			fmt.Fprintf(a.err, "ocslab: %s\n", n)
		}
	}
	a.printf("\n")
}

// stepsText says what so many steps are for: how many any search needs, what finds errors adds, and
// what the want of light.
func stepsText(r *wiring.Result) string {
	least := wiring.Steps(r.Ports)
	text := fmt.Sprintf("log2 of %d is %d", r.Ports, r.Information)
	if more := least - r.Information; more > 0 {
		text += fmt.Sprintf("; %d find errors", more)
	}
	if more := r.Bits - least; more > 0 {
		text += fmt.Sprintf("; %d for want of light, as %s can light so many ports at once", more, natural.Count(r.Sources, "ingress port"))
	}
	return text
}

// leftOutText is a line for each reason why ports are left out.
func leftOutText(notes []wiring.PortNote) []string {
	var whys []string
	ports := map[string]map[string][]ocs.Port{} // by why and switch
	for _, n := range notes {
		if ports[n.Why] == nil {
			ports[n.Why] = map[string][]ocs.Port{}
			whys = append(whys, n.Why)
		}
		if list := ports[n.Why][n.Port.Switch]; !slices.Contains(list, n.Port.Port) {
			ports[n.Why][n.Port.Switch] = append(list, n.Port.Port)
		}
	}
	var lines []string
	for _, why := range whys {
		for _, name := range slices.SortedFunc(maps.Keys(ports[why]), natural.Compare) {
			lines = append(lines, fmt.Sprintf("%s/%s: %s", name, ocs.FormatPorts(ports[why][name]), why))
		}
	}
	return lines
}

// stepText is a step for the progress line.
func stepText(s wiring.Step) string {
	switch s.Bit {
	case wiring.BitConfirm:
		return fmt.Sprintf("confirmed with %s lit", natural.Count(s.Lit, "port"))
	case wiring.BitNames:
		return fmt.Sprintf("round %d of names", s.Number)
	case wiring.BitLight:
		return fmt.Sprintf("looking for light, map %d of %d", s.Number, s.Of)
	}
	text := fmt.Sprintf("step %d of %d", s.Number, s.Of)
	if s.Parts > 1 {
		text += fmt.Sprintf(", part %d of %d", s.Part, s.Parts)
	}
	if s.Repeat {
		text += ", again"
	}
	return text
}

type wiringStepLine struct {
	Kind   string   `json:"kind"` // "wiring-step"
	For    string   `json:"for"`  // "light", "word", "confirm" or "names"
	Number int      `json:"number"`
	Of     int      `json:"of,omitempty"`
	Part   int      `json:"part,omitempty"`
	Parts  int      `json:"parts,omitempty"`
	Lit    int      `json:"lit"`
	Repeat bool     `json:"repeat"`
	TookNS int64    `json:"took_ns"`
	Unsure []string `json:"unsure,omitempty"`
}

func wiringStep(s wiring.Step) wiringStepLine {
	l := wiringStepLine{Kind: "wiring-step", For: "word", Number: s.Number, Of: s.Of, Part: s.Part, Parts: s.Parts, Lit: s.Lit, Repeat: s.Repeat, TookNS: int64(s.Took), Unsure: s.Unsure}
	switch s.Bit {
	case wiring.BitConfirm:
		l.For = "confirm"
	case wiring.BitNames:
		l.For = "names"
	case wiring.BitLight:
		l.For = "light"
	}
	return l
}

type fibreLine struct {
	Kind       string   `json:"kind"` // "fibre"
	NIC        string   `json:"nic"`
	End        string   `json:"end"` // "rx" or "tx"
	Claimed    string   `json:"claimed"`
	Found      string   `json:"found,omitempty"`
	Verdict    string   `json:"verdict"`
	How        string   `json:"how,omitempty"`
	Dirty      bool     `json:"dirty"`
	Candidates []string `json:"candidates,omitempty"`
	Swapped    []string `json:"swapped,omitempty"`
	At         string   `json:"at,omitempty"`
	Bits       string   `json:"bits,omitempty"`
	LossDB     *float64 `json:"loss_db,omitempty"`
	ExcessDB   *float64 `json:"excess_db,omitempty"`
	Peers      int      `json:"peers,omitempty"`
	Why        string   `json:"why,omitempty"`
}

type portNoteLine struct {
	Port     string   `json:"port"`
	PowerDBm *float64 `json:"power_dbm,omitempty"`
	Why      string   `json:"why"`
}

type wiringLine struct {
	Kind         string         `json:"kind"` // "wiring"
	Lab          string         `json:"lab"`
	DryRun       bool           `json:"dry_run"`
	OK           bool           `json:"ok"`
	Complete     bool           `json:"complete"`
	Ports        int            `json:"ports"`
	Sources      int            `json:"sources"`
	Bits         int            `json:"bits"`
	Log2         int            `json:"log2"`
	MapsWords    int            `json:"maps_words"`
	MapsConfirm  int            `json:"maps_confirm"`
	MapsNames    int            `json:"maps_names"`
	TookNS       int64          `json:"took_ns"`
	DirtyDB      float64        `json:"dirty_db"`
	AccuracyDB   float64        `json:"accuracy_db"`
	Strays       []portNoteLine `json:"strays"`
	Faults       []portNoteLine `json:"faults"`
	LeftOut      []string       `json:"left_out"`
	Notes        []string       `json:"notes"`
	VerdictCount map[string]int `json:"verdicts"`
	Least        int            `json:"least"` // bits that find errors, if there were light for all
	MapsLight    int            `json:"maps_light"`
	MapsRepeated int            `json:"maps_repeated"`
	Maps         int            `json:"maps"`
}

func (a *app) wiringSummary(l *lab.Lab, r *wiring.Result, dry bool, took time.Duration) wiringLine {
	words, confirm, names := r.Count()
	line := wiringLine{
		Kind: "wiring", Lab: l.File.Name, DryRun: dry, OK: r.OK(), Complete: r.Complete, Ports: r.Ports, Sources: r.Sources, Bits: r.Bits, Log2: r.Information,
		Least: wiring.Steps(r.Ports), MapsLight: len(r.Maps) - words - confirm - names, MapsRepeated: repeated(r), Maps: len(r.Maps),
		MapsWords: words, MapsConfirm: confirm, MapsNames: names, TookNS: int64(took), DirtyDB: float64(r.Limit), AccuracyDB: float64(r.Accuracy),
		Strays: portNotes(r.Strays, true), Faults: portNotes(r.Faults, false),
		LeftOut: append([]string{}, leftOutText(r.LeftOut)...), Notes: append([]string{}, r.Notes...), VerdictCount: map[string]int{},
	}
	for _, f := range r.Fibres {
		line.VerdictCount[string(f.Verdict)]++
	}
	return line
}

func portNotes(notes []wiring.PortNote, power bool) []portNoteLine {
	lines := []portNoteLine{}
	for _, n := range notes {
		l := portNoteLine{Port: n.Port.String(), Why: n.Why}
		if p := float64(n.Power); power && !math.IsInf(p, 0) {
			l.PowerDBm = &p
		}
		lines = append(lines, l)
	}
	return lines
}

func fibreJSON(f wiring.Fibre) fibreLine {
	l := fibreLine{
		Kind: "fibre", NIC: f.NIC, End: string(f.End), Claimed: f.Claimed.String(), Verdict: string(f.Verdict), How: string(f.How), Dirty: f.Dirty,
		Swapped: f.Swapped, At: f.At, Bits: f.Bits, Why: f.Why,
	}
	if f.Found != (lab.PortRef{}) {
		l.Found = f.Found.String()
	}
	for _, p := range f.Candidates {
		l.Candidates = append(l.Candidates, p.String())
	}
	if f.Measured {
		loss := float64(f.Loss)
		l.LossDB = &loss
		if excess := float64(f.Excess); f.Peers > 0 {
			l.ExcessDB, l.Peers = &excess, f.Peers
		}
	}
	return l
}

// wiringFound tells what was found.
func (a *app) wiringFound(l *lab.Lab, r *wiring.Result, took time.Duration) {
	if a.set.JSON {
		for _, f := range r.Fibres {
			a.json(fibreJSON(f))
		}
		a.json(a.wiringSummary(l, r, false, took))
		return
	}
	if len(r.Fibres) == 0 {
		a.printf("nothing was found out: it ended after %s\n", natural.Count(len(r.Maps), "map"))
		return
	}
	t := table{align: "<<<<>>"}
	t.row("NIC", "fibre", "lab file", "found", "loss dB", "over", "verdict")
	for _, f := range r.Fibres {
		found, loss, over := "-", "-", "-"
		if f.Found != (lab.PortRef{}) {
			found = f.Found.String()
		}
		if f.Measured {
			loss = fmt.Sprintf("%.1f", math.Round(10*float64(f.Loss))/10+0) // no -0.0
			if f.Peers > 0 {
				over = fmt.Sprintf("%+.1f", float64(f.Excess))
			}
		}
		t.row(f.NIC, string(f.End), f.Claimed.String(), found, loss, over, f.State())
	}
	t.write(a.out, "")
	a.printf("\n")
	for _, text := range findings(r) {
		a.printf("%s", natural.Wrap(text, a.width80(), ""))
		a.printf("\n")
	}
	words, confirm, names := r.Count()
	repeats := ""
	if n := len(r.Maps) - words - confirm - names; n > 0 {
		repeats = fmt.Sprintf(", %d to find light", n)
	}
	if n := repeated(r); n > 0 {
		repeats += fmt.Sprintf(", %d of them again", n)
	}
	a.printf("%s", natural.Wrap(fmt.Sprintf("%s of %d bits for %s (%s), %d to confirm, %d for names%s; %s and %v in all",
		natural.Count(words, "map"), r.Bits, natural.Count(r.Ports, "port"), stepsText(r), confirm, names, repeats,
		natural.Count(len(r.Maps), "map"), took.Round(10*time.Millisecond)), a.width80(), ""))
	a.printf("\n")
	a.printf("%s\n", natural.Wrap(fmt.Sprintf("Losses are as monitors tell, ±%.1f dB at each end; dirty is more than %.1f dB over the median of the others.",
		float64(r.Accuracy), float64(r.Limit)), a.width80(), ""))
	for _, n := range r.Notes {
		fmt.Fprintf(a.err, "ocslab: %s\n", n)
	}
	if r.OK() {
		a.printf("all is as the lab file says\n")
	}
}

// repeated is how many maps were made because one before was not clear.
func repeated(r *wiring.Result) int {
	n := 0
	for _, s := range r.Maps {
		if s.Repeat {
			n++
		}
	}
	return n
}

// findings are what there is to say of fibres and ports that are not as they should be.
func findings(r *wiring.Result) []string {
	var list []string
	told := map[string]bool{}
	for _, f := range r.Fibres {
		who := f.NIC + " " + string(f.End)
		switch {
		case len(f.Swapped) == 2:
			pair := slices.Sorted(slices.Values(f.Swapped))
			if key := strings.Join(append(pair, string(f.End)), " "); !told[key] {
				told[key] = true
				list = append(list, fmt.Sprintf("%s of %s and %s are exchanged.", f.End, f.Swapped[0], f.Swapped[1]))
			}
		case len(f.Swapped) > 2:
			ring := slices.Sorted(slices.Values(f.Swapped))
			if key := strings.Join(append(ring, string(f.End)), " "); !told[key] {
				told[key] = true
				list = append(list, fmt.Sprintf("%s of %d NICs go round: each is where the next is claimed to be, %s, and the last where the first is.",
					f.End, len(f.Swapped), strings.Join(f.Swapped, ", ")))
			}
		case f.Verdict == wiring.Elsewhere && f.At != "":
			list = append(list, fmt.Sprintf("%s is at %v, where the lab file has %s.", who, f.Found, f.At))
		case f.Verdict == wiring.Elsewhere:
			list = append(list, fmt.Sprintf("%s is at %v, where the lab file has nobody.", who, f.Found))
		}
		if f.How == wiring.ByElimination {
			list = append(list, fmt.Sprintf("%s was told by elimination, not seen: %s.", who, f.Why))
		} else if f.Found == (lab.PortRef{}) {
			text := fmt.Sprintf("%s is %s: %s.", who, f.Verdict, f.Why)
			if f.Verdict == wiring.Contradictory && f.Bits != "" {
				text += " Bits: " + f.Bits + "."
			}
			if len(f.Candidates) > 0 {
				text += " Left for it: " + portList(f.Candidates) + "."
			}
			list = append(list, text)
		} else if f.Why != "" {
			list = append(list, fmt.Sprintf("%s: %s.", who, f.Why))
		}
		switch {
		case f.Dirty && (f.Peers == 0 || f.Excess <= r.Limit):
			list = append(list, fmt.Sprintf("%s loses %.1f dB, which is too much whatever others lose: clean both its connectors, then look again.", who, float64(f.Loss)))
		case f.Dirty:
			list = append(list, fmt.Sprintf("%s loses %.1f dB more than the median of %s: clean both its connectors, then look again.",
				who, float64(f.Excess), natural.Count(f.Peers, "other")))
		}
	}
	for _, s := range r.Strays {
		list = append(list, fmt.Sprintf("%v: %s (%v).", s.Port, s.Why, s.Power))
	}
	for _, s := range r.Faults {
		list = append(list, fmt.Sprintf("%v: %s.", s.Port, s.Why))
	}
	return list
}

// portList is ports, those of a switch together.
func portList(ports []lab.PortRef) string {
	by := map[string][]ocs.Port{}
	for _, p := range ports {
		by[p.Switch] = append(by[p.Switch], p.Port)
	}
	var list []string
	for _, name := range slices.SortedFunc(maps.Keys(by), natural.Compare) {
		list = append(list, name+"/"+ocs.FormatPorts(by[name]))
	}
	return strings.Join(list, ", ")
}

// wrongText counts what is not as the lab file says.
func wrongText(r *wiring.Result) string {
	var list []string
	for _, v := range []wiring.Verdict{wiring.Elsewhere, wiring.Dead, wiring.Ambiguous, wiring.Contradictory, wiring.NotFound, wiring.Unverified} {
		if n := countFibres(r, func(f wiring.Fibre) bool { return f.Verdict == v }); n > 0 {
			list = append(list, fmt.Sprintf("%d %s", n, v))
		}
	}
	if n := countFibres(r, func(f wiring.Fibre) bool { return f.Dirty }); n > 0 {
		list = append(list, fmt.Sprintf("%d dirty", n))
	}
	if n := countFibres(r, func(f wiring.Fibre) bool { return f.How == wiring.ByElimination }); n > 0 {
		list = append(list, fmt.Sprintf("%d by elimination only", n))
	}
	if n := len(r.Strays); n > 0 {
		list = append(list, natural.Count(n, "port")+" with light of nobody")
	}
	if n := len(r.Faults); n > 0 {
		list = append(list, natural.Count(n, "port")+" that did not do as told")
	}
	return fmt.Sprintf("the wiring is not as the lab file says: of %s, %s", natural.Count(len(r.Fibres), "fibre"), strings.Join(list, ", "))
}

func countFibres(r *wiring.Result, is func(wiring.Fibre) bool) int {
	n := 0
	for _, f := range r.Fibres {
		if is(f) {
			n++
		}
	}
	return n
}

// writeCorrected writes the lab file with what was found.
func (a *app) writeCorrected(l *lab.Lab, f wiringFlags, r *wiring.Result) error {
	name, data := "opus-testbed.yaml", examples.OpusTestbed
	if l.File.Path != "" {
		var err error
		name = l.File.Path
		if data, err = strictyaml.ReadFile(name); err != nil {
			return err
		}
	}
	text, done, err := wiring.Correct(name, data, r)
	if errors.Is(err, wiring.ErrNotCorrectable) {
		return differsError{fmt.Sprintf("%s; %s was not written: %v", wrongText(r), f.out, err)}
	}
	if err != nil {
		return err
	}
	if err := writeOut(f.out, text, f.force); err != nil {
		return err
	}
	for _, c := range done {
		a.printf("%s:%d: %s of %s: %v, was %v\n", f.out, c.Line, c.End, c.NIC, c.To, c.From)
	}
	if len(done) == 0 {
		a.printf("%s: no tx or rx had to be changed\n", f.out)
	}
	if from, to := filepath.Dir(name), filepath.Dir(f.out); filepath.Clean(from) != filepath.Clean(to) && l.File.Path != "" {
		fmt.Fprintf(a.err, "ocslab: %s is in another directory than %s: files that it names by relative paths are looked for there\n", f.out, name)
	}
	return nil
}
