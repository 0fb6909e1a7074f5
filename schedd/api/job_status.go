package api

import (
	"fmt"
	"strings"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/wire"
	"github.com/roost-batch/roost/schedd/codec"
	"github.com/roost-batch/roost/schedd/queue"
	"github.com/roost-batch/roost/schedd/queue/adtext"
	"github.com/roost-batch/roost/schedd/table"
)

// statusRow turns a status into the message that tells it. ad is added when it is not
// empty.
func (v *jobView) statusRow(st *queue.JobStatus, ad string) *wire.JobStatus {
	m := &wire.JobStatus{
		Id: st.Job.String(), Name: validUTF8(st.Name), Owner: st.Owner, Band: st.Band.String(),
		Priority: int32(st.Priority), Submitted: st.Submitted,
		Started: st.Started, Ended: st.Ended, Tasks: uint32(st.Tasks), Counts: stateCounts(st),
		Request: wire.FromResources(st.Resources),
		Reason:  validUTF8(st.Reason), Ad: ad, Array: st.Array, Queue: st.Queue, Timed: st.WaitsForTimeOnly,
		Locked:      st.Locked,
		Reservation: st.Reservation, RequestId: uint64(st.Request), Eligible: st.EligibleSince,
		Waiting: st.WaitingSince, Waited: st.Waited,
	}
	if m.Chunks = jobChunks(st.Placements); st.OrderRank != st.Job.Seq {
		m.OrderTime = st.OrderTime
	}
	for _, n := range st.Released {
		m.Released = append(m.Released, uint32(n))
	}
	m.RunNow, m.Update = runNowOf(st.RunNow), v.updateRow(st.Job.Seq)
	if t := st.Task; t != nil {
		m.State, m.Attempt, m.Node, m.Exit, m.Index = t.State.String(), uint32(t.Attempt), t.Node,
			codec.WireExitStatus(t.Exit),
			uint32(t.UserIndex)
		m.Removed = t.State == roost.Removed
		addCheckpointRow(m, t)
		m.Placed = codec.DecodePlacement(t.Placement)
	}
	v.addServiceHealth(m, st)
	addAllocRow(m, st)
	addFlowRow(m, st)
	m.Epochs = gangEpochRows(st)
	return m
}

// gangEpochRows tells of the saved work of gangs.
func gangEpochRows(st *queue.JobStatus) (list []*wire.GangEpoch) {
	for _, g := range st.Epochs {
		list = append(list, &wire.GangEpoch{Gang: uint32(g.Gang), Saved: g.Saved, Last: g.Last, Time: g.Time,
			Size: g.Size, Tasks: uint32(g.Tasks), Work: g.Work, From: g.From, Origin: g.Origin, Live: uint32(g.Live),
			Open: uint32(g.Open), Staged: uint32(g.Staged), Failed: g.Failed})
	}
	return list
}

// runNowOf tells how a request to run a job now stands; nil where there is none.
func runNowOf(r queue.RunNowStatus) *wire.RunNow {
	if r.Pending == 0 && r.Denied == "" {
		return nil
	}
	return &wire.RunNow{By: r.By, Since: r.Since, Nodes: r.Hosts, Pending: uint32(r.Pending),
		Denied: validUTF8(r.Denied)}
}

// jobChunks tells what a job has of machines, like parts together.
func jobChunks(parts []queue.TaskPlacement) (list []*wire.Chunk) {
	for i, one := range parts {
		if i > 0 && one == parts[i-1] {
			list[len(list)-1].Count++
			continue
		}
		list = append(list, &wire.Chunk{Node: one.Node, Request: wire.FromResources(one.Resources),
			Placed: codec.DecodePlacement(one.Placement), Count: 1})
	}
	return list
}

// validUTF8 replaces what is not UTF-8 in a text, so that the text can be sent. What
// users write need not be UTF-8, and one invalid name would make a list of all jobs fail.
func validUTF8(text string) string { return strings.ToValidUTF8(text, "\ufffd") }

// addCheckpointRow adds what is known of a task's checkpoints. What its attempt used is
// told with the work of those that it went on from.
func addCheckpointRow(m *wire.JobStatus, t *queue.TaskStatus) {
	m.SuspendedBy, m.HeldBy = t.SuspendedBy, t.HeldBy
	m.Suspended, m.Checkpoints, m.Checkpointed = t.State == roost.Suspended, uint32(t.ImageCount), t.LastCheckpoint
	if m.Exit != nil {
		m.Exit.Wall += t.EarlierUsage.Wall
		m.Exit.UserCpu += t.EarlierUsage.User
		m.Exit.SystemCpu += t.EarlierUsage.System
	}
}

// stateCounts lists how many tasks are in each state, and how many have failed.
func stateCounts(st *queue.JobStatus) map[string]uint32 {
	out := make(map[string]uint32, 4)
	for state, n := range st.Counts {
		if n > 0 {
			out[roost.TaskState(state).String()] = uint32(n)
		}
	}
	if st.Failed > 0 {
		out["failed"] = uint32(st.Failed)
	}
	return out
}

// addLiveStatus adds to a row what is known of the present only. That is what its task
// uses, and why its tasks wait, if they do and the negotiator has said so.
func (v *jobView) addLiveStatus(m *wire.JobStatus, st *queue.JobStatus) *wire.JobStatus {
	v.addLocalStatus(m, st)
	if waitsForMachine(m, st) {
		if e := v.leader.Explanation(st.Request); e != nil {
			m.Reason, m.Brief, m.Start = e.GetSummary(), e.GetBrief(), e.GetStart()
		}
	}
	return m
}

