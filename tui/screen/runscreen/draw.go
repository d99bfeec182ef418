package runscreen

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/ocslab/ocslab/experiment/analysis"
	"github.com/ocslab/ocslab/experiment/plan"
	"github.com/ocslab/ocslab/experiment/runner"
	"github.com/ocslab/ocslab/internal/natural"
	"github.com/ocslab/ocslab/tui/canvas"
	"github.com/ocslab/ocslab/tui/live"
	"github.com/ocslab/ocslab/tui/screen"
	"github.com/ocslab/ocslab/tui/widget"
)

// text is a piece of a line.
type text struct {
	s    string
	role canvas.Role
	bold bool
}

// draw draws pieces behind each other, with two blanks between.
func draw(a canvas.Area, y int, pieces ...text) {
	x := 1
	for _, p := range pieces {
		if p.s == "" {
			continue
		}
		style := canvas.S(p.role)
		if p.bold {
			style = style.With(canvas.Bold)
		}
		w := a.W - x
		a.Fit(x, y, w, p.s, style)
		x += canvas.Width(p.s) + 2
	}
}

// listHead is what stands above the list.
func (s *Screen) listHead(e screen.Env) []text {
	if e.State == nil {
		return nil
	}
	r := e.State.Run
	switch {
	case under(r):
		word, role := state(r)
		return []text{{name(r), canvas.Title, true}, {word, role, true}, {fmt.Sprintf("%d of %d points", r.Progress.Done, r.Progress.Total), canvas.Text, false}, {"a shows it", canvas.Dim, false}}
	case r != nil:
		return []text{{name(r) + " is loaded", canvas.Text, false}, {"a shows it", canvas.Dim, false}, {"enter shows a run", canvas.Dim, false}, {"r goes on with one", canvas.Dim, false}}
	}
	return []text{{"o opens an experiment", canvas.Text, false}, {"enter shows what a run has found", canvas.Dim, false}, {"r goes on with one", canvas.Dim, false}}
}

// listHeight is how many lines the list has, with its heading.
func (s *Screen) listHeight(screen.Env) int { return max(0, s.h-2) }

// drawList draws the runs that are kept.
func (s *Screen) drawList(a canvas.Area, e screen.Env) {
	draw(a, 0, s.listHead(e)...)
	_, rest := a.Top(2)
	lines := s.list(e)
	empty := "No runs are kept yet. o opens an experiment file; there are some in examples/experiments. What ocslab run has measured is listed here, too."
	if !e.Filter.Empty() {
		empty = "No run passes the filter."
	}
	widget.Table{
		Columns: []widget.Column{
			{Name: "run", Width: 16, Keep: 9, Grow: true}, {Name: "state", Width: 7, Keep: 8}, {Name: "begun", Width: 11, Keep: 6},
			{Name: "points", Width: 5, Keep: 5, Right: true}, {Name: "limits", Width: 6, Keep: 7},
			{Name: "name", Max: 30, Keep: 2}, {Name: "lab", Max: 30, Keep: 1},
		},
		Rows: len(lines), Top: s.runTop, Cursor: s.run, SortedBy: -1, Empty: empty,
		Zone: func(i int) any { return runZone(i) },
		Row: func(i int) []widget.Value {
			r := lines[i]
			lab := r.Lab
			if r.Emulated {
				lab += ", emulated"
			}
			return []widget.Value{
				widget.V(r.ID, canvas.Text), widget.V(string(r.State), stateRole(r.State)), widget.V(began(r.When, e.Now), canvas.Dim),
				widget.V(fmt.Sprintf("%d/%d", r.Points, r.Planned), canvas.Text), widget.V(cmp.Or(r.Verdict, "-"), judgementRole(analysis.Judgement(r.Verdict))),
				widget.V(r.Name, canvas.Text), widget.V(lab, canvas.Dim),
			}
		},
	}.Draw(rest)
}

// began writes when something began: the time of today, the day of others.
func began(at, now time.Time) string {
	at = at.In(now.Location())
	if y, d := at.Year(), at.YearDay(); y == now.Year() && d == now.YearDay() {
		return "today " + at.Format("15:04")
	}
	return at.Format("2006-01-02")
}

func judgementRole(j analysis.Judgement) canvas.Role {
	switch j {
	case analysis.Pass:
		return canvas.Good
	case analysis.Fail:
		return canvas.Bad
	case analysis.Undecided:
		return canvas.Warn
	}
	return canvas.Dim
}

