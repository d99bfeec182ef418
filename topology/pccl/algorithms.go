package pccl

import (
	"fmt"
	"math/bits"
	"slices"
	"strings"

	"github.com/ocslab/ocslab/internal/strictyaml"
)

// family is a kind of algorithm.
type family struct {
	name     string
	exchange bool // computes all-to-all, and nothing else
	power    bool // only of a power of two
	takes    string
	lay      func(c Collective, rest string, gpus int, bytes float64) (Schedule, error)
}

// families are all there are; it is a function because laying a ring out reads topologies, which name families.
func families() []family {
	return []family{
		{name: "rhd-halving", power: true, lay: layHalving},
		{name: "rhd-doubling", power: true, lay: layDoubling},
		{name: "ring", takes: "on a topology", lay: layRing},
		{name: "bucket", takes: "sizes", lay: layBucket},
		{name: "swing", power: true, takes: "sizes or nothing", lay: laySwing},
		{name: "dex", exchange: true, power: true, lay: layDex},
		{name: "linear", exchange: true, lay: layLinear},
	}
}

// parsed is the name of an algorithm, taken apart.
type parsed struct {
	family family
	rest   string
}

// ParseAlgorithm reads the name of an algorithm: "rhd-halving" (also "rhd"), "rhd-doubling", "ring",
// "ring on torus 8x16", "bucket 8x16", "bucket 2d" (the evenest lattice), "swing", "swing 8x16", "dex", "linear". Case
// and the space before sizes do not count. Any other is an error that matches [ErrArgument].
func ParseAlgorithm(text string) (Algorithm, error) {
	p, err := parseAlgorithm(text)
	if err != nil {
		return "", err
	}
	return p.algorithm(), nil
}

func (p parsed) algorithm() Algorithm {
	if p.rest == "" {
		return Algorithm(p.family.name)
	}
	return Algorithm(p.family.name + " " + p.rest)
}

func parseAlgorithm(text string) (parsed, error) {
	name, rest := nameAndSizes(text)
	if name == "rhd" {
		name = string(RHDHalving)
	}
	var names []string
	for _, f := range families() {
		names = append(names, f.name)
		if f.name != name {
			continue
		}
		if err := f.accepts(rest); err != nil {
			return parsed{}, err
		}
		return parsed{f, rest}, nil
	}
	return parsed{}, fmt.Errorf("%w: algorithm %.40q%s: want %s", ErrArgument, text, strictyaml.DidYouMean(name, names),
		strings.Join(names, ", "))
}

// accepts returns why rest cannot follow the name of f.
func (f family) accepts(rest string) error {
	on := strings.HasPrefix(rest, "on ")
	switch {
	case f.name == "ring" && (rest == "" || on):
		return nil
	case f.name == "bucket" && rest == "":
		return fmt.Errorf("%w: bucket takes sizes, such as bucket 8x16, or how many dimensions, such as bucket 2d", ErrArgument)
	case f.takes == "" && rest == "", f.name == "swing" && rest == "":
		return nil
	case f.takes == "":
		return fmt.Errorf("%w: algorithm %s takes nothing after its name, and there is %.40q", ErrArgument, f.name, rest)
	case f.name == "ring":
		return fmt.Errorf("%w: algorithm ring takes no %.40q: want ring, or ring on a topology, such as ring on torus 8x16",
			ErrArgument, rest)
	}
	number, ok := strings.CutSuffix(rest, "d")
	if ok && number != "" && len(number) <= 2 && strings.Trim(number, "0123456789") == "" {
		return nil
	}
	if _, err := parseDims(rest); err != nil {
		return fmt.Errorf("algorithm %s: %w", f.name, err)
	}
	return nil
}

// nameAndSizes takes "Torus 8x16", "torus:8x16", "torus8x16" and "torus2d" apart.
func nameAndSizes(text string) (name, rest string) {
	text = strings.ToLower(strings.Join(strings.Fields(text), " "))
	at := strings.IndexAny(text, " :=0123456789")
	if at < 0 {
		return text, ""
	}
	return text[:at], strings.TrimLeft(text[at:], " :=")
}

// ParseCollective reads the name of a collective: "all-reduce", also "allreduce" and "AllReduce". Any other is an error
// that matches [ErrArgument].
func ParseCollective(text string) (Collective, error) {
	all := []Collective{ReduceScatter, AllGather, AllReduce, AllToAll}
	var names []string
	plain := func(s string) string {
		return strings.NewReplacer("-", "", "_", "", " ", "").Replace(strings.ToLower(s))
	}
	for _, c := range all {
		if plain(text) == plain(string(c)) {
			return c, nil
		}
		names = append(names, string(c))
	}
	return "", fmt.Errorf("%w: collective %.40q%s: want %s", ErrArgument, text, strictyaml.DidYouMean(strings.ToLower(text), names),
		strings.Join(names, ", "))
}

// Algorithms returns the algorithms that compute a collective among that many GPUs, in a fixed order. "bucket" and
// "swing" come with the evenest lattices of two and three dimensions. It returns none for a number of GPUs that no
// schedule can have. Those of more than [MaxTransfers] transfers are left out; [Oversized] lists them.
func Algorithms(c Collective, gpus int) []Algorithm {
	all, _ := algorithms(c, gpus)
	return all
}

// Oversized returns the algorithms that [Algorithms] leaves out because they have too many transfers.
func Oversized(c Collective, gpus int) []LeftOut {
	_, left := algorithms(c, gpus)
	return left
}

