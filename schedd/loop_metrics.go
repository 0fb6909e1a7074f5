package schedd

import (
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/metrics"
	"github.com/roost-batch/roost/schedd/dispatch"
	"github.com/roost-batch/roost/schedd/flock"
	"github.com/roost-batch/roost/schedd/queue"
	"github.com/roost-batch/roost/schedd/queue/update"
)

// loopMetrics counts what happens in the loop, for Prometheus.
type loopMetrics struct {
	*metrics.Schedd
	users *metrics.Users
	loop  *Schedd
}

// refresh publishes a snapshot if somebody reads them.
func (m loopMetrics) refresh(now time.Time) {
	m.Snapshots.Refresh(now, m.snapshot)
	m.users.Snapshots.Refresh(now, m.usersSnapshot)
}

// snapshot returns what the metrics say of the queue and the claims. It looks at
// requests and claims, and not at jobs or tasks.
func (m loopMetrics) snapshot() (out metrics.ScheddSnapshot) {
	for band := range out.Tasks {
		for state := range out.Tasks[band] {
			out.Tasks[band][state] = m.loop.queue.TasksInState(roost.PriorityBand(band), roost.TaskState(state))
		}
	}
	now := m.loop.clock.now
	m.loop.queue.EachReady(func(r *queue.Request, _ roost.JobID, since int64) {
		if since != 0 {
			out.OldestWaiting[r.Band] = max(out.OldestWaiting[r.Band], now.Sub(time.Unix(0, since)))
		}
		reason := metrics.UnexplainedWait
		if all := m.loop.leader.Explanation(r.ID).GetReasons(); len(all) > 0 {
			reason = metrics.WaitReason(all[0].GetKind()) // the one of most machines
		}
		out.WaitingTasks[reason] += r.Ready
		if r.IsAlloc {
			out.Allocs.Waiting += r.Ready
		}
	})
	const waiting = 4
	out.TasksElsewhere = map[string]float64{}
	m.loop.dispatch.EachClaim(func(c *dispatch.Claim) {
		if _, pool := flock.ParseMachine(c.Node); pool != "" && c.State == dispatch.Busy {
			out.TasksElsewhere[pool]++
		}
		if c.Waiting {
			out.Claims[waiting]++
			return
		}
		out.Claims[min(int(c.State), waiting)]++
		m.addAllocs(&out.Allocs, c)
	})
	out.JournalBytes = m.loop.logSize.Load()
	m.addServices(&out)
	if m.loop.feed != nil {
		out.FeedBacklog = m.loop.feed.Backlog()
	}
	return out
}

// addAllocs adds a claim that is an alloc, or inside one.
func (m loopMetrics) addAllocs(to *metrics.AllocTotals, c *dispatch.Claim) {
	if c.State != dispatch.Busy {
		return
	}
	if r, ok := m.loop.queue.Request(queue.RequestID(c.Request)); ok && r.IsAlloc {
		to.Open++
		to.Cores.Held += c.Resources.CPU.Cores()
		to.Memory.Held += float64(c.Resources.Memory)
	} else if c.Grant.Alloc != 0 {
		to.Tasks++
		to.Cores.Inside += c.Resources.CPU.Cores()
		to.Memory.Inside += float64(c.Resources.Memory)
	}
}

// addServices adds the services of the queue.
func (m loopMetrics) addServices(to *metrics.ScheddSnapshot) {
	sum := m.loop.queue.ServiceTotals()
	to.ServiceTasks[metrics.ServiceWaiting] = sum.Tasks[roost.NoServiceState] - sum.Backoff
	to.ServiceTasks[metrics.ServiceBackoff] = sum.Backoff
	for state := roost.ServiceStarting; state <= roost.ServiceLost; state++ {
		to.ServiceTasks[metrics.ServiceFirstState+int(state-roost.ServiceStarting)] = sum.Tasks[state]
	}
	copy(to.Updates[:], sum.Updates[update.Rolling:])
	scaled := m.loop.queue.ScaleTotals()
	to.ScaledTasks = metrics.ScaleUse{float64(scaled.Tasks), float64(scaled.WantedTasks)}
	to.SizedCores = metrics.ScaleUse{scaled.Size.CPU.Cores(), scaled.Wanted.CPU.Cores()}
	to.SizedMemory = metrics.ScaleUse{float64(scaled.Size.Memory), float64(scaled.Wanted.Memory)}
}

// countService counts what an event says of a service.
func (m loopMetrics) countService(e *queue.JobEvent) {
	if result, sized, ok := m.loop.queue.ScaleOutcomeOf(e); ok {
		m.countScaling(sized, result)
	}
	switch e.Type {
	case queue.Ended, queue.Lost:
		if cause, ok := m.loop.queue.RestartCause(e); ok {
			m.ServiceRestarts.Inc(int(cause))
		}
	case queue.BecameUnready:
		if e.Force {
			m.ServiceDisruptions.Inc(metrics.DisruptedByCheck)
		}
	case queue.Evicted:
		if e.Planned {
			m.ServiceDisruptions.Inc(metrics.DisruptedByDrain)
		}
	case queue.Replaced:
		for _, r := range e.Ranges {
			if e.Planned {
				m.ServiceDisruptions.Add(float64(r.Last-r.First+1), metrics.DisruptedByUpdate)
			}
		}
	case queue.UpdateChanged, queue.Revised:
		if s, ok := m.loop.queue.EndedUpdate(e); ok {
			m.UpdatesEnded.Inc(int(s - update.Undone))
		}
	}
}

