package fit

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/ocslab/ocslab/emulator"
	firmwarenotes "github.com/ocslab/ocslab/firmware-notes"
	"github.com/ocslab/ocslab/internal/natural"
	"github.com/ocslab/ocslab/internal/statedir"
	"github.com/ocslab/ocslab/lab"
	"github.com/ocslab/ocslab/timeline/dist"
)

// Names of files in the directory of a fit.
const (
	fitFile  = "fit.json"
	labFile  = "lab.yaml"
	pageFile = "fit.html"
)

// ErrDir is that a directory cannot be the directory of a fit.
var ErrDir = errors.New("not the directory of a fit")

// File is one file of a fit.
type File struct {
	Name string // in the directory
	What string // a few words for people
	Data []byte
}

// Write writes a personality for each switch, a note with the firmware, a lab file that
// uses both, the report, and fit.json, which [Load] reads. All of it is made and read back
// before anything is written; fit.json is last. The directory may be new, empty, or hold a
// fit, which is replaced. Of a fit that was loaded nothing can be written.
func (f *Fit) Write(dir, version string) ([]File, error) {
	if f.measured == nil {
		return nil, errors.New("a fit that was read from a file has no values to write again")
	}
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	if len(entries) > 0 && !slices.ContainsFunc(entries, func(e fs.DirEntry) bool { return e.Name() == fitFile }) {
		return nil, fmt.Errorf("%s is %w and not empty: name another, or one that is not there yet", dir, ErrDir)
	}
	files, err := f.files(version)
	if err != nil {
		return nil, err
	}
	if err := statedir.Make(dir); err != nil {
		return nil, err
	}
	for _, x := range files {
		if err := statedir.WriteFile(filepath.Join(dir, x.Name), x.Data); err != nil {
			return nil, err
		}
	}
	return files, nil
}

func (f *Fit) files(version string) ([]File, error) {
	var files []File
	models := map[string]string{}
	for _, s := range f.Stages {
		if s.Quantity != Single && s.Quantity != Bulk || models[s.Subject] != "" {
			continue
		}
		models[s.Subject] = s.Subject + ".yaml"
		if models[s.Subject] == labFile {
			models[s.Subject] = "switch-" + labFile
		}
		data, err := f.personality(s.Subject)
		if err != nil {
			return nil, err
		}
		files = append(files, File{models[s.Subject], "how the switch " + s.Subject + " is emulated", data})
	}
	note := ""
	if len(f.Profiles) > 0 {
		note = plain(f.Lab) + ".md"
		data, err := f.note(note)
		if err != nil {
			return nil, err
		}
		files = append(files, File{note, "what its firmware does, for people and for the emulator", data})
	}
	if data, err := f.labFile(models, note); err != nil {
		return nil, err
	} else if data != nil {
		files = append(files, File{labFile, "the lab, emulated that way", data})
	}
	var page bytes.Buffer
	study := f.Study(version)
	if err := study.HTML(&page); err != nil {
		return nil, err
	}
	files = append(files, File{pageFile, "how well that agrees with what was measured", page.Bytes()})
	data, err := f.marshal()
	if err != nil {
		return nil, err
	}
	return append(files, File{fitFile, "what later runs are held against", data}), nil
}

// source says where a value comes from.
func (f *Fit) source(s *Stage) string {
	return "measured: " + f.origin() + ", n=" + fmt.Sprint(s.Fitted.Count) + "; " + s.Text()
}

// origin names the runs.
func (f *Fit) origin() string {
	what := "run"
	if len(f.Runs) > 1 {
		what = "runs"
	}
	text := fmt.Sprintf("fitted to %s %s of %s", what, strings.Join(f.Runs, ", "), f.From.UTC().Format(time.DateOnly))
	if to := f.To.UTC().Format(time.DateOnly); to != f.From.UTC().Format(time.DateOnly) {
		text += " to " + to
	}
	if f.Emulated {
		text += " (of an emulated lab)"
	}
	return text
}

// ModesText writes the modes with their standard errors: "70 % ±3 % around 20.1 ms ±0.05 ms,
// spread 1.02 ms ±0.04 ms; 30 % ...".
func ModesText(f dist.Fitted) string {
	var list []string
	for k, x := range f.Mixture {
		e := f.Errors[k]
		text := ""
		if len(f.Mixture) > 1 {
			text = fmt.Sprintf("%.1f %% ±%.1f around ", x.Share*100, e.Share*100)
		}
		text += Known(x.Median, e.Median) + ", spread "
		if e.AtMost > 0 {
			text += "at most " + short(e.AtMost)
		} else {
			text += Known(x.Spread, e.Spread)
		}
		list = append(list, text)
	}
	return strings.Join(list, "; ")
}

