package pack

import (
	"slices"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/gpu"
	"github.com/roost-batch/roost/negotiator/match"
)

// Part is what is reserved for the tasks of a request, of what they ask for, from 0 to 1.
type Part struct{ CPU, Memory float64 }

// Reserve says what is reserved for each request: what is known of it, or where nobody knows what is drawn from a range of per cent of what it asks for, for
// processor time and memory each. It is what tasks are expected to use, with the margin. The trace says nothing of use.
func (c *Cell) Reserve(least, most int, random Random) {
	if c.Reserved = c.Known; c.Reserved != nil {
		return
	}
	c.Reserved = map[match.Key]Part{}
	draw := func() float64 { return (float64(least) + float64(random.Intn(1000*(most-least)+1))/1000) / 100 }
	for _, r := range c.Requests {
		cpu := draw()
		c.Reserved[r.Key] = Part{cpu, draw()}
	}
}

// packLending packs production first, by what it asks for, and then the rest into what is free and, if machines lend, what production is expected to leave
// (Borg §5.5). What the rest leaves of what it asks for is not lent on; so this is the least that reclaiming gives.
func (c *Compaction) packLending(machines []*match.Machine) (waiting []match.Unplaced) {
	prod := c.split(true)
	first := match.NewMatcher().Plan(&match.Snapshot{Machines: machines, Requests: prod, Standing: c.Standing, Score: c.Score})
	of := map[*match.Machine][]match.Grant{}
	for _, g := range first.Grants {
		of[g.Machine] = append(of[g.Machine], g)
	}
	next := slices.Clone(machines)
	for i, m := range next {
		if grants := of[m]; grants != nil {
			next[i] = c.lend(m, grants)
		}
	}
	second := match.NewMatcher().Plan(&match.Snapshot{
		Machines: next, Requests: c.split(false), Standing: c.Standing, Score: c.Score, Reclaim: roost.ReclaimAggressive,
	})
	return append(first.Unplaced, second.Unplaced...)
}

func (c *Compaction) split(prod bool) (list []*match.Request) {
	for _, r := range c.soft {
		if r.Band.Prod() == prod {
			list = append(list, r)
		}
	}
	return list
}

// lend is a machine as its startd would advertise it with some grants running there. It puts them where the matcher has: package gpu decides both.
func (c *Compaction) lend(m *match.Machine, grants []match.Grant) *match.Machine {
	f, err := gpu.Read(m.Ad)
	if err != nil {
		return m
	}
	f = f.Empty()
	f.SetReclaim(true)
	for _, g := range grants {
		q := g.Request.Class
		for range g.Units {
			on, err := f.Place(gpu.Request{Resources: q.Resources, Class: q.App})
			if err != nil {
				continue
			}
			f.Take(on)
			if part, known := c.Reserved[g.Request.Key]; known && c.Lending {
				f.Reserve(&on, roost.MilliCPU(float64(q.Resources.CPU)*part.CPU), roost.Bytes(float64(q.Resources.Memory)*part.Memory))
			}
		}
	}
	ad := m.Ad.Copy()
	f.Describe(ad)
	ad.SetString(roost.AttrReclaim, roost.ReclaimAggressive.String())
	return match.NewMachine(m.Name, 1, 1, ad)
}
