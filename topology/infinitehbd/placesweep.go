package infinitehbd

import (
	"errors"
	"fmt"
	"math/rand/v2"
)

// Method is a way to place a job.
type Method uint8

// The methods that CrossToRSweep compares.
const (
	AtRandom     Method = iota // groups of living nodes drawn at random: our reading of the paper's baseline
	Orchestrated               // Tree.Orchestrate as in the paper
	Aligned                    // Tree.Align; ours
)

var methodNames = []string{"random", "orchestrated", "aligned"}

// String returns "random", "orchestrated" or "aligned".
func (m Method) String() string {
	if int(m) < len(methodNames) {
		return methodNames[m]
	}
	return fmt.Sprintf("method %d", m)
}

// SweepOptions is what CrossToRSweep goes through.
type SweepOptions struct {
	Tree   Tree
	Layout Layout
	TP     int     // GPUs of a group
	Phi    float64 // part of the traffic that is between groups
	// Faults are the parts of the nodes that are dead, Jobs those that a job asks for, rounded to nodes and down to
	// whole groups.
	Faults, Jobs []float64
	Methods      []Method // none stands for all
	Draws        int      // of dead nodes
	Seed         uint64
}

// PaperSweep returns what meets the published figures: 1,024 nodes of 8 GPUs with K = 3, TP-32, ToRs of 2 nodes,
// domains of 512, a tenth of the traffic between groups. The paper does not say the last three; they are ours.
func PaperSweep(draws int, seed uint64) SweepOptions {
	layout, err := NewLayout(8, 3)
	if err != nil {
		panic(err) // it is in the paper
	}
	o := SweepOptions{Tree: Tree{Nodes: 1024, PerToR: 2, PerDomain: 512}, Layout: layout, TP: 32, Phi: .1,
		Jobs: []float64{.7, .75, .8, .85, .9}, Draws: draws, Seed: seed}
	for percent := range 11 {
		o.Faults = append(o.Faults, float64(percent)/100)
	}
	return o
}

// SweepRow is what a method makes of one part of dead nodes and one size of job.
type SweepRow struct {
	Faults, Job float64
	Method      Method
	Draws       int     // of which
	Placed      int     // had room for the job, and
	Clear       int     // crossed nothing
	Share       float64 // of the traffic that crosses: the mean of those placed, 0 if there are none
	Most        float64 // the largest of them
}

// CrossToRSweep places jobs by all methods on the same draws of dead nodes, and returns a row for each method, of each
// job, of each part of dead nodes. In one draw, the nodes that are dead at a smaller part are among those at a larger.
// Of a placement with more groups than the job needs, those count that cross least (Tree.Choose).
//
// It is the same for the same seed. Parts that are not from 0 to 1, or no draws, are an error that matches ErrShare;
// others are as those of Orchestrate.
func CrossToRSweep(o SweepOptions) ([]SweepRow, error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	methods := o.Methods
	if len(methods) == 0 {
		methods = []Method{AtRandom, Orchestrated, Aligned}
	}
	rows := make([]SweepRow, 0, len(o.Faults)*len(o.Jobs)*len(methods))
	for _, faults := range o.Faults {
		for _, job := range o.Jobs {
			for _, m := range methods {
				row, err := o.row(faults, job, m)
				if err != nil {
					return nil, err
				}
				rows = append(rows, row)
			}
		}
	}
	return rows, nil
}

func (o *SweepOptions) check() error {
	if err := o.Tree.Check(); err != nil {
		return err
	}
	if o.Draws < 1 {
		return fmt.Errorf("%w: %d draws: want 1 or more", ErrShare, o.Draws)
	}
	for _, m := range o.Methods {
		if int(m) >= len(methodNames) {
			return fmt.Errorf("%w: there is no %v: want random, orchestrated or aligned", ErrGroup, m)
		}
	}
	for _, list := range []struct {
		what   string
		values []float64
	}{{"dead nodes", o.Faults}, {"a job", o.Jobs}, {"traffic between groups", []float64{o.Phi}}} {
		for _, v := range list.values {
			if !(v >= 0 && v <= 1) {
				return fmt.Errorf("%w: %s of %v of all: want 0 to 1", ErrShare, list.what, v)
			}
		}
	}
	if err := o.Tree.checkRequest(o.Layout, Request{GPUs: 1, TP: o.TP}); err != nil {
		return err
	}
	for _, job := range o.Jobs {
		if o.groups(job) < 1 {
			return fmt.Errorf("%w: a job of %v of all is less than a group of %d GPUs", ErrShare, job, o.TP)
		}
	}
	return nil
}

// whole returns a part of the nodes.
func (o *SweepOptions) whole(part float64) int { return int(part*float64(o.Tree.Nodes) + .5) }

// groups returns how many groups a job has.
func (o *SweepOptions) groups(job float64) int { return o.whole(job) * o.Layout.GPUs / o.TP }

func (o *SweepOptions) row(faults, job float64, m Method) (SweepRow, error) {
	row := SweepRow{Faults: faults, Job: job, Method: m, Draws: o.Draws}
	for draw := range o.Draws {
		random := rand.New(rand.NewPCG(o.Seed, uint64(draw)))
		order := random.Perm(o.Tree.Nodes)
		n := o.whole(faults)
		nodes := make([]Node, len(order))
		for i, at := range order {
			nodes[i] = Node(at + 1)
		}
		groups, err := o.place(nodes[:n], nodes[n:], o.groups(job), m)
		if err != nil {
			return row, err
		}
		if groups == nil {
			continue
		}
		c, err := o.Tree.CrossToR(groups, o.Phi)
		if err != nil {
			return row, err
		}
		row.Placed++
		row.Share += c.Share
		row.Most = max(row.Most, c.Share)
		if c.Crossing == 0 {
			row.Clear++
		}
	}
	if row.Placed > 0 {
		row.Share /= float64(row.Placed)
	}
	return row, nil
}

// place returns the groups of a job, none if there is no room. The living nodes are in random order.
func (o *SweepOptions) place(dead, living []Node, groups int, m Method) ([]Group, error) {
	if m == AtRandom {
		size := o.TP / o.Layout.GPUs
		if groups*size > len(living) {
			return nil, nil
		}
		return split(living[:groups*size], size), nil
	}
	place := o.Tree.Orchestrate
	if m == Aligned {
		place = o.Tree.Align
	}
	p, err := place(o.Layout, Request{GPUs: groups * o.TP, TP: o.TP}, dead)
	if errors.Is(err, ErrRoom) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return o.Tree.Choose(p.Groups, groups)
}
