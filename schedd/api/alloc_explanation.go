package api

import (
	"fmt"
	"strings"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/wire"
	"github.com/roost-batch/roost/schedd/dispatch"
	"github.com/roost-batch/roost/schedd/queue"
)

// addAllocRow adds to a row what is inside an alloc set, or inside which one the job is.
func addAllocRow(m *wire.JobStatus, st *queue.JobStatus) {
	if a := st.Alloc; a != nil {
		m.Alloc = &wire.AllocStatus{Open: uint32(a.Open), Tasks: uint32(a.Tasks), Inside: wire.FromResources(a.Inside),
			MoreJobs: uint32(a.MoreJobs), Users: a.Users}
		for _, id := range a.Jobs {
			m.Alloc.Jobs = append(m.Alloc.Jobs, id.String())
		}
	}
	if in := st.Inside; in != nil {
		m.Inside = &wire.InsideAlloc{Set: in.Set.String(), Anywhere: in.Anywhere}
		if !in.Alloc.Job.IsZero() {
			m.Inside.Alloc = in.Alloc.String()
		}
	}
}

// checkEmpty refuses to remove an alloc set inside which there are jobs.
func (act *jobActions) checkEmpty(t queue.TaskSelector) error {
	st, ok := act.queue.Status(t.Job.Seq)
	switch {
	case !ok:
		return nil // that is said elsewhere
	case st.Alloc == nil:
		return fmt.Errorf("%v: %w: it is no alloc set; roost rm removes jobs", t, roost.Invalid)
	case len(st.Alloc.Jobs) == 0:
		return nil
	}
	var ids []string
	for _, id := range st.Alloc.Jobs {
		ids = append(ids, fmt.Sprint(id.Seq))
	}
	more := ""
	if st.Alloc.MoreJobs > 0 {
		more = fmt.Sprintf(" and %d more", st.Alloc.MoreJobs)
	}
	return fmt.Errorf("%v: %w: tasks that run inside: %d, and these jobs are there: %s%s; remove them "+
		"first, or with the set: roost alloc rm --with-tasks %d", t, roost.Conflict, st.Alloc.Tasks,
		strings.Join(ids, ", "), more, t.Job.Seq)
}

// explainInside says what a ready task waits for that is to run inside an alloc set. It
// is false for tasks that run on machines.
func (v *jobView) explainInside(reply *wire.WhyReply, st *queue.JobStatus) bool {
	r, ok := v.queue.Request(st.Request)
	if !ok || r.Inside.Alloc == 0 {
		return false
	}
	reply.Summary = "it " + st.Reason
	set := roost.JobID{Seq: r.Inside.Alloc, Host: st.Job.Host}
	all, ok := v.queue.Status(set.Seq)
	if !ok || mostLikelyState(&all).IsFinal() {
		reply.Summary = st.Reason
		reply.Advice = append(reply.Advice, "submit an alloc set anew, and the job into it")
		return true
	}
	open, refusal := 0, ""
	var most roost.Resources
	v.queue.EachTask(queue.TaskSelector{Job: set}, func(alloc queue.JobStatus) bool {
		task := set.Task(alloc.Task.Index)
		if st.Task != nil && !r.Inside.Anywhere && task.Index != st.Task.Index {
			return true
		}
		if left, ok := dispatch.AllocRoom(v.dispatch, task); ok {
			open++
			most = roost.Resources{CPU: max(most.CPU, left.CPU), Memory: max(most.Memory, left.Memory),
				Disk: max(most.Disk, left.Disk), GPUs: max(most.GPUs, left.GPUs),
				IO: most.IO.Max(left.IO)}
		}
		if why := dispatch.AllocRefusal(v.dispatch, task); why != "" {
			refusal = why
		}
		return true
	})
	switch {
	case open == 0:
		reply.Advice = append(reply.Advice, fmt.Sprintf("see why the alloc waits with: roost why %d", set.Seq))
	case refusal != "":
		reply.Summary += "; its machine said: " + refusal
	default:
		reply.Summary += fmt.Sprintf("; the most that is left of one is %v", most)
		reply.Advice = append(reply.Advice, fmt.Sprintf("see what is inside with: roost show %d", set.Seq))
	}
	return true
}
