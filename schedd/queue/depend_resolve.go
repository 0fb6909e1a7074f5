package queue

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/classad"
	"github.com/roost-batch/roost/schedd/queue/eventlog"
)

// What a job says of others is looked into when it is submitted: what has come already is
// left out, and what could never come is an error. A job of qsub that asks for something
// of a job that has ended otherwise is taken, and dropped at once: clients expect its id
// (OpenPBS).

// dependencyResolver is a submission whose dependencies are being resolved.
type dependencyResolver struct {
	*jobTable
	caller    CallerIdentity
	jobNumber uint64
	part      int
	earlier   []eventlog.JobEvent // the jobs of the same submission before it
	limits    SubmitLimits
	fromQsub  bool // it is one of qsub
	isArray   bool // users know its tasks by indexes
	now       time.Time
}

// resolveAll resolves DependsOn.
func (r *dependencyResolver) resolveAll(ad *classad.Ad) ([]eventlog.JobDependency, error) {
	if _, ok := ad.Lookup(roost.AttrDependsOn); !ok {
		return nil, nil
	}
	list, ok := ad.Strings(roost.AttrDependsOn)
	if !ok {
		return nil, fmt.Errorf("attribute %s: %w: a list of strings such as \"afterok:12\" is wanted",
			roost.AttrDependsOn, roost.Invalid)
	}
	var waits []eventlog.JobDependency
	alternatives, isMet := 0, false
	for _, text := range list {
		w, needed, err := r.resolveOne(text)
		if err != nil {
			return nil, fmt.Errorf("dependency %q: %w", text, err)
		}
		if w.Alternative {
			alternatives++
			isMet = isMet || !needed
		}
		if needed && !slices.Contains(waits, w) {
			waits = append(waits, w)
		}
	}
	if isMet { // one of them is enough
		waits = slices.DeleteFunc(waits, func(w eventlog.JobDependency) bool { return w.Alternative })
	} else if err := r.checkAlternatives(waits, alternatives); err != nil {
		return nil, err
	}
	return waits, r.checkCycles(waits)
}

// checkAlternatives refuses alternatives of which none can come any more, but from qsub,
// whose job is taken and dropped.
func (r *dependencyResolver) checkAlternatives(waits []eventlog.JobDependency, alternatives int) error {
	for _, w := range waits {
		if w.Alternative && w.Type != eventlog.Never {
			return nil
		}
	}
	if alternatives == 0 || r.fromQsub {
		return nil
	}
	return fmt.Errorf("dependencies: %w: the jobs that this one could run after have all ended otherwise already",
		roost.Conflict)
}

// resolveOne resolves one dependency, and says whether anything of it is left to wait
// for.
func (r *dependencyResolver) resolveOne(text string) (w eventlog.JobDependency, needed bool, err error) {
	w, job, err := parseDependency(text)
	if err != nil || w.Type == eventlog.OnCount || w.Type == eventlog.SyncCount {
		return w, true, err
	}
	if back, ok := strings.CutPrefix(job, "@"); ok {
		n, err := strconv.Atoi(back)
		if err != nil || n < 0 || n >= r.part || !w.Type.Blocks() {
			return w, false, fmt.Errorf("%w: only an earlier job of the same submission can be meant so", roost.Invalid)
		}
		w.Job = r.earlier[n].Job
		return w, true, r.checkIsService(w)
	}
	w.Type = r.typeFor(w)
	id, err := roost.ParseJobID(job, r.host)
	switch {
	case err != nil:
		return w, false, fmt.Errorf("%w: it names no job: %w", roost.Invalid, err)
	case !sameHost(id.Host, r.host):
		return w, false, fmt.Errorf("%w: that job is in the queue of %s, and a job can stand to those of its own "+
			"queue only: submit it there", roost.Invalid, id.Host)
	}
	w.Job = id.Seq
	if t, ok := taskOfNumber(r.jobTable, id.Seq); ok && r.jobs[id.Seq] == nil {
		w.Job = t.Job.Seq
	}
	if o := r.jobs[w.Job]; w.Type == eventlog.AfterCorr && o != nil && !o.spec.Array {
		w.Type = eventlog.AfterOK
	}
	if r.jobs[w.Job] == nil || r.jobs[w.Job].isFinal() {
		return r.resolveEnded(w)
	}
	if w.Type.MirroredType() != 0 {
		return w, true, r.checkPredecessor(w)
	}
	if j := r.jobs[w.Job]; w.Type == eventlog.RunOne && !r.caller.Admin &&
		!r.caller.Owns(j.submission.owner, j.submission.uid) {
		return w, false, fmt.Errorf("%w: it belongs to %s", roost.PermissionDenied, j.submission.owner)
	}
	if tasks := len(r.jobs[w.Job].state); w.Count > tasks {
		return w, false, fmt.Errorf("%w: that job has %d tasks", roost.Conflict, tasks)
	}
	if err := r.checkIsService(w); err != nil {
		return w, false, err
	}
	met, dead, err := r.dependencyState(w, r.limits)
	if dead {
		return r.resolveImpossible(w)
	}
	return w, !met || dueAfter(w, r.jobs[w.Job]) > r.now.UnixNano(), err
}

