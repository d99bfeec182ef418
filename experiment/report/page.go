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
	"github.com/ocslab/ocslab/internal/natural"
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
	Fold    string  // the title below which Inside is folded away
	Inside  []block // shown when the reader asks for it
}

func (s *section) add(b block) { s.Blocks = append(s.Blocks, b) }

// fold adds what fill adds, folded away; nothing, if that is nothing.
func (s *section) fold(title string, fill func(*section)) {
	var in section
	if fill(&in); len(in.Blocks) > 0 {
		s.add(block{Fold: title, Inside: in.Blocks})
	}
}

// draw adds a chart, if there is one. Of a stack the first is seen, and the others are folded
// away under a title that says how many more of what they are.
func (s *section) draw(heading string, c chart.Chart, caption, what string) {
	if stack, ok := c.(chart.Stack); ok {
		s.draw(chart.Title(stack.Charts[0]), stack.Charts[0], caption, "")
		s.fold(natural.Count(len(stack.Charts)-1, "more "+what), func(in *section) {
			for _, one := range stack.Charts[1:] {
				in.draw(chart.Title(one), one, "", "")
			}
		})
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
		Style: styleSheet(), Defs: chart.Defs(),
		Notices: b.notices(), Facts: b.facts(),
		Footer: fmt.Sprintf("Written by ocslab %s from run %s.", m.Version, m.ID),
	}
	for _, s := range []*section{
		b.verdict(), paper(opt.Paper), b.keyFigures(), b.single(), b.spread(), b.pairs(), b.overRun(), b.optical(),
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

// styleSheet is that of a page.
func styleSheet() template.CSS { return chart.Style() + "\n" + template.CSS(pageCSS) }

func (b *book) notices() []notice {
	var all []notice
	r := b.r
	if r.Meta.Emulated {
		all = append(all, notice{"", "Emulated.", "No light was moved: switches and network cards were software, and their times are those of models. " +
			"These figures say how the tools and the models behave, and nothing of a device."})
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
			text += " To go on: " + r.Plan.GoOn(r.Meta.ID, r.Summary != nil && r.Summary.Restored)
		}
		all = append(all, notice{"bad", "Not finished.", text})
	}
	if s := r.Summary; s != nil && !s.Restored {
		all = append(all, notice{"bad", "The light was not put back.", cmp.Or(s.Finally, "The circuits at the end are not those that should be.")})
	}
	if why := staleCalibrations(r); why != "" {
		all = append(all, notice{"bad", "Stale calibration.", why})
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
		len(r.Reconfigurations)-nulls, natural.Count(len(b.a.Conditions), "condition"), nulls, len(r.Marks))})
	if r.Meta.Figure != "" {
		facts = append(facts, fact{"Preset", r.Meta.Figure})
	}
	return facts
}