// countScaling counts what became of a service that is scaled.
func (m loopMetrics) countScaling(sized bool, result queue.ScaleOutcome) {
	direction := metrics.ScaledHorizontally
	if sized {
		direction = metrics.ScaledVertically
	}
	m.AutoscaleDecisions.Inc(direction, int(result))
}

// usersSnapshot returns what each user has. It looks at requests and claims, and not at
// jobs or tasks.
func (m loopMetrics) usersSnapshot() metrics.UserSnapshot {
	out := metrics.UserSnapshot{}
	m.loop.queue.EachReady(func(r *queue.Request, _ roost.JobID, _ int64) {
		out.Of(r.Owner).WaitingTasks += r.Ready
	})
	m.loop.dispatch.EachClaim(func(c *dispatch.Claim) {
		r, known := m.loop.queue.Request(queue.RequestID(c.Request))
		if c.Waiting || c.State == dispatch.Requested || !known {
			return
		}
		a := out.Of(r.Owner)
		if c.State == dispatch.Busy {
			a.RunningTasks++
		}
		if c.Grant.Alloc != 0 {
			return // the claim that it is inside has them
		}
		a.Cores += c.Resources.CPU.Cores()
		a.GPUs += float64(c.Resources.GPUs)
		a.MemoryBytes += float64(c.Resources.Memory)
	})
	return out
}

// countEvent counts an event that is about to be applied to the queue.
func (m loopMetrics) countEvent(e *queue.JobEvent) {
	certainty, off, expected := m.loop.leader.NoteStart(e)
	if !m.IsOn() {
		return
	}
	if expected {
		m.StartError.Observe(off, metrics.StartCertainty(certainty))
	}
	m.countService(e)
	switch e.Type {
	case queue.Ticked:
		m.CronInstants.Inc(metrics.CronRun)
	case queue.TickSkipped:
		if queue.WasSkipped(e) {
			m.CronInstants.Inc(metrics.CronSkipped)
		}
	case queue.Assigned, queue.Started, queue.Ended, queue.Lost:
		if a, ok := m.loop.queue.AttemptAccount(e.Job, e.Index); ok {
			m.countAttempt(e, a)
		}
	case queue.Checkpointed:
		m.CheckpointTime.Observe(time.Duration(e.Image.Frozen))
		m.CheckpointBytes.Add(float64(e.Image.Size))
	case queue.CheckpointFailed:
		m.CheckpointFailures.Inc()
	}
}

// countAttempt counts what an event says of an attempt.
func (m loopMetrics) countAttempt(e *queue.JobEvent, a queue.AttemptAccount) {
	band := int(a.Band)
	switch e.Type {
	case queue.Assigned:
		if a.WaitingSince != 0 {
			m.WaitTime.Observe(time.Duration(e.Time-a.WaitingSince), band)
		}
	case queue.Started:
		m.AttemptsStarted.Inc(band)
	case queue.Ended:
		m.AttemptsEnded.Inc(band, int(e.Exit.Cause))
		m.RunTime.Observe(time.Duration(e.Exit.Wall), band)
		m.countWork(int(e.Exit.Cause), time.Duration(e.Exit.Wall), a)
	case queue.Lost:
		m.AttemptsEnded.Inc(band, metrics.LostCause)
		if a.Started != 0 {
			m.countWork(metrics.LostCause, time.Duration(e.Time-a.Started), a)
		}
	}
}

// countWork counts what of an attempt's time was useful. That is all of it when the
// program ended by itself, otherwise what a checkpoint has.
func (m loopMetrics) countWork(cause int, wall time.Duration, a queue.AttemptAccount) {
	useful := wall
	if cause != int(queue.CauseExited) {
		useful = min(wall, time.Duration(a.StoredWall))
		m.LostSeconds.AddSeconds(wall-useful, cause)
	}
	m.UsefulSeconds.AddSeconds(useful)
}

// countGrantResult counts a grant that did not become a claim.
func (m loopMetrics) countGrantResult(e dispatch.GrantResult) {
	if _, pool := flock.SplitEpoch(e.Grant.Epoch); pool != 0 {
		if e.Claimed {
			m.FlockGrants.Inc(metrics.FlockClaimed)
		} else if !e.Waiting {
			m.FlockGrants.Inc(metrics.FlockRefused)
		}
	}
	switch {
	case e.Claimed:
	case e.Reason == dispatch.SilentNode, e.Reason == dispatch.BusyNode:
		m.ClaimRefusals.Inc(metrics.ClaimSilent)
	case e.Reason == dispatch.UnwantedClaim:
		m.ClaimRefusals.Inc(metrics.ClaimUnwanted)
	default:
		m.ClaimRefusals.Inc(metrics.ClaimRefused)
	}
}

// wakeLoop has the loop make a snapshot soon, unless it has too much to do.
func (m loopMetrics) wakeLoop() {
	select {
	case m.loop.inbox <- loopCall(m.refresh):
	default:
	}
}
