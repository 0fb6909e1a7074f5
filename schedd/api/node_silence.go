package api

import (
	"fmt"
	"strings"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/schedd/queue"
)

// silenceThreshold is how long a node may be away before the schedd reports it. The names
// of its services are lost after the same time. A node that restarts, or whose
// connection breaks, returns earlier.
const silenceThreshold = roost.SilentAfter

// nodeSilence describes the silence of a task's node and its consequences, as a sentence
// and in brief. Both texts are empty while there is nothing to report. As far as the
// schedd knows, the task runs, and it counts as running until its lease has ended.
func (v *jobView) nodeSilence(st *queue.JobStatus) (text, brief string) {
	if st.Task == nil || !st.Task.State.IsActive() {
		return "", ""
	}
	now, task := v.loop.BootClock(), st.Job.Task(st.Task.Index)
	node, ok := v.dispatch.NodeSilence(task)
	if !ok || now-node.Since < silenceThreshold {
		return "", ""
	}
	brief = fmt.Sprintf("no word from %s for %s", node.Node, approxDuration(now-node.Since))
	then := "the attempt is given up"
	if v.queue.RestartsWhenLost(task) {
		then = "the task is started again"
	}
	return fmt.Sprintf("%s; if it stays silent %s in %s", brief, then, approxDuration(max(node.LeaseEnd-now, 0))), brief
}

// approxDuration is a length of time as people say it: in minutes, or in seconds where it
// is short.
func approxDuration(d time.Duration) string {
	if d < 2*time.Minute {
		return d.Round(time.Second).String()
	}
	text := strings.TrimSuffix(d.Round(time.Minute).String(), "0s")
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}
