package mesh

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/ocslab/ocslab/topology/pccl"
)

// ParseGrid reads rows and columns, "16x16", and returns a mesh of them. The error matches
// pccl.ErrArgument or pccl.ErrSize.
func ParseGrid(text string) (*Mesh, error) {
	first, second, ok := strings.Cut(text, "x")
	rows, err1 := strconv.Atoi(first)
	columns, err2 := strconv.Atoi(second)
	if !ok || err1 != nil || err2 != nil {
		return nil, fmt.Errorf("size %q: %w: want rows and columns, as in 16x16", text, pccl.ErrArgument)
	}
	return Grid(rows, columns)
}

// ParseRequest reads a circuit: "0-8" from node 0 to node 8, or "0-8@2" on wavelength 2. The error
// matches pccl.ErrArgument.
func ParseRequest(text string) (Request, error) {
	way, wavelength, chosen := strings.Cut(text, "@")
	if !chosen {
		wavelength = "0"
	}
	from, to, _ := strings.Cut(way, "-")
	src, err1 := strconv.ParseUint(from, 10, 31)
	dst, err2 := strconv.ParseUint(to, 10, 31)
	w, err3 := strconv.ParseUint(wavelength, 10, 31)
	if err1 != nil || err2 != nil || err3 != nil || chosen && w == 0 {
		return Request{}, fmt.Errorf("circuit %q: %w: want two nodes, 0-8, and after @ a wavelength from 1 if it must be that",
			text, pccl.ErrArgument)
	}
	return Request{Src: int(src), Dst: int(dst), Wavelength: int(w)}, nil
}

// String is the inverse of ParseRequest.
func (r Request) String() string {
	if r.Wavelength == 0 {
		return fmt.Sprintf("%d-%d", r.Src, r.Dst)
	}
	return fmt.Sprintf("%d-%d@%d", r.Src, r.Dst, r.Wavelength)
}
