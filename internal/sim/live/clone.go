package live

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/negotiator/ledger"
	"github.com/roost-batch/roost/negotiator/match"
	"github.com/roost-batch/roost/negotiator/picture"
	"github.com/roost-batch/roost/negotiator/share"
)

// clone is a checkpoint that can be changed without the one that it is made of: with machines and classes that no matcher has seen, and a ledger of its own.
func clone(of *picture.Checkpoint) (*picture.Checkpoint, error) {
	c := *of
	var err error
	if c.Ledger, err = ledger.Load(of.Ledger.Save()); err != nil {
		return nil, err
	}
	c.Machines = make([]*match.Machine, len(of.Machines))
	for i, m := range of.Machines {
		c.Machines[i] = m.Claimed(m.Claims, m.Heirs, m.Unclear)
	}
	c.Asks = make([]*picture.Ask, len(of.Asks))
	for i, a := range of.Asks {
		if c.Asks[i], err = anew(a); err != nil {
			return nil, err
		}
	}
	c.Pending, c.Granted, c.Holds = maps.Clone(of.Pending), maps.Clone(of.Granted), maps.Clone(of.Holds)
	c.Licences, c.Promised = maps.Clone(of.Licences), maps.Clone(of.Promised)
	c.Drains, c.Evicted, c.Users = slices.Clone(of.Drains), slices.Clone(of.Evicted), slices.Clone(of.Users)
	c.Used = func(who share.Submitter) roost.Resources { return c.Holds[who] }
	c.Charged = slices.Values(slices.SortedFunc(maps.Keys(c.Holds), share.Submitter.Compare))
	return &c, nil
}

// anew is an ask whose class no matcher has seen.
func anew(a *picture.Ask) (*picture.Ask, error) {
	b := *a
	var err error
	if b.Class, err = match.NewClass(a.Text, a.Submitter, a.Band, a.Class.Resources); err != nil {
		return nil, fmt.Errorf("request %d of schedd %s: %w", a.Key.ID, a.Key.Schedd, err)
	}
	return &b, nil
}

// index finds asks: the request that the task of a claim is of, where anybody knows. Which request a job is in schedds say ([picture.Job]). Which task has only just
// begun no machine says: that is taken to be of the only request that asks for the same, if there is one.
type index struct {
	byKey map[match.Key]*picture.Ask
	jobs  map[string]uint64         // the request of each job
	alike map[likeness]*picture.Ask // nil where there are several
}

// likeness is what a claim and the request that it is for have alike.
type likeness struct {
	share.Submitter
	roost.Band
	roost.Resources
	queue string
}

func newIndex(c *picture.Checkpoint) index {
	x := index{map[match.Key]*picture.Ask{}, make(map[string]uint64, len(c.Jobs)), map[likeness]*picture.Ask{}}
	for _, a := range c.Asks {
		x.byKey[a.Key] = a
		like := likeness{a.Submitter, a.Band, a.Class.Resources, a.Queue}
		like.GPUMemory = 0 // a claim's ad says it by device
		if _, several := x.alike[like]; several {
			x.alike[like] = nil
		} else {
			x.alike[like] = a
		}
	}
	for i := range c.Jobs {
		x.jobs[c.Jobs[i].ID] = c.Jobs[i].Request
	}
	return x
}

func (x index) ask(claim *match.Claim) *picture.Ask {
	job := claim.JobName()
	if job == "" {
		return x.alike[likeness{claim.Submitter, claim.Band, claim.Resources, claim.Queue}]
	}
	request := x.jobs[job]
	_, schedd, _ := strings.Cut(job, ".")
	if a := x.byKey[match.Key{Schedd: schedd, ID: request}]; request != 0 && a != nil && a.Submitter == claim.Submitter {
		return a
	}
	return nil
}