// Text says what was fitted, and how well one value is known: what [ModesText] does, or that it
// is below resolution.
func (s *Stage) Text() string {
	if most, below := s.Below(); below {
		return "below resolution: at most " + short(most)
	}
	text := ModesText(s.Fitted)
	if s.KnownTo() > 0 {
		text += "; each value known to " + short(s.KnownTo())
	}
	return text
}

// Known writes a duration and its standard error with as many digits as that allows: two of
// the error.
func Known(d, se time.Duration) string {
	units := []struct {
		worth time.Duration
		name  string
	}{{time.Second, "s"}, {time.Millisecond, "ms"}, {time.Microsecond, "µs"}, {time.Nanosecond, "ns"}}
	u := units[len(units)-1]
	for _, x := range units {
		if max(d.Abs(), se) >= x.worth {
			u = x
			break
		}
	}
	if se <= 0 {
		return fmt.Sprintf("%.6g %s", float64(d)/float64(u.worth), u.name)
	}
	off := float64(se) / float64(u.worth)
	digits := min(max(1-int(math.Floor(math.Log10(off))), 0), 6)
	return fmt.Sprintf("%.*f ±%.*f %s", digits, float64(d)/float64(u.worth), digits, off, u.name)
}

// rounded drops digits that a standard error makes meaningless, so that files can be read.
func rounded(d, se time.Duration) time.Duration {
	to := time.Nanosecond
	for to*1000 < se {
		to *= 10
	}
	return d.Round(to)
}

// mixture is that of a stage as it is written.
func (s *Stage) mixture() dist.Mixture {
	m := slices.Clone(s.Fitted.Mixture)
	for k := range m {
		e := s.Fitted.Errors[k]
		m[k].Share = math.Round(m[k].Share*1e4) / 1e4
		m[k].Median, m[k].Spread = rounded(m[k].Median, e.Median), rounded(m[k].Spread, e.Spread)
	}
	return m
}

func shifted(m dist.Mixture, by time.Duration) dist.Mixture {
	m = slices.Clone(m)
	for k := range m {
		m[k].Median = max(m[k].Median+by, 0)
	}
	return m
}

// baseModel returns the personality that the one of a switch is built on.
func (f *Fit) baseModel(name string) (emulator.Personality, string, error) {
	model := f.Options.BaseModel
	var sw *lab.Switch
	if f.measured.lab != nil {
		sw, _ = f.measured.lab.Switch(name)
	}
	if model == "" && sw != nil && sw.Emulate != nil {
		e, err := f.measured.lab.Emulation(name)
		if err == nil && e.Transceivers != nil {
			err = fmt.Errorf("%s is emulated as transceivers, which follow from their physics", sw.Emulate.Model)
		}
		if err != nil {
			return emulator.Personality{}, "", fmt.Errorf("the model that the fit of %s is built on: %w: name another with --base-model", name, err)
		}
		return e.Personality, sw.Emulate.Model, nil
	}
	if model == "" {
		d := f.measured.switches[name].device
		return emulator.Personality{}, "", fmt.Errorf("%w: nobody says what %s (%s %s, %s) is to be emulated as, but for its times: name the most like it of %s with --base-model",
			ErrNothing, name, d.Vendor, d.Model, d.Size, strings.Join(emulator.Models(), ", "))
	}
	p, err := emulator.LoadPersonality(model)
	if err != nil {
		return p, "", fmt.Errorf("the model that the fit of %s is built on: %w", name, err)
	}
	return p, model, nil
}

