package conformance

import (
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"
)

// Result is what a check came to.
type Result string

const (
	Pass Result = "pass"
	Fail Result = "fail"
	Skip Result = "skip" // could not be tried here and now; the reason says why
	// Unsupported is a check of what the device or its driver does not have, or
	// what devices of its kind cannot do. It would be so on any day.
	Unsupported Result = "unsupported"
)

// Check is one line of a [Report].
type Check struct {
	Name       string `json:"name"`
	Capability string `json:"capability"`
	Result     Result `json:"result"`
	Reason     string `json:"reason,omitempty"` // unless passed: one sentence, with what the device said
	DurNS      int64  `json:"dur_ns"`
}

// Capability is something that only some devices can do.
type Capability struct {
	Name      string `json:"name"`
	Supported bool   `json:"supported"`
	Found     string `json:"found"` // how that was found out
}

// Quirk is something in which devices may differ.
type Quirk struct {
	Name     string `json:"name"`
	Value    string `json:"value"`
	Evidence string `json:"evidence"` // what was seen
}

// Report is what the suite found out about a device. Its JSON form is one
// object; lists are never null.
type Report struct {
	Kind         string       `json:"kind"` // "conformance"
	Device       string       `json:"device"`
	Vendor       string       `json:"vendor"`
	Model        string       `json:"model"`
	Serial       string       `json:"serial"`
	Firmware     string       `json:"firmware"`
	Size         string       `json:"size"`
	Started      time.Time    `json:"started"`
	DurNS        int64        `json:"dur_ns"`
	PortsUsed    string       `json:"ports_used"` // as ocs.ParsePorts reads it
	AllPorts     bool         `json:"all_ports"`
	Capabilities []Capability `json:"capabilities"`
	Checks       []Check      `json:"checks"` // in the order in which they ran
	Quirks       []Quirk      `json:"quirks"`
	Passed       int          `json:"passed"`
	Failed       int          `json:"failed"`
	Skipped      int          `json:"skipped"`
	Unsupported  int          `json:"unsupported"`
	Cancelled    bool         `json:"cancelled"` // not all checks were tried
	// Restored is true when all that the suite changed is as it was found;
	// otherwise NotRestored says what is not, for people to put right.
	Restored    bool     `json:"restored"`
	NotRestored []string `json:"not_restored"`
	// Others is what other clients did to the map meanwhile.
	Others []string `json:"changed_by_others"`
}

// WriteText writes the report for people: the capabilities with how their
// checks went, each check, the quirks, and how the device was left. The columns
// are padded with blanks, without colours, so that it can be piped and kept.
func (r Report) WriteText(w io.Writer) error {
	out := &errWriter{w: w}
	fmt.Fprintf(out, "Conformance of %s\n", r.Device)
	head := tabwriter.NewWriter(out, 0, 8, 2, ' ', 0)
	for _, line := range [][2]string{
		{"model", strings.TrimSpace(r.Vendor + " " + r.Model)}, {"serial", r.Serial}, {"firmware", r.Firmware},
		{"size", r.Size}, {"ports used", r.PortsUsed}, {"started", r.Started.Format(time.RFC3339)},
		{"took", short(time.Duration(r.DurNS))},
	} {
		if line[1] == "" {
			line[1] = "-"
		}
		fmt.Fprintf(head, "  %s\t%s\n", line[0], line[1])
	}
	head.Flush()

	fmt.Fprintln(out)
	matrix := tabwriter.NewWriter(out, 0, 8, 2, ' ', 0)
	fmt.Fprintln(matrix, "CAPABILITY\tSUPPORTED\tPASS\tFAIL\tSKIP\tUNSUPPORTED\tFOUND")
	for _, c := range r.Capabilities {
		count := map[Result]int{}
		for _, k := range r.Checks {
			if k.Capability == c.Name {
				count[k.Result]++
			}
		}
		fmt.Fprintf(matrix, "%s\t%s\t%s\t%s\t%s\t%s\t%s\n", c.Name, yesNo(c.Supported),
			number(count[Pass]), number(count[Fail]), number(count[Skip]), number(count[Unsupported]), c.Found)
	}
	matrix.Flush()

	fmt.Fprintln(out)
	checks := tabwriter.NewWriter(out, 0, 8, 2, ' ', 0)
	fmt.Fprintln(checks, "CHECK\tCAPABILITY\tRESULT\tTIME\tREASON")
	for _, c := range r.Checks {
		reason := c.Reason
		if reason == "" {
			reason = "-" // no blanks at the end of a line
		}
		fmt.Fprintf(checks, "%s\t%s\t%s\t%s\t%s\n", c.Name, c.Capability, c.Result, short(time.Duration(c.DurNS)), reason)
	}
	checks.Flush()

	if len(r.Quirks) > 0 {
		fmt.Fprintln(out)
		quirks := tabwriter.NewWriter(out, 0, 8, 2, ' ', 0)
		fmt.Fprintln(quirks, "QUIRK\tVALUE\tEVIDENCE")
		for _, q := range r.Quirks {
			fmt.Fprintf(quirks, "%s\t%s\t%s\n", q.Name, q.Value, q.Evidence)
		}
		quirks.Flush()
	}

	fmt.Fprintf(out, "\n%d passed, %d failed, %d skipped, %d not supported", r.Passed, r.Failed, r.Skipped, r.Unsupported)
	if r.Cancelled {
		fmt.Fprint(out, "; cancelled")
	}
	fmt.Fprintln(out)
	if r.Restored {
		fmt.Fprintln(out, "The device is as it was found.")
	} else {
		list(out, "NOT RESTORED, to be put right by hand:", r.NotRestored)
	}
	if len(r.Others) > 0 {
		list(out, "Changed by others meanwhile:", r.Others)
	}
	return out.err
}

func list(w io.Writer, title string, lines []string) {
	fmt.Fprintln(w, title)
	for _, l := range lines {
		fmt.Fprintln(w, "  "+l)
	}
}

func yesNo(b bool) string {
	if b {
		return "yes"
	}
	return "no"
}

func number(n int) string {
	if n == 0 {
		return "-"
	}
	return strconv.Itoa(n)
}

// short is a duration with three digits or so.
func short(d time.Duration) string {
	unit := time.Duration(1)
	for d/unit >= 1000 {
		unit *= 10
	}
	return d.Round(unit).String()
}

// errWriter keeps the first error.
type errWriter struct {
	w   io.Writer
	err error
}

func (w *errWriter) Write(p []byte) (int, error) {
	if w.err != nil {
		return 0, w.err
	}
	n, err := w.w.Write(p)
	w.err = err
	return n, err
}

// skipError is why a check could not be done.
type skipError struct{ reason string }

func (e *skipError) Error() string { return e.reason }

// skipf makes a check a skipped one.
func skipf(format string, args ...any) error { return &skipError{fmt.Sprintf(format, args...)} }

// unsupportedError is why the device, its driver, or any device of its kind cannot do a
// check.
type unsupportedError struct{ reason string }

func (e *unsupportedError) Error() string { return e.reason }

// unsupportedf makes a check one that is not supported.
func unsupportedf(format string, args ...any) error {
	return &unsupportedError{fmt.Sprintf(format, args...)}
}

// untried reports whether err says that a check was not done, rather than that it
// went wrong.
func untried(err error) bool { return as[*skipError](err) || as[*unsupportedError](err) }

// sentence brings what may be several lines of wire text into one.
func sentence(err error) string { return strings.Join(strings.Fields(err.Error()), " ") }

// as is errors.As for when only the fact matters.
func as[T error](err error) bool {
	var e T
	return errors.As(err, &e)
}
