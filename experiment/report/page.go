package report

import (
	"cmp"
	"fmt"
	"html/template"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/ocslab/ocslab/experiment/analysis"
	"github.com/ocslab/ocslab/experiment/plan"
	"github.com/ocslab/ocslab/experiment/report/chart"
	"github.com/ocslab/ocslab/experiment/runs"
	"github.com/ocslab/ocslab/timeline"
)

// page is what the template shows.
type page struct {
	Title, About, Version string
	Style                 template.CSS
	Defs                  template.HTML
	Notices               []notice
	Facts                 []fact
	Contents              []*section
	Sections              []*section
	Footer                string
}

// notice is what a reader must know before all else.
type notice struct{ Class, Title, Text string }

type fact struct{ Name, Text string }

type section struct {
	ID, Title, Class string
	Blocks           []block
}

// block is one thing below another; what is empty is left out.
type block struct {
	Heading string
	Text    string
	Facts   []fact
	List    []string
	Figure  template.HTML
	Caption string
	Table   *table
	Code    string
	Fold    string // title of Code that is folded away
}

func (s *section) add(b block) { s.Blocks = append(s.Blocks, b) }

// draw adds a chart, if there is one. A stack becomes several figures, so that paper can be
// cut between them; the last has the caption.
func (s *section) draw(heading string, c chart.Chart, caption string) {
	if stack, ok := c.(chart.Stack); ok {
		for i, one := range stack.Charts {
			below := ""
			if i == len(stack.Charts)-1 {
				below = caption
			}
			s.draw(chart.Title(one), one, below)
		}
		return
	}
	if c != nil {
		s.add(block{Heading: heading, Figure: chart.HTML(c), Caption: caption})
	}
}

func (s *section) table(t *table) {
	if t != nil {
		s.add(block{Table: t})
	}
}

func (b *book) page(opt Options) *page {
	m := b.r.Meta
	p := &page{
		Title: cmp.Or(m.Name, m.ID, "Run"), About: m.About, Version: m.Version,
		Style: chart.Style() + "\n" + template.CSS(pageCSS), Defs: chart.Defs(),
		Notices: b.notices(), Facts: b.facts(),
		Footer: fmt.Sprintf("Written by ocslab %s from run %s.", m.Version, m.ID),
	}
	for _, s := range []*section{
		b.verdict(), b.paper(opt.Paper), b.keyFigures(), b.single(), b.spread(), b.pairs(), b.overRun(), b.optical(),
		b.nics(), b.differences(), b.background(), b.accuracy(), b.missing(), b.methods(), b.again(),
	} {
		if s == nil || len(s.Blocks) == 0 {
			continue
		}
		p.Sections = append(p.Sections, s)
	}
	p.Contents = p.Sections
	return p
}

func (b *book) notices() []notice {
	var all []notice
	r := b.r
	if r.Meta.Emulated {
		all = append(all, notice{"", "Emulated.", "No light was moved. The switches were software, and the network cards too unless the methods " +
			"say otherwise; their times follow models of devices. These figures show how the tools and the models behave, " +
			"and how well marks agree with what really happened there. They are not measurements of a device."})
	}
	if r.State != runs.Done {
		text := fmt.Sprintf("%d of %d points are done", len(r.Done), b.planned())
		if n := len(r.Dropped); n > 0 {
			text += fmt.Sprintf(", %d were dropped", n)
		}
		text += fmt.Sprintf("; the run is %s", cmp.Or(string(r.State), "in an unknown state"))
		if r.Summary != nil && r.Summary.Reason != "" {
			text += ": " + r.Summary.Reason
		}
		text += ". All figures are of finished points only."
		if r.State != runs.Running {
			text += " To go on: ocslab runs resume " + r.Meta.ID
		}
		all = append(all, notice{"bad", "Not finished.", text})
	}
	if s := r.Summary; s != nil && !s.Restored {
		all = append(all, notice{"bad", "The light was not put back.", cmp.Or(s.Finally, "The circuits at the end are not those that should be.")})
	}
	if len(r.Reconfigurations) == 0 {
		all = append(all, notice{"bad", "Nothing to show.", "No point of the run is finished."})
	}
	return all
}

func (b *book) planned() int {
	if b.r.Plan == nil {
		return 0
	}
	return len(b.r.Plan.Points)
}

const clock = "2006-01-02 15:04:05 UTC"