// drawPlan draws what an experiment will do.
func (s *Screen) drawPlan(a canvas.Area, r *live.Run) {
	m := s.memo.of(r)
	head := s.planHead(r, m)
	var about, steps canvas.Area
	if a.W >= 130 {
		about, steps = a.Left(a.W / 2)
	} else {
		about, steps = a, canvas.Area{}
	}
	var lines [][]text
	for _, l := range head {
		lines = append(lines, wrapped(l, about.W-2)...)
	}
	if a.W < 130 {
		about, steps = a.Top(min(len(lines)+1, max(4, a.H-7)))
	}
	for y, l := range lines {
		if y == about.H-1 && len(lines) > about.H {
			about.Text(1, y, fmt.Sprintf("… %s: a larger terminal shows it", natural.Count(len(lines)-y, "more line")), canvas.S(canvas.Dim))
			break
		}
		draw(about, y, l...)
	}
	s.drawSteps(steps, r, m)
}

// wrapped breaks a line of which the last piece is long into several. What is only an
// explanation is cut off instead.
func wrapped(l []text, w int) [][]text {
	used := 0
	for _, p := range l[:len(l)-1] {
		used += canvas.Width(p.s) + 2
	}
	last := l[len(l)-1]
	if last.role == canvas.Dim && w < 100 {
		return [][]text{l}
	}
	parts := canvas.Wrap(last.s, max(8, w-used))
	if len(parts) < 2 {
		return [][]text{l}
	}
	lines := [][]text{append(slices.Clone(l[:len(l)-1]), text{parts[0], last.role, last.bold})}
	for _, p := range parts[1:] {
		lines = append(lines, []text{{strings.Repeat(" ", max(0, used-2)), canvas.Text, false}, {p, last.role, last.bold}})
	}
	return lines
}

// planHead says what an experiment is.
func (s *Screen) planHead(r *live.Run, m *memo) [][]text {
	lines := [][]text{{{name(r), canvas.Title, true}, {"planned, not begun", canvas.Dim, false}, {r.Path, canvas.Dim, false}}}
	row := func(label, value string) {
		if value != "" {
			lines = append(lines, []text{{fmt.Sprintf("%-9s", label), canvas.Dim, false}, {value, canvas.Text, false}})
		}
	}
	if r.Plan == nil {
		return lines
	}
	if err := s.refusedOf(r); err != nil {
		lines = append(lines, []text{{"refused  ", canvas.Bad, true}, {err.Error() + ". Nothing was sent; r offers to move it.", canvas.Bad, false}})
	}
	row("runs", m.size)
	row("takes", plan.About(r.Total)+", without hooks")
	for i, t := range r.Moves {
		row([]string{"moves", ""}[min(i, 1)], t)
	}
	if f := r.File; f != nil {
		if f.Finally != nil {
			light := f.Finally.Light
			if light == plan.Restore {
				light = "the circuits are put back that the run finds"
			} else {
				light = "the light is left in " + light
			}
			row("finally", light)
		}
		var limits []string
		for _, l := range f.Limits {
			limits = append(limits, l.Text)
		}
		row("limits", cmp.Or(strings.Join(limits, "; "), "none"))
		if f.Stop != nil {
			row("stops", fmt.Sprintf("a condition early, when %v is known within %v, after %d repeats", f.Stop.When, f.Stop.Within, cmp.Or(f.Stop.After, plan.DefaultAfter)))
		}
	}
	for i, c := range r.Plan.Conditions {
		letter, role := widget.SeriesOf(c.Number - 1)
		if i == 8 && len(r.Plan.Conditions) > 10 {
			lines = append(lines, []text{{fmt.Sprintf("… and %d conditions more", len(r.Plan.Conditions)-i), canvas.Dim, false}})
			break
		}
		lines = append(lines, []text{
			{string(letter), role, true}, {cmp.Or(c.Label, "the only condition"), canvas.Text, false},
			{strings.Join(c.Sequence, " > "), canvas.Text, false}, {"each move " + plan.About(c.Expected) + ": " + c.Basis, canvas.Dim, false},
		})
	}
	if r.File != nil {
		row("about", strings.Join(strings.Fields(r.File.About), " "))
	}
	return lines
}