// verdict is what became of the limits.
func (b *book) verdict() *section {
	if b.a.Verdict == "" {
		return nil
	}
	s := &section{ID: "verdict", Title: "Verdict: " + string(b.a.Verdict), Class: string(b.a.Verdict)}
	t := &table{Caption: "Limits, and what was found, with 95 % bounds", Head: []cell{text("verdict"), text("limit"), text("condition"), digit("found"), digit("bounds")}}
	rank := map[analysis.Judgement]int{analysis.Fail: 0, analysis.Undecided: 1, analysis.Pass: 2}
	verdicts := slices.Clone(b.a.Verdicts)
	slices.SortStableFunc(verdicts, func(x, y analysis.Verdict) int { return cmp.Compare(rank[x.Judgement], rank[y.Judgement]) })
	judged := map[string]bool{}
	for _, v := range verdicts {
		judged[v.Limit.Text] = true
		found, bounds := "not seen", ""
		if v.Known {
			found, bounds = limitTexts(v.Limit.Statistic.Of, v)
		}
		judgement := cell{string(v.Judgement), string(v.Judgement)}
		if v.Need > 0 {
			judgement.Text += fmt.Sprintf(": takes %d values to tell", v.Need)
		}
		t.add(judgement, text(v.Limit.Text), text(b.conditionName(v.Condition)), digit(found), digit(bounds))
	}
	if b.r.File != nil {
		for _, l := range b.r.File.Limits {
			if !judged[l.Text] {
				t.add(cell{string(analysis.Undecided), string(analysis.Undecided)}, text(l.Text), text("none that is done"), digit(""), digit(""))
			}
		}
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

func paper(p *Paper) *section {
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
		s.draw("", c, chart.Title(c), "")
	}
	return s
}

// keyFigures are a table and a waterfall for each condition. Of more than two conditions there
// is one table for all, and those of each are folded away but for the first.
func (b *book) keyFigures() *section {
	s := &section{ID: "figures", Title: "Key figures"}
	many := len(b.shown) > 2
	if many {
		s.table(b.overview())
	}
	caption := "Medians since the command. A bar is what the stage adds to the one before; a pale one reaches " +
		"to the 95th percentile; a whisker is the confidence interval of the median."
	show := func(s *section, conditions []analysis.Condition) {
		for _, c := range conditions {
			if len(c.Stages)+len(c.Report.Unseen) > 0 {
				s.add(block{Heading: name(c), Table: b.keyTable(c)})
				s.draw("", medians(c), caption, "")
				caption = ""
			}
		}
	}
	open := len(b.shown)
	if many {
		open = 1
	}
	show(s, b.shown[:open])
	s.fold(natural.Count(len(b.shown)-open, "more condition"), func(s *section) { show(s, b.shown[open:]) })
	if n := len(b.a.Conditions) - len(b.shown); n > 0 {
		s.add(block{Text: fmt.Sprintf("%d more conditions are not shown; all are in %s", n, b.export("summary"))})
	}
	if len(b.shown) > 1 {
		if c := b.stages(); c != nil {
			s.draw("Shares", c, "What each stage adds, as a part of the median of the last one, which is beside the bar.", "")
		}
	}
	return s
}

// overview is the medians of all conditions.
func (b *book) overview() *table {
	t := &table{Caption: "Medians since the command, by condition", Head: []cell{text("condition")}}
	for _, stage := range b.stageList {
		t.Head = append(t.Head, digit(string(stage)))
	}
	t.Head = append(t.Head, digit("missing"))
	for _, c := range b.shown {
		row := []cell{text(name(c))}
		missing := 0
		for _, stage := range b.stageList {
			median := "–"
			if x, ok := stageOf(c, stage); ok {
				median = value(x.Median, x.Resolution)
				missing += x.Missing
			}
			row = append(row, digit(median))
		}
		for _, u := range c.Report.Unseen {
			missing += u.Missing
		}
		t.add(append(row, count(missing))...)
	}
	return t.done(b.export("summary"))
}

func (b *book) keyTable(c analysis.Condition) *table {
	t := &table{
		Caption: fmt.Sprintf("Time since the command; %s in %s", natural.Count(c.Reconfigurations, "reconfiguration"), natural.Count(c.Points, "point")),
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
	for _, c := range t.Rows {
		if slices.ContainsFunc(c, func(c cell) bool { return strings.HasSuffix(c.Text, "*") }) {
			t.Caption += ". * is of fewer values than it takes: it lies between the two largest"
			break
		}
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

// single shows reconfigurations one by one: a typical one, and, folded away, the others.
func (b *book) single() *section {
	s := &section{ID: "waterfalls", Title: "Single reconfigurations"}
	type drawn struct {
		chart   chart.Chart
		caption string
	}
	var all []drawn
	for _, one := range b.singles(b.exhibits()) {
		rec := b.reconfiguration(one.number)
		c := one.chart(time.Duration(rec.PatienceNS))
		if c == nil {
			continue
		}
		all = append(all, drawn{c, fmt.Sprintf("%s to %s, repeat %d, %s.",
			rec.From, rec.To, rec.Repeat, rec.Wall.UTC().Format(clock))})
	}
	if len(all) == 0 {
		return nil
	}
	s.draw(chart.Title(all[0].chart), all[0].chart, all[0].caption+whiskers, "")
	s.fold(natural.Count(len(all)-1, "more reconfiguration")+": typical and slowest ones, and outliers", func(s *section) {
		for _, d := range all[1:] {
			s.draw(chart.Title(d.chart), d.chart, d.caption, "")
		}
	})
	t := &table{Caption: "Outliers: kept in all statistics. The score is the distance from the median in units of the spread",
		Head: []cell{text("reconfiguration"), text("condition"), text("stage"), text("subject"), digit("since the command"), digit("score")}}
	n := 0
	for _, o := range b.outliers() {
		condition := ""
		if rec := b.reconfiguration(o.Reconfiguration); rec != nil {
			condition = b.conditionName(rec.Condition)
		}
		t.add(text(fmt.Sprint(o.Reconfiguration)), text(condition), text(string(o.Stage)), text(o.Subject), digit(interval(o.Interval)),
			digit(decimal(o.Score, 1)))
	}
	for _, c := range b.a.Conditions {
		n += c.OutlierCount
		t.left += max(0, c.OutlierCount-len(c.Outliers))
	}
	s.fold(natural.Count(n, "outlier"), func(s *section) { s.table(t.done(b.export("durations"))) })
	return s
}

// spread shows distributions: the quartiles of all stages, and the curve of the last one.
func (b *book) spread() *section {
	s := &section{ID: "distributions", Title: "Distributions"}
	left := ""
	if n := len(b.a.Conditions) - mostCurves; n > 0 {
		left = fmt.Sprintf(" The first %d conditions are drawn, %d are not.", mostCurves, n)
	}
	if c := b.boxes(); c != nil {
		s.draw("Quartiles", pages(c), "Boxes hold the middle half of the durations, each taken at the middle of its interval. Whiskers reach to the outermost within "+
			"1.5 times the box's width, dotted lines to the least and the most; circles are the outliers that are named."+left, "stage")
	}
	if len(b.stageList) == 0 {
		return s
	}
	last := len(b.stageList) - 1
	s.draw(string(b.stageList[last]), b.cdf(b.stageList[last]), "The part of all durations that is not above a time, as is most likely for the intervals that were seen "+
		"(Turnbull's estimate). In a shaded box it is known how much the curve rises, and not where. A curve that ends below 100 % has durations that never came."+left, "")
	s.fold(natural.Count(last, "other stage"), func(s *section) {
		for _, stage := range b.stageList[:last] {
			s.draw(string(stage), b.cdf(stage), "", "")
		}
	})
	return s
}

func (b *book) pairs() *section {
	s := &section{ID: "pairs", Title: "Pairs"}
	if c := b.heatmaps(); c != nil {
		s.draw("", c, "The median time from the command to the last stage that was watched of a pair. The colours of a map go from its quickest pair "+
			"to its slowest, however little they differ: what cannot be resolved is in the key figures.", "condition")
	}
	return s
}

func (b *book) overRun() *section {
	s := &section{ID: "series", Title: "Over the run"}
	if c := b.series(); c != nil {
		of := "each reconfiguration"
		if len(b.r.Reconfigurations) > mostBins {
			of = fmt.Sprintf("each of %d stretches of the run at most", mostBins)
		}
		caption := "The median of " + of + ", in a band that holds nine tenths of the values, or all if they are few."
		if len(b.a.Conditions) > 1 {
			caption += " As conditions may be mixed, each duration is shown as its distance from the median of its condition."
		}
		s.draw("", c, caption, "")
	}
	t := &table{Caption: "Drift: how much later a stage comes at the end of the run than at its beginning (Theil-Sen line)",
		Head: []cell{text("condition"), text("stage"), digit("drift [95 % CI]"), text("verdict")}}
	n, drifting := 0, []string{}
	for _, c := range b.shown {
		for _, x := range c.Stages {
			n++
			verdict := "not resolved"
			if (x.Drift.LowNS > 0 || x.Drift.HighNS < 0) && magnitude(x.Drift.NS) > int64(x.Floor) {
				verdict = "drifts"
				of := string(x.Stage)
				if c.Label != "" {
					of += " of " + c.Label
				}
				drifting = append(drifting, fmt.Sprintf("%s by %s", of, estimate(x.Drift, 0)))
			}
			t.add(text(name(c)), text(string(x.Stage)), digit(estimate(x.Drift, 0)), text(verdict))
		}
	}
	if n > 0 {
		const most = 8
		said := "No drift is resolved."
		if len(drifting) > 0 {
			said = fmt.Sprintf("%d of %d drift. By chance alone, about one in 20 seems to.", len(drifting), n)
			if len(drifting) > most {
				drifting = append(drifting[:most], fmt.Sprintf("and %d more", len(drifting)-most))
			}
		}
		s.add(block{Text: said, List: drifting})
	}
	s.fold("Drift of all stages", func(s *section) { s.table(t.done(b.export("summary"))) })
	return s
}

func (b *book) optical() *section {
	s := &section{ID: "power", Title: "Optical power"}
	if c := b.power(); c != nil {
		s.draw("", c, chart.Title(c)+". Shaded is where the light must have gone, and where it must have been back.", "port")
	}
	return s
}

func (b *book) nics() *section {
	s := &section{ID: "nics", Title: "By NIC"}
	var tables []*table
	what := "condition"
	for _, c := range b.shown {
		if t := b.nicTable(c); t != nil {
			tables = append(tables, t)
		}
	}
	if len(tables) > 0 && len(tables[0].Rows) <= mostOpen {
		s.table(tables[0])
		tables, what = tables[1:], "more condition"
	}
	s.fold(natural.Count(len(tables), what), func(s *section) {
		for _, t := range tables {
			s.table(t)
		}
	})
	return s
}

func (b *book) nicTable(c analysis.Condition) *table {
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
	slices.SortStableFunc(nics, func(x, y analysis.NIC) int { return natural.Compare(x.Name, y.Name) })
	for _, n := range nics {
		row := []cell{text(n.Name)}
		for _, stage := range stages {
			x, ok := n.Stages[stage]
			switch {
			case n.Unseen[stage] > 0:
				row = append(row, digit(fmt.Sprintf("never, of %d", n.Unseen[stage])))
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
	return t.done(b.export("durations"))
}

func (b *book) differences() *section {
	s := &section{ID: "differences", Title: "Differences between conditions"}
	head := func(what string) *table {
		t := &table{Caption: what, Head: []cell{text("condition"), text("stage"), digit("later by [95 % CI]")}}
		if len(b.a.Conditions) > 0 {
			t.Caption += " (" + name(b.a.Conditions[0]) + ")"
		}
		return t
	}
	yes, no := head("How much later the median of a stage comes than in the first condition"), head("Not told from the first condition")
	for _, d := range b.a.Differences {
		t := no
		if d.Resolved {
			t = yes
		}
		t.add(text(b.conditionName(d.Condition)), text(string(d.Stage)), digit(estimate(d.Median, 0)))
	}
	if len(b.a.Differences) == 0 {
		return nil
	}
	s.table(yes.done(b.export("summary")))
	s.add(block{Text: fmt.Sprintf("%d of %d differences are resolved: their bounds leave 0 out, and they are above what the set-up can resolve in either condition.",
		len(yes.Rows)+yes.left, len(b.a.Differences))})
	s.fold(fmt.Sprintf("%d not resolved", len(no.Rows)+no.left), func(s *section) { s.table(no.done(b.export("summary"))) })
	return s
}

func (b *book) background() *section {
	s := &section{ID: "background", Title: "Null toggles"}
	if len(b.a.Background) == 0 {
		return nil
	}
	t := &table{Caption: "What was seen when nothing was changed",
		Head: []cell{text("stage"), digit("null toggles"), digit("with a mark"), digit("probability in one window [95 %]"), digit("window")}}
	var seen []string
	for _, x := range b.a.Background {
		if x.Marked > 0 {
			seen = append(seen, fmt.Sprintf("%s in %d of them", x.Stage, x.Marked))
		}
		t.add(text(string(x.Stage)), count(x.Nulls), count(x.Marked), digit(percent(x.Low)+" to "+percent(x.High)), digit(exact(x.Window)))
	}
	first := b.a.Background[0]
	said := fmt.Sprintf("In %s nothing was changed and all was watched for %s: ", natural.Count(first.Nulls, "null toggle"), exact(first.Window))
	if len(seen) == 0 {
		said += "no mark was seen."
	} else {
		said += strings.Join(seen, ", ") + "."
	}
	s.add(block{Text: said})
	s.fold("How often marks come by themselves", func(s *section) {
		s.table(t.done(b.export("marks")))
		t := &table{Caption: "How many of the durations nobody may have caused, going by the null toggles",
			Head: []cell{text("condition"), text("stage"), digit("durations"), digit("expected"), digit("at most")}}
		for _, c := range b.shown {
			for _, x := range c.Stages {
				if x.Spurious != nil {
					t.add(text(name(c)), text(string(x.Stage)), count(x.Count), digit(decimal(x.Spurious.Expected, 1)), digit(decimal(x.Spurious.High, 1)))
				}
			}
		}
		s.table(t.done(b.export("marks")))
	})
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
		s.add(block{Text: "The error is the distance between the middle of a mark and the truth. Unmatched are marks without a truth, and truths without a mark. " +
			"Of the command and its acknowledgement the truth is when the switch received the one and sent the other, so their error is the way between."})
	}
	return s
}

// missing is all that a reader should know before trusting the rest.
func (b *book) missing() *section {
	s := &section{ID: "missing", Title: "What is missing, and what went wrong"}
	r := b.r
	lost := newGroups()
	for _, rec := range r.Reconfigurations {
		for _, u := range rec.Unresolved {
			subject, what, ok := strings.Cut(u, ": ")
			if !ok {
				subject, what = "", u
			}
			lost.add(what, subject, rec.Number, "")
		}
	}
	unresolved := lost.table("What no mark could be made of")
	held := map[string]int{}
	for _, rec := range r.Reconfigurations {
		for _, nic := range rec.Held {
			held[nic]++
		}
	}
	told := newGroups()
	for i, n := range r.Notes {
		of := 0
		if i < len(r.NoteOf) {
			of = r.NoteOf[i]
		}
		told.add(strings.TrimSpace(string(n.Kind)+" "+n.Event), cmp.Or(n.Subject, n.Host), of, n.Text)
	}
	for _, busy := range b.a.Busy {
		for _, why := range busy.Reasons {
			told.add("left out of all figures: the machine was too busy", "", busy.Reconfiguration, why)
		}
	}
	notes := told.table("Notes of the monitors")
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
	for _, t := range []*table{events, unresolved, wrong, notes} {
		s.table(t.done(directory))
	}
	var list []string
	for _, nic := range slices.SortedFunc(maps.Keys(held), natural.Compare) {
		list = append(list, fmt.Sprintf("%s kept its link in %s", nic, natural.Count(held[nic], "reconfiguration")))
	}
	if len(list) > 20 {
		list = append(list[:20], fmt.Sprintf("%d more NICs kept their link at times", len(list)-20))
	}
	if n := len(r.Dropped); n > 0 {
		list = append(list, fmt.Sprintf("%s not done, since it was known well enough without, or on request", natural.Count(n, "point")))
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
