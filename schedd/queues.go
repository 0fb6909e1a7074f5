package schedd

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/wire"
	"github.com/roost-batch/roost/schedd/queue"
)

// A job goes to a queue, if administrators have made any: the one that it names, or the default one. The queue gives it what it does not say, and
// refuses what does not suit it. Who submits through a job file says everything, so a job that asks for the standard amount counts as one that does
// not say.

// counted reports whether the leader counts the tasks of a queue that run.
func (n *negotiation) counted(name string) bool {
	q, _ := findQueue(n.admission.policy, name)
	return q.GetCounted()
}

// stopped reports whether a request's tasks may not start, though there may be a claim for them: their queue is stopped, as far as is known.
func (s *Schedd) stopped(r *queue.Request) bool {
	if r.Queue == "" || s.negotiator == nil {
		return false
	}
	q, _ := findQueue(s.negotiator.admission.policy, r.Queue)
	return q.GetStopped()
}

func findQueue(p *wire.Policy, name string) (*wire.JobQueue, bool) {
	i := slices.IndexFunc(p.GetQueues(), func(q *wire.JobQueue) bool { return q.GetName() == name })
	if i < 0 {
		return nil, false
	}
	return p.GetQueues()[i], true
}

// enqueue makes jobs what their queues want them to be. Nothing is changed of a submission that is refused but for its own ads.
func enqueue(p *wire.Policy, who queue.Submitter, specs []queue.Spec) error {
	if len(p.GetQueues()) == 0 {
		return nil
	}
	for i := range specs {
		if err := enqueueOne(p, who, &specs[i]); err != nil {
			return ofSeveral(err, i, specs)
		}
	}
	return nil
}

func enqueueOne(p *wire.Policy, who queue.Submitter, spec *queue.Spec) error {
	name, _ := spec.Ad.Str(roost.AttrQueue)
	if name == "" {
		if name = p.GetDefaultQueue(); name == "" {
			return nil
		}
		spec.Ad.SetString(roost.AttrQueue, name)
	}
	q, ok := findQueue(p, name)
	if !ok {
		return missing("queue", name, queueNames(p))
	}
	if !q.GetEnabled() {
		return fmt.Errorf("queue %s: %w: it takes no jobs now", name, roost.Conflict)
	}
	group, _ := spec.Ad.Str(roost.AttrGroup)
	if !admits(q, who.User, group) {
		return fmt.Errorf("queue %s: %w: %s may not use it", name, roost.PermissionDenied, submitterText(who.User, group))
	}
	return conform(q, spec)
}

// conform has a queue give a job what it does not say, and refuse what does not suit it.
func conform(q *wire.JobQueue, spec *queue.Spec) error {
	name, said := q.GetName(), spec.Ad.Copy()
	if err := fillIn(q, spec); err != nil {
		return fmt.Errorf("queue %s: %w", name, err)
	}
	noteFilled(said, spec.Ad)
	kinds, err := queue.Kinds(spec)
	if err != nil {
		return err
	}
	for _, k := range kinds {
		if err := suits(q, k); err != nil {
			return fmt.Errorf("queue %s: %w: %w", name, roost.Exhausted, err)
		}
	}
	return nil
}

func queueNames(p *wire.Policy) (names []string) {
	for _, q := range p.GetQueues() {
		names = append(names, q.GetName())
	}
	return names
}

func submitterText(user, group string) string {
	if group == "" {
		return user
	}
	return user + " of group " + group
}

// admits reports whether a user, on behalf of that group or none, may use the queue.
func admits(q *wire.JobQueue, user, group string) bool {
	if len(q.GetUsers())+len(q.GetGroups()) == 0 {
		return true
	}
	return slices.Contains(q.GetUsers(), user) || slices.ContainsFunc(q.GetGroups(), func(g string) bool {
		return group == g || strings.HasPrefix(group, g+".")
	})
}

// fillIn gives a job what it does not say. Without a default walltime it is the longest that the queue allows, as in PBS.
func fillIn(q *wire.JobQueue, spec *queue.Spec) error {
	if band := q.GetBand(); band != "" {
		if has, ok := spec.Ad.Str(roost.AttrBand); ok && has != band && has != roost.Batch.String() {
			return fmt.Errorf("%w: the job asks for band %s, and the jobs of this queue are of band %s", roost.Conflict, has, band)
		}
		spec.Ad.SetString(roost.AttrBand, band)
	}
	set := func(name string, value *int64, unit, standard int64) {
		has, ok := spec.Ad.Int(name)
		if value == nil || ok && has != standard || slices.ContainsFunc(spec.Columns, func(c queue.Column) bool { return c.Name == name }) {
			return
		}
		spec.Ad.SetInt(name, (*value+unit-1)/unit)
	}
	d := q.GetDefault()
	if d == nil {
		d = &wire.Extent{}
	}
	set(roost.AttrRequestMemory, d.Memory, int64(roost.MiB), int64(roost.DefaultMemory/roost.MiB))
	set(roost.AttrRequestDisk, d.Disk, int64(roost.KiB), 0)
	set(roost.AttrRequestGpus, d.Gpus, 1, 0)
	walltime := d.WalltimeS
	if walltime == nil && q.GetMost() != nil {
		walltime = q.GetMost().WalltimeS
	}
	set(roost.AttrWalltime, walltime, 1, 0)
	if n := int64(q.GetPriority()); n != 0 {
		set(roost.AttrPriority, &n, 1, 0)
	}
	if d.MilliCpus != nil {
		if has, ok := spec.Ad.Real(roost.AttrRequestCpus); !ok || has == roost.DefaultCPU.Cores() {
			spec.Ad.SetReal(roost.AttrRequestCpus, roost.MilliCPU(*d.MilliCpus).Cores())
		}
	}
	return nil
}

// suits says what is too much or too little of a task for a queue, if anything is.
func suits(q *wire.JobQueue, k queue.Each) error {
	least, most := q.GetLeast(), q.GetMost()
	if least == nil {
		least = &wire.Extent{}
	}
	if most == nil {
		most = &wire.Extent{}
	}
	size := func(n int64) string { return roost.Bytes(n).String() }
	for _, d := range [...]struct {
		name            string
		asks            int64
		atLeast, atMost *int64
		text            func(int64) string
		endless         bool // 0 means without an end
	}{
		{"cpus", int64(k.CPU), least.MilliCpus, most.MilliCpus, func(n int64) string { return roost.MilliCPU(n).String() }, false},
		{"memory", int64(k.Memory), least.Memory, most.Memory, size, false},
		{"disk", int64(k.Disk), least.Disk, most.Disk, size, false},
		{"gpus", int64(k.GPUs), least.Gpus, most.Gpus, func(n int64) string { return fmt.Sprint(n) }, false},
		{"walltime", int64(k.Walltime / time.Second), least.WalltimeS, most.WalltimeS, func(n int64) string { return (time.Duration(n) * time.Second).String() }, true},
	} {
		switch {
		case d.atMost != nil && (d.asks > *d.atMost || d.endless && d.asks == 0):
			return fmt.Errorf("a task asks for %s of %s, and %s is the most here", amountOf(d.asks, d.endless, d.text), d.name, d.text(*d.atMost))
		case d.atLeast != nil && d.asks < *d.atLeast && !(d.endless && d.asks == 0):
			return fmt.Errorf("a task asks for %s of %s, and %s is the least here", d.text(d.asks), d.name, d.text(*d.atLeast))
		}
	}
	return nil
}

func amountOf(n int64, endless bool, text func(int64) string) string {
	if endless && n == 0 {
		return "no end"
	}
	return text(n)
}
