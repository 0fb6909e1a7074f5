package api

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/document"
	"github.com/roost-batch/roost/internal/wire"
	"github.com/roost-batch/roost/schedd/queue"
)

// Why says in words what keeps a job, or one task of it, from running.
func (s *Service) Why(ctx context.Context, req *wire.WhyRequest) (*wire.WhyReply, error) {
	who, err := s.callerOf(ctx)
	if err != nil {
		return nil, err
	}
	if req.Id, err = resolveJobWord(ctx, s, who, req.GetId()); err != nil {
		return nil, err
	}
	if host, there := s.peerSchedds.RemoteHost(req.GetId()); there {
		return s.peerSchedds.WhyPeer(ctx, host, req)
	}
	return s.ExplainJob(ctx, req.GetId(), who)
}

// ExplainJob says it of a job of this schedd.
func (s *Service) ExplainJob(ctx context.Context, id string, who queue.CallerIdentity) (*wire.WhyReply, error) {
	reply := &wire.WhyReply{}
	s.awaitExplanation(ctx, id, who)
	var past queue.TaskSelector
	var err error
	if aerr := s.loop.CallLoop(ctx, func(time.Time) { past, err = s.fillExplanation(reply, id, who) }); aerr != nil {
		return nil, aerr
	}
	if err != nil || past.Job.IsZero() {
		return reply, err
	}
	if reply.Status, err = s.historyStatus(past); err != nil {
		return nil, err
	}
	reply.Summary = "it has ended"
	if reply.Status.Counts[roost.Removed.String()] > 0 {
		reply.Summary = "it was removed"
	}
	if reply.Status.Reason != "" {
		reply.Summary += ": " + reply.Status.Reason
	}
	return reply, nil
}

// historyStatus tells how a job that has left the queue ended, or the first of some tasks
// of it.
func (v *jobView) historyStatus(t queue.TaskSelector) (*wire.JobStatus, error) {
	past, _, err := v.history.Job(t.Job.Seq)
	if err != nil || t.Job.Host != v.node.Name {
		return nil, v.mustBeQueued(t)
	}
	if t, err = past.LocateTasks(t); err != nil {
		return nil, err
	}
	if len(t.Ranges) > 0 {
		st, _ := past.TaskStatus(t.Job.Task(t.Ranges[0].First))
		return v.singleTaskRow(&st, ""), nil
	}
	st, _ := past.Status(t.Job.Seq)
	return v.statusRow(&st, ""), nil
}

// whyTimeout is how long a question about a job waits for the negotiator's current
// answer. After that the schedd uses the negotiator's last answer.
const whyTimeout = 200 * time.Millisecond

// awaitExplanation asks the negotiator why a job waits, if the job does wait. It returns
// when the negotiator has answered or will not answer soon.
func (s *Service) awaitExplanation(ctx context.Context, id string, who queue.CallerIdentity) {
	answered := make(chan struct{})
	if s.loop.CallLoop(ctx, func(time.Time) {
		found := s.wordTargets(id, selectionFilter{}, who, false)
		if len(found) != 1 || found[0].err != nil || !s.requestExplanation(found[0].TaskSelector, answered) {
			close(answered)
		}
	}) != nil {
		return
	}
	patience := time.NewTimer(whyTimeout)
	defer patience.Stop()
	select {
	case <-answered:
	case <-patience.C:
	case <-ctx.Done():
	}
}

// requestExplanation sends the question about a waiting job to the negotiator. The
// channel answered is closed when the answer has arrived. It reports whether there was
// anything to ask.
func (v *jobView) requestExplanation(t queue.TaskSelector, answered chan struct{}) bool {
	st, ok := v.queue.Status(t.Job.Seq)
	if ok && len(t.Ranges) > 0 {
		st, ok = v.queue.TaskStatus(t.Job.Task(t.Ranges[0].First))
	}
	if !ok || t.Job.Host != v.node.Name || !v.leader.IsConnected() || st.Task == nil && st.Counts[roost.Idle] == 0 ||
		st.Task != nil && st.Task.State != roost.Idle {
		return false
	}
	if r, ok := v.queue.Request(st.Request); ok && r.Inside.Alloc != 0 {
		return false // the negotiator does not know it
	}
	return v.leader.AddWaiter(st.Request, answered)
}

// fillExplanation fills a reply from the queue. A job that is not there is returned.
func (v *jobView) fillExplanation(reply *wire.WhyReply, id string,
	who queue.CallerIdentity) (missing queue.TaskSelector, err error) {
	found := v.wordTargets(id, selectionFilter{}, who, false)
	if len(found) != 1 || found[0].err != nil {
		if len(found) == 1 {
			return queue.TaskSelector{}, found[0].err
		}
		return queue.TaskSelector{}, fmt.Errorf("%q: %w: it names several jobs; ask about one", id, roost.Invalid)
	}
	t := found[0].TaskSelector
	st, ok := v.queue.Status(t.Job.Seq)
	if !ok || t.Job.Host != v.node.Name {
		return t, nil
	}
	reply.Status = v.statusRow(&st, "")
	if len(t.Ranges) > 0 {
		if st, ok = v.queue.TaskStatus(t.Job.Task(t.Ranges[0].First)); !ok {
			return queue.TaskSelector{}, fmt.Errorf("%v: %w: the job has no such task", t, roost.NotFound)
		}
		reply.Status = v.singleTaskRow(&st, "")
	}
	v.explainState(reply, &st)
	v.explainEpochs(reply)
	return queue.TaskSelector{}, nil
}