func (b *book) facts() []fact {
	r := b.r
	facts := []fact{{"Run", r.Meta.ID}, {"Begun", r.Meta.Created.UTC().Format(clock)}}
	if s := r.Summary; s != nil {
		facts = append(facts, fact{"Ended", s.Ended.UTC().Format(clock)})
	}
	lab := r.Meta.Lab
	if r.Meta.Emulated {
		lab += " (emulated)"
	}
	facts = append(facts, fact{"Lab", lab})
	var hosts []string
	for _, s := range r.Sessions {
		if !slices.Contains(hosts, s.Host) {
			hosts = append(hosts, s.Host)
		}
	}
	if len(hosts) > 0 {
		facts = append(facts, fact{"Measured at", strings.Join(hosts, ", ")})
	}
	nulls := 0
	for _, rec := range r.Reconfigurations {
		if rec.Null {
			nulls++
		}
	}
	facts = append(facts, fact{"Recorded", fmt.Sprintf("%d reconfigurations in %s, %d null toggles, %d marks",
		len(r.Reconfigurations)-nulls, plural(len(b.a.Conditions), "condition"), nulls, len(r.Marks))})
	if r.Meta.Figure != "" {
		facts = append(facts, fact{"Preset", r.Meta.Figure})
	}
	return facts
}

func plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// verdict is what became of the limits.
func (b *book) verdict() *section {
	if len(b.a.Verdicts) == 0 {
		return nil
	}
	s := &section{ID: "verdict", Title: "Verdict: " + string(b.a.Verdict), Class: string(b.a.Verdict)}
	t := &table{Caption: "Limits, and what was found, with 95 % bounds", Head: []cell{text("limit"), text("condition"), text("verdict"), digit("found"), digit("bounds")}}
	rank := map[analysis.Judgement]int{analysis.Fail: 0, analysis.Undecided: 1, analysis.Pass: 2}
	verdicts := slices.Clone(b.a.Verdicts)
	slices.SortStableFunc(verdicts, func(x, y analysis.Verdict) int { return cmp.Compare(rank[x.Judgement], rank[y.Judgement]) })
	for _, v := range verdicts {
		found, bounds := "not seen", ""
		if v.Known {
			of := v.Limit.Statistic.Of
			found, bounds = limitTexts(of, v)
		}
		t.add(text(v.Limit.Text), text(b.conditionName(v.Condition)), cell{string(v.Judgement), string(v.Judgement)}, digit(found), digit(bounds))
	}
	s.table(t.done(directory))
	s.add(block{Text: "A limit passes if it is kept also at the worse of the bounds, fails if it is not kept even at the better one, and is undecided between."})
	return s
}

// limitTexts writes what a limit is about, and its bounds.
func limitTexts(of plan.Quantity, v analysis.Verdict) (found, between string) {
	switch of {
	case plan.P50, plan.P95, plan.P99, plan.Max:
		e := timeline.Estimate{NS: nanoseconds(v.Value), LowNS: nanoseconds(v.Low), HighNS: nanoseconds(v.High)}
		return value(e, 0), bounds(e, 0)
	}
	found = bound(of, v.Value)
	if v.Low != v.High {
		between = "[" + bound(of, v.Low) + ", " + bound(of, v.High) + "]"
	}
	return found, between
}

func (b *book) paper(p *Paper) *section {
	if p == nil {
		return nil
	}
	s := &section{ID: "paper", Title: "Against the paper: " + p.Title}
	if p.Source != "" {
		s.add(block{Text: "Source: " + p.Source})
	}
	t := &table{Caption: "What the paper says, and what was found here",
		Head: []cell{text("quantity"), digit("paper"), digit("here"), digit("deviation"), text("note")}}
	for _, r := range p.Rows {
		t.add(text(r.Quantity), digit(r.Paper), digit(r.Ours), digit(r.Deviation), text(r.Note))
	}
	s.table(t.done(directory))
	for _, c := range p.Charts {
		s.draw("", c, chart.Title(c))
	}
	return s
}

// keyFigures are a table and a waterfall for each condition.
func (b *book) keyFigures() *section {
	s := &section{ID: "figures", Title: "Key figures"}
	for _, c := range b.shown {
		if len(c.Stages)+len(c.Report.Unseen) == 0 {
			continue
		}
		s.add(block{Heading: name(c), Table: b.keyTable(c)})
		caption := ""
		if len(s.Blocks) == 1 {
			caption = "Medians since the command. A bar is what the stage adds to the one before; a pale one reaches " +
				"to the 95th percentile; a whisker is the confidence interval of the median."
		}
		s.draw("", medians(c), caption)
	}
	if n := len(b.a.Conditions) - len(b.shown); n > 0 {
		s.add(block{Text: fmt.Sprintf("%d more conditions are not shown; all are in %s", n, b.export("summary"))})
	}
	if len(b.shown) > 1 {
		if c := b.stages(); c != nil {
			s.draw("Shares", c, "What each stage adds, as a part of the median of the last one, which is beside the bar.")
		}
	}
	return s
}

