package study

import (
	"context"
	"fmt"

	"github.com/ocslab/ocslab/experiment/report"
	"github.com/ocslab/ocslab/orchestrator/advice"
	"github.com/ocslab/ocslab/topology/opus/cost"
)

// costPower compares bills.
func costPower(context.Context, report.FigureOptions) (*report.Study, error) {
	s := &report.Study{}
	s.Paper.Title = "figure 14: price and power of packet switches, in units of the optical rails'"
	for _, x := range []struct {
		kind           cost.Kind
		servers        int
		dollars, watts string
	}{{cost.H200, 64, "4.27", "23.86"}, {cost.GB200, 64, "3.17", "15.44"}} {
		sys := cost.System{Servers: x.servers, Kind: x.kind}
		eps, rails, err := cost.Compare(sys)
		if err != nil {
			return nil, err
		}
		s.Paper.Rows = append(s.Paper.Rows,
			report.PaperRow{Quantity: string(x.kind) + ", price", Paper: x.dollars, Ours: fmt.Sprintf("%.3f", eps.Dollars()/rails.Dollars())},
			report.PaperRow{Quantity: string(x.kind) + ", power", Paper: x.watts, Ours: fmt.Sprintf("%.3f", eps.Watts()/rails.Watts())})
		text, err := cost.Report(cost.System{Servers: x.servers, Kind: x.kind, Ports: 2})
		if err != nil {
			return nil, err
		}
		s.Sections = append(s.Sections, report.StudySection{Title: fmt.Sprintf("%d servers of %s, with one duplex port for each GPU as the paper buys, and with the two that a ring needs", x.servers, x.kind), Pre: text})
	}
	perRail, pod, err := cost.Reach(512, 2, 72)
	if err != nil {
		return nil, err
	}
	s.Paper.Rows = append(s.Paper.Rows, report.PaperRow{Quantity: "GPUs with a switch of 512 ports for each rail of NVL72", Paper: "18K", Ours: fmt.Sprint(pod),
		Note: fmt.Sprintf("The paper says for each rail; it is the whole pod of 72 rails, and a rail has %d.", perRail)})
	s.Paper.Rows[0].Note = "The paper's counts of parts give these ratios exactly. They buy one duplex port for each GPU, and its architecture needs two: see below."
	return s, nil
}

// scale reports what the small model says of the paper's simulations.
func scale(context.Context, report.FigureOptions) (*report.Study, error) {
	s := &report.Study{Emulated: "Modelled, not measured: nothing was run."}
	s.Paper.Title = "figures 12 to 14: step against packet switches (EPS) and a static optical network (one-shot)"
	var all []advice.Result
	for _, c := range advice.Cases() {
		r, err := advice.Study(c)
		if err != nil {
			return nil, err
		}
		all = append(all, r)
	}
	s.Sections = append(s.Sections, report.StudySection{Title: "What the model says beside the paper", Pre: advice.StudyText(all),
		Text: "Nothing was fitted. Where the two are far apart (figure 14), the paper's traces surely have other boundaries and windows; see the documentation of package advice."})
	return s, nil
}
