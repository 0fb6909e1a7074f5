package workload

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/classad"
	"github.com/roost-batch/roost/gpu"
	"github.com/roost-batch/roost/internal/sim/live"
	"github.com/roost-batch/roost/internal/sim/pool"
	"github.com/roost-batch/roost/negotiator/ledger"
	"github.com/roost-batch/roost/negotiator/match"
	"github.com/roost-batch/roost/negotiator/picture"
)

// cell makes a pool of a checkpoint.
type cell struct {
	from    *picture.Checkpoint
	play    *live.Play
	c       pool.Config
	machine map[string]int // by name
	schedd  map[string]int // likewise
	runs    map[course]int // the job of the config that runs on
	jobs    map[match.Key][]picture.Job
	request map[string]uint64 // of a job, by its id
	tasks   map[match.Key]int // that are played, of each request
	notes   []string
	ages    int // tasks that are said to run for ages
}

// course is whose tasks go on as one job.
type course struct {
	job string
	key match.Key
	of  string // what it takes, of a request that nobody knows
}

// FromCell makes of a checkpoint of a cell a pool that goes on from there: its machines, with what runs on them where it runs, for as long as is left of what tasks like
// it took; what waits; and the negotiators' ledger, with all that administrators have set and the accounts of fair share. What is about to happen has happened: see
// [live.NewPlay]. The notes say, a sentence each, what of the cell is not played. The error is of kind roost.Invalid.
func FromCell(from *picture.Checkpoint, seed uint64) (c pool.Config, notes []string, err error) {
	if err := times(from); err != nil {
		return c, nil, err
	}
	play, err := live.NewPlay(from, live.Predicted)
	if err != nil {
		return c, nil, err
	}
	book, err := ledger.Load(from.Ledger.Save())
	if err != nil {
		return c, nil, err
	}
	book.Ground()
	x := &cell{
		from: from, play: play, machine: map[string]int{}, schedd: map[string]int{}, runs: map[course]int{}, jobs: map[match.Key][]picture.Job{}, tasks: map[match.Key]int{},
		request: map[string]uint64{},
		c:       pool.Config{Seed: seed, Managers: 1, Began: from.Now, Ledger: book.Save()},
	}
	if err := x.machines(); err != nil {
		return c, nil, err
	}
	x.schedds()
	if err := x.running(); err != nil {
		return c, nil, err
	}
	if err := x.waiting(); err != nil {
		return c, nil, err
	}
	x.note(x.ages, "task is said to run for more than ten years: it is taken to run for ever", "tasks are said to run for more than ten years: they are taken to run for ever")
	x.unseen()
	return x.c, x.notes, nil
}

// note says what is not played, unless there is none of it.
func (x *cell) note(n int, one, many string) {
	switch {
	case n == 1:
		x.notes = append(x.notes, "1 "+one)
	case n > 1:
		x.notes = append(x.notes, fmt.Sprintf("%d %s", n, many))
	}
}

// machines makes those of the cell, with nothing on them.
func (x *cell) machines() error {
	var unclear, closed, queues, lends int
	domains := map[string]bool{}
	for _, m := range x.play.Machines {
		if m.Unclear != nil {
			unclear++
			continue
		}
		f, err := gpu.Read(m.Ad)
		if err != nil {
			return fmt.Errorf("machine %s: %w", m.Name, err)
		}
		ad := m.Ad.Copy()
		domain, _ := ad.Str(roost.AttrFileSystemDomain)
		domains[domain] = true
		if state, _ := ad.Str(roost.AttrState); shut(ad, state) {
			closed++
			ad.SetBool(roost.AttrStart, false)
			ad.SetBool(roost.AttrRequirements, false)
		}
		if f.Reclaims() {
			lends++
		}
		for _, name := range []string{
			roost.AttrState, roost.AttrOwnerBusyReason, roost.AttrPaused, roost.AttrReclaim, roost.AttrReclaimedCpus, roost.AttrReclaimedMemory, roost.AttrExclusive,
		} {
			ad.Delete(name)
		}
		queued := false
		for i := range f.Len() {
			q := f.Queue(i)
			queued = queued || q.RunLimit > 0 || q.Room > 0
		}
		if queued {
			queues++
		}
		x.machine[m.Name] = len(x.c.Machines)
		x.c.Machines = append(x.c.Machines, pool.Machine{Name: m.Name, Resources: f.Total(), Units: f.Units(), Ad: ad})
	}
	x.note(unclear, "machine is left out: nobody knows whose claims are on it", "machines are left out: nobody knows whose claims are on them")
	x.note(closed, "machine takes nothing new, as its owner uses it or it is drained or paused: nobody knows until when", "machines take nothing new, as their owners use them or they are drained or paused: nobody knows until when")
	x.note(queues, "machine has a queue or a limit of its own on what runs at once: it is played without", "machines have queues or limits of their own on what runs at once: they are played without")
	x.note(lends, "machine lends what its tasks leave: it is played without", "machines lend what their tasks leave: they are played without")
	if len(domains) > 1 {
		x.notes = append(x.notes, fmt.Sprintf("the machines are in %d file system domains: they are taken to see the same files", len(domains)))
	}
	if len(x.c.Machines) == 0 {
		return fmt.Errorf("%w: there is no machine in the cell", roost.Invalid)
	}
	return nil
}

// shut reports whether a machine takes nothing new, for reasons that are not in the ledger.
func shut(ad *classad.Ad, state string) bool {
	_, busy := ad.Lookup(roost.AttrOwnerBusyReason)
	paused, _ := ad.Bool(roost.AttrPaused)
	return busy || paused || strings.EqualFold(state, "Owner") || strings.EqualFold(state, "Drained")
}

// schedds numbers them by their names, and sorts the jobs by their requests as schedds do.
func (x *cell) schedds() {
	names := map[string]bool{}
	for _, a := range x.play.Asks {
		names[a.Key.Schedd] = true
	}
	for i := range x.from.Jobs {
		_, host, _ := strings.Cut(x.from.Jobs[i].ID, ".")
		names[host] = true
		key := match.Key{Schedd: host, ID: x.from.Jobs[i].Request}
		x.jobs[key] = append(x.jobs[key], x.from.Jobs[i])
		x.request[x.from.Jobs[i].ID] = key.ID
	}
	for _, t := range x.play.Tasks() {
		if _, host, ok := strings.Cut(t.Claim.JobName(), "."); ok {
			names[host] = true
		}
	}
	for i, name := range slices.Sorted(maps.Keys(names)) {
		x.schedd[name] = i
	}
	x.c.Schedds = max(len(names), 1)
	for _, list := range x.jobs {
		slices.SortStableFunc(list, func(a, b picture.Job) int {
			return cmp.Or(cmp.Compare(b.Priority, a.Priority), cmp.Compare(a.Submitted, b.Submitted), cmp.Compare(a.ID, b.ID))
		})
	}
}
