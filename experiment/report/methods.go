package report

import (
	"cmp"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/ocslab/ocslab/experiment/runs"
	"github.com/ocslab/ocslab/internal/natural"
	"github.com/ocslab/ocslab/internal/shell"
)

// methods is what a paper's section of that name would need.
func (b *book) methods() *section {
	s := &section{ID: "methods", Title: "Methods"}
	r := b.r
	var facts []fact
	add := func(name string, values ...string) {
		if text := strings.Join(distinct(values), "; "); text != "" {
			facts = append(facts, fact{name, text})
		}
	}
	var versions, hosts []string
	for _, x := range r.Sessions {
		versions = append(versions, version(x.Version, x.Revision))
		hosts = append(hosts, strings.TrimSpace(x.Host+", kernel "+x.Kernel))
	}
	add("ocslab", append([]string{version(r.Meta.Version, r.Meta.Revision)}, versions...)...)
	add("Host", hosts...)
	if len(r.Sessions) > 1 {
		add("Sessions", fmt.Sprintf("%d: the run was resumed %s", len(r.Sessions), times(len(r.Sessions)-1)))
	}
	var devices, resolution, averaging, pace, missing, rungs []string
	nics, firmware := map[string]runs.NIC{}, map[string][]string{} // firmware may differ between conditions
	for _, x := range r.Setups {
		for _, d := range x.Devices {
			emulated := ""
			if d.Emulated {
				emulated = ", emulated"
			}
			devices = append(devices, fmt.Sprintf("%s: %s %s (%s), serial %s, firmware %s%s, %s",
				d.Name, d.Vendor, d.Model, d.Size, unknown(d.Serial), unknown(d.Firmware), emulated, d.URL))
			if d.AveragingNS > 0 {
				averaging = append(averaging, d.Name+" "+exact(time.Duration(d.AveragingNS)))
			}
		}
		for _, n := range x.NICs {
			nics[n.Name] = n
			firmware[n.Name] = append(firmware[n.Name], n.Firmware)
		}
		watched := x.Carrier
		if x.PollNS > 0 && !strings.Contains(watched, "every") {
			watched = strings.TrimSpace(watched + " every " + exact(time.Duration(x.PollNS)))
		}
		resolution = append(resolution, watched)
		if x.PaceNS > 0 {
			pace = append(pace, "a packet every "+exact(time.Duration(x.PaceNS))+" in each direction")
		} else {
			pace = append(pace, "none")
		}
		missing = append(missing, x.Missing...)
		if x.Rung != "" {
			rungs = append(rungs, x.Rung)
		}
	}
	for _, d := range distinct(devices) {
		facts = append(facts, fact{"Switch", d})
	}
	add("Carriers", resolution...)
	add("Averaging of power monitors", averaging...)
	add("Probe traffic", pace...)
	add("Emulated NICs are", rungs...)
	add("Not watched", missing...)
	add("Calibrations", calibrations(r)...)
	if p := r.Plan; p != nil {
		add("Order", string(p.Order))
		add("Seed", strconv.FormatUint(p.Seed, 10))
		add("Warm-ups", fmt.Sprintf("%s of the sequence after each set-up, not counted", natural.Count(p.WarmUps, "lap")))
		repeats := map[int]int{}
		for _, x := range p.Points {
			if !x.Null {
				repeats[x.Condition]++
			}
		}
		add("Repeats planned", repeatsText(repeats))
		add("Null toggles", fmt.Sprintf("%d, each watched for %s", len(p.Points)-sum(repeats), exact(time.Duration(p.Window))))
	}
	if f := r.File; f != nil {
		add("Sequence", strings.Join(f.Sequence, " → "))
	}
	s.add(block{Facts: facts})
	t := &table{Caption: "Network cards", Head: []cell{text("NIC"), text("sends into"), text("receives from"), text("firmware"), text("driver")}}
	for _, key := range slices.SortedFunc(maps.Keys(nics), natural.Compare) {
		n := nics[key]
		t.add(text(n.Name), text(n.Tx), text(n.Rx), text(strings.Join(distinct(firmware[key]), "; ")), text(n.Driver))
	}
	if len(t.Rows) > mostOpen {
		s.fold(natural.Count(len(nics), "network card"), func(s *section) { s.table(t.done("the lab file")) })
	} else {
		s.table(t.done("the lab file"))
	}
	s.add(block{Heading: "Statistics", Text: "A mark is the interval in which something must have happened: what is polled is known to one poll, and what is averaged " +
		"to the averaging time. A duration is the difference of two such intervals, and all arithmetic keeps both ends. " +
		"Durations are pooled over all subjects of a stage; where switches have power monitors, what modules say of light is not among them. Quantiles interpolate between order statistics (Hyndman and Fan 1996, type 7) " +
		"and are shown at the middle of the interval in which they must lie."})
	s.add(block{Text: "Confidence bounds (95 %) are percentiles of a bootstrap that draws whole reconfigurations with replacement, since the subjects of one share a command " +
		"and are not independent; for each bound the least favourable ends of the intervals are taken. With fewer than about 20 reconfigurations they are too narrow."})
	s.add(block{Text: "Distribution functions are Turnbull's nonparametric maximum likelihood estimate for interval-censored data " +
		"(B. W. Turnbull, J. R. Stat. Soc. B 38, 1976, 290-295); what did not come while it was waited for is known to be later. " +
		"\"Cannot resolve below\" is the largest of the typical width of a duration, of the difference that two halves of the same repeats show in 95 % of random splits, " +
		"and of the floor that a timing calibration of the set-up gives for as many repeats, where the run has used one."})
	s.add(block{Text: "Limits are held against all that was expected: what never came counts as later than it was waited for, while the key figures are of what came. " +
		"Their bounds are the wider ones of the bootstrap and of order statistics, and there are no upper bounds of a percentile with too few values (Wilks 1941)."})
	s.add(block{Text: "Outliers are named and kept in all statistics. Probabilities of marks in null toggles are Clopper-Pearson bounds."})
	if f := r.File; f != nil && len(f.Text) > 0 {
		s.fold("The experiment file, as it was given", func(s *section) { s.add(block{Code: string(f.Text)}) })
	}
	if len(r.Lab) > 0 {
		s.fold("The lab file", func(s *section) { s.add(block{Code: string(r.Lab)}) })
	}
	return s
}