// personality returns the file of a switch.
func (f *Fit) personality(name string) ([]byte, error) {
	p, base, err := f.baseModel(name)
	if err != nil {
		return nil, err
	}
	single, bulk := f.stage(name, Single, ""), f.stage(name, Bulk, "")
	main := single
	if main == nil {
		main = bulk
	}
	m := main.mixture()
	p.Model = plain(f.Lab) + "-" + plain(name)
	p.Description = fmt.Sprintf("%s of %s, %s", name, f.Lab, f.origin())
	p.Switching = emulator.Switching{Rise: min(p.Switching.Rise, m.Quantile(0.5)/10), Ack: p.Switching.Ack}
	sw := &p.Switching
	if rise, ok := f.Rises[name]; ok {
		sw.Rise = rise
	}
	sw.Single = m[0].Median
	if len(m) == 1 {
		sw.Jitter = m[0].Spread
	} else {
		sw.Modes = m
		sw.Single = m.Quantile(0.5)
	}
	sw.Bulk = sw.Single
	if single != nil && bulk != nil {
		sw.Bulk = rounded(max(single.mixture().Quantile(0.5)+bulk.Fitted.Mixture.Quantile(0.5)-single.Fitted.Mixture.Quantile(0.5), 0), bulk.Fitted.Errors[0].Median)
	}
	for _, s := range f.Stages {
		if s.Subject != name || s.Path == "" {
			continue
		}
		modes := s.mixture()
		if s.Quantity == Bulk {
			if f.stage(name, Single, s.Path) != nil {
				continue
			}
			modes = shifted(modes, sw.Single-sw.Bulk)
		}
		var path emulator.Path
		if err := path.UnmarshalText([]byte(s.Path)); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		sw.Paths = append(sw.Paths, emulator.PathSwitching{Path: path, Modes: modes})
	}
	ack := f.Acks[name]
	sw.Ack = cmp.Or(ack.Mode, sw.Ack)
	data, err := p.YAML()
	if err != nil {
		return nil, fmt.Errorf("the personality of %s: %w", name, err)
	}
	var b bytes.Buffer
	comment := func(format string, args ...any) {
		for line := range strings.Lines(natural.Wrap(fmt.Sprintf(format, args...), 100, "")) {
			fmt.Fprintf(&b, "# %s\n", strings.TrimRight(line, "\n"))
		}
	}
	comment("The switch %s of %s, %s.", name, f.Lab, f.origin())
	b.WriteString("#\n# Command to light, ± is the standard error:\n")
	for _, s := range f.Stages {
		if s.Subject == name {
			comment("%s: %s (n=%d).", strings.TrimSpace(quantityText(s.Quantity)+" "+s.Path), s.Text(), s.Fitted.Count)
		}
	}
	switch {
	case single == nil:
		comment("One cross-connect alone was not measured, and is taken to be as fast as several.")
	case bulk == nil:
		comment("Several cross-connects in one change were not measured, and are taken to be as fast as one.")
	case len(single.Fitted.Mixture) > 1 || len(bulk.Fitted.Mixture) > 1 || single.Fitted.Mixture[0].Spread != bulk.Fitted.Mixture[0].Spread:
		comment("Several cross-connects have the distribution of one, later by the difference of the medians.")
	}
	if ack.Mode != "" {
		comment("Acknowledgement %s the light: %s.", ack.Mode, ack.Evidence)
	} else {
		comment("When it acknowledges is that of the base: %s.", ack.Evidence)
	}
	comment("All else (optics, monitors, how the light rises, the protocols) is not fitted: it is that of %s.", base)
	b.WriteString("\n")
	b.Write(data)
	back, err := emulator.ParsePersonality(name+".yaml", b.Bytes())
	if err != nil {
		return nil, fmt.Errorf("the personality of %s cannot be read back: %w", name, err)
	}
	if back.Switching.Ack != sw.Ack || len(back.Switching.Paths) != len(sw.Paths) {
		return nil, fmt.Errorf("the personality of %s is another when it is read back", name)
	}
	return b.Bytes(), nil
}

func quantityText(q Quantity) string {
	switch q {
	case Single:
		return "One cross-connect"
	case Bulk:
		return "Several in one change, each"
	case Debounce:
		return "dark to carrier-down"
	case LightToFirmware:
		return "light to firmware"
	case Carrier:
		return "firmware to carrier"
	case LightToCarrier:
		return "light to carrier"
	}
	return string(q)
}

// span is a fitted stage as a value of a profile.
func span(m dist.Mixture) firmwarenotes.Span {
	if len(m) == 1 {
		return firmwarenotes.Span{Median: m[0].Median, Spread: m[0].Spread}
	}
	return firmwarenotes.Mixed(m)
}