func algorithms(c Collective, gpus int) (all []Algorithm, left []LeftOut) {
	if checkGPUs("", gpus) != nil {
		return nil, nil
	}
	power := bits.OnesCount(uint(gpus)) == 1
	add := func(fits bool, a Algorithm, rounds int) {
		if !fits {
			return
		}
		if err := checkTotal(c, a, gpus, rounds); err != nil {
			left = append(left, LeftOut{a, err})
			return
		}
		all = append(all, a)
	}
	log := bits.Len(uint(gpus)) - 1
	if c == AllToAll {
		add(power, Dex, log)
		add(true, Linear, gpus-1)
		return all, left
	}
	if !slices.Contains([]Collective{ReduceScatter, AllGather, AllReduce}, c) {
		return nil, nil
	}
	add(power, RHDHalving, log)
	add(power, RHDDoubling, log)
	add(true, RingPass, gpus-1)
	var lattices [][]int
	for d := 2; d <= 3; d++ {
		if dims, err := Dims(gpus, d); err == nil {
			lattices = append(lattices, dims)
			add(true, Bucket(dims...), bucketRounds(dims))
		}
	}
	add(power, Swing(), log)
	for _, dims := range lattices {
		add(power, Swing(dims...), log)
	}
	return all, left
}

// namesText lists algorithms for people.
func namesText(all []Algorithm) string {
	if len(all) == 0 {
		return "none"
	}
	names := make([]string, len(all))
	for i, a := range all {
		names[i] = string(a)
	}
	return strings.Join(names, ", ")
}

func layHalving(c Collective, _ string, gpus int, bytes float64) (Schedule, error) {
	var rounds []Round
	for at := gpus / 2; at >= 1; at /= 2 {
		bytesNow := bytes * float64(at) / float64(gpus)
		rounds = append(rounds, everyone(gpus, bytesNow, func(x int) int { return x ^ at }))
	}
	return finish(c, RHDHalving, gpus, bytes, rounds), nil
}

func layDoubling(c Collective, _ string, gpus int, bytes float64) (Schedule, error) {
	var rounds []Round
	for at := 1; at < gpus; at *= 2 {
		rounds = append(rounds, everyone(gpus, bytes/float64(2*at), func(x int) int { return x ^ at }))
	}
	return finish(c, RHDDoubling, gpus, bytes, rounds), nil
}

func layDex(c Collective, _ string, gpus int, bytes float64) (Schedule, error) {
	var rounds []Round
	for at := 1; at < gpus; at *= 2 {
		rounds = append(rounds, everyone(gpus, bytes/2, func(x int) int { return x ^ at }))
	}
	return finish(c, Dex, gpus, bytes, rounds), nil
}

func layLinear(c Collective, _ string, gpus int, bytes float64) (Schedule, error) {
	if err := checkTotal(c, Linear, gpus, gpus-1); err != nil {
		return Schedule{}, err
	}
	rounds := make([]Round, gpus-1)
	for i := range rounds {
		rounds[i] = everyone(gpus, bytes/float64(gpus), func(x int) int { return (x + i + 1) % gpus })
	}
	return finish(c, Linear, gpus, bytes, rounds), nil
}

// bucketRounds returns the number of rounds of a reduce-scatter by buckets.
func bucketRounds(dims []int) int {
	n := 0
	for _, d := range dims {
		n += d - 1
	}
	return n
}

func layBucket(c Collective, rest string, gpus int, bytes float64) (Schedule, error) {
	dims, err := dimsFor("bucket", rest, gpus)
	if err != nil {
		return Schedule{}, err
	}
	name := Bucket(dims...)
	if err := checkTotal(c, name, gpus, bucketRounds(dims)); err != nil {
		return Schedule{}, err
	}
	var rounds []Round
	stride, share := gpus, bytes
	for _, d := range dims {
		stride /= d
		share /= float64(d)
		step := everyone(gpus, share, func(x int) int {
			if x/stride%d == d-1 {
				return x - (d-1)*stride
			}
			return x + stride
		})
		for range d - 1 {
			rounds = append(rounds, step) // rounds are only read, and share their transfers
		}
	}
	return finish(c, name, gpus, bytes, rounds), nil
}

// swingStep is rho(t) = (1-(-2)^(t+1))/3 of the Swing paper (arXiv 2401.09356, section 3): 1, -1, 3, -5, 11, -21.
func swingStep(t int) int {
	p := 1
	for range t + 1 {
		p *= -2
	}
	return (1 - p) / 3
}

func laySwing(c Collective, rest string, gpus int, bytes float64) (Schedule, error) {
	dims, name := []int{gpus}, Swing()
	if rest != "" {
		var err error
		if dims, err = dimsFor("swing", rest, gpus); err != nil {
			return Schedule{}, err
		}
		name = Swing(dims...)
	}
	for _, d := range dims {
		if bits.OnesCount(uint(d)) != 1 {
			return Schedule{}, fmt.Errorf("%w: swing %s has a dimension of %d: want powers of two%s", ErrSize,
				dimsText(dims), d, shapesText(gpus))
		}
	}
	var rounds []Round
	turns := make([]int, len(dims)) // by dimension: rounds so far
	for j := 0; len(rounds) < bits.TrailingZeros(uint(gpus)); j = (j + 1) % len(dims) {
		d, t := dims[j], turns[j]
		if 1<<t >= d {
			continue
		}
		turns[j]++
		stride := 1
		for _, below := range dims[j+1:] {
			stride *= below
		}
		share := bytes / float64(int(2)<<len(rounds))
		rounds = append(rounds, everyone(gpus, share, func(x int) int {
			at := x / stride % d
			step := swingStep(t)
			if at%2 == 1 {
				step = -step
			}
			return x + (((at+step)%d+d)%d-at)*stride
		}))
	}
	return finish(c, name, gpus, bytes, rounds), nil
}