// again is how to do it once more.
func (b *book) again() *section {
	r := b.r
	s := &section{ID: "repeat", Title: "To repeat this"}
	run := []string{"ocslab"}
	if r.Meta.LabPath != "" {
		run = append(run, "--lab", shell.Quote(filepath.Base(r.Meta.LabPath)))
	}
	if r.Meta.Emulated {
		run = append(run, "--emulated")
	}
	if r.Meta.File == "" && r.Meta.Figure != "" {
		run = append(run, "figure", shell.Quote(r.Meta.Figure))
	} else {
		run = append(run, "run", shell.Quote(filepath.Base(cmp.Or(r.Meta.File, "experiment.yaml"))))
	}
	if r.Plan != nil {
		run = append(run, "--seed", strconv.FormatUint(r.Plan.Seed, 10))
	}
	id := shell.Quote(r.Meta.ID)
	s.add(block{Code: strings.Join([]string{
		"# the same again",
		strings.Join(run, " "),
		"# the numbers of this run",
		"ocslab runs export " + id + " --table durations --out durations.csv",
		"# this report",
		"ocslab report " + id,
	}, "\n")})
	if len(r.Meta.Command) > 0 {
		words := make([]string, len(r.Meta.Command))
		for i, w := range r.Meta.Command {
			words[i] = shell.Quote(w)
		}
		s.add(block{Text: "It was begun by: ocslab " + strings.Join(words, " ")})
	}
	return s
}

func version(v, revision string) string {
	if revision == "" {
		return v
	}
	return v + " (" + revision + ")"
}

func unknown(s string) string {
	if s == "" {
		return "unknown"
	}
	return s
}

func times(n int) string {
	if n == 1 {
		return "once"
	}
	return fmt.Sprintf("%d times", n)
}

// distinct leaves out what is empty or was there before.
func distinct(texts []string) []string {
	var kept []string
	seen := map[string]bool{"": true}
	for _, t := range texts {
		if !seen[t] {
			seen[t] = true
			kept = append(kept, t)
		}
	}
	return kept
}

func sum(counts map[int]int) int {
	n := 0
	for _, c := range counts {
		n += c
	}
	return n
}

// repeatsText says how many repeats conditions have, which mostly is one number.
func repeatsText(repeats map[int]int) string {
	kinds := distinct(nil)
	for _, n := range slices.Sorted(maps.Values(repeats)) {
		kinds = append(kinds, strconv.Itoa(n))
	}
	kinds = distinct(kinds)
	switch len(kinds) {
	case 0:
		return ""
	case 1:
		return kinds[0] + " of each condition"
	}
	return kinds[0] + " to " + kinds[len(kinds)-1] + " of each condition"
}
