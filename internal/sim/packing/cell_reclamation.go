package packing

import (
	"slices"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/gpu"
	"github.com/roost-batch/roost/negotiator/match"
)

// ReservedPart is the part of its request that is reserved for a task, from 0 to 1.
type ReservedPart struct{ CPU, Memory float64 }

// SetReserved sets the part that is reserved for each request: what the task is expected
// to use, with a margin. It takes known values if the cell has them. Otherwise it draws
// percentages from least to most, separately for processor time and memory, because the
// trace has no usage.
func (c *CellWorkload) SetReserved(least, most int, random RandomSource) {
	if c.Reserved = c.KnownReserved; c.Reserved != nil {
		return
	}
	c.Reserved = map[match.RequestKey]ReservedPart{}
	draw := func() float64 { return (float64(least) + float64(random.Intn(1000*(most-least)+1))/1000) / 100 }
	for _, r := range c.Requests {
		cpu := draw()
		c.Reserved[r.Key] = ReservedPart{cpu, draw()}
	}
}

// packReclaimed packs production by its requests, and then the rest into what is free. If
// Reclaiming is set, that includes what production is expected not to use (Borg §5.5).
// What the rest leaves unused is not offered again, so the result is a lower bound of the
// gain by reclamation.
func (c *CellCompaction) packReclaimed(machines []*match.Machine) (waiting []match.UnplacedRequest) {
	prod := c.splitByBand(true)
	first := match.NewMatcher().Plan(&match.Snapshot{Machines: machines, Requests: prod, Shares: c.Shares,
		Score: c.Score})
	of := map[*match.Machine][]match.Grant{}
	for _, g := range first.Grants {
		of[g.Machine] = append(of[g.Machine], g)
	}
	next := slices.Clone(machines)
	for i, m := range next {
		if grants := of[m]; grants != nil {
			next[i] = c.machineWithGrants(m, grants)
		}
	}
	second := match.NewMatcher().Plan(&match.Snapshot{
		Machines: next, Requests: c.splitByBand(false), Shares: c.Shares, Score: c.Score,
		Reclaim: roost.ReclaimAggressive,
	})
	return append(first.Unplaced, second.Unplaced...)
}

func (c *CellCompaction) splitByBand(prod bool) (list []*match.Request) {
	for _, r := range c.softened {
		if r.Band.IsProd() == prod {
			list = append(list, r)
		}
	}
	return list
}

// machineWithGrants returns a machine as its startd would advertise it with some grants
// running. It places them as the matcher did: package gpu decides both.
func (c *CellCompaction) machineWithGrants(m *match.Machine, grants []match.Grant) *match.Machine {
	f, err := gpu.ReadAd(m.Ad)
	if err != nil {
		return m
	}
	f = f.EmptyClone()
	f.SetReclaim(true)
	for _, g := range grants {
		q := g.Request.Class
		for range g.Units {
			on, err := f.PlaceOrExplain(gpu.DeviceRequest{Resources: q.Resources, Class: q.AppClass})
			if err != nil {
				continue
			}
			f.TakePlacement(on)
			if part, known := c.Reserved[g.Request.Key]; known && c.Reclaiming {
				f.SetUsageEstimate(&on, roost.MilliCPU(float64(q.Resources.CPU)*part.CPU),
					roost.Bytes(float64(q.Resources.Memory)*part.Memory))
			}
		}
	}
	ad := m.Ad.Copy()
	f.Describe(ad)
	ad.SetString(roost.AttrReclaim, roost.ReclaimAggressive.String())
	return match.NewMachine(m.Name, 1, 1, ad)
}
