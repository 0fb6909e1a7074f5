package negotiation

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/mutant"
	"github.com/roost-batch/roost/internal/wire"
	"github.com/roost-batch/roost/schedd/flock"
	"github.com/roost-batch/roost/schedd/queue"
)

// The leader hears how attempts end, so that it finds machines that swallow tasks
// (package negotiator/blackhole). It need not hear of all: of many that end alike one a
// second is enough to know how a job fares on a node.

// outcomeKey is what outcomes have in common of which one is enough for a while.
type outcomeKey struct {
	node    string
	job     uint64
	verdict wire.Outcome_Verdict
}

// Bounds on what is told.
const (
	outcomeInterval = time.Second
	maxOutcomeKeys  = 10_000 // kinds of outcomes that are remembered
)

// classifyEnd says what the end of an attempt means; false where it says nothing of the
// node. What was met on the job's own files counts against a node like a program that
// fails: if the job goes well elsewhere.
func classifyEnd(x *queue.AttemptExit, ownFiles bool) (wire.Outcome_Verdict, bool) {
	switch {
	case x.IsSuccess() || x.Cause == queue.CauseWalltime:
		return wire.Outcome_GOOD, true
	case x.Cause == queue.CauseExited || x.Cause == queue.CauseLaunch || x.Cause == queue.CauseMachine && ownFiles:
		return wire.Outcome_FAILED, true
	case x.Cause == queue.CauseMachine:
		return wire.Outcome_SPOILED, true
	}
	return 0, false
}

// maxSuccessiveFailures is how many failures in a row on one claim make the schedd
// release it. Then the next task asks the negotiator, which may know a better machine.
const maxSuccessiveFailures = 3

// ReportOutcome tells the leader of the end of an attempt that is still live. It gives
// the attempt's claim back where the machine may be the cause.
func (l *LeaderConn) ReportOutcome(a roost.AttemptID, x *queue.AttemptExit, ownFiles bool, ran int64,
	now time.Time) {
	v, ok := classifyEnd(x, ownFiles)
	if !ok {
		return
	}
	if queue.EndsSaved(l.queue, a, x) { // it goes on where it has room
		v = wire.Outcome_GOOD
	}
	switch v {
	case wire.Outcome_GOOD:
		l.dispatch.Failed(a, 0)
	case wire.Outcome_FAILED:
		l.dispatch.Failed(a, maxSuccessiveFailures)
	default:
		l.dispatch.Failed(a, 1)
	}
	node := l.queue.NodeOf(a)
	if v == wire.Outcome_GOOD {
		l.nodeFailures.removeFailures(a.Task, "")
	} else if node != "" {
		l.nodeFailures.noteFailure(now, a.Task, node)
	}
	l.sendOutcome(node, a, v, ran, cmp.Or(x.Reason, x.Describe()), now)
}

// ReportForgedImage tells of an image that no honest machine makes. Either the node that
// made it lies or the one that refused it: both are told of, and what is against them in
// all is counted by the leader.
func (l *LeaderConn) ReportForgedImage(a roost.AttemptID, reason string, now time.Time) {
	program, err := l.queue.Program(a)
	if err != nil || program.Restore == nil || program.Restore.Node == "" {
		return
	}
	maker, node := program.Restore.Node, l.queue.NodeOf(a)
	l.log.Warn("a node has made a checkpoint that is not of its task", "node", maker, "job", a.Task.Job, "attempt", a,
		"refused by", node, "error", reason)
	l.sendOutcome(maker, a, wire.Outcome_SPOILED, 0, "it made a checkpoint that "+node+" refused: "+reason, now)
	if node != maker {
		l.sendOutcome(node, a, wire.Outcome_FAILED, 0, "it refused a checkpoint of "+maker+": "+reason, now)
	}
}

