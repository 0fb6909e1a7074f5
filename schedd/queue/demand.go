package queue

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/classad"
)

// Payer is whose quota a job is held against, and at which band, and whose count of which queue.
type Payer struct {
	Owner, Group string
	Band         roost.Band
	Queue        string
	GID          uint32
}

// Compare orders payers by band, group, owner, queue and Unix group.
func (p Payer) Compare(o Payer) int {
	return cmp.Or(cmp.Compare(p.Band, o.Band), strings.Compare(p.Group, o.Group), strings.Compare(p.Owner, o.Owner), strings.Compare(p.Queue, o.Queue),
		cmp.Compare(p.GID, o.GID))
}

// Demand is what jobs may hold at once when all goes well: what a quota is compared with (Borg §2.5, where a job's tasks all run at once). Of a job
// that lets only so many of its tasks run at once no more than those count: an array of a thousand tasks, ten at a time, needs the quota of ten.
type Demand struct {
	roost.Resources
	Tasks int // that run at once
	Open  int // that are not done, whether or not they may run at once; several of a program that has several machines count as one

	Whole roost.Resources // what these would hold all together
}

// Add returns the sum.
func (d Demand) Add(e Demand) Demand {
	return Demand{d.Resources.Add(e.Resources), d.Tasks + e.Tasks, d.Open + e.Open, d.Whole.Add(e.Whole)}
}

// Sub returns the difference.
func (d Demand) Sub(e Demand) Demand {
	return Demand{d.Resources.Sub(e.Resources), d.Tasks - e.Tasks, d.Open - e.Open, d.Whole.Sub(e.Whole)}
}

// demandOf is what so many tasks of each kind may hold at once, of which no more than most run together; 0 for all. Where the kinds differ and
// not all run together, each resource is counted as if those ran that want most of it.
func demandOf(kinds []kind, most int) (d Demand) {
	var largest roost.Resources
	for _, k := range kinds {
		if k.open > 0 {
			held := scale(k.each, k.open)
			d = d.Add(Demand{held, k.open, k.open, held})
			largest = roost.Resources{
				CPU: max(largest.CPU, k.each.CPU), Memory: max(largest.Memory, k.each.Memory), Disk: max(largest.Disk, k.each.Disk),
				GPUs: max(largest.GPUs, k.each.GPUs),
			}
		}
	}
	if most <= 0 || d.Tasks <= most {
		return d
	}
	bound := scale(largest, most)
	return Demand{roost.Resources{
		CPU: min(d.CPU, bound.CPU), Memory: min(d.Memory, bound.Memory), Disk: min(d.Disk, bound.Disk), GPUs: min(d.GPUs, bound.GPUs),
	}, most, d.Open, d.Whole}
}

// asOne counts the tasks of a gang that are led by its first as the one that they are to its user.
func (d Demand) asOne(p *plan) Demand {
	if p.led {
		d.Open = (d.Open + p.gang - 1) / p.gang
	}
	return d
}

// kind is so many tasks that ask for the same.
type kind struct {
	each roost.Resources
	open int // not final
}

// scale is what n tasks hold. A share of a GPU counts as one, since nobody says who else could use the rest.
func scale(r roost.Resources, n int) roost.Resources {
	return roost.Resources{
		CPU: r.CPU * roost.MilliCPU(n), Memory: r.Memory * roost.Bytes(n), Disk: r.Disk * roost.Bytes(n), GPUs: r.GPUs * n,
	}
}

// demand is what a job may hold at once from now on.
func (j *job) demand() Demand {
	kinds := make([]kind, len(j.classes))
	for n, c := range j.classes {
		kinds[n] = kind{c.plan.resources, c.open}
	}
	return demandOf(kinds, j.plan.maxRunning*j.stride()).asOne(&j.plan)
}