// addLocalStatus is explained without what the negotiator says.
func (v *jobView) addLocalStatus(m *wire.JobStatus, st *queue.JobStatus) *wire.JobStatus {
	v.liveUsage.addToRow(m, st)
	if st.Task != nil && st.Task.State.IsActive() {
		m.Transfers = v.transfers.Progress(roost.AttemptID{Task: st.Job.Task(st.Task.Index), Attempt: st.Task.Attempt})
	}
	if m.GetUsage().GetFrozen() && !m.Suspended {
		m.Suspended = true
		if m.Reason == "" {
			m.Reason = "frozen on its node"
		}
	}
	if text, brief := v.nodeSilence(st); text != "" {
		m.Reason, m.Brief = strings.TrimPrefix(m.Reason+"; "+text, "; "), brief
	}
	if m.Reason == "" && st.Task != nil && st.Task.State == roost.Starting {
		m.Reason = v.nodeWait(st)
	}
	m.Reason = restartText(st, v.loop.Now()) + m.Reason
	return m
}

// restartText says when a task of a service is started again, as the begin of a reason.
// It is "" where the task waits for no restart.
func restartText(st *queue.JobStatus, now time.Time) string {
	if st.Task == nil || st.Task.Service == nil || st.Task.Service.RestartAt == 0 {
		return ""
	}
	wait := time.Unix(0, st.Task.Service.RestartAt).Sub(now).Round(time.Second)
	return fmt.Sprintf("restarts in %v, ", max(wait, 0))
}

// waitsForMachine reports whether a row waits for nothing but a machine, so that the
// negotiator knows why.
func waitsForMachine(m *wire.JobStatus, st *queue.JobStatus) bool {
	idle := st.Task == nil || st.Task.State == roost.Idle
	return idle && m.Reason == "" && st.Counts[roost.Idle] > 0
}

// nodeWait says on which machine a task waits for its turn, and how long yet; "" if on
// none.
func (v *jobView) nodeWait(st *queue.JobStatus) string {
	now := v.loop.BootClock()
	node, since, ready, ok := v.dispatch.WaitsOn(st.Job.Task(st.Task.Index))
	switch {
	case !ok:
		return ""
	case ready > now+time.Second:
		return fmt.Sprintf("waits on %s for its turn, about %v more", node, (ready - now).Round(time.Second))
	case ready > 0 && now-ready > time.Second:
		return fmt.Sprintf("waits on %s for its turn, for %v so far", node, (now - since).Round(time.Second))
	}
	return fmt.Sprintf("waits on %s for its turn", node)
}

// jobStatus tells how a job stands, wherever it is; nil when it is nowhere.
func (v *jobView) jobStatus(id roost.JobID) (m *wire.JobStatus, final bool) {
	q := v.queue
	st, ok := q.Status(id.Seq)
	if !ok {
		past, _, err := v.history.Job(id.Seq)
		if err != nil {
			return nil, true
		}
		q = past
		st, _ = q.Status(id.Seq)
	}
	return v.addLiveStatus(v.statusRow(&st, ""), &st), isFinal(&st)
}

// isFinal reports whether nothing of a job can happen any more.
func isFinal(st *queue.JobStatus) bool {
	return st.Counts[roost.Completed]+st.Counts[roost.Removed] == st.Tasks
}

// maxFailures bounds the sample of failed tasks that goes with an event.
const maxFailures = 3

// failedTaskSample samples a job's failed tasks.
func (v *jobView) failedTaskSample(id roost.JobID) (rows []*wire.JobStatus) {
	v.queue.FailedTasks(id.Seq, maxFailures, func(st queue.JobStatus) { rows = append(rows, v.singleTaskRow(&st, "")) })
	return rows
}

// singleTaskRow is a row that stands for one task, under the task's own id.
func (v *jobView) singleTaskRow(st *queue.JobStatus, ad string) *wire.JobStatus {
	m := v.statusRow(st, ad)
	m.Id = st.Job.Task(st.Task.UserIndex).String()
	return m
}

// watchedJobs finds the jobs of a selection that can still change, and tells the others
// as they ended.
func (v *jobView) watchedJobs(sel *wire.Selection,
	who queue.CallerIdentity) (ids []roost.JobID, past []*wire.JobStatus, err error) {
	chosen, err := v.selectTargets(sel, who, false)
	if err != nil {
		return nil, nil, err
	}
	seen := make(map[roost.JobID]bool, len(chosen))
	for _, t := range chosen {
		if t.err != nil {
			return nil, nil, t.err
		}
		if seen[t.Job] {
			continue
		}
		seen[t.Job] = true
		if _, ok := v.queue.Status(t.Job.Seq); ok && t.Job.Host == v.node.Name {
			ids = append(ids, t.Job)
			continue
		}
		m, _ := v.jobStatus(t.Job)
		if m == nil || t.Job.Host != v.node.Name {
			return nil, nil, v.mustBeQueued(t.TaskSelector)
		}
		past = append(past, m)
	}
	return ids, past, nil
}

// HistoryRow makes the row of a job that has ended, for the history.
func (v *jobView) HistoryRow(q *queue.Queue, seq uint64) *table.JobRow {
	st, _ := q.Status(seq)
	st.OrderRank, st.OrderTime = seq, st.Submitted // there its place is that of its number
	m := v.statusRow(&st, "")
	m.Checkpoints, m.Checkpointed = 0, 0 // they go when it leaves the queue
	return newTableRow(m, &st, adtext.Packed{})
}
