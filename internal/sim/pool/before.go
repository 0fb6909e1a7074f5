package pool

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/gpu"
	"github.com/roost-batch/roost/internal/sim/audit"
	"github.com/roost-batch/roost/internal/wire"
	"github.com/roost-batch/roost/schedd/queue"
	"github.com/roost-batch/roost/startd/slot"
)

// What there is at the instant 0 already: jobs in the logs of schedds, and tasks on machines. Naively these would be submitted, and started, in the first
// seconds; but then they would have to find their places anew, against drains, stopped queues and each other. So all daemons begin as after a restart of the
// whole cell: schedds read what was submitted and assigned, machines adopt the claims that were written down, and the two are compared as they always are.

// before puts what was there before the beginning where it is.
func (p *Pool) before() error {
	queues := make([]*queue.Queue, len(p.schedds))
	var order []int
	for i := range p.cfg.Jobs {
		if p.cfg.Jobs[i].At < 0 {
			order = append(order, i)
		} else if len(p.cfg.Jobs[i].Placed) > 0 {
			return fmt.Errorf("job %d: %w: it runs at the beginning, and is submitted later", i, roost.Invalid)
		}
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(p.cfg.Jobs[a].At, p.cfg.Jobs[b].At) })
	for _, i := range order {
		for _, at := range p.cfg.Jobs[i].Placed {
			if at.Machine < 0 || at.Machine >= len(p.machines) {
				return fmt.Errorf("job %d: %w: a task of it runs on machine %d of %d", i, roost.Invalid, at.Machine, len(p.machines))
			}
			m := p.machines[at.Machine] // which is up for longer than what runs there
			m.bootedAt = min(m.bootedAt, -at.Since-uptime)
		}
	}
	for _, i := range order {
		s := p.cfg.Jobs[i].Schedd
		if queues[s] == nil {
			queues[s] = queue.New(p.schedds[s].name)
		}
		if err := p.there(i, queues[s]); err != nil {
			return fmt.Errorf("job %d: %w", i, err)
		}
	}
	return nil
}

// there puts a job into its schedd's log, and what runs of it onto machines.
func (p *Pool) there(i int, q *queue.Queue) error {
	j, u, who := &p.cfg.Jobs[i], &p.users[i], p.who(i)
	s, then := p.schedds[j.Schedd], func(ago time.Duration) time.Time { return p.cfg.Began.Add(-ago) }
	enter := func(events ...queue.Event) {
		for _, e := range events {
			q.Apply(e)
		}
		s.log(events)
	}
	spec, key := p.spec(i), "job "+strconv.Itoa(i)
	events, ids, _, err := q.Submit(then(-j.At), who, key, []queue.Spec{spec}, queue.Limits{Domain: domain})
	if err != nil {
		u.refused = fmt.Errorf("job %d: %w", i, err)
		p.unfinished--
		return nil
	}
	if len(j.Placed) > spec.Count {
		return fmt.Errorf("%w: %d of its %d tasks run", roost.Invalid, len(j.Placed), spec.Count)
	}
	enter(events...)
	id := ids[0]
	s.jobs[id.Seq] = i
	u.id, u.shown, u.taken, u.open = id, j.At, true, spec.Count
	p.tasks += spec.Count
	st, _ := q.Status(id.Seq)
	p.see(audit.Seen{What: audit.Taken, Node: s.name, Key: events[0].Submission.Key, Job: id, Tasks: spec.Count, Resources: st.Resources})
	p.see(audit.Seen{What: audit.Printed, Node: s.name, Key: events[0].Submission.Key, Job: id, Tasks: spec.Count})
	for k := range j.Placed {
		at := &j.Placed[k]
		m := p.machines[at.Machine]
		if !m.has(&at.Placement) {
			return fmt.Errorf("%w: task %d is where %s has nothing", roost.Invalid, k, m.name)
		}
		e, a, err := q.Assign(then(at.Since), id.Task(k), m.name, m.name, uint64(m.given+1))
		if err != nil {
			return err
		}
		enter(e)
		if e, ok := q.Start(then(at.Since), a); ok {
			enter(e)
		}
		p.see(audit.Seen{What: audit.Assigned, Node: m.name, Job: id, Index: k, Attempt: a.Attempt})
		m.carry(i, a, at, st.Group, st.Band)
	}
	return nil
}

// has reports whether there is what a placement is of.
func (m *machineNode) has(p *gpu.Placement) bool {
	devices := 0
	for i := range m.units {
		devices += len(m.units[i].Devices)
	}
	return !slices.ContainsFunc(p.Parts, func(x gpu.Part) bool { return x.Unit < 0 || x.Unit >= len(m.units) }) &&
		!slices.ContainsFunc(p.Shares, func(x gpu.Share) bool { return x.Device < 0 || x.Device >= devices })
}

// carry writes a claim down as if it had been given long ago, and has its task run.
func (m *machineNode) carry(i int, a roost.AttemptID, at *Place, group string, band roost.Band) {
	j, who := &m.p.cfg.Jobs[i], m.p.who(i)
	m.given++
	saved := gpu.NewFree(m.units, m.of.Resources.Disk).Save(at.Placement)
	lease := m.p.cfg.Times.Lease
	about := slot.About{Group: group, Band: band}
	about.Limits, _ = j.Spec.Ad.Str(roost.AttrLimits)
	about.Queue, _ = j.Spec.Ad.Str(roost.AttrQueue)
	about.Alone, _ = j.Spec.Ad.Bool(roost.AttrExclusive)
	h := &hand{m: m, id: m.given, host: m.host, placed: &saved, written: true, claim: slot.Claim{
		ID: m.given, Grant: slot.GrantID{Epoch: 1, ID: uint64(m.id)<<generationBits | uint64(m.given)}, Schedd: m.p.schedds[j.Schedd].name, Owner: who.User, About: about,
		UID: who.UID, GID: who.GID, Class: at.Placement.Class, MayWait: true, Resources: at.Resources, Period: lease,
	}}
	walltime, _ := j.Spec.Ad.Int(roost.AttrWalltime)
	_, code := j.run(a.Task.Index)
	h.starter = &starter{
		h: h, lives: true, carried: true, phase: running, attempt: a, job: i, left: at.Left, code: code, output: j.Output, began: m.boot() - at.Since, deadline: m.boot() + lease,
		program: &wire.Program{Executable: programs + strconv.Itoa(i), WalltimeNs: walltime * int64(time.Second), ExpectedNs: int64(at.Expected)},
	}
	m.hands[h.id] = h
	h.starter.watch()
	h.starter.plan(at.Left, dueEnd)
	m.p.counts(h.starter, 1)
	m.p.users[i].first = min(m.p.users[i].first, -at.Since)
}

// carried tells the observer of what lives since before the beginning.
func (m *machineNode) carried() {
	for _, id := range slices.Sorted(maps.Keys(m.hands)) {
		if s := m.hands[id].starter; s.carried && s.phase == running {
			m.p.seeBegun(m, s)
		}
	}
}
