package hbd

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/bits"
	"slices"
	"time"

	"github.com/ocslab/ocslab/internal/natural"
	"github.com/ocslab/ocslab/lab"
	"github.com/ocslab/ocslab/ocs"
	"github.com/ocslab/ocslab/topology/infinitehbd"
)

// Fibre is one lane of a path of a bundle, in a module: where one fibre pair begins.
type Fibre struct {
	Lane
	Path infinitehbd.State // Path1 or Path2
}

// Arrival is light that comes out of a fibre.
type Arrival struct {
	At    Fibre
	From  Fibre // where it was sent; the zero Fibre is nowhere
	Meant Fibre // where it should have been sent; the zero Fibre is nowhere
}

// Cabling is what a check of cables came to.
type Cabling struct {
	Rounds int // in which lanes were lit
	Fibres int // that lead where they should
	// Wrong are the others, in the order of the line: what no light comes out of and should, and what the light of
	// another comes out of.
	Wrong []Arrival
	// Text says the same of whole cables: which two are swapped, which one is dead.
	Text []string
}

// CheckCables finds out by light where every fibre leads, lane by lane. In each round some lanes send: in binary, the
// rounds in which a receiver has light are the number of the lane that it hears. That takes two rounds for each binary
// digit, one for each path, and two more.
//
// All bundles have to be dark before, see [Domain.Darken]; the error matches [ocs.ErrConflict] and names one that is
// not. It matches [ocs.ErrInterlock] if a port that would get light is protected or leased. Nothing is lit in either case.
// Bundles are dark afterwards, also when it fails or ctx ends, but for those that cannot be reached or were leased
// meanwhile: the error names these.
func (d *Domain) CheckCables(ctx context.Context, without ...infinitehbd.Node) (*Cabling, error) {
	refs := d.refs(without...)
	looks, err := d.lookAll(ctx, refs, 0)
	if err != nil {
		return nil, err
	}
	number, fibres := map[Lane]int{}, []Lane{{}} // from 1
	for _, r := range refs {
		l := looks[r]
		if l.err != nil {
			return nil, fmt.Errorf("%s: %w", d.Name(r), l.err)
		}
		if s, err := l.state(); err != nil || s != infinitehbd.Dark {
			return nil, fmt.Errorf("%w: %s carries light, and cables are checked in the dark", ocs.ErrConflict, d.Name(r))
		}
		for m := range l.modules {
			for lane := range lanes {
				number[l.lane(m, lane)] = len(fibres)
				fibres = append(fibres, l.lane(m, lane))
			}
		}
	}
	if err := d.MayCheck(ctx, without...); err != nil {
		return nil, err
	}
	c := &Cabling{}
	heard := map[Fibre]Fibre{}
	for _, path := range []infinitehbd.State{infinitehbd.Path1, infinitehbd.Path2} {
		if err = d.sound(ctx, c, refs, number, fibres, path, heard); err != nil {
			break
		}
	}
	// Whatever went wrong, and whoever has gone: the light was ours.
	dark, cancel := context.WithTimeout(context.WithoutCancel(ctx), darkenTimeout)
	defer cancel()
	if err := errors.Join(err, d.Darken(dark, without...)); err != nil {
		return c, err
	}
	d.compare(c, looks, refs, heard)
	return c, nil
}

// MayCheck returns why a check of cables may not light all bundles: the error matches [ocs.ErrInterlock] if a port that
// would get light is protected, or leased to another program.
func (d *Domain) MayCheck(ctx context.Context, without ...infinitehbd.Node) error {
	return d.each(d.refs(without...), func(r Ref) error {
		sw, _, err := d.switchOf(ctx, r)
		if err != nil {
			return err
		}
		n, err := modules(ctx, sw)
		if err != nil {
			return err
		}
		kept, err := sw.Gate().Kept(ctx, sw)
		if err != nil {
			return err
		}
		for _, p := range slices.Sorted(maps.Keys(kept)) {
			for _, path := range []infinitehbd.State{infinitehbd.Path1, infinitehbd.Path2} {
				if len(MapOf(path, n).At(p)) > 0 {
					return fmt.Errorf("%s: a check of cables lights port %d: %w", d.Name(r), p, kept[p])
				}
			}
		}
		return nil
	})
}

// darkenTimeout is how long taking the light of a check away may take.
const darkenTimeout = 10 * time.Second

// sound has all lanes send their numbers into a path, and writes down who hears which.
func (d *Domain) sound(ctx context.Context, c *Cabling, refs []Ref, number map[Lane]int, fibres []Lane,
	path infinitehbd.State, heard map[Fibre]Fibre) error {
	digits := bits.Len(uint(len(fibres) - 1))
	code, all := map[Fibre]int{}, map[Fibre]bool{}
	for digit := range digits + 1 {
		c.Rounds++
		err := d.each(refs, func(r Ref) error {
			return d.light(ctx, r, path, func(l Lane) bool { return digit == digits || number[l]>>digit&1 != 0 })
		})
		if err != nil {
			return err
		}
		looks, err := d.lookAll(ctx, refs, 0)
		if err != nil {
			return err
		}
		for _, r := range refs {
			l := looks[r]
			if l.err != nil {
				return fmt.Errorf("%s: %w", d.Name(r), l.err)
			}
			for m := range l.modules {
				for lane := range lanes {
					for _, p := range []infinitehbd.State{infinitehbd.Path1, infinitehbd.Path2} {
						at := Fibre{l.lane(m, lane), p}
						switch {
						case !receives(&l.modules[m].Lanes[lane], p):
						case digit == digits:
							all[at] = true
						default:
							code[at] |= 1 << digit
						}
					}
				}
			}
		}
	}
	for at := range all {
		if n := code[at]; n > 0 && n < len(fibres) {
			heard[at] = Fibre{fibres[n], path}
		}
	}
	return nil
}

