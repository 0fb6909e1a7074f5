package api

import (
	"fmt"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/wire"
	"github.com/roost-batch/roost/schedd/dispatch"
	"github.com/roost-batch/roost/schedd/queue"
)

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
				Disk: max(most.Disk, left.Disk), GPUs: max(most.GPUs, left.GPUs)}
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