// allows reports whether a stage is below resolution, and as far as it tells may be as a base
// has it.
func (s *Stage) allows(base firmwarenotes.Span) bool {
	most, below := s.Below()
	return below && base.Median <= most
}

// confidence is that of a fitted value.
func (f *Fit) confidence(s *Stage) firmwarenotes.Confidence {
	if s.Fitted.Count >= 100 && plausible(s.Fitted) {
		return firmwarenotes.High
	}
	return firmwarenotes.Medium
}

// profile makes the profile of a note.
func (f *Fit) profile(p *Profile) (firmwarenotes.Profile, []firmwarenotes.Origin, error) {
	name := f.baseFirmware(p)
	base, err := firmwarenotes.Find(name)
	if err != nil {
		return base, nil, err
	}
	shown := name
	if file, ok := firmwarenotes.Path(name); ok {
		shown = filepath.Base(file) + strings.TrimPrefix(name, file)
	}
	out := base
	out.Name, out.Key, out.Burst = "", p.Key, p.Burst
	origins := map[string]firmwarenotes.Origin{}
	assume := func(value, why string) {
		origins[value] = firmwarenotes.Origin{Profile: p.Key, Value: value, Source: "assumed: as in " + shown + ": " + why, Confidence: firmwarenotes.Low}
	}
	take := func(value string, s *Stage, more string) {
		origins[value] = firmwarenotes.Origin{Profile: p.Key, Value: value, Source: f.source(s) + more, Confidence: f.confidence(s)}
	}
	assume("debounce", "no carrier was seen to go after the light")
	assume("detect", "only the sum with train is known")
	assume("carrier", "when the firmware reports was not seen")
	assume("refresh", "nothing tells it")
	if s := f.stage(p.Key, Debounce, ""); s != nil {
		if s.allows(base.Debounce) {
			assume("debounce", s.Text()+", which that is")
		} else {
			out.Debounce = span(s.mixture())
			take("debounce", s, "")
		}
	}
	link := f.stage(p.Key, LightToFirmware, "")
	less := base.Detect.Median
	variance := math.Pow(float64(base.Detect.Spread), 2)
	sum := "with detect, light to firmware"
	if link == nil {
		if link = f.stage(p.Key, LightToCarrier, ""); link == nil {
			return out, nil, fmt.Errorf("%w: %s has no time from light to link", ErrNothing, p.Key)
		}
		less += base.Carrier.Median
		variance += math.Pow(float64(base.Carrier.Spread), 2)
		sum = "with detect and carrier, light to carrier"
	} else if s := f.stage(p.Key, Carrier, ""); s != nil {
		if s.allows(base.Carrier) {
			assume("carrier", s.Text()+", which that is")
		} else {
			out.Carrier = span(s.mixture())
			take("carrier", s, "")
		}
	}
	m := link.mixture()
	if least := m.Quantile(0.001); least < less+base.Detect.Median {
		// The base is slower than what was seen: nothing of it can be used.
		less -= out.Detect.Median
		variance -= math.Pow(float64(base.Detect.Spread), 2)
		out.Detect = firmwarenotes.Span{}
		origins["detect"] = firmwarenotes.Origin{Profile: p.Key, Value: "detect",
			Source: fmt.Sprintf("assumed: all of it is in train, since that of %s (%v) does not fit", shown, base.Detect.Median), Confidence: firmwarenotes.Low}
	}
	m = shifted(m, -less)
	for k := range m {
		m[k].Spread = rounded(time.Duration(math.Sqrt(max(math.Pow(float64(m[k].Spread), 2)-variance, 0))), link.Fitted.Errors[k].Spread)
	}
	out.Train = span(m)
	take("train", link, "; that is "+sum)
	if p.Burst != nil {
		assume("burst", p.BurstText)
		if p.BurstFitted {
			origins["burst"] = firmwarenotes.Origin{Profile: p.Key, Value: "burst", Source: "measured: " + f.origin() + "; " + p.BurstText, Confidence: firmwarenotes.Medium}
		}
	}
	var list []firmwarenotes.Origin
	for _, value := range []string{"debounce", "detect", "train", "carrier", "burst", "refresh"} {
		if o, ok := origins[value]; ok {
			list = append(list, o)
		}
	}
	return out, list, nil
}

