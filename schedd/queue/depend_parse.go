package queue

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/schedd/queue/eventlog"
)

// maxDependencies bounds how many jobs OnCount and SyncCount may ask for.
const maxDependencies = 1_000_000

func parseDependencyType(s string) (eventlog.DependencyType, bool) {
	for t, name := range eventlog.DependencyTypeNames {
		if s == name && name != "" && eventlog.DependencyType(t) != eventlog.Never {
			return eventlog.DependencyType(t), true
		}
	}
	return 0, false
}

// parseDependency reads an entry of DependsOn: "afterok:12", "12",
// "afterokarray:12[][3]", "on:2", "runone:12.host", … . The job is returned as text.
func parseDependency(text string) (w eventlog.JobDependency, job string, err error) {
	text, w.Alternative = strings.CutPrefix(text, "?")
	kind, job, found := strings.Cut(text, ":")
	if !found {
		w.Type = eventlog.AfterOK
		return w, text, nil
	}
	name, ofArray := strings.CutSuffix(kind, "array")
	if ofArray {
		name = strings.Replace(name, "afterstart", "after", 1)
		name = strings.Replace(name, "beforestart", "before", 1)
	}
	t, ok := parseDependencyType(name)
	switch {
	case !ok || ofArray && !t.AllowsCount() && t.MirroredType() == 0:
		return w, "", fmt.Errorf("%q is not a type of dependency: use one of after, afterok, afternotok, afterany, "+
			"aftercorr, afterready, before and its like, on, runone, synccount, syncwith: %w", kind, roost.Invalid)
	case t == eventlog.OnCount || t == eventlog.SyncCount:
		n, err := strconv.Atoi(job)
		if err != nil || n < 1 || n > maxDependencies {
			return w, "", fmt.Errorf("%w: %q is no number of jobs", roost.Invalid, job)
		}
		return eventlog.JobDependency{Type: t, Count: n}, "", nil
	}
	w.Type = t
	if w.Alternative && (!t.Blocks() || t == eventlog.SyncWith || t == eventlog.AfterCorr) {
		return w, "", fmt.Errorf("%w: %q cannot be one of several alternatives", roost.Invalid, kind)
	}
	if at := strings.LastIndexByte(job, '+'); at >= 0 {
		if w.Delay, err = parseDelay(t, ofArray, job[at+1:]); err != nil {
			return w, "", err
		}
		job = job[:at]
	}
	if ofArray && t.AllowsCount() {
		w.Count = eventlog.EveryTask
		job, w.Count, err = cutCount(job)
	}
	return w, job, err
}

// parseDelay reads how long a job waits after the start of another: "5m", or "5", which
// are minutes (sbatch). It is in seconds.
func parseDelay(t eventlog.DependencyType, ofArray bool, text string) (int64, error) {
	if t != eventlog.After || ofArray {
		return 0, fmt.Errorf("%w: a time can be added to the start of a job only, as in after:12+5m", roost.Invalid)
	}
	if minutes, err := strconv.ParseUint(text, 10, 32); err == nil {
		text = strconv.FormatUint(minutes, 10) + "m"
	}
	d, err := time.ParseDuration(text)
	if err != nil || d < 0 || d/time.Second > eventlog.MaxDelay {
		return 0, fmt.Errorf("%w: %q is no time to wait after a start: write it as in after:12+5m, of a year at most",
			roost.Invalid, text)
	}
	return int64(d / time.Second), nil
}

// cutCount takes "[3]" off "12[3].host" or "12[][3].host".
func cutCount(job string) (rest string, count int, err error) {
	open, end := strings.LastIndexByte(job, '['), strings.LastIndexByte(job, ']')
	if open < 0 || end != strings.IndexByte(job[open:], ']')+open || end == open+1 {
		return job, eventlog.EveryTask, nil
	}
	n, err := strconv.Atoi(job[open+1 : end])
	if err != nil || n < 1 || n > roost.MaxTasks {
		return "", 0, fmt.Errorf("%w: %q is no number of tasks", roost.Invalid, job[open+1:end])
	}
	return job[:open] + job[end+1:], n, nil
}

// dependencyText writes a dependency as PBS does.
func dependencyText(w eventlog.JobDependency, host string) string {
	switch {
	case w.Alternative:
		w.Alternative = false
		return "?" + dependencyText(w, host)
	case w.Delay != 0:
		return fmt.Sprintf("%v:%d.%s+%v", w.Type, w.Job, host, delayText(w.Delay))
	case w.Type == eventlog.OnCount || w.Type == eventlog.SyncCount:
		return fmt.Sprintf("%v:%d", w.Type, w.Count)
	case w.Count != 0:
		name := w.Type.String() + "array"
		if w.Type == eventlog.After {
			name = "afterstartarray"
		}
		count := ""
		if w.Count > 0 {
			count = fmt.Sprintf("[%d]", w.Count)
		}
		return fmt.Sprintf("%s:%d[]%s.%s", name, w.Job, count, host)
	}
	return fmt.Sprintf("%v:%d.%s", w.Type, w.Job, host)
}

// delayText writes a delay in seconds in whole minutes, if it can be.
func delayText(seconds int64) string {
	if seconds%60 == 0 {
		return fmt.Sprintf("%dm", seconds/60)
	}
	return fmt.Sprintf("%ds", seconds)
}

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

// jobWaits is what a job waits for beside machines: other jobs, and its start time.
type jobWaits struct {
	dependencies []eventlog.JobDependency // not met yet
	// jobs that are to be submitted yet: that come before this one, and that start with
	// it
	expectedBefore, expectedSync int
	runOneSet                    []uint64 // jobs of which one is run, if this one is not
	runOneStarted                bool     // one of them has begun
	// a task of it was removed while it was held or waited for something else than a
	// machine
	removedUnstarted bool
	startTimeReached bool // its start time has come
	isFlow           bool // it runs nothing itself
}

// isBlocked reports whether the job waits for something else than a machine. The task of
// a flow always does.
func (j *jobWaits) isBlocked() bool { return j.isFlow || j.isWaiting() }

// isWaiting reports whether the job waits for other jobs or for its time.
func (j *jobWaits) isWaiting() bool {
	return slices.ContainsFunc(j.dependencies, isOfWholeJob) || j.expectedBefore > 0 || j.expectedSync > 0 ||
		j.runOneStarted || !j.startTimeReached
}

// isOfWholeJob reports whether all tasks of a job wait for a dependency, and not each for
// another task.
func isOfWholeJob(w eventlog.JobDependency) bool { return w.Type != eventlog.AfterCorr }

// waitsByIndex reports whether each task waits for one of another array.
func (j *jobWaits) waitsByIndex() bool {
	return slices.ContainsFunc(j.dependencies, func(w eventlog.JobDependency) bool { return !isOfWholeJob(w) })
}

// waitsForTimeOnly reports whether the job waits for its start time, and for no other
// job.
func (j *jobWaits) waitsForTimeOnly() bool {
	return !j.startTimeReached && len(j.dependencies) == 0 && j.expectedBefore == 0 && j.expectedSync == 0 &&
		!j.runOneStarted
}

// blockedReason says what a blocked job waits for.
func blockedReason(j *job) string {
	if j.schedule != nil {
		return j.schedule.waitReason(j)
	}
	if j.flow != nil && !j.isWaiting() {
		return j.flow.reason()
	}
	return j.jobWaits.blockedReason()
}

// blockedReason says what a blocked job without a schedule waits for.
func (j *jobWaits) blockedReason() string {
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
