package trace

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/ocslab/ocslab/topology/opus"
)

// Version is that of the text form; others are refused.
const Version = 1

// maxLine is how long a line may be, in bytes.
const maxLine = 1 << 20

// The lines of the text form. Pointers tell what is missing from what is 0.
type (
	lineKind struct {
		Kind string `json:"kind"`
	}
	headerLine struct {
		Kind    string   `json:"kind"` // "trace"
		Version int      `json:"version"`
		Name    string   `json:"name"`
		About   string   `json:"about,omitempty"`
		Job     opus.Job `json:"job"`
		Rails   int      `json:"rails"`
		Gbps    float64  `json:"gbps,omitempty"`
	}
	stepLine struct {
		Kind   string `json:"kind"` // "step"
		Step   *int   `json:"step"`
		TailUS int64  `json:"tail_us,omitempty"`
	}
	opLine struct {
		Kind            string `json:"kind"` // "op"
		Step            *int   `json:"step"`
		Rank            *int   `json:"rank"`
		Seq             *int   `json:"seq"`
		Axis            string `json:"axis,omitempty"`
		Group           string `json:"group,omitempty"`
		Op              Kind   `json:"op"`
		Net             Net    `json:"net,omitempty"`
		Peer            *int   `json:"peer,omitempty"`
		Bytes           int64  `json:"bytes,omitempty"`
		ComputeBeforeUS int64  `json:"compute_before_us,omitempty"`
		DurationUS      int64  `json:"duration_us,omitempty"`
		Note            string `json:"note,omitempty"`
	}
)

// Write writes the trace in its text form, JSON lines (see the package comment). It refuses a trace that does not pass
// [Trace.Check].
func (t *Trace) Write(w io.Writer) error {
	if err := t.Check(); err != nil {
		return err
	}
	b := bufio.NewWriter(w)
	enc := json.NewEncoder(b)
	enc.SetEscapeHTML(false)
	err := enc.Encode(headerLine{
		Kind: "trace", Version: Version, Name: t.Name, About: t.About, Job: t.Job, Rails: t.Rails, Gbps: t.Gbps,
	})
	if err != nil {
		return err
	}
	names := t.Job.AxisNames()
	for i, s := range t.Steps {
		if err := enc.Encode(stepLine{Kind: "step", Step: &i, TailUS: s.TailUS}); err != nil {
			return err
		}
		for rank, ops := range s.Ranks {
			groups := make([]string, len(names))
			for axis := range names {
				groups[axis] = t.Job.GroupOf(rank, axis).String()
			}
			for seq, op := range ops {
				line := opLine{
					Kind: "op", Step: &i, Rank: &rank, Seq: &seq, Axis: names[op.Axis], Group: groups[op.Axis],
					Op: op.Kind, Net: op.Net, Bytes: op.Bytes, ComputeBeforeUS: op.ComputeBeforeUS, DurationUS: op.DurationUS,
					Note: op.Note,
				}
				if op.net() == ScaleUp {
					line.Axis, line.Group = "", ""
				}
				if op.Kind.transfer() {
					line.Peer = &op.Peer
				}
				if err := enc.Encode(line); err != nil {
					return err
				}
			}
		}
	}
	return b.Flush()
}

// Read reads the text form of a trace strictly: unknown fields, gaps in the numbering, lines that do not fit the job,
// and traces that do not pass [Trace.Check] are errors. The error matches [ErrTrace], names the lines, and has up to
// ten problems, a line of text each; errors of r are returned as they are.
func Read(r io.Reader) (*Trace, error) {
	in := bufio.NewReaderSize(r, maxLine)
	var (
		t    *Trace
		bad  problems
		line int
	)
	for {
		text, err := in.ReadSlice('\n')
		if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, bufio.ErrBufferFull) {
			return nil, err
		}
		line++
		switch trimmed := bytes.TrimSpace(text); {
		case errors.Is(err, bufio.ErrBufferFull):
			bad.add("line %d has more than %d bytes", line, maxLine)
			return nil, bad.err()
		case len(trimmed) == 0:
		case t == nil:
			h, e := readHeader(trimmed)
			if e != nil {
				bad.add("line %d: %w", line, e)
				return nil, bad.err()
			}
			t = h
		default:
			if e := t.readLine(trimmed); e != nil {
				bad.add("line %d: %w", line, e)
			}
		}
		if err != nil {
			break
		}
	}
	if t == nil {
		bad.add("it is empty: want a line of kind trace first")
	}
	if err := bad.err(); err != nil {
		return nil, err
	}
	if err := t.Check(); err != nil {
		return nil, err
	}
	return t, nil
}