// recount brings the sums of those jobs up to date of which something has changed.
func (q *Queue) recount() {
	for seq := range q.uncounted {
		j := q.jobs[seq]
		if j == nil {
			continue // it was final when it left
		}
		now := Demand{} // as long as nobody has allowed it
		if !q.unasked[seq] {
			now = j.demand()
		}
		if now == j.told {
			continue
		}
		who := j.payer()
		sum := q.demands[who].Sub(j.told).Add(now)
		j.told = now
		if sum == (Demand{}) {
			delete(q.demands, who)
		} else {
			q.demands[who] = sum
		}
		q.demanded[who] = true
	}
	clear(q.uncounted)
}

func (j *job) payer() Payer {
	return Payer{j.sub.Owner, j.plan.group, j.plan.band, j.plan.queue, j.sub.GID}
}

// Each is so many tasks of a job that ask for the same.
type Each struct {
	roost.Resources
	Walltime time.Duration // 0: for ever
	Bounds   Bounds
	Licences string // of each, as [roost.ParseLicences] reads it
	Gang     int    // so many of them start together; below 2: each for itself
	Tasks    int
}

// Kinds lists what the tasks of a job that is about to be submitted ask for.
func Kinds(spec *Spec) ([]Each, error) {
	p, err := readPlan(spec.Ad)
	if err != nil {
		return nil, err
	}
	var split []Column
	for _, c := range spec.Columns {
		if slices.Contains(overriding, c.Name) && len(c.Values) == spec.Count {
			split = append(split, c)
		}
	}
	if len(split) == 0 {
		return []Each{{p.resources, p.walltime, p.bounds, licencesOf(spec.Ad), p.gang, spec.Count}}, nil
	}
	index, licences := map[Each]int{}, licencesOf(spec.Ad)
	var all []Each
	for i := range spec.Count {
		one := p
		for _, c := range split {
			if err := one.override(c.Name, c.Values[i]); err != nil {
				return nil, fmt.Errorf("task %d: %w", i, err)
			}
		}
		k := Each{Resources: one.resources, Walltime: one.walltime, Bounds: one.bounds, Licences: licences, Gang: one.gang}
		at, found := index[k]
		if !found {
			at = len(all)
			index[k], all = at, append(all, k)
		}
		all[at].Tasks++
	}
	return all, nil
}

func licencesOf(ad *classad.Ad) string {
	text, _ := ad.Str(roost.AttrLimits)
	return text
}

// Ask is whose quota a job that is about to be submitted is held against, and how much it would add to what is held against it.
func Ask(who Submitter, spec *Spec) (Payer, Demand, error) {
	p, err := readPlan(spec.Ad)
	if err != nil {
		return Payer{}, Demand{}, err
	}
	all, err := Kinds(spec)
	if err != nil {
		return Payer{}, Demand{}, err
	}
	kinds := make([]kind, len(all))
	for i, k := range all {
		kinds[i] = kind{k.Resources, k.Tasks}
	}
	return Payer{who.User, p.group, p.band, p.queue, who.GID}, demandOf(kinds, p.maxRunning*p.stride()).asOne(&p), nil
}

// Known reports whether a submission with that key was taken already.
func (q *Queue) Known(who Submitter, key string, limits Limits) bool {
	return len(q.byKeyAll(submissionKey(who, key), limits)) > 0
}

// Recount has those payers told anew, though nothing of theirs may have changed.
func (q *Queue) Recount(all []Payer) {
	for _, who := range all {
		q.demanded[who] = true
	}
}

// Demand is what all jobs of a payer may hold at once.
func (q *Queue) Demand(who Payer) Demand {
	q.recount()
	return q.demands[who]
}

// Payers lists who has any demand, in order.
func (q *Queue) Payers() []Payer {
	q.recount()
	return slices.SortedFunc(maps.Keys(q.demands), Payer.Compare)
}

// TakeDemanded drains the payers whose demand has changed.
func (q *Queue) TakeDemanded() []Payer {
	q.recount()
	if len(q.demanded) == 0 {
		return nil
	}
	all := slices.SortedFunc(maps.Keys(q.demanded), Payer.Compare)
	clear(q.demanded)
	return all
}
