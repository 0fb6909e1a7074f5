package queue

import "slices"

// How a job stands to others goes to disk with the job: what it said itself stands in its
// submission, and the rest here.

// appendDependencies adds how the job stands to others, beyond what it said itself when
// it was submitted.
func (j *job) appendDependencies(b []byte) []byte {
	for _, w := range j.dependencies {
		if !slices.Contains(j.submission.Dependencies, w) {
			b = appendMessage(b, sAdded, w.append)
		}
	}
	b = appendNumber(appendNumber(b, sExpectedBefore, uint64(j.expectedBefore)), sExpectedSync, uint64(j.expectedSync))
	for _, other := range j.runOneSet {
		b = appendNumber(b, sRunOne, other)
	}
	b = appendBool(appendBool(b, sRunOneStarted, j.runOneStarted), sRemovedUnstarted, j.removedUnstarted)
	return appendBool(b, sDue, j.startTimeReached && j.isBlocked() && j.spec.StartAfter > 0)
}

// dependencies is how a job stands to others, beyond what it said itself.
type dependencies struct {
	added                           []JobDependency
	expectedBefore, expectedSync    int
	runOneSet                       []uint64
	runOneStarted, removedUnstarted bool
	startTimeReached                bool
}

func (r *dependencies) decodeField(f encodedField) error {
	switch f.number {
	case sAdded:
		var w JobDependency
		err := w.decode(f.bytes)
		r.added = append(r.added, w)
		return err
	case sExpectedBefore:
		r.expectedBefore = int(f.value)
	case sExpectedSync:
		r.expectedSync = int(f.value)
	case sRunOne:
		r.runOneSet = append(r.runOneSet, f.value)
	case sRunOneStarted:
		r.runOneStarted = f.value != 0
	case sRemovedUnstarted:
		r.removedUnstarted = f.value != 0
	case sDue:
		r.startTimeReached = f.value != 0
	}
	return nil
}

// restoreDependencies brings a restored job to how it stood to others.
func (q dependencyChanges) restoreDependencies(j *job, r *dependencies, free bool) {
	if !free {
		j.expectedBefore, j.expectedSync, j.runOneStarted = r.expectedBefore, r.expectedSync, r.runOneStarted
		j.dependencies = append(slices.Clip(j.dependencies), r.added...)
	}
	if r.startTimeReached {
		j.startTimeReached = true
		delete(q.startTimes, j.seq)
	}
	j.runOneSet, j.removedUnstarted = r.runOneSet, r.removedUnstarted
	for _, w := range r.added {
		q.addDependent(j, w.Job)
	}
	for _, other := range j.runOneSet {
		q.addDependent(j, other)
	}
}
