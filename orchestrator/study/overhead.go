package study

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/ocslab/ocslab/experiment/report"
	"github.com/ocslab/ocslab/orchestrator/controller"
	"github.com/ocslab/ocslab/orchestrator/proto"
	"github.com/ocslab/ocslab/orchestrator/shim"
)

// overhead measures what the control plane costs when the switch takes no time.
func overhead(ctx context.Context, opt report.FigureOptions) (*report.Study, error) {
	t, err := generate("config-2")
	if err != nil {
		return nil, err
	}
	s := &report.Study{Emulated: emulated}
	s.Paper.Title = "figure 11: overhead at 0 ms"
	const compress = 10
	base, err := play(ctx, opt, t, 0, native, compress, nil)
	if err != nil {
		return s, err
	}
	full := base.Result.Mean().Scaled
	table := report.StudySection{Title: "Steps of configuration 2 (16 ranks on each of four rails)",
		Text: "Steps are played faster than they are, but the control plane takes what it takes. So what it adds to a step is the difference of the steps as " +
			"played, and its share is that of the whole step.",
		Columns: []string{"", "step as played", "added to a step", "share of a step", "waited by the slowest rank", "asked a step", "changes a step and rail"}}
	table.Table = append(table.Table, []string{"no control plane", base.Result.Mean().Wall.Round(time.Microsecond).String(), "", "", "", "", ""})
	latency := report.StudySection{Title: "From the last request of a group to its acknowledgements, and what the switch's driver took of it",
		Text:    "Of requests that moved circuits. Quorum is when the last rank that had to ask has asked; the acknowledgement is when it is handed to the last of the ranks' connections.",
		Columns: []string{"", "changes", "p50", "p99", "driver p50", "driver p99"}}
	for _, x := range []struct {
		mode  shim.Mode
		paper string
	}{{shim.ModeDemand, "+6.13 %"}, {shim.ModeProvision, "+0.79 %"}} {
		watch := &latencies{}
		out, err := play(ctx, opt, t, 0, x.mode, compress, watch.log)
		if err != nil {
			return s, err
		}
		mean := out.Result.Mean()
		added := mean.Wall - base.Result.Mean().Wall
		share := fmt.Sprintf("%+.3f %%", 100*float64(added)/float64(full))
		table.Table = append(table.Table, []string{string(x.mode), mean.Wall.Round(time.Microsecond).String(), added.Round(time.Microsecond).String(), share,
			mean.LongestWait.Round(time.Microsecond).String(), fmt.Sprint(mean.Asked), fmt.Sprintf("%.1f", float64(mean.Reconfigurations)/float64(t.Rails))})
		s.Paper.Rows = append(s.Paper.Rows, report.PaperRow{Quantity: "overhead, " + string(x.mode), Paper: x.paper, Ours: share,
			Note: "The paper's is 14.7093 s and 13.973 s of 13.86 s, on another cluster's processors."})
		n, p50, p99 := watch.quantiles(watch.total)
		_, d50, d99 := watch.quantiles(watch.driver)
		latency.Table = append(latency.Table, []string{string(x.mode), n, p50, p99, d50, d99})
	}
	s.Sections = append(s.Sections, table, latency)
	return s, nil
}

// latencies are the times from quorum to acknowledgement, of requests that moved circuits.
type latencies struct {
	mu            sync.Mutex
	total, driver []time.Duration
}

// log is told of everything at a controller.
func (l *latencies) log(e controller.Event) {
	if e.Kind != controller.EventAck || e.Ack.Result != proto.Applied {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.total = append(l.total, time.Duration(e.AtNS-e.Ack.ReadyNS))
	l.driver = append(l.driver, time.Duration(e.Ack.VerifiedNS-e.Ack.CommandNS))
}

// quantiles are in words; of nothing there are none.
func (l *latencies) quantiles(x []time.Duration) (n, p50, p99 string) {
	if len(x) == 0 {
		return "0", "-", "-"
	}
	slices.Sort(x)
	at := func(i int) string { return x[i].Round(time.Microsecond).String() }
	return fmt.Sprint(len(x)), at(len(x) / 2), at(min(len(x)-1, len(x)*99/100))
}