// note returns the note of all profiles.
func (f *Fit) note(file string) ([]byte, error) {
	n := firmwarenotes.Note{
		Name: strings.TrimSuffix(file, ".md"), Kind: firmwarenotes.NIC,
		Title:   "NICs of " + f.Lab + ", fitted",
		Summary: "What the firmware of the NICs of " + f.Lab + " does between light and link, " + f.origin() + ".",
	}
	var text strings.Builder
	fmt.Fprintf(&text, "# NICs of %s\n\nMade by `ocslab emulator fit`: %s.\n\n## What was measured\n\n", f.Lab, f.origin())
	text.WriteString("| profile | stage | n | modes, with standard errors |\n| --- | --- | --- | --- |\n")
	for _, s := range f.Stages {
		if s.Quantity != Single && s.Quantity != Bulk {
			fmt.Fprintf(&text, "| %s | %s | %d | %s |\n", s.Subject, quantityText(s.Quantity), s.Fitted.Count, s.Text())
		}
	}
	text.WriteString("\n## Of which NICs\n\n")
	for i := range f.Profiles {
		p := &f.Profiles[i]
		fmt.Fprintf(&text, "- %s: %s. Firmware as reported: %s.\n", p.Key, strings.Join(p.NICs, ", "), cmp.Or(p.Firmware, "unknown"))
	}
	if len(f.Remarks) > 0 {
		text.WriteString("\n## To be kept in mind\n\n")
		for _, r := range f.Remarks {
			fmt.Fprintf(&text, "- %s\n", r)
		}
	}
	n.Text = text.String()
	for i := range f.Profiles {
		p, origins, err := f.profile(&f.Profiles[i])
		if err != nil {
			return nil, err
		}
		n.Profiles = append(n.Profiles, p)
		n.Origins = append(n.Origins, origins...)
	}
	data := n.Markdown()
	if _, err := firmwarenotes.Parse(file, data); err != nil {
		return nil, fmt.Errorf("the note cannot be read back: %w", err)
	}
	return data, nil
}

// labFile returns the lab with what was fitted, nil if the runs have no lab file.
func (f *Fit) labFile(models map[string]string, note string) ([]byte, error) {
	if f.measured.lab == nil {
		f.remark("The runs have no lab file that can be read, so none was written: name the files in yours, as emulate.model and firmware.")
		return nil, nil
	}
	l := *f.measured.lab.Anchored() // what it names beside it stays where it is
	l.Switches = slices.Clone(l.Switches)
	for i := range l.Switches {
		s := &l.Switches[i]
		if models[s.Name] == "" {
			continue
		}
		e := lab.Emulate{}
		if s.Emulate != nil {
			e = *s.Emulate
		}
		e.Model, e.Switching, e.Jitter, e.Ack = models[s.Name], nil, nil, ""
		s.Emulate = &e
	}
	l.Hosts = slices.Clone(l.Hosts)
	for i := range l.Hosts {
		l.Hosts[i].NICs = slices.Clone(l.Hosts[i].NICs)
		for j := range l.Hosts[i].NICs {
			n := &l.Hosts[i].NICs[j]
			for _, p := range f.Profiles {
				if slices.Contains(p.NICs, n.FullName()) {
					n.Firmware = note
					if len(f.Profiles) > 1 {
						n.Firmware += "#" + p.Key
					}
				}
			}
		}
	}
	head := fmt.Sprintf("# %s, to be emulated as it was measured: %s.\n", f.Lab, f.origin())
	data := append([]byte(head), l.YAML()...)
	return data, nil
}

// saved is fit.json.
type saved struct {
	Format   int            `json:"format"`
	Lab      string         `json:"lab"`
	Runs     []string       `json:"runs"`
	From     time.Time      `json:"from"`
	To       time.Time      `json:"to"`
	Emulated bool           `json:"emulated"`
	Stages   []savedStage   `json:"stages"`
	Profiles []Profile      `json:"profiles"`
	Acks     map[string]Ack `json:"acks"`
	Remarks  []string       `json:"remarks"`
	// AsRecorded is of [Options], so that later runs are taken the same way.
	AsRecorded bool                     `json:"as_recorded,omitempty"`
	Rises      map[string]time.Duration `json:"rises_ns,omitempty"`
}

