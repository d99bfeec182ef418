package pccl

import (
	"fmt"
	"math/bits"
	"strconv"
	"strings"
)

// Dims returns the sizes of the lattice of that many GPUs and dimensions whose sizes differ least, in rising order:
// 128 are 8x16 and 4x4x8, 32 are 4x8 and 2x4x4. A number of GPUs that is no product of that many sizes of 2 or more is
// an error that matches [ErrSize].
func Dims(gpus, dimensions int) ([]int, error) {
	if err := checkGPUs("a lattice", gpus); err != nil {
		return nil, err
	}
	if dimensions < 1 || dimensions > 16 {
		return nil, fmt.Errorf("%w: a lattice of %d dimensions: want 1 to 16", ErrSize, dimensions)
	}
	best := evenest(gpus, dimensions, 2)
	if best == nil {
		return nil, fmt.Errorf("%w: %d GPUs are no lattice of %d dimensions: no %d numbers of 2 or more have that product",
			ErrSize, gpus, dimensions, dimensions)
	}
	return best, nil
}

// evenest returns the rising factors of n, none below least, whose largest is smallest and, of those, whose smallest is
// largest; nil if there are none.
func evenest(n, factors, least int) []int {
	if factors == 1 {
		if n < least {
			return nil
		}
		return []int{n}
	}
	var best []int
	for d := least; power(d, factors) <= n; d++ {
		if n%d != 0 {
			continue
		}
		rest := evenest(n/d, factors-1, d)
		if rest == nil {
			continue
		}
		if best == nil || rest[len(rest)-1] <= best[len(best)-1] {
			best = append([]int{d}, rest...)
		}
	}
	return best
}

// power returns d to the n, or more than MaxGPUs if it is more.
func power(d, n int) int {
	p := 1
	for range n {
		if p *= d; p > MaxGPUs {
			return MaxGPUs + 1
		}
	}
	return p
}

// volume returns the number of GPUs of a lattice.
func volume(what string, dims []int) (int, error) {
	if len(dims) == 0 {
		return 0, fmt.Errorf("%w: %s without dimensions: want sizes, such as 8x16", ErrSize, what)
	}
	n := 1
	for _, d := range dims {
		if d < 2 {
			return 0, fmt.Errorf("%w: %s has a dimension of %d: want 2 or more", ErrSize, what, d)
		}
		if d > MaxGPUs/n {
			return 0, fmt.Errorf("%w: %s of more than %d GPUs: want smaller dimensions", ErrSize, what, MaxGPUs)
		}
		n *= d
	}
	return n, nil
}

// dimsText writes "8x16".
func dimsText(dims []int) string {
	var b strings.Builder
	for i, d := range dims {
		if i > 0 {
			b.WriteByte('x')
		}
		b.WriteString(strconv.Itoa(d))
	}
	return b.String()
}

// parseDims reads "8x16".
func parseDims(text string) ([]int, error) {
	var dims []int
	for part := range strings.SplitSeq(text, "x") {
		d, err := strconv.ParseUint(part, 10, 31)
		if err != nil || len(dims) == 16 {
			return nil, fmt.Errorf("%w: %.40q are no sizes: want whole numbers of 2 or more, such as 8x16, 16 of them at most",
				ErrArgument, text)
		}
		dims = append(dims, int(d))
	}
	_, err := volume("the lattice "+dimsText(dims), dims)
	return dims, err
}

// dimsFor reads the sizes of a lattice of a number of GPUs: "8x16", or "2d" for the evenest one.
func dimsFor(what, text string, gpus int) ([]int, error) {
	if number, ok := strings.CutSuffix(text, "d"); ok {
		d, err := strconv.ParseUint(number, 10, 31)
		if err != nil {
			return nil, fmt.Errorf("%w: %s %.40q: want sizes, such as 8x16, or how many dimensions, such as 2d", ErrArgument, what, text)
		}
		return Dims(gpus, int(d))
	}
	dims, err := parseDims(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", what, err)
	}
	n, err := volume(what, dims)
	if err == nil && n != gpus {
		err = fmt.Errorf("%w: %s %s has %d GPUs, and there are %d%s", ErrSize, what, dimsText(dims), n, gpus, shapesText(gpus))
	}
	return dims, err
}

// shapesText says which lattices a number of GPUs can be: ": want 8x16 or 4x4x8".
func shapesText(gpus int) string {
	var all []string
	for d := 2; d <= 3; d++ {
		if dims, err := Dims(gpus, d); err == nil {
			all = append(all, dimsText(dims))
		}
	}
	if len(all) == 0 {
		return fmt.Sprintf(": want %d", gpus)
	}
	return ": want " + strings.Join(all, " or ")
}

// powersAround names the powers of two beside a number: "64 or 128".
func powersAround(n int) string {
	if n < 3 {
		return "2"
	}
	above := 1 << bits.Len(uint(n))
	if above > MaxGPUs {
		return strconv.Itoa(above / 2)
	}
	return fmt.Sprintf("%d or %d", above/2, above)
}