// drawSteps draws the steps of a plan from where the cursor is.
func (s *Screen) drawSteps(a canvas.Area, r *live.Run, m *memo) {
	if a.H < 2 {
		return
	}
	empty := "The plan has no steps."
	if m.more {
		a.Sub(0, a.H-1, a.W, 1).Fit(1, 0, a.W-1, fmt.Sprintf("the first %d steps: ocslab run %s --plan prints them all", len(m.steps), r.Path), canvas.S(canvas.Dim))
		a, _ = a.Bottom(1)
	}
	widget.Table{
		Columns: []widget.Column{
			{Name: "at", Keep: 5, Right: true}, {Name: "point", Keep: 4, Right: true}, {Name: "cond.", Keep: 3},
			{Name: "step", Keep: 7}, {Name: "what", Width: 20, Max: max(20, a.W-36), Keep: 9, Grow: true},
		},
		Rows: len(m.steps), Top: widget.Scroll(s.step, s.step, len(m.steps), a.H), Cursor: s.step, SortedBy: -1, Empty: empty,
		Zone: func(i int) any { return stepZone(i) },
		Row: func(i int) []widget.Value {
			x := m.steps[i]
			condition := widget.V("", canvas.Dim)
			if x.Condition > 0 {
				letter, role := widget.SeriesOf(x.Condition - 1)
				condition = widget.V(string(letter), role)
			}
			role := canvas.Dim
			switch x.Kind {
			case plan.StepMove:
				role = canvas.Text
			case plan.StepHook, plan.StepFinally:
				role = canvas.Accent
			}
			return []widget.Value{
				widget.V(plan.Clock(x.At), canvas.Dim), widget.V(number(x.Point), canvas.Dim), condition,
				widget.V(string(x.Kind), role), widget.V(x.Text(r.Plan), canvas.Text),
			}
		},
	}.Draw(a)
}

// number writes a number from 1, and nothing for none.
func number(n int) string {
	if n == 0 {
		return ""
	}
	return strconv.Itoa(n)
}

// room is how many lines, or columns, the parts of a run get.
type room struct {
	head   int
	limits int
	table  int // with its heading
	side   int // columns of the table when the charts are beside it; 0: they are below
}

// layout divides an area among the parts of a run with n rows of stages.
func (s *Screen) layout(a canvas.Area, r *live.Run, n int) room {
	l := room{head: 4}
	l.head += len(errLines(r, a))
	if len(r.Limits) > 0 {
		l.limits = min(len(r.Limits), max(1, a.H/8))
	}
	left := max(0, a.H-l.head-l.limits)
	switch {
	case s.large:
		l.table, l.limits = 0, 0
	case a.W >= 110:
		l.side = min(a.W*55/100, 84)
		l.table = left
	default:
		l.table = min(max(n+1, 4), max(left*2/5, 4), left) // without rows it says why
	}
	return l
}

// drawRun draws a run that is under way, or over.
func (s *Screen) drawRun(a canvas.Area, r *live.Run, e screen.Env) {
	rows := stages(r, e.Filter)
	l := s.layout(a, r, len(rows))
	head, rest := a.Top(l.head)
	s.drawHead(head, r, e)
	limits, rest := rest.Top(l.limits)
	drawLimits(limits, r)
	row := max(0, min(s.row, len(rows)-1))
	switch {
	case l.side > 0:
		table, pictures := rest.Left(l.side)
		s.drawStages(table, r, rows, row)
		s.drawCharts(pictures.Sub(2, 0, pictures.W-2, pictures.H), r, rows, row)
	default:
		table, pictures := rest.Top(l.table)
		s.drawStages(table, r, rows, row)
		s.drawCharts(pictures, r, rows, row)
	}
}

// drawHead says what runs, how far it is and what it does.
func (s *Screen) drawHead(a canvas.Area, r *live.Run, e screen.Env) {
	word, role := state(r)
	verdict, vrole := overall(r)
	draw(a, 0, text{name(r), canvas.Title, true}, text{word, role, true}, text{verdict, vrole, true}, text{r.ID, canvas.Dim, false})
	p := r.Progress
	part := 0.0
	if p.Total > 0 {
		part = float64(p.Done) / float64(p.Total)
	}
	right := fmt.Sprintf("%d of %d points", p.Done, p.Total)
	if left := timeLeft(r, e.Now); left > 0 {
		right += ", " + plan.About(left) + " left"
	}
	width := max(0, min(40, a.W-canvas.Width(right)-4))
	widget.Progress(a.Sub(1, 1, width, 1), part, canvas.S(role), canvas.S(canvas.Dim))
	a.Text(width+3, 1, right, canvas.S(canvas.Text))
	switch {
	case under(r) && r.State == "":
		var now []text
		if p.Condition > 0 {
			letter, lrole := widget.SeriesOf(p.Condition - 1)
			now = append(now, text{string(letter), lrole, true}, text{p.Label, canvas.Text, false})
		}
		if p.Point > 0 {
			now = append(now, text{"point " + strconv.Itoa(p.Point), canvas.Dim, false})
		}
		draw(a, 2, append(now, text{p.Step, canvas.Busy, false})...)
	case !r.Ended:
		draw(a, 2, text{"It is not followed from here: this is what it had finished when it was opened.", canvas.Warn, false})
	default:
		draw(a, 2, text{"report: ocslab report " + r.ID + " --out " + r.ID + ".html", canvas.Dim, false})
	}
	if r.Setup != "" {
		srole := canvas.Dim
		if strings.HasPrefix(r.Setup, "not") {
			srole = canvas.Warn
		}
		draw(a, 3, text{r.Setup, srole, false})
	}
	erole := canvas.Warn
	if stateRole(r.State) == canvas.Bad {
		erole = canvas.Bad
	}
	for i, l := range errLines(r, a) {
		draw(a, 4+i, text{l, erole, false})
	}
}

