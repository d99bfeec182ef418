package wiring

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/ocslab/ocslab/internal/strictyaml"
	"github.com/ocslab/ocslab/lab"
)

// ErrNotCorrectable: the lab file cannot be corrected without a guess.
var ErrNotCorrectable = errors.New("the lab file cannot be corrected without a guess")

// Correction is one value of a lab file that was changed.
type Correction struct {
	NIC      string
	End      End
	From, To lab.PortRef
	Line     int
}

// Correct returns the text of a lab file with the tx and rx of NICs that were seen elsewhere
// changed, and all else as it was: comments, order and spelling. What was told by elimination
// only, or not at all, stays as it is. name is used in errors. If what was seen and what stays
// do not go together (a fibre is where one that was not found is claimed to be), the error matches
// [ErrNotCorrectable] and names both.
func Correct(name string, data []byte, r *Result) ([]byte, []Correction, error) {
	if _, err := lab.Parse(name, data); err != nil {
		return nil, nil, err
	}
	var f lab.File
	at, err := strictyaml.DecodePositions(name, data, &f)
	if err != nil {
		return nil, nil, err
	}
	type edit struct {
		Correction
		offset, length int
	}
	var edits []edit
	claims := map[End]map[lab.PortRef][]string{Rx: {}, Tx: {}}
	for i, h := range f.Hosts {
		for j, n := range h.NICs {
			full := h.Name + "/" + n.Name
			for _, end := range []End{Rx, Tx} {
				has := n.Rx
				if end == Tx {
					has = n.Tx
				}
				k := slices.IndexFunc(r.Fibres, func(x Fibre) bool { return x.NIC == full && x.End == end })
				if k >= 0 && r.Fibres[k].Claimed != has {
					return nil, nil, fmt.Errorf("%w: it has %s of %s at %v, and when the search began it was %v", ErrNotCorrectable, end, full, has, r.Fibres[k].Claimed)
				}
				if k < 0 || r.Fibres[k].Verdict != Elsewhere || r.Fibres[k].How == ByElimination {
					claims[end][has] = append(claims[end][has], full)
					continue
				}
				to := r.Fibres[k].Found
				claims[end][to] = append(claims[end][to], full)
				path := fmt.Sprintf("hosts[%d].nics[%d].%s", i, j, end)
				pos := at.Value(path)
				offset, length, ok := token(data, pos)
				if !ok || !spells(data[offset:offset+length], has) {
					return nil, nil, fmt.Errorf("%w: %s:%d:%d: %s is written over several lines or with escapes: write it as %v", ErrNotCorrectable, name, pos.Line, pos.Column, path, has)
				}
				edits = append(edits, edit{Correction{full, end, has, to, pos.Line}, offset, length})
			}
		}
	}
	var errs []error
	for _, end := range []End{Rx, Tx} {
		for p, list := range claims[end] {
			if len(list) > 1 {
				errs = append(errs, fmt.Errorf("%w: %s of %s would both be at %v, and where one of them is was not seen",
					ErrNotCorrectable, end, strings.Join(list, " and "), p))
			}
		}
	}
	if err := errors.Join(errs...); err != nil {
		return nil, nil, err
	}
	slices.SortFunc(edits, func(a, b edit) int { return a.offset - b.offset })
	var out []byte
	var done []Correction
	last := 0
	for _, e := range edits {
		out = append(out, data[last:e.offset]...)
		out = append(out, e.To.String()...)
		last = e.offset + e.length
		done = append(done, e.Correction)
	}
	out = append(out, data[last:]...)
	if _, err := lab.Parse(name, out); err != nil {
		return nil, nil, fmt.Errorf("%w: %w", ErrNotCorrectable, err)
	}
	return out, done, nil
}

// spells reports whether a token is a port as people write it, quoted or not.
func spells(token []byte, p lab.PortRef) bool {
	text := string(token)
	if n := len(text); n > 1 && (text[0] == '"' || text[0] == '\'') {
		text = text[1 : n-1]
	}
	got, err := lab.ParsePortRef(text)
	return err == nil && got == p
}

// token returns where in data the scalar at a position is.
func token(data []byte, pos strictyaml.Pos) (offset, length int, ok bool) {
	for line := 1; line < pos.Line; line++ {
		i := slices.Index(data[offset:], '\n')
		if i < 0 {
			return 0, 0, false
		}
		offset += i + 1
	}
	if offset == 0 && strings.HasPrefix(string(data[:min(3, len(data))]), "\ufeff") {
		offset = 3 // a byte order mark is no column
	}
	for range pos.Column - 1 {
		if offset >= len(data) {
			return 0, 0, false
		}
		_, n := utf8.DecodeRune(data[offset:])
		offset += n
	}
	rest := data[offset:]
	if len(rest) == 0 {
		return 0, 0, false
	}
	if q := rest[0]; q == '"' || q == '\'' {
		end := slices.Index(rest[1:], q)
		return offset, end + 2, end >= 0
	}
	for length < len(rest) && !strings.ContainsRune(" \t\r\n,]}", rune(rest[length])) {
		length++
	}
	return offset, length, length > 0
}
