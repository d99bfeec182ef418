package opus

import (
	"fmt"
	"math/big"
	"slices"
	"strings"
)

// ID is a topology ID: for each stage, stage 0 first, the axis that its ports serve, [PP]
// being 0. An ID from this package must not be changed.
//
// A digit vector does not say which neighbouring PP stages are joined. Here every longest run
// of consecutive zeros is one chain.
type ID []uint8

// ParseID reads an ID in the form of [ID.String]: one digit for each stage.
func (j Job) ParseID(text string) (ID, error) {
	if len(text) != j.Stages {
		return nil, fmt.Errorf("topology ID %.40q: %w: it has %d digits, and the job %d stages", text, ErrJob, len(text), j.Stages)
	}
	id := make(ID, len(text))
	for i := range id {
		if text[i] < '0' || int(text[i]-'0') > len(j.Axes) {
			return nil, fmt.Errorf("topology ID %.40q: %w: its digit %d is %q: want 0 to %d, one of %s",
				text, ErrJob, i+1, text[i], len(j.Axes), strings.Join(j.AxisNames(), ", "))
		}
		id[i] = text[i] - '0'
	}
	return id, nil
}

// checkID returns why the ID is none of the job.
func (j Job) checkID(id ID) error {
	if len(id) == j.Stages && (len(id) == 0 || int(slices.Max(id)) <= len(j.Axes)) {
		return nil
	}
	for i, d := range id {
		if d > MaxAxes {
			return fmt.Errorf("topology ID: %w: its digit %d has the value %d: want 0 to %d, one of %s",
				ErrJob, i+1, d, len(j.Axes), strings.Join(j.AxisNames(), ", "))
		}
	}
	_, err := j.ParseID(id.String())
	return err
}

// String returns all digits, with the leading zeros: "001". Only IDs of a job can be read back.
func (id ID) String() string {
	b := make([]byte, len(id))
	for i, d := range id {
		b[i] = '0' + d
	}
	return string(b)
}

// Decimal returns the value of the ID as the paper writes it, a decimal integer without
// leading zeros: "1" for 001. It cannot be read without the number of stages.
func (id ID) Decimal() string {
	n, ok := new(big.Int).SetString(id.String(), 10)
	if !ok {
		return "0"
	}
	return n.String()
}

// Binary returns the form in which traces of the paper's artifact show IDs: a bit for
// each stage, 1 where it serves PP. Which other axis is not in it.
func (id ID) Binary() string {
	b := make([]byte, len(id))
	for i, d := range id {
		b[i] = '0'
		if d == PP {
			b[i] = '1'
		}
	}
	return string(b)
}

// FromBinary reads the form of [ID.Binary]; stages that do not serve PP serve axis.
func (j Job) FromBinary(text string, axis int) (ID, error) {
	if axis < 1 || axis > len(j.Axes) {
		return nil, fmt.Errorf("%w: there is no symmetrical axis %d: want 1 to %d", ErrJob, axis, len(j.Axes))
	}
	id := make([]byte, len(text))
	for i := range id {
		switch text[i] {
		case '1':
			id[i] = '0' + PP
		case '0':
			id[i] = '0' + byte(axis)
		default:
			return nil, fmt.Errorf("binary topology ID %.40q: %w: its digit %d is %q: want 0 or 1", text, ErrJob, i+1, text[i])
		}
	}
	return j.ParseID(string(id))
}

// Symmetrical returns the ID after stage has gone over to a symmetrical axis: at most one digit changes. The stage must
// be one of the ID.
func (id ID) Symmetrical(stage, axis int) ID {
	next := slices.Clone(id)
	next[stage] = uint8(axis)
	return next
}

// Transfer returns the ID after the pipeline has been asked to join stage and stage+1: at most
// two digits change. Both stages must be of the ID.
func (id ID) Transfer(stage int) ID {
	next := slices.Clone(id)
	next[stage], next[stage+1] = PP, PP
	return next
}