func (b *book) keyTable(c analysis.Condition) *table {
	t := &table{
		Caption: fmt.Sprintf("Time since the command; %s in %s", plural(c.Reconfigurations, "reconfiguration"), plural(c.Points, "point")),
		Head: []cell{text("stage"), digit("n"), digit("missing"), digit("median [95 % CI]"), digit("p95"), digit("p99"), digit("share"),
			digit("known to"), digit("cannot resolve below")},
	}
	for _, s := range c.Stages {
		t.add(text(string(s.Stage)), count(s.Count), count(s.Missing), digit(estimate(s.Median, s.Resolution)),
			digit(tail(s.P95, s.Summary, 20)), digit(tail(s.P99, s.Summary, 100)), digit(percent(s.Share)),
			digit("±"+most(s.Resolution/2)), digit(most(s.Floor)))
	}
	for _, u := range c.Report.Unseen {
		t.add(text(string(u.Stage)), count(0), count(u.Missing), digit("never seen"), digit(""), digit(""), digit(""), digit(""), digit(""))
	}
	return t.done(b.export("summary"))
}

// tail is an upper quantile; of fewer values than it needs it is only the largest.
func tail(e timeline.Estimate, s timeline.Summary, least int) string {
	v := value(e, s.Resolution)
	if s.Count < least {
		return v + "*"
	}
	return v
}

// whiskers says what they are.
const whiskers = " A bar begins when the last of the stage before was there; a whisker is the interval in which " +
	"something must have happened. Of stages with many subjects the first and the last are drawn."

// single shows reconfigurations one by one.
func (b *book) single() *section {
	s := &section{ID: "waterfalls", Title: "Single reconfigurations"}
	exhibits := b.exhibits()
	for _, one := range b.singles(exhibits) {
		rec := b.reconfiguration(one.number)
		c := one.chart(time.Duration(rec.PatienceNS))
		if c == nil {
			continue
		}
		caption := fmt.Sprintf("%s to %s, repeat %d, %s.",
			rec.From, rec.To, rec.Repeat, rec.Wall.UTC().Format(clock))
		if len(s.Blocks) == 0 {
			caption += whiskers
		}
		s.draw(chart.Title(c), c, caption)
	}
	t := &table{Caption: "Outliers: kept in all statistics. The score is the distance from the median in units of the spread",
		Head: []cell{text("reconfiguration"), text("condition"), text("stage"), text("subject"), digit("since the command"), digit("score")}}
	for _, o := range b.outliers() {
		condition := ""
		if rec := b.reconfiguration(o.Reconfiguration); rec != nil {
			condition = b.conditionName(rec.Condition)
		}
		t.add(text(fmt.Sprint(o.Reconfiguration)), text(condition), text(string(o.Stage)), text(o.Subject), digit(interval(o.Interval)),
			digit(decimal(o.Score, 1)))
	}
	for _, c := range b.a.Conditions {
		t.left += max(0, c.OutlierCount-len(c.Outliers))
	}
	s.table(t.done(b.export("durations")))
	return s
}

// spread shows distributions.
func (b *book) spread() *section {
	s := &section{ID: "distributions", Title: "Distributions"}
	for i, stage := range b.stageList {
		caption := ""
		if i == 0 {
			caption = "The part of all durations that is not above a time. A duration is an interval, so the curve is a band: " +
				"its edges are what certainly was, and what may have been (Turnbull's estimate). A band that ends below 100 % had durations that never came."
		}
		if n := len(b.a.Conditions) - mostCurves; n > 0 && i == 0 {
			caption += fmt.Sprintf(" The first %d conditions are drawn, %d are not.", mostCurves, n)
		}
		s.draw(string(stage), b.cdf(stage), caption)
	}
	if c := b.boxes(); c != nil {
		s.draw("Quartiles", pages(c), "Boxes hold the middle half; whiskers reach to the outermost values within 1.5 times its width; circles are outliers.")
	}
	return s
}

func (b *book) pairs() *section {
	s := &section{ID: "pairs", Title: "Pairs"}
	if c := b.heatmaps(); c != nil {
		s.draw("", c, "The median time from the command to the last stage that was watched of a pair.")
	}
	return s
}

