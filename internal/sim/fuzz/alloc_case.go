package fuzz

import (
	"slices"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/sim/faults"
	"github.com/roost-batch/roost/internal/sim/pool"
)

// allocStream seeds a separate stream for alloc sets and what runs inside them.
const allocStream = 0x616c6c6f63

// allocNumber is the number of a case's alloc set, and firstInsideNumber that of the
// first job inside it.
const (
	allocNumber       = 2000
	firstInsideNumber = 2001
)

// Bounds on alloc sets.
const (
	maxAllocs = 3
	maxInside = 3
	// how long after the services they are removed, with what is still inside
	allocTime = time.Minute
)

// drawAllocs draws the alloc set of a case, which every third has, and jobs inside it.
func (c *PoolCase) drawAllocs(r *faults.SeededRand) {
	if !r.OneIn(3) {
		return
	}
	most := 0
	for i := range c.Machines {
		most = max(most, c.Machines[i].Cores)
	}
	set := CaseJob{Number: allocNumber, At: r.Duration(c.FaultsEnd / 6), Schedd: r.Intn(c.Schedds), User: r.Intn(3),
		Tasks: r.Between(1, maxAllocs), Cores: r.Between(min(2, most), most), Length: pool.ForEver,
		Lease: r.SkewedDuration(minLease, maxLease).Truncate(time.Second), IsAlloc: true}
	for range r.Intn(maxResizes) {
		cores := r.Between(1, set.Cores)
		set.Actions = append(set.Actions, UserAction{Delay: r.SkewedDuration(time.Second, c.FaultsEnd-set.At),
			Verb: Resize, Cores: cores, Memory: cores})
	}
	removed := c.FaultsEnd + serviceTime + allocTime - set.At
	if r.OneIn(4) { // with what is inside
		removed = r.SkewedDuration(time.Second, c.FaultsEnd-set.At)
	}
	set.Actions = append(set.Actions, UserAction{Delay: removed, Verb: Remove})
	c.Jobs = append(c.Jobs, set)
	for i := range r.Between(1, maxInside) {
		c.Jobs = append(c.Jobs, c.drawInside(r.Split(), &set, firstInsideNumber+i))
	}
}

// drawInside draws a job inside an alloc set, of the same user.
func (c *PoolCase) drawInside(r *faults.SeededRand, set *CaseJob, number int) CaseJob {
	j := c.drawJob(r.Split(), number)
	if r.OneIn(2) {
		j = c.drawService(r.Split(), number)
		j.Actions = slices.DeleteFunc(j.Actions, func(a UserAction) bool {
			return a.Verb == Resize && a.Cores > set.Cores
		})
	}
	if j.Service != nil { // it would outgrow its alloc
		j.Service.MaxMemory = 0
	}
	j.Schedd, j.User, j.Inside = set.Schedd, set.User, set.Number
	j.Cores = r.Between(1, min(set.Cores, 2))
	if j.Anywhere = r.OneIn(2); !j.Anywhere {
		j.Tasks = min(j.Tasks, set.Tasks)
	}
	if s := j.Service; s != nil { // no more indexes than there are allocs
		s.Surge, s.MaxDown, s.MaxTasks = 0, max(min(s.MaxDown, j.Tasks), 1), 0
	}
	return j
}

// placeInside has a job run inside its alloc set, if the case has that.
func (c *PoolCase) placeInside(j *CaseJob, p *pool.JobConfig) {
	ad := p.Spec.Ad
	if j.IsAlloc {
		ad.SetBool(roost.AttrAlloc, true)
		ad.SetString(roost.AttrAppClass, roost.AppBatch) // P5 is about one account of cores
		ad.Delete(roost.AttrMaxRetries)
		p.Output = false
	}
	at := slices.IndexFunc(c.Jobs, func(o CaseJob) bool { return o.IsAlloc && o.Number == j.Inside })
	if at < 0 {
		return
	}
	if p.InsideOf = at + 1; j.Anywhere {
		ad.SetString(roost.AttrAllocPlace, roost.PlaceAnywhere)
	}
}