// typeFor is the type of a dependency for a job that may be no array. Without indexes it
// waits for all tasks.
func (r *dependencyResolver) typeFor(w eventlog.JobDependency) eventlog.DependencyType {
	if w.Type == eventlog.AfterCorr && !r.isArray {
		return eventlog.AfterOK
	}
	return w.Type
}

// dueAfter is when the delay of a dependency is over. It is 0 when there is none, or
// nobody knows any more.
func dueAfter(w eventlog.JobDependency, other *job) int64 {
	switch {
	case w.Due != 0 || w.Delay == 0:
		return w.Due
	case other == nil || other.firstStarted == 0:
		return 0
	}
	return other.firstStarted + w.Delay*int64(time.Second)
}

// checkIsService checks that a job that has to become ready is a service. Another one
// never is.
func (r *dependencyResolver) checkIsService(w eventlog.JobDependency) error {
	if w.Type != eventlog.AfterReady {
		return nil
	}
	isService := false
	if j := r.jobs[w.Job]; j != nil {
		isService = j.spec.Service != nil
	}
	for _, e := range r.earlier {
		if e.Job == w.Job && e.Submission != nil {
			ad, err := classad.Parse(e.Submission.Ad)
			if err != nil {
				return err
			}
			_, isService = ad.Lookup(roost.AttrService)
		}
	}
	if !isService {
		return fmt.Errorf("%w: that job is no service, and is never ready: wait for its start with after, or give it "+
			"a service block", roost.Invalid)
	}
	return nil
}

// sameHost reports whether two names are of one host, where one of them may be short.
func sameHost(a, b string) bool {
	short, _, dotted := strings.Cut(a, ".")
	other, _, too := strings.Cut(b, ".")
	return a == b || short == other && dotted != too
}

// resolveEnded resolves a dependency on a job that has ended, as it ended.
func (r *dependencyResolver) resolveEnded(w eventlog.JobDependency) (eventlog.JobDependency, bool, error) {
	met, dead, err := r.dependencyState(eventlog.JobDependency{Type: eventlog.AfterAny, Job: w.Job, Count: 0}, r.limits)
	if err != nil || !met && !dead {
		return w, false, err
	}
	if w.Type.Blocks() && w.Type != eventlog.SyncWith {
		if met, _, err = r.dependencyState(w, r.limits); err != nil || met {
			return w, dueAfter(w, r.jobs[w.Job]) > r.now.UnixNano(), err
		}
	}
	if w.Type == eventlog.AfterCorr && r.jobs[w.Job] != nil {
		return w, true, nil // some of its tasks may have succeeded
	}
	return r.resolveImpossible(w)
}

// resolveImpossible is for what cannot come any more.
func (r *dependencyResolver) resolveImpossible(w eventlog.JobDependency) (eventlog.JobDependency, bool, error) {
	if r.fromQsub || w.Alternative {
		return eventlog.JobDependency{Type: eventlog.Never, Job: w.Job, Alternative: w.Alternative}, true, nil
	}
	return w, false, fmt.Errorf("%w: that job has ended otherwise already, so this one would never run", roost.Conflict)
}

// checkPredecessor checks whether a job may come before another. That one has to wait for
// such jobs, and belong to the same user.
func (r *dependencyResolver) checkPredecessor(w eventlog.JobDependency) error {
	j := r.jobs[w.Job]
	if !r.caller.Admin && !r.caller.Owns(j.submission.owner, j.submission.uid) {
		return fmt.Errorf("%w: it belongs to %s", roost.PermissionDenied, j.submission.owner)
	}
	if j.expectedBefore == 0 {
		return fmt.Errorf("%w: that job does not wait for any that are to come: submit it with on:1", roost.Conflict)
	}
	return nil
}

