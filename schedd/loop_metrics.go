package schedd

import (
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/metrics"
	"github.com/roost-batch/roost/schedd/dispatch"
	"github.com/roost-batch/roost/schedd/queue"
)

// loopMetrics counts what happens in the loop, for Prometheus.
type loopMetrics struct {
	*metrics.Schedd
	loop *Schedd
}

// refresh publishes a snapshot if somebody reads them.
func (m loopMetrics) refresh(now time.Time) { m.Snapshots.Refresh(now, m.snapshot) }

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
	})
	const waiting = 4
	m.loop.dispatch.EachClaim(func(c *dispatch.Claim) {
		if c.Waiting {
			out.Claims[waiting]++
			return
		}
		out.Claims[min(int(c.State), waiting)]++
	})
	out.JournalBytes = m.loop.logSize.Load()
	if m.loop.feed != nil {
		out.FeedBacklog = m.loop.feed.Backlog()
	}
	return out
}

// countEvent counts an event that is about to be applied to the queue.
func (m loopMetrics) countEvent(e *queue.JobEvent) {
	if !m.IsOn() {
		return
	}
	switch e.Type {
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
	switch {
	case e.Claimed:
	case e.Reason == dispatch.SilentNode:
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