type savedStage struct {
	Subject    string           `json:"subject"`
	Quantity   Quantity         `json:"quantity"`
	Path       string           `json:"path,omitempty"`
	Modes      dist.Mixture     `json:"modes"`
	Errors     []dist.ModeError `json:"errors"`
	Count      int              `json:"count"`
	Never      int              `json:"never"`
	Resolution time.Duration    `json:"resolution_ns"`
	P          float64          `json:"p"`
	Distance   dist.Distance    `json:"distance"`
	Seen       Seen             `json:"seen"`
}

// format is the version of fit.json.
const format = 2

func (f *Fit) marshal() ([]byte, error) {
	s := saved{Format: format, Lab: f.Lab, Runs: f.Runs, From: f.From, To: f.To, Emulated: f.Emulated, Profiles: f.Profiles, Acks: f.Acks, Remarks: f.Remarks, AsRecorded: f.Options.AsRecorded, Rises: f.Rises}
	for _, x := range f.Stages {
		s.Stages = append(s.Stages, savedStage{
			Subject: x.Subject, Quantity: x.Quantity, Path: x.Path, Modes: x.Fitted.Mixture, Errors: x.Fitted.Errors,
			Count: x.Fitted.Count, Never: x.Fitted.Never, Resolution: x.Fitted.Resolution, P: x.Fitted.P, Distance: x.Fitted.Distance, Seen: x.Seen,
		})
	}
	data, err := json.MarshalIndent(s, "", "  ")
	return append(data, '\n'), err
}

// Load reads what [Fit.Write] has written to a directory. The error matches [ErrDir] when
// there is no fit, or a damaged one.
func Load(dir string) (*Fit, error) {
	data, err := os.ReadFile(filepath.Join(dir, fitFile))
	if err != nil {
		return nil, fmt.Errorf("%s is %w: %w", dir, ErrDir, err)
	}
	f, err := parse(data)
	if err != nil {
		return nil, fmt.Errorf("%s is %w: %s: %w", dir, ErrDir, fitFile, err)
	}
	return f, nil
}

func parse(data []byte) (*Fit, error) {
	var s saved
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	if err := d.Decode(&s); err != nil {
		return nil, err
	}
	if s.Format != format {
		return nil, fmt.Errorf("format %d is not known, only %d: fit again", s.Format, format)
	}
	if len(s.Stages) == 0 {
		return nil, errors.New("it has no stages")
	}
	f := &Fit{Lab: s.Lab, Runs: s.Runs, From: s.From, To: s.To, Emulated: s.Emulated, Profiles: s.Profiles, Acks: s.Acks, Remarks: s.Remarks, Rises: s.Rises, Options: Options{AsRecorded: s.AsRecorded}}
	for _, x := range s.Stages {
		if err := x.Modes.Check(); err != nil {
			return nil, fmt.Errorf("%s %s: %w", x.Subject, x.Quantity, err)
		}
		if len(x.Errors) != len(x.Modes) || len(x.Modes) > dist.MaxModes || x.Count <= 0 || x.Never < 0 ||
			!x.Seen.valid() || x.Resolution < 0 || x.Resolution > longest {
			return nil, fmt.Errorf("%s %s: its numbers do not go together", x.Subject, x.Quantity)
		}
		for k, e := range x.Errors {
			if e.Median < 0 || e.Spread < 0 || !(e.Share >= 0) || x.Modes[k].Median > longest || x.Modes[k].Spread > longest {
				return nil, fmt.Errorf("%s %s: a number is out of range", x.Subject, x.Quantity)
			}
		}
		f.Stages = append(f.Stages, Stage{Subject: x.Subject, Quantity: x.Quantity, Path: x.Path, Fitted: dist.Fitted{
			Mixture: x.Modes, Errors: x.Errors, Count: x.Count, Never: x.Never, Resolution: x.Resolution, P: x.P, Distance: x.Distance,
		}, Seen: x.Seen})
	}
	return f, nil
}

// valid reports whether s can be compared with.
func (s *Seen) valid() bool {
	n := len(s.Lows)
	if n < 2 || len(s.Highs) != n || !slices.IsSorted(s.Lows) || !slices.IsSorted(s.Highs) || !(min(s.Alike[0], s.Alike[1]) >= 1) || max(s.Alike[0], s.Alike[1]) > 1e6 {
		return false
	}
	for k, low := range s.Lows {
		if high := s.Highs[k]; low > high || low.Abs() > longest || high.Abs() > longest {
			return false
		}
	}
	return true
}

// longest keeps sums of what is read far away from overflow.
const longest = 24 * time.Hour