func (b *book) overRun() *section {
	s := &section{ID: "series", Title: "Over the run"}
	if c := b.series(); c != nil {
		caption := "For each of at most 200 stretches of the run the median, and the range as a band."
		if len(b.a.Conditions) > 1 {
			caption += " As conditions are mixed, each duration is shown as its distance from the median of its condition."
		}
		s.draw("", c, caption)
	}
	t := &table{Caption: "Drift: how much later a stage comes at the end of the run than at its beginning (Theil-Sen line)",
		Head: []cell{text("condition"), text("stage"), digit("drift [95 % CI]"), text("")}}
	for _, c := range b.shown {
		for _, x := range c.Stages {
			verdict := "not resolved"
			if x.Drift.LowNS > 0 || x.Drift.HighNS < 0 {
				verdict = "drifts"
			}
			t.add(text(name(c)), text(string(x.Stage)), digit(estimate(x.Drift, 0)), text(verdict))
		}
	}
	s.table(t.done(b.export("summary")))
	return s
}

func (b *book) optical() *section {
	s := &section{ID: "power", Title: "Optical power"}
	if c := b.power(); c != nil {
		s.draw("", c, chart.Title(c)+". Shaded is where the light must have gone, and where it must have been back.")
	}
	return s
}

func (b *book) nics() *section {
	s := &section{ID: "nics", Title: "By NIC"}
	for _, c := range b.shown {
		var stages []timeline.Stage
		for _, x := range c.Stages {
			if slices.ContainsFunc(c.NICs, func(n analysis.NIC) bool { _, ok := n.Stages[x.Stage]; return ok }) {
				stages = append(stages, x.Stage)
			}
		}
		t := &table{Caption: name(c) + ": medians since the command", Head: []cell{text("NIC")}}
		for _, stage := range stages {
			t.Head = append(t.Head, digit(string(stage)))
		}
		t.Head = append(t.Head, digit("link kept"))
		nics := slices.Clone(c.NICs)
		slices.SortStableFunc(nics, func(x, y analysis.NIC) int { return natural(x.Name, y.Name) })
		for _, n := range nics {
			row := []cell{text(n.Name)}
			for _, stage := range stages {
				x, ok := n.Stages[stage]
				switch {
				case !ok:
					row = append(row, digit("–"))
				case x.Missing > 0:
					row = append(row, digit(fmt.Sprintf("%s (%d of %d)", value(x.Median, x.Resolution), x.Count, x.Count+x.Missing)))
				default:
					row = append(row, digit(value(x.Median, x.Resolution)))
				}
			}
			t.add(append(row, count(c.Held[n.Name]))...)
		}
		s.table(t.done(b.export("durations")))
	}
	return s
}

func (b *book) differences() *section {
	s := &section{ID: "differences", Title: "Differences between conditions"}
	t := &table{Caption: "How much later the median of a stage comes than in the first condition",
		Head: []cell{text("condition"), text("stage"), digit("later by [95 % CI]"), text("")}}
	if len(b.a.Conditions) > 0 {
		t.Caption += " (" + name(b.a.Conditions[0]) + ")"
	}
	for _, d := range b.a.Differences {
		verdict := "not resolved"
		if d.Resolved {
			verdict = "resolved"
		}
		t.add(text(b.conditionName(d.Condition)), text(string(d.Stage)), digit(estimate(d.Median, 0)), text(verdict))
	}
	s.table(t.done(b.export("summary")))
	if len(s.Blocks) > 0 {
		s.add(block{Text: "A difference is resolved if its bounds leave 0 out and it is above what the set-up can resolve in both conditions."})
	}
	return s
}

func (b *book) background() *section {
	s := &section{ID: "background", Title: "Null toggles"}
	t := &table{Caption: "What was seen when nothing was changed",
		Head: []cell{text("stage"), digit("null toggles"), digit("with a mark"), digit("probability in one window [95 %]"), digit("window")}}
	for _, x := range b.a.Background {
		t.add(text(string(x.Stage)), count(x.Nulls), count(x.Marked), digit(percent(x.Low)+" to "+percent(x.High)), digit(exact(x.Window)))
	}
	s.table(t.done(b.export("marks")))
	t = &table{Caption: "How many of the durations nobody may have caused, going by the null toggles",
		Head: []cell{text("condition"), text("stage"), digit("durations"), digit("expected"), digit("at most")}}
	for _, c := range b.shown {
		for _, x := range c.Stages {
			if x.Spurious != nil {
				t.add(text(name(c)), text(string(x.Stage)), count(x.Count), digit(decimal(x.Spurious.Expected, 1)), digit(decimal(x.Spurious.High, 1)))
			}
		}
	}
	s.table(t.done(b.export("marks")))
	return s
}