// light has those lanes of a bundle send into a path that are to, and the others be dark.
func (d *Domain) light(ctx context.Context, r Ref, path infinitehbd.State, lit func(Lane) bool) error {
	sw, _, err := d.switchOf(ctx, r)
	if err != nil {
		return err
	}
	n, err := modules(ctx, sw)
	if err != nil {
		return err
	}
	var ccs []ocs.CrossConnect
	for c := range MapOf(path, n).All() {
		i := int(c.Ingress - 1)
		if lit(Lane{r, i/lanes + 1, i%lanes + 1}) {
			ccs = append(ccs, c)
		}
	}
	// The check looks at the light itself: lanes whose cables are wrong are dark.
	_, err = sw.Gate().Apply(ctx, lab.Intent{On: sw, Operation: d.checks, Want: ocs.MustMap(ccs...), Policy: ocs.Overwrite, Verify: lab.VerifyTable})
	return err
}

// Darken takes the light from all bundles but those of some nodes: what was there is gone.
func (d *Domain) Darken(ctx context.Context, without ...infinitehbd.Node) error {
	return d.each(d.refs(without...), func(r Ref) error {
		return d.light(ctx, r, infinitehbd.Path1, func(Lane) bool { return false })
	})
}

// compare says what of the light that was heard is not where it should be.
func (d *Domain) compare(c *Cabling, looks map[Ref]look, refs []Ref, heard map[Fibre]Fibre) {
	far := map[infinitehbd.End]infinitehbd.End{}
	for _, cable := range d.cables {
		far[cable.A], far[cable.B] = cable.B, cable.A
	}
	wrong := map[[2]infinitehbd.End]int{} // fibres, by where light was to come from and came from; the zero End is nowhere
	var order [][2]infinitehbd.End
	for _, r := range refs {
		l := looks[r]
		for m := range l.modules {
			for lane := range lanes {
				for _, p := range []infinitehbd.State{infinitehbd.Path1, infinitehbd.Path2} {
					a := Arrival{At: Fibre{l.lane(m, lane), p}}
					a.From = heard[a.At]
					e, there := far[end(a.At)]
					if _, asked := looks[Ref{e.Node, e.Bundle}]; there && asked {
						a.Meant = Fibre{Lane{Ref{e.Node, e.Bundle}, a.At.Module, a.At.Lane.Lane}, e.Path}
					}
					if a.From == a.Meant {
						if a.From != (Fibre{}) {
							c.Fibres++
						}
						continue
					}
					c.Wrong = append(c.Wrong, a)
					k := [2]infinitehbd.End{end(a.At), end(a.From)}
					if wrong[k]++; wrong[k] == 1 {
						order = append(order, k)
					}
				}
			}
		}
	}
	d.describe(c, order, wrong, far)
}

// end is the end of a cable that a fibre is in.
func end(f Fibre) infinitehbd.End {
	return infinitehbd.End{Node: f.Node, Bundle: f.Bundle, Path: f.Path}
}

// describe puts fibres that are wrong together to cables.
func (d *Domain) describe(c *Cabling, order [][2]infinitehbd.End, wrong map[[2]infinitehbd.End]int,
	far map[infinitehbd.End]infinitehbd.End) {
	nowhere := infinitehbd.End{}
	told := map[[2]infinitehbd.End]bool{}
	for _, k := range order {
		at, from := k[0], k[1]
		switch {
		case told[k]:
			continue
		case from == nowhere || from.Node == 0:
			c.Text = append(c.Text, fmt.Sprintf("no light comes to %s, and that of %s should, on %s", d.endText(at),
				d.endText(far[at]), natural.Count(wrong[k], "lane")))
			continue
		}
		told[[2]infinitehbd.End{from, at}] = true
		// The other half of a swap: what was meant for at comes to where from was meant to go.
		is, meant := far[at], far[from]
		other := [2]infinitehbd.End{meant, is}
		if meant != nowhere && is != nowhere && (wrong[other] > 0 || wrong[[2]infinitehbd.End{is, meant}] > 0) {
			told[other], told[[2]infinitehbd.End{is, meant}] = true, true
			pair := []string{fmt.Sprintf("%s - %s", d.endText(at), d.endText(is)),
				fmt.Sprintf("%s - %s", d.endText(meant), d.endText(from))}
			slices.Sort(pair)
			c.Text = append(c.Text, fmt.Sprintf("the cables %s and %s are swapped at one end, on %s: %s is joined to %s",
				pair[0], pair[1], natural.Count(wrong[k], "lane"), d.endText(at), d.endText(from)))
			continue
		}
		c.Text = append(c.Text, fmt.Sprintf("%s is joined to %s, on %s, and should be to %s", d.endText(at),
			d.endText(from), natural.Count(wrong[k], "lane"), d.meantText(is)))
	}
}

// meantText names an end, or nothing.
func (d *Domain) meantText(e infinitehbd.End) string {
	if e == (infinitehbd.End{}) {
		return "nothing"
	}
	return d.endText(e)
}