// mostErrLines is how many lines an error may have that ended a run: it says what is left to be
// done, which is not to be cut off.
const mostErrLines = 5

// errLines are the lines of what ended a run.
func errLines(r *live.Run, a canvas.Area) []string {
	if r.Err == nil {
		return nil
	}
	lines := canvas.Wrap(r.Err.Error(), max(20, a.W-2))
	return lines[:min(len(lines), mostErrLines)]
}

// timeLeft is about how long the rest takes, as of now.
func timeLeft(r *live.Run, now time.Time) time.Duration {
	left := r.Progress.Left
	switch r.Progress.State {
	case runner.Running, runner.Pausing, runner.Stopping:
		if !r.Told.IsZero() {
			left -= max(0, now.Sub(r.Told))
		}
	}
	return max(left, 0)
}

// overall is the verdict on all limits.
func overall(r *live.Run) (string, canvas.Role) {
	all := analysis.Judgement("")
	rank := []analysis.Judgement{"", analysis.Pass, analysis.Undecided, analysis.Fail}
	for _, l := range r.Limits {
		all = rank[max(slices.Index(rank, all), slices.Index(rank, l.Judgement))]
	}
	if r.Analysis != nil {
		all = r.Analysis.Verdict
	}
	if all == "" {
		return "", canvas.Dim
	}
	text := "limits: " + string(all)
	if r.Analysis == nil {
		text += " so far"
	}
	return text, judgementRole(all)
}

// drawLimits draws how it stands with each limit, those that are not kept first.
func drawLimits(a canvas.Area, r *live.Run) {
	if a.H == 0 {
		return
	}
	list := slices.Clone(r.Limits)
	order := []analysis.Judgement{analysis.Fail, analysis.Undecided, analysis.Pass}
	slices.SortStableFunc(list, func(x, y live.LimitStat) int {
		return cmp.Compare(slices.Index(order, x.Judgement), slices.Index(order, y.Judgement))
	})
	for i, l := range list {
		if i == a.H-1 && i < len(list)-1 {
			count := map[analysis.Judgement]int{}
			for _, x := range list[i:] {
				count[x.Judgement]++
			}
			var words []string
			for _, j := range order {
				if count[j] > 0 {
					words = append(words, fmt.Sprintf("%d %s", count[j], j))
				}
			}
			draw(a, i, text{"and " + strings.Join(words, ", "), canvas.Dim, false})
			return
		}
		letter, role := widget.SeriesOf(l.Condition - 1)
		which := text{}
		if r.Plan != nil && len(r.Plan.Conditions) > 1 {
			which = text{string(letter), role, true}
		}
		draw(a, i, text{fmt.Sprintf("%-9s", l.Judgement), judgementRole(l.Judgement), true}, which, text{l.Text, canvas.Text, false}, text{l.Found, canvas.Dim, false})
	}
}