func (b *book) accuracy() *section {
	s := &section{ID: "accuracy", Title: "Accuracy against the truth"}
	t := &table{Caption: "Marks against the emulator's own log of what it did",
		Head: []cell{text("stage"), digit("matched"), digit("truth inside"), digit("unmatched"), digit("error p50"), digit("error p95"), digit("largest"), digit("width p50")}}
	for _, x := range b.a.Accuracy {
		if x.Count == 0 {
			t.add(text(string(x.Stage)), count(0), digit("–"), count(x.Unmatched), digit("–"), digit("–"), digit("–"), digit("–"))
			continue
		}
		t.add(text(string(x.Stage)), count(x.Count), digit(decimal(100*float64(x.Inside)/float64(x.Count), 1)+" %"), count(x.Unmatched),
			digit(about(time.Duration(x.ErrP50NS))), digit(about(time.Duration(x.ErrP95NS))), digit(about(time.Duration(x.ErrMaxNS))),
			digit(about(time.Duration(x.WidthP50NS))))
	}
	s.table(t.done(b.export("truth")))
	if len(s.Blocks) > 0 {
		s.add(block{Text: "The error is the distance between the middle of a mark and the truth. Unmatched are marks without a truth, and truths without a mark."})
	}
	return s
}

// missing is all that a reader should know before trusting the rest.
func (b *book) missing() *section {
	s := &section{ID: "missing", Title: "What is missing, and what went wrong"}
	r := b.r
	unresolved := &table{Caption: "What no mark could be made of", Head: []cell{text("reconfiguration"), text("what, and why")}}
	for _, rec := range r.Reconfigurations {
		for _, u := range rec.Unresolved {
			unresolved.add(text(fmt.Sprint(rec.Number)), text(u))
		}
	}
	held := map[string]int{}
	for _, rec := range r.Reconfigurations {
		for _, nic := range rec.Held {
			held[nic]++
		}
	}
	notes := &table{Caption: "Notes of the monitors", Head: []cell{text("reconfiguration"), text("kind"), text("of"), text("what")}}
	for i, n := range r.Notes {
		of := ""
		if i < len(r.NoteOf) && r.NoteOf[i] > 0 {
			of = fmt.Sprint(r.NoteOf[i])
		}
		notes.add(text(of), text(strings.TrimSpace(string(n.Kind)+" "+n.Event)), text(cmp.Or(n.Subject, n.Host)), text(n.Text))
	}
	events := &table{Caption: "Events", Head: []cell{text("when"), text("what"), digit("session"), digit("point"), text("text")}}
	for _, s := range r.Sessions {
		if s.Number > 1 {
			events.add(text(s.Begun.UTC().Format(clock)), text("resumed"), count(s.Number), digit(""), text("Another process went on with the run."))
		}
	}
	for _, e := range r.Events {
		point := ""
		if e.Point > 0 {
			point = fmt.Sprint(e.Point)
		}
		events.add(text(e.Wall.UTC().Format(clock)), text(e.Kind), count(e.Session), digit(point), text(e.Text))
	}
	wrong := &table{Caption: "Marks that cannot be right, or that contradict each other", Head: []cell{text("reconfiguration"), text("what")}}
	for _, v := range b.a.Violations {
		wrong.add(text(fmt.Sprint(v.Effect.Reconfiguration)), text(sentence(v.Error())))
	}
	for _, c := range b.a.Conflicts {
		wrong.add(text(fmt.Sprint(c.First.Reconfiguration)), text(sentence(c.Error())))
	}
	for _, t := range []*table{events, unresolved, notes, wrong} {
		s.table(t.done(directory))
	}
	var list []string
	for _, nic := range slices.SortedFunc(maps.Keys(held), natural) {
		list = append(list, fmt.Sprintf("%s kept its link in %s", nic, plural(held[nic], "reconfiguration")))
	}
	if len(list) > 20 {
		list = append(list[:20], fmt.Sprintf("%d more NICs kept their link at times", len(list)-20))
	}
	if n := len(r.Dropped); n > 0 {
		list = append(list, fmt.Sprintf("%s not done, since it was known well enough without, or on request", plural(n, "point")))
	}
	if len(list) > 0 {
		s.add(block{Heading: "Also", List: list})
	}
	if len(s.Blocks) == 0 && len(r.Reconfigurations) > 0 {
		s.add(block{Text: "Nothing: all that was expected was seen, and nothing unusual was noted."})
	}
	return s
}

// sentence leaves out the name of the package that an error begins with.
func sentence(s string) string { return strings.TrimPrefix(s, "timeline: ") }