// explainState chooses the words for the state of a job or task.
func (v *jobView) explainState(reply *wire.WhyReply, st *queue.JobStatus) {
	state := mostLikelyState(st)
	silence, _ := v.nodeSilence(st)
	switch {
	case state == roost.Idle:
		v.explainIdle(reply, st)
		v.explainRunNow(reply, st)
		reply.Summary += earlierEnd(st.Task)
	case state.IsActive() && silence != "":
		reply.Summary = "there is " + silence
		reply.Advice = append(reply.Advice, "see what became of it with: roost nodes")
	case state == roost.Suspended && st.Task != nil:
		reply.Summary = "it is suspended on " + st.Task.Node + ": " + st.Reason
		if strings.HasPrefix(st.Task.SuspendedBy, "owner") {
			reply.Advice = append(reply.Advice,
				"it goes on there when the machine is lent again, or else leaves, with a checkpoint if its job has "+
					"them, and is started elsewhere")
		}
	case state.IsActive():
		v.explainActive(reply, st, state)
	case state == roost.Completed && st.Reason != "":
		reply.Summary = "it has ended: " + st.Reason
	case state == roost.Completed:
		reply.Summary = "it has ended"
	case state == roost.Removed:
		reply.Summary = strings.TrimSuffix("it was removed: "+st.Reason, ": ")
	case restartText(st, v.loop.Now()) != "":
		reply.Summary = "it " + restartText(st, v.loop.Now()) + st.Reason
		reply.Advice = append(reply.Advice, "see its output with: roost logs "+st.Job.String())
	case st.Reason != "":
		reply.Summary = fmt.Sprintf("it is %v: %s", state, st.Reason)
	default:
		reply.Summary = fmt.Sprintf("it is %v", state)
	}
	v.explainService(reply, st)
	if state == roost.Held {
		reply.Advice = append(reply.Advice, fmt.Sprintf("let it go on with: roost release %d", st.Job.Seq))
	}
}

// earlierEnd is what ended the last attempt of a task that waits again. Empty if the
// task itself did.
func earlierEnd(t *queue.TaskStatus) string {
	if t == nil || t.Exit == nil {
		return ""
	}
	switch t.Exit.Cause {
	case queue.CausePreemption:
		return "; before, it was " + t.Exit.Describe()
	case queue.CauseMachine, queue.CauseLaunch, queue.CauseRestore:
		switch {
		case t.Exit.Reason == "":
		case t.Node == "":
			return "; before, it could not run: " + t.Exit.Reason
		default:
			return "; before, it could not run on " + t.Node + ": " + t.Exit.Reason
		}
	}
	return ""
}

// explainActive chooses the words for a task that runs, or is about to.
func (v *jobView) explainActive(reply *wire.WhyReply, st *queue.JobStatus, state roost.TaskState) {
	reply.Summary = "it runs"
	if st.Task != nil && st.Task.Node != "" {
		reply.Summary += " on " + st.Task.Node
		if pool := document.PoolOfNode(st.Task.Node); pool != "" {
			reply.Summary += ", a machine of the pool " + pool + ", because it found no room in this one"
		}
	}
	if st.Task != nil && st.Task.Resize != "" {
		reply.Summary += "; " + st.Task.Resize
	}
	if st.Task != nil && state == roost.Starting {
		if there := v.nodeWait(st); there != "" {
			reply.Summary = "it " + there
			reply.Advice = append(reply.Advice, "it is moved if another machine can start it at once")
		} else if waitsForHook(v, st) {
			reply.Summary = "it is to start on " + st.Task.Node + ", and waits for the start hook of the site"
			reply.Advice = append(reply.Advice, "it starts, is held or is refused as the hook says; an administrator "+
				"finds it in job_hooks of the node file")
		} else if what := v.fileWait(st); what != "" {
			reply.Summary = "it is to start on " + st.Task.Node + ", and waits for its " + what
		}
	}
	if st.Task == nil && st.Counts[roost.Idle] > 0 {
		v.explainIdle(reply, st)
	}
	if ranks := v.rankWait(st); ranks != "" {
		reply.Summary += "; " + ranks
		reply.Advice = append(reply.Advice, "the gang is ended if they do not come within its start_timeout; roost "+
			"logs shows what they print")
	}
}

// waitsForHook reports whether a task waits for the start hook of the site.
func waitsForHook(v *jobView, st *queue.JobStatus) bool {
	return v.startHookWait != nil &&
		v.startHookWait(roost.AttemptID{Task: st.Job.Task(st.Task.Index), Attempt: st.Task.Attempt})
}