// checkCycles refuses jobs that would wait for themselves, or for what their own start or
// end rules out.
func (r *dependencyResolver) checkCycles(waits []eventlog.JobDependency) error {
	before := r.precedingJobs(waits)
	for _, w := range waits {
		other := roost.JobID{Seq: w.Job, Host: r.host}
		switch {
		case w.Type.Blocks() && before[r.jobNumber]: // only a job that is altered can be known to others
			return fmt.Errorf("dependency \"%s\": %w: the job would wait for itself", dependencyText(w, r.host),
				roost.Conflict)
		case w.Type.MirroredType() != 0 && before[w.Job]:
			return fmt.Errorf("dependency \"%s\": %w: %v is to end before this job, too, and it would wait for itself",
				dependencyText(w, r.host), roost.Conflict, other)
		case w.Type == eventlog.RunOne && before[w.Job]:
			return fmt.Errorf("dependency \"%s\": %w: this job waits for %v, which is not to run if this one does",
				dependencyText(w, r.host), roost.Conflict, other)
		case w.Type == eventlog.AfterOK && w.Count == 0 && !w.Alternative && slices.Contains(waits,
			eventlog.JobDependency{Type: eventlog.AfterNotOK, Job: w.Job, Count: 0}):
			return fmt.Errorf("dependency \"%s\": %w: %v cannot succeed and fail", dependencyText(w, r.host),
				roost.Conflict, other)
		case w.Type == eventlog.RunOne && slices.ContainsFunc(waits, func(o eventlog.JobDependency) bool {
			return o.Job == w.Job && o.Type.MirroredType() != 0
		}):
			return fmt.Errorf("dependency \"%s\": %w: %v waits for this job, and is not to run if this one does",
				dependencyText(w, r.host), roost.Conflict, other)
		}
	}
	return nil
}

// precedingJobs collects the jobs that a new job waits for, directly or through others.
func (r *dependencyResolver) precedingJobs(waits []eventlog.JobDependency) map[uint64]bool {
	seen := map[uint64]bool{}
	var visit func(list []eventlog.JobDependency)
	visit = func(list []eventlog.JobDependency) {
		for _, w := range list {
			if !w.Type.Blocks() || seen[w.Job] {
				continue
			}
			seen[w.Job] = true
			if j := r.jobs[w.Job]; j != nil {
				visit(j.dependencies)
			}
			for _, e := range r.earlier {
				if e.Job == w.Job {
					visit(e.Submission.Dependencies)
				}
			}
		}
	}
	visit(waits)
	return seen
}

// dependencyState says how a dependency stands: met, or dead, or neither yet.
func (q *jobTable) dependencyState(w eventlog.JobDependency, limits SubmitLimits) (met, dead bool, err error) {
	j := q.jobs[w.Job]
	switch {
	case w.Due != 0:
		return true, false, nil
	case j == nil:
		return pastDependencyState(w, limits)
	}
	all, counts, failed := j.userCounts()
	done, gone, active := counts[roost.Completed], counts[roost.Removed], int(j.active)
	if len(j.gangs.userView.byGang) > 0 {
		active = counts[roost.Starting] + counts[roost.Running] + counts[roost.Suspended]
	}
	least := w.Count
	if least == eventlog.EveryTask {
		least = all
	}
	final := j.isFinal()
	reach := func(now, open int) (met, dead bool, err error) { return now >= least, now+open < least, nil }
	open := all - done - gone
	switch {
	case w.Type == eventlog.Never:
		return false, true, nil
	case w.Type == eventlog.SyncWith:
		return j.expectedSync == 0, j.expectedSync > 0 && final, nil
	case w.Count != 0 && w.Type == eventlog.After:
		return reach(active+done, open-active)
	case w.Count != 0 && w.Type == eventlog.AfterOK:
		return reach(done-failed, open)
	case w.Count != 0 && w.Type == eventlog.AfterNotOK:
		return reach(failed+gone, open)
	case w.Count != 0:
		return reach(done+gone, open)
	case w.Type == eventlog.After:
		return j.hasRun(), final && !j.hasRun(), nil
	case w.Type == eventlog.AfterAny:
		return final, false, nil
	case w.Type == eventlog.AfterReady:
		wanted := all - done - gone
		return wanted > 0 && int(j.serviceStates[roost.ServiceReady]) >= wanted, final, nil
	}
	ok := done == all && failed == 0
	switch w.Type {
	case eventlog.AfterOK:
		return final && ok, final && !ok, nil
	case eventlog.AfterCorr: // what its tasks come to, is theirs
		return final && ok, false, nil
	}
	return final && !ok, final && ok, nil
}

// pastDependencyState is resolve for a job that has left the queue.
func pastDependencyState(w eventlog.JobDependency, limits SubmitLimits) (met, dead bool, err error) {
	none := fmt.Errorf("%w: there is no job %d", roost.NotFound, w.Job)
	if limits.PastJob == nil {
		return false, false, none
	}
	past, ok, known := limits.PastJob(w.Job)
	switch {
	case !known || !past:
		return false, false, none
	case w.Type == eventlog.After || w.Type == eventlog.AfterAny:
		return true, false, nil
	case w.Type == eventlog.AfterOK || w.Type == eventlog.AfterCorr:
		return ok, !ok, nil
	case w.Type == eventlog.AfterNotOK:
		return !ok, ok, nil
	}
	return false, true, nil
}