// sendOutcome tells the leader how an attempt went, as far as that says something of a
// node.
func (l *LeaderConn) sendOutcome(node string, a roost.AttemptID, v wire.Outcome_Verdict, ran int64, reason string,
	now time.Time) {
	n := l.stream
	r, known := l.queue.RequestOf(a.Task)
	if n == nil || node == "" || !known || flock.IsElsewhere(node) {
		return
	}
	kind := outcomeKey{node, a.Task.Job.Seq, v}
	last, reported := n.outcomesSentAt[kind]
	if reported && now.Sub(last) < outcomeInterval && (v == wire.Outcome_GOOD || a.Attempt == 1) {
		return
	}
	if len(n.outcomesSentAt) >= maxOutcomeKeys {
		clear(n.outcomesSentAt)
	}
	n.outcomesSentAt[kind] = now
	o := &wire.Outcome{
		Node: node, Request: uint64(r.ID), Task: l.queue.TaskName(a.Task), Job: a.Task.Job.String(), Owner: r.Owner,
		Verdict: v, Ran: ran,
	}
	if v != wire.Outcome_GOOD {
		o.Reason = reason
		n.noteReported(a.Task, r.ID)
	}
	putOutcome(l, n, o)
}

// putOutcome tells the leader of an outcome once the end of the attempt is on disk. A
// schedd that restarts before takes in that end again: the leader would count a failure
// twice, and keep the job from a machine that it may need.
func putOutcome(l *LeaderConn, n *leaderSession, o *wire.Outcome) {
	tell := func() {
		if l.stream == n {
			n.out.Put(&wire.FromSchedd{Of: &wire.FromSchedd_Outcome{Outcome: o}})
		}
	}
	if mutant.Active(mutant.OutcomeReportedEarly) {
		tell()
		return
	}
	l.loop.OnCommit(tell)
}

// noteReported notes that the negotiator was told of a task that failed, which it may
// keep from machines.
func (n *leaderSession) noteReported(t roost.TaskID, of queue.RequestID) {
	tasks := n.reportedFailures[t.Job.Seq]
	if tasks == nil {
		if len(n.reportedFailures) >= maxOutcomeKeys {
			return
		}
		tasks = make(map[int]queue.RequestID)
		n.reportedFailures[t.Job.Seq] = tasks
	}
	if len(tasks) < maxOutcomeKeys {
		tasks[t.Index] = of
	}
}

// RetractOutcome tells the leader which reported tasks run no more after an event. Where
// all that a request wants was kept from a machine because of them, other jobs that
// ask for the same would be, too.
func (l *LeaderConn) RetractOutcome(e *queue.JobEvent) {
	n := l.stream
	if n == nil || n.reportedFailures[e.Job] == nil {
		return
	}
	tasks := n.reportedFailures[e.Job]
	touched := []int{e.Index}
	if e.Attempt == 0 {
		touched = slices.Sorted(maps.Keys(tasks))
	}
	for _, i := range touched {
		t := roost.JobID{Seq: e.Job, Host: l.host}.Task(i)
		if _, reported := tasks[i]; !reported || !l.queue.IsFinal(t) {
			continue
		}
		putOutcome(l, n, &wire.Outcome{Request: uint64(tasks[i]), Task: l.queue.TaskName(t), Job: t.Job.String(),
			Verdict: wire.Outcome_GONE})
		delete(tasks, i)
	}
	if len(tasks) == 0 {
		delete(n.reportedFailures, e.Job)
	}
}

// NoteNodeLost notes that an attempt is lost together with its node. How many tasks of a
// request have gone that way and wait to start elsewhere is told to the negotiator, who
// lets them go on at a limited rate.
func (l *LeaderConn) NoteNodeLost(a roost.AttemptID) {
	if r, ok := l.queue.RequestOf(a.Task); ok {
		l.lostTasks[r.ID]++
	}
}

// NoteRestarted notes that a task of a request starts.
func (l *LeaderConn) NoteRestarted(id queue.RequestID) {
	if l.lostTasks[id]--; l.lostTasks[id] <= 0 {
		delete(l.lostTasks, id)
	}
}
