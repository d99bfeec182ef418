package topology

// ring sends from each NIC to the one a step further, which is one ring if the step has no
// divisor in common with n.
func ring(n int, args map[string]int) ([]int, error) {
	step := args["step"]
	if around(step, n) == 0 || divisor(around(step, n), n) != 1 {
		return nil, badArgument("step", step, "a number that has no divisor in common with %d, or there are several rings: shift makes these", n)
	}
	return further(n, step), nil
}

// shift sends from each NIC to the one that many further.
func shift(n int, args map[string]int) ([]int, error) {
	by := args["by"]
	if around(by, n) == 0 {
		return nil, badArgument("by", by, "a number that is no multiple of %d, or each NIC sends to itself", n)
	}
	return further(n, by), nil
}

func further(n, by int) []int {
	to := make([]int, n)
	for i := range to {
		to[i] = around(i+by, n)
	}
	return to
}

// around is i, counted around n NICs: 0 to n-1.
func around(i, n int) int { return (i%n + n) % n }

// divisor is the greatest common divisor of two positive numbers.
func divisor(a, b int) int {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}