// drawStages draws the table of durations.
func (s *Screen) drawStages(a canvas.Area, r *live.Run, rows []live.StageStat, cursor int) {
	if a.H == 0 {
		return
	}
	empty := "Nothing is measured yet: the first point is not finished."
	switch {
	case len(r.Stages) > 0:
		empty = "No stage passes the filter."
	case r.Ended:
		empty = "Nothing was measured: no point was finished."
	}
	widget.Table{
		Columns: []widget.Column{
			{Name: "", Width: 1, Keep: 10}, {Name: "stage", Keep: 9}, {Name: "n", Keep: 6, Right: true}, {Name: "median", Keep: 8, Right: true},
			{Name: "95 % bounds", Keep: 4, Right: true}, {Name: "p95", Keep: 5, Right: true}, {Name: "missing", Keep: 7, Right: true},
			{Name: "condition", Keep: 3, Max: 40, Grow: true},
		},
		Rows: len(rows), Top: widget.Scroll(s.rowTop, cursor, len(rows), a.H), Cursor: cursor, SortedBy: -1,
		Empty: empty,
		Zone:  func(i int) any { return stageZone(i) },
		Row: func(i int) []widget.Value {
			x := rows[i]
			letter, role := widget.SeriesOf(x.Condition - 1)
			missing := widget.V("", canvas.Dim)
			if x.Missing > 0 {
				missing = widget.V(strconv.Itoa(x.Missing), canvas.Bad)
			}
			v := []widget.Value{
				{Text: string(letter), Style: canvas.S(role, canvas.Bold)}, widget.V(string(x.Stage), canvas.Text), widget.V(strconv.Itoa(len(x.Durations)), canvas.Text),
				widget.V("never", canvas.Bad), widget.V("", canvas.Dim), widget.V("", canvas.Dim), missing, widget.V(cmp.Or(x.Label, "-"), canvas.Dim),
			}
			if len(x.Durations) > 0 {
				v[3] = widget.V(widget.Time(x.Median.NS), canvas.Text)
				v[4] = widget.V(between(x.Median.LowNS, x.Median.HighNS), canvas.Dim)
				v[5] = widget.V(widget.Time(x.P95.NS), canvas.Text)
			}
			return v
		},
	}.Draw(a)
}

// between writes bounds, in one unit where they are of one.
func between(low, high int64) string {
	l, h := widget.Time(low), widget.Time(high)
	if ln, lu, ok := strings.Cut(l, " "); ok && strings.HasSuffix(h, " "+lu) {
		l = ln
	}
	return l + ".." + h
}

// rowText is a row of the table as text, with tabs between.
func rowText(x live.StageStat) string {
	fields := []string{cmp.Or(x.Label, "-"), string(x.Stage), strconv.Itoa(len(x.Durations))}
	if len(x.Durations) > 0 {
		fields = append(fields, widget.Time(x.Median.NS), between(x.Median.LowNS, x.Median.HighNS), widget.Time(x.P95.NS))
	}
	return strings.Join(append(fields, strconv.Itoa(x.Missing)+" missing"), "\t")
}

// mostSeries is how many conditions are drawn together: as many as there are roles for.
const mostSeries = 6

// series are the durations of one stage under the conditions around that of the row, and
// which of these the row is.
func series(rows []live.StageStat, row int) (list []widget.Series, at int) {
	if row >= len(rows) {
		return nil, 0
	}
	for i, x := range rows {
		if x.Stage != rows[row].Stage {
			continue
		}
		if i == row {
			at = len(list)
		}
		letter, role := widget.SeriesOf(x.Condition - 1)
		list = append(list, widget.Series{Letter: letter, Role: role, Name: x.Label, Values: x.Durations, Missing: x.Missing})
	}
	from := max(0, min(at-mostSeries/2, len(list)-mostSeries))
	return list[from:min(len(list), from+mostSeries)], at - from
}

// drawCharts draws the durations of the stage that the cursor is on.
func (s *Screen) drawCharts(a canvas.Area, r *live.Run, rows []live.StageStat, row int) {
	if a.H < 3 || row >= len(rows) {
		return
	}
	a.Zone(chartZone{})
	list, at := series(rows, row)
	which := s.chart
	fits := a.W >= 100 || a.H >= 24
	if which == both && !fits {
		which = histogram
	}
	names := map[chart]string{histogram: "histogram", cdf: "part that was over", both: "histogram, and part that was over"}
	title := string(rows[row].Stage) + ": " + names[which]
	if s.chart == both && !fits {
		title += " (no room for both)"
	}
	a.Rule(0, title+"  v: another", canvas.S(canvas.Frame))
	_, rest := a.Top(1)
	if len(list) > 1 {
		legend, below := rest.Top(1)
		var words []text
		for _, x := range list {
			words = append(words, text{string(x.Letter) + " " + cmp.Or(x.Name, "-"), x.Role, false})
		}
		draw(legend, 0, words...)
		rest = below
	}
	switch {
	case which == histogram:
		widget.Histogram(rest.Sub(1, 0, rest.W-2, rest.H), list, at)
	case which == cdf:
		widget.CDF(rest.Sub(1, 0, rest.W-2, rest.H), list, at)
	case a.W >= 100:
		left, right := rest.Left(rest.W / 2)
		widget.Histogram(left.Sub(1, 0, left.W-3, left.H), list, at)
		widget.CDF(right.Sub(1, 0, right.W-2, right.H), list, at)
	default:
		top, bottom := rest.Top(rest.H / 2)
		widget.Histogram(top.Sub(1, 0, top.W-2, top.H-1), list, at)
		widget.CDF(bottom.Sub(1, 0, bottom.W-2, bottom.H), list, at)
	}
}
