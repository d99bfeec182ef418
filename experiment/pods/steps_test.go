package pods

import (
	"errors"
	"slices"
	"testing"
	"time"
)

// Ensure the model gives the paper's step for an event every 30 s with the outage deduced from it, is what a closed form
// says for the others, and leaves steps alone without events.
func TestStepTable(t *testing.T) {
	rows, err := StepTable(StepModel{})
	if err != nil {
		t.Fatal(err)
	}
	if len(rows) != 4 || rows[3].Mean != PaperStep || rows[3].Events != 0 {
		t.Fatalf("rows %+v", rows)
	}
	for _, r := range rows[:3] {
		// In the mean a step takes step/(1-outage/every).
		want := time.Duration(float64(PaperStep) / (1 - PaperOutage.Seconds()/r.Every.Seconds()))
		if d := r.Mean - want; d.Abs() > time.Millisecond {
			t.Errorf("every %v: %v, want %v", r.Every, r.Mean, want)
		}
	}
	if d := rows[0].Mean - rows[0].Paper; d.Abs() > time.Millisecond {
		t.Errorf("every 30 s: %v, and the paper has %v", rows[0].Mean, rows[0].Paper)
	}
}

// Ensure the stall that the paper's steps ask for is the deduced one for 30 s, falls from there, and gives the paper's steps.
func TestStepRow_PaperStall(t *testing.T) {
	rows, err := StepTable(StepModel{})
	if err != nil {
		t.Fatal(err)
	}
	var stalls []time.Duration
	for _, r := range rows {
		stalls = append(stalls, r.PaperStall().Round(10*time.Millisecond))
		if r.Every == 0 {
			continue
		}
		again, err := StepTable(StepModel{Every: []time.Duration{r.Every}, Outages: []time.Duration{r.PaperStall()}})
		if err != nil || (again[0].Mean-r.Paper).Abs() > time.Millisecond {
			t.Errorf("every %v: %+v, error %v", r.Every, again, err)
		}
	}
	if want := []time.Duration{PaperOutage, 530 * time.Millisecond, 20 * time.Millisecond, 0}; !slices.Equal(stalls, want) {
		t.Errorf("%v, want %v", stalls, want)
	}
	if s := (StepRow{Every: time.Second}).PaperStall(); s != 0 {
		t.Errorf("%v where the paper has no step", s)
	}
}

// Ensure what cannot be modelled is an error.
func TestStepTable_Bad(t *testing.T) {
	for _, m := range []StepModel{
		{Step: -1},
		{Step: 1, For: time.Hour},
		{For: time.Second},
		{Outages: []time.Duration{-1}},
		{Every: []time.Duration{time.Second}},
		{Every: []time.Duration{0}},
		{Every: []time.Duration{-time.Second}},
		{Outages: []time.Duration{31 * time.Second}},
	} {
		if rows, err := StepTable(m); !errors.Is(err, ErrStepModel) {
			t.Errorf("%+v: %+v, error %v", m, rows, err)
		}
	}
}