// strict decodes one line.
func strict(line []byte, to any) error {
	d := json.NewDecoder(bytes.NewReader(line))
	d.DisallowUnknownFields()
	if err := d.Decode(to); err != nil {
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			return errors.New("the object does not end in its line")
		}
		return err
	}
	if d.More() {
		return errors.New("there is something behind the object")
	}
	return nil
}

func readHeader(line []byte) (*Trace, error) {
	var k lineKind
	if err := json.Unmarshal(line, &k); err != nil {
		return nil, fmt.Errorf("it is no JSON object: %w", err)
	}
	if k.Kind != "trace" {
		return nil, fmt.Errorf("it is of kind %q: want a line of kind trace first", k.Kind)
	}
	var h headerLine
	if err := strict(line, &h); err != nil {
		return nil, err
	}
	if h.Version != Version {
		return nil, fmt.Errorf("it is of version %d, and this program reads version %d", h.Version, Version)
	}
	t := &Trace{Name: h.Name, About: h.About, Job: h.Job, Rails: h.Rails, Gbps: h.Gbps}
	return t, t.checkHeader()
}

// readLine reads a line after the header.
func (t *Trace) readLine(line []byte) error {
	var k lineKind
	if err := json.Unmarshal(line, &k); err != nil {
		return fmt.Errorf("it is no JSON object: %w", err)
	}
	switch k.Kind {
	case "step":
		var l stepLine
		if err := strict(line, &l); err != nil {
			return err
		}
		s, err := t.stepAt(l.Step)
		if err != nil {
			return err
		}
		if s.TailUS != 0 {
			return fmt.Errorf("there was a tail of step %d before", *l.Step)
		}
		s.TailUS = l.TailUS
		return nil
	case "op":
		var l opLine
		if err := strict(line, &l); err != nil {
			return err
		}
		return t.readOp(l)
	case "trace":
		return errors.New("a second line of kind trace")
	}
	return fmt.Errorf("there are no lines of kind %q", k.Kind)
}

// stepAt returns a step that there is, or makes the next one.
func (t *Trace) stepAt(step *int) (*Step, error) {
	switch n := t.Job.Ranks(); {
	case step == nil:
		return nil, errors.New("it has no step")
	case *step < 0 || *step > len(t.Steps):
		return nil, fmt.Errorf("it is of step %d, and the step before has not begun", *step)
	case *step < len(t.Steps):
	case len(t.Steps) == maxSteps || (len(t.Steps)+1)*n > maxRanks:
		return nil, fmt.Errorf("there are more than %d steps, or more than %d ranks in all of them", maxSteps, maxRanks)
	default:
		t.Steps = append(t.Steps, Step{Ranks: make([][]Op, n)})
	}
	return &t.Steps[*step], nil
}

func (t *Trace) readOp(l opLine) error {
	if l.Rank == nil || *l.Rank < 0 || *l.Rank >= t.Job.Ranks() {
		return fmt.Errorf("it is of %s: the job has ranks 0 to %d", describe("rank", l.Rank), t.Job.Ranks()-1)
	}
	s, err := t.stepAt(l.Step)
	if err != nil {
		return err
	}
	ops := &s.Ranks[*l.Rank]
	if l.Seq == nil || *l.Seq != len(*ops) {
		return fmt.Errorf("it has %s: the next operation of rank %d in step %d is %d",
			describe("seq", l.Seq), *l.Rank, *l.Step, len(*ops))
	}
	op := Op{
		Kind: l.Op, Net: l.Net, Bytes: l.Bytes, ComputeBeforeUS: l.ComputeBeforeUS, DurationUS: l.DurationUS, Note: l.Note,
	}
	if op.net() == ScaleUp {
		if l.Axis != "" || l.Group != "" {
			return errors.New("an operation inside a host has an axis or a group of the rail")
		}
	} else {
		axis, ok := t.Job.AxisOf(l.Axis)
		if !ok {
			return fmt.Errorf("the job has no axis %q: it has %q", l.Axis, t.Job.AxisNames())
		}
		op.Axis = axis
		if l.Group != "" {
			if g := t.Job.GroupOf(*l.Rank, axis).String(); l.Group != g {
				return fmt.Errorf("it is of group %q, and rank %d is in %s", l.Group, *l.Rank, g)
			}
		}
	}
	switch {
	case op.Kind.transfer() && l.Peer == nil:
		return fmt.Errorf("a %s has no peer", op.Kind)
	case !op.Kind.transfer() && l.Peer != nil:
		return fmt.Errorf("a %s has a peer", op.Kind)
	case l.Peer != nil:
		op.Peer = *l.Peer
	}
	if err := t.checkOp(*l.Rank, op); err != nil {
		return err
	}
	*ops = append(*ops, op)
	return nil
}

// describe writes a number that may be missing.
func describe(what string, n *int) string {
	if n == nil {
		return "no " + what
	}
	return fmt.Sprintf("%s %d", what, *n)
}
