package queue

import (
	"fmt"
	"maps"
	"slices"
)

// blockedReason says what a blocked job waits for.
func (j *job) blockedReason() string {
	switch {
	case len(j.dependencies) > 1:
		return fmt.Sprintf("waits: %v job %d, and %d more", j.dependencies[0].Type, j.dependencies[0].Job,
			len(j.dependencies)-1)
	case len(j.dependencies) == 1:
		return fmt.Sprintf("waits: %v job %d", j.dependencies[0].Type, j.dependencies[0].Job)
	case j.expectedBefore > 0:
		return fmt.Sprintf("waits until %d more jobs are submitted that are to come before it", j.expectedBefore)
	case j.expectedSync > 0:
		return fmt.Sprintf("waits until %d more jobs are submitted that are to start with it", j.expectedSync)
	case j.runOneStarted:
		return fmt.Sprintf("waits: only one of it and job %d is to run", j.runOneSet[0])
	}
	return "waits for its start time"
}

// DependencyText tells what a job still says of others, and others of it, as PBS writes
// it: "afterok:12.host", "on:2", "beforeok:14.host".
func (q *dependencyIndex) DependencyText(seq uint64) (list []string) {
	j := q.jobs[seq]
	if j == nil {
		return nil
	}
	if j.expectedBefore > 0 {
		list = append(list, JobDependency{Type: OnCount, Count: j.expectedBefore}.text(q.host))
	}
	if j.expectedSync > 0 {
		list = append(list, JobDependency{Type: SyncCount, Count: j.expectedSync}.text(q.host))
	}
	for _, w := range j.dependencies {
		list = append(list, w.text(q.host))
	}
	for _, other := range slices.Sorted(slices.Values(j.runOneSet)) {
		list = append(list, JobDependency{Type: RunOne, Job: other}.text(q.host))
	}
	for _, other := range slices.Sorted(maps.Keys(q.dependents[seq])) {
		if o := q.jobs[other]; o != nil {
			for _, w := range o.dependencies {
				if mirror := w.Type.mirrorOf(); w.Job == seq && mirror != 0 {
					list = append(list, JobDependency{mirror, other, 0}.text(q.host))
				}
			}
		}
	}
	return list
}
