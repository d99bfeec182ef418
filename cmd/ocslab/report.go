package main

import (
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/ocslab/ocslab/experiment/analysis"
	"github.com/ocslab/ocslab/experiment/export"
	"github.com/ocslab/ocslab/experiment/figures"
	"github.com/ocslab/ocslab/experiment/report"
	"github.com/ocslab/ocslab/experiment/runs"
)

// reportFlags are those of all commands that write reports.
type reportFlags struct {
	format, figure, out, otlp string
}

// htmlTo are those of a report in HTML; to no file, no report.
func htmlTo(file string) reportFlags {
	return reportFlags{format: formats[0], figure: report.Figures()[0], out: file}
}

// add adds the flags but for the name of the file.
func (r *reportFlags) add(f *pflag.FlagSet) {
	f.StringVar(&r.format, "format", formats[0], "`"+strings.Join(formats, "|")+"`")
	f.StringVar(&r.figure, "figure", report.Figures()[0], "of svg: `"+strings.Join(report.Figures(), "|")+"`")
	f.StringVar(&r.otlp, "otlp", "", "write OpenTelemetry spans to `FILE`, too")
}

// formats are what a report can be written as, and the ends of their files' names.
var formats = []string{"html", "svg", "csv", "json", "trace"}

func (r *reportFlags) check() error {
	if !slices.Contains(formats, r.format) {
		return usagef("--format %q: want one of %s", r.format, strings.Join(formats, ", "))
	}
	if !slices.Contains(report.Figures(), r.figure) {
		return usagef("--figure %q: want one of %s", r.figure, strings.Join(report.Figures(), ", "))
	}
	return nil
}

func (a *app) reportCommand() *cobra.Command {
	var flags reportFlags
	c := &cobra.Command{
		Use:   "report RUN",
		Short: "Write the report of a run: one HTML file, or SVG, CSV, JSON, or a trace",
		Long: `Write the report of a run, also of one that goes on or was killed: of its finished points.

  html   one file that needs nothing else, with figures, statistics and methods
  svg    one figure of it: --figure
  csv    statistics of each stage in each condition
  json   all that the analysis found, one object per line
  trace  every reconfiguration for Perfetto (ui.perfetto.dev) and chrome://tracing

--otlp FILE writes OpenTelemetry spans beside it, one trace per reconfiguration, as
OTLP/JSON lines.`,
		Example:           "  ocslab report last\n  ocslab report last --format svg --figure cdf --out cdf.svg\n  ocslab report last --format trace --out trace.json",
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: a.completeRun,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := flags.check(); err != nil {
				return err
			}
			r, err := a.loadRun(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			return a.writeReport(r, analysis.Of(r), flags)
		},
	}
	flags.add(c.Flags())
	c.Flags().StringVar(&flags.out, "out", "", "`FILE` to write; - is stdout (default RUN.html, and stdout for the other formats)")
	return c
}

// writeReport writes a report and says where it is.
func (a *app) writeReport(r *runs.Run, x *analysis.Analysis, flags reportFlags) error {
	write := map[string]func(io.Writer) error{
		"html":  func(w io.Writer) error { return report.HTML(w, r, x, report.Options{Paper: paper(r, x)}) },
		"svg":   func(w io.Writer) error { return report.SVG(w, r, x, flags.figure) },
		"csv":   func(w io.Writer) error { return export.CSV(w, r, "summary") },
		"json":  func(w io.Writer) error { return writeLines(w, x.Lines()) },
		"trace": func(w io.Writer) error { return export.Trace(w, r) },
	}[flags.format]
	out := flags.out
	if out == "" {
		out = "-"
		if flags.format == "html" {
			out = r.Meta.ID + ".html"
		}
	}
	if err := a.writeFile(out, write); err != nil {
		return err
	}
	if flags.otlp != "" {
		if err := a.writeFile(flags.otlp, func(w io.Writer) error { return export.OTLP(w, r) }); err != nil {
			return err
		}
	}
	for _, path := range []string{out, flags.otlp} {
		switch {
		case path == "" || path == "-":
		case a.set.JSON && out != "-":
			a.json(struct {
				Kind string `json:"kind"`
				Run  string `json:"run"`
				Path string `json:"path"`
			}{"report", r.Meta.ID, path})
		case out != "-":
			a.printf("wrote %s\n", path)
		}
	}
	return nil
}

// paper is what a paper says, for a run that a preset began.
func paper(r *runs.Run, x *analysis.Analysis) *report.Paper {
	if r.Meta.Figure == "" {
		return nil
	}
	f, err := figures.Find(r.Meta.Figure)
	if err != nil {
		return nil // of another version
	}
	return f.Compare(r, x)
}

// printPaper prints what a paper says beside what was found.
func (a *app) printPaper(p *report.Paper) {
	if p == nil {
		return
	}
	if a.set.JSON {
		for _, row := range p.Rows {
			a.json(struct {
				Kind      string `json:"kind"` // "paper"
				Figure    string `json:"figure"`
				Quantity  string `json:"quantity"`
				Paper     string `json:"paper"`
				Ours      string `json:"ours"`
				Deviation string `json:"deviation"`
				Note      string `json:"note,omitempty"`
			}{"paper", p.Title, row.Quantity, row.Paper, row.Ours, row.Deviation, row.Note})
		}
		return
	}
	a.printf("\n%s\n%s\n", p.Title, p.Source)
	t := table{align: ".>>>"}
	t.row("", "paper", "ours", "deviation", "")
	for _, row := range p.Rows {
		t.row(row.Quantity, row.Paper, row.Ours, row.Deviation, row.Note)
	}
	t.write(a.out, "")
}
