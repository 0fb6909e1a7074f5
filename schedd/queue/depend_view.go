package queue

import (
	"maps"
	"slices"

	"github.com/roost-batch/roost/schedd/queue/eventlog"
)

// DependencyText tells what a job still says of others, and others of it, as PBS writes
// it: "afterok:12.host", "on:2", "beforeok:14.host".
func (q *dependencyIndex) DependencyText(seq uint64) (list []string) {
	j := q.jobs[seq]
	if j == nil {
		return nil
	}
	if j.expectedBefore > 0 {
		list = append(list, dependencyText(eventlog.JobDependency{Type: eventlog.OnCount, Count: j.expectedBefore},
			q.host))
	}
	if j.expectedSync > 0 {
		list = append(list, dependencyText(eventlog.JobDependency{Type: eventlog.SyncCount, Count: j.expectedSync},
			q.host))
	}
	for _, w := range j.dependencies {
		list = append(list, dependencyText(w, q.host))
	}
	for _, other := range slices.Sorted(slices.Values(j.runOneSet)) {
		list = append(list, dependencyText(eventlog.JobDependency{Type: eventlog.RunOne, Job: other}, q.host))
	}
	for _, other := range slices.Sorted(maps.Keys(q.dependents[seq])) {
		if o := q.jobs[other]; o != nil {
			for _, w := range o.dependencies {
				if mirror := w.Type.MirrorOf(); w.Job == seq && mirror != 0 {
					list = append(list, dependencyText(eventlog.JobDependency{Type: mirror, Job: other, Count: 0},
						q.host))
				}
			}
		}
	}
	return list
}