// explainEpochs adds what is saved of a gang whose tasks save their state together, and
// is not final.
func (v *jobView) explainEpochs(reply *wire.WhyReply) {
	all := reply.Status.GetEpochs()
	if len(all) == 0 || document.IsFinal(reply.Status) {
		return
	}
	g := document.GangEpochOf(all[0])
	text := g.Text(document.SpanText(v.loop.Now().Sub(time.Unix(0, all[0].GetTime()))) + " ago")
	if len(all) > 1 {
		text = fmt.Sprintf("of gang %d %s", g.Gang, text)
		reply.Advice = append(reply.Advice, "see what each of its gangs has saved with: roost show "+
			reply.Status.GetId())
	}
	reply.Summary += "; " + text
}

// rankWait says which ranks an MPI program waits for; empty for none.
func (v *jobView) rankWait(st *queue.JobStatus) string {
	one := st
	if st.Task == nil {
		first, ok := v.queue.TaskStatus(st.Job.Task(0))
		if !ok || first.Task == nil {
			return ""
		}
		one = &first
	}
	a := roost.AttemptID{Task: st.Job.Task(one.Task.Index), Attempt: one.Task.Attempt}
	if queue.RanksOfAttempt(v.queue, a) == nil {
		return ""
	}
	return v.loop.RankWait(a)
}

// fileWait says for which files a task that is to start on a machine waits there; empty
// if for none.
func (v *jobView) fileWait(st *queue.JobStatus) string {
	var all []string
	attempt := roost.AttemptID{Task: st.Job.Task(st.Task.Index), Attempt: st.Task.Attempt}
	for _, m := range v.transfers.Progress(attempt) {
		all = append(all, document.TransferText(m))
	}
	return strings.Join(all, "; ")
}

// explainRunNow adds that an operator asked for a job to run now, or that this was
// denied.
func (v *jobView) explainRunNow(reply *wire.WhyReply, st *queue.JobStatus) {
	switch r := st.RunNow; {
	case r.Pending > 0:
		reply.Summary += fmt.Sprintf("; an operator (%s) asked for it to run now, before all others", r.By)
		if len(r.Hosts) > 0 {
			reply.Summary += ", on " + strings.Join(r.Hosts, " or ")
		}
	case r.Denied != "":
		reply.Summary += "; an operator asked for it to run now, which was denied: " + r.Denied
	}
}

// mostLikelyState is the state that a question about a job is most likely about. Waiting
// tasks come before running tasks, and those before ended tasks.
func mostLikelyState(st *queue.JobStatus) roost.TaskState {
	if st.Task != nil {
		return st.Task.State
	}
	for _, state := range []roost.TaskState{roost.Idle, roost.Held, roost.Blocked, roost.Starting, roost.Running,
		roost.Exiting, roost.Removed} {
		if st.Counts[state] > 0 {
			return state
		}
	}
	return roost.Completed
}

func (v *jobView) explainIdle(reply *wire.WhyReply, st *queue.JobStatus) {
	if v.explainInside(reply, st) {
		return
	}
	if v.elsewhere != nil {
		defer func() { reply.Advice = append(reply.Advice, v.elsewhere(st.Request)...) }()
	}
	if !v.leader.IsConnected() {
		reply.Summary = "it waits for the negotiator, which cannot be reached: " + v.leader.LeaderStatus()
		reply.Advice = append(reply.Advice, "see what is wrong with: roost doctor")
		return
	}
	if v.queue.WaitsForEarlierGang(st.Request) {
		reply.Summary = st.Reason
		return
	}
	if e := v.leader.Explanation(st.Request); e != nil {
		reply.Explanation, reply.Summary, reply.Advice = e, e.GetSummary(),
			append(reply.Advice, v.negotiatorAdvice(e)...)
		return
	}
	reply.Summary = "it is ready, and no machine was offered yet"
	if r, ok := v.queue.Request(st.Request); ok && r.Ready == 0 {
		reply.Summary = "as many of the job's tasks run as it allows at once"
	}
}

// sameFilesCondition is a condition that the queue adds to a job's Requirements. It
// applies to a job whose files are not to be sent.
const sameFilesCondition = "TARGET." + roost.AttrFileSystemDomain + " == MY." + roost.AttrFileSystemDomain

// negotiatorAdvice returns the negotiator's advice, except for the condition that the
// user did not write. In its place it names the setting that caused the condition.
func (v *jobView) negotiatorAdvice(e *wire.Explanation) (all []string) {
	for _, r := range e.GetReasons() {
		if strings.Contains(r.GetText(), sameFilesCondition) {
			all = append(all, fmt.Sprintf("transfer = \"never\" lets it run only where the files of %s are seen "+
				"(file_system_domain %q); "+
				"with transfer = \"auto\" they are sent", v.node.Name, v.node.FileSystemDomain))
			break
		}
	}
	for _, a := range e.GetAdvice() {
		if !strings.Contains(a, sameFilesCondition) {
			all = append(all, a)
		}
	}
	return all
}
