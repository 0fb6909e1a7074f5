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

// The state at the start of the simulation: jobs in the logs of schedds, and tasks on
// machines. Naively the simulator would submit and start them in the first seconds. Then
// they would have to find their places anew, against drains, stopped queues and each
// other. So all daemons begin as after a restart of the whole cell: schedds read
// submissions and assignments from their logs, machines adopt the claims on their disks,
// and the two are compared as after every restart.

// loadInitialJobs loads the jobs of the initial state.
func (p *Pool) loadInitialJobs() error {
	queues := make([]*queue.Queue, len(p.schedds))
	var order []int
	for i := range p.cfg.Jobs {
		if p.cfg.Jobs[i].At < 0 {
			order = append(order, i)
		} else if len(p.cfg.Jobs[i].InitialPlacements) > 0 {
			return fmt.Errorf("job %d: %w: it runs at the beginning, and is submitted later", i, roost.Invalid)
		}
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(p.cfg.Jobs[a].At, p.cfg.Jobs[b].At) })
	for _, i := range order {
		for _, at := range p.cfg.Jobs[i].InitialPlacements {
			if at.Machine < 0 || at.Machine >= len(p.machines) {
				return fmt.Errorf("job %d: %w: a task of it runs on machine %d of %d", i, roost.Invalid, at.Machine,
					len(p.machines))
			}
			m := p.machines[at.Machine] // the host is up for longer than its tasks run
			m.bootedAt = min(m.bootedAt, -at.RunningFor-bootOffset)
		}
	}
	for _, i := range order {
		s := p.cfg.Jobs[i].Schedd
		if queues[s] == nil {
			queues[s] = queue.New(p.schedds[s].name)
		}
		if err := p.loadInitialJob(i, queues[s]); err != nil {
			return fmt.Errorf("job %d: %w", i, err)
		}
	}
	return nil
}

// loadInitialJob writes a job into its schedd's log, and its running tasks onto machines.
func (p *Pool) loadInitialJob(i int, q *queue.Queue) error {
	j, u, who := &p.cfg.Jobs[i], &p.users[i], p.callerOf(i)
	s, then := p.schedds[j.Schedd], func(ago time.Duration) time.Time { return p.cfg.StartTime.Add(-ago) }
	enter := func(events ...queue.JobEvent) {
		for _, e := range events {
			q.Apply(e)
		}
		s.appendEvents(events)
	}
	spec, key := p.submitSpec(i), "job "+strconv.Itoa(i)
	events, ids, _, err := q.SubmitJobs(then(-j.At), who, key, []queue.SubmitSpec{spec},
		queue.SubmitLimits{Domain: fileSystemDomain})
	if err != nil {
		u.refused = fmt.Errorf("job %d: %w", i, err)
		p.unfinished--
		return nil
	}
	if len(j.InitialPlacements) > spec.Count {
		return fmt.Errorf("%w: %d of its %d tasks run", roost.Invalid, len(j.InitialPlacements), spec.Count)
	}
	enter(events...)
	id := ids[0]
	s.jobs[id.Seq] = i
	u.id, u.shownAt, u.stored, u.unfinished = id, j.At, true, spec.Count
	p.tasks += spec.Count
	st, _ := q.Status(id.Seq)
	p.observe(audit.Event{Type: audit.SubmissionStored, Node: s.name, Key: events[0].Submission.Key, Job: id,
		Tasks: spec.Count, Resources: st.Resources})
	p.observe(audit.Event{Type: audit.IDShown, Node: s.name, Key: events[0].Submission.Key, Job: id, Tasks: spec.Count})
	for k := range j.InitialPlacements {
		at := &j.InitialPlacements[k]
		m := p.machines[at.Machine]
		if !m.hasPlacement(&at.Placement) {
			return fmt.Errorf("%w: task %d is where %s has nothing", roost.Invalid, k, m.name)
		}
		e, a, err := q.AssignNext(then(at.RunningFor), id.Task(k), m.name, m.name, uint64(m.initialClaim+1))
		if err != nil {
			return err
		}
		enter(e)
		if e, ok := q.RecordStarted(then(at.RunningFor), a); ok {
			enter(e)
		}
		p.observe(audit.Event{Type: audit.Assigned, Node: m.name, Job: id, Index: k, Attempt: a.Attempt})
		m.startInitial(i, a, at, st.Group, st.Band)
	}
	return nil
}

// hasPlacement reports whether the machine has the units and devices of a placement.
func (m *machineNode) hasPlacement(p *gpu.Placement) bool {
	devices := 0
	for i := range m.units {
		devices += len(m.units[i].Devices)
	}
	return !slices.ContainsFunc(p.Parts, func(x gpu.UnitPart) bool { return x.Unit < 0 || x.Unit >= len(m.units) }) &&
		!slices.ContainsFunc(p.Shares, func(x gpu.DeviceShare) bool { return x.Device < 0 || x.Device >= devices })
}

// startInitial writes a claim onto the machine as if it had been granted earlier, and
// runs its task.
func (m *machineNode) startInitial(i int, a roost.AttemptID, at *InitialPlacement, group string,
	band roost.PriorityBand) {
	j, who := &m.pool.cfg.Jobs[i], m.pool.callerOf(i)
	m.initialClaim++
	saved := gpu.NewFree(m.units, m.config.Resources.Disk).Save(at.Placement)
	lease := m.pool.cfg.Times.Lease
	about := slot.ClaimInfo{Group: group, Band: band}
	about.Limits, _ = j.Spec.Ad.Str(roost.AttrLimits)
	about.Queue, _ = j.Spec.Ad.Str(roost.AttrQueue)
	about.Alone, _ = j.Spec.Ad.Bool(roost.AttrExclusive)
	h := &claimRunner{machine: m, id: m.initialClaim, hostLife: m.hostLife, placement: &saved, written: true,
		limit: at.Resources,
		claim: slot.Claim{
			ID: m.initialClaim, Grant: roost.GrantID{Epoch: 1,
				ID: uint64(m.id)<<generationBits | uint64(m.initialClaim)},
			Schedd: m.pool.schedds[j.Schedd].name, Owner: who.User, Info: about,
			UID: who.UID, GID: who.GID, Class: at.Placement.Class, CanQueue: true, Resources: at.Resources,
			LeasePeriod: lease,
		}}
	walltime, _ := j.Spec.Ad.Int(roost.AttrWalltime)
	_, code := j.runtimeAndCode(a.Task.Index, a.Attempt)
	h.starter = &starterProcess{
		runner: h, isAlive: true, initial: true, phase: phaseRunning, attempt: a, job: i, remaining: at.Remaining,
		code: code, output: j.Output, began: m.bootTime() - at.RunningFor, deadline: m.bootTime() + lease,
		program: &wire.Program{Executable: programPrefix + strconv.Itoa(i), WalltimeNs: walltime * int64(time.Second),
			ExpectedNs: int64(at.PredictedRuntime)},
	}
	m.claimRunners[h.id] = h
	h.starter.watchLease()
	h.starter.scheduleDue(at.Remaining, dueEnd)
	m.pool.countTask(h.starter, 1)
	m.pool.users[i].firstStarted = min(m.pool.users[i].firstStarted, -at.RunningFor)
}

// reportInitial reports to the observer which attempts run at the start.
func (m *machineNode) reportInitial() {
	for _, id := range slices.Sorted(maps.Keys(m.claimRunners)) {
		if s := m.claimRunners[id].starter; s.initial && s.phase == phaseRunning {
			m.pool.reportRunning(m, s)
		}
	}
}
