package proto

import "fmt"

// Refusal is the error of a request that was understood and refused.
type Refusal struct {
	Code     Code
	Attempts int
	Detail   string // one sentence for people
}

// Error returns the detail, and the code.
func (r *Refusal) Error() string { return fmt.Sprintf("%s (%s)", r.Detail, r.Code) }
