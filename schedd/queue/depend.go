package queue

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/classad"
)

// What a job says of others is looked into when it is submitted: what has come already is left out, and what could never come is an error. A job of
// qsub that asks for something of a job that has ended otherwise is taken, and dropped at once: clients expect its id (OpenPBS).

// relating is a submission whose dependencies are being resolved.
type relating struct {
	*Queue
	who     Submitter
	seq     uint64
	part    int
	earlier []Event // the jobs of the same submission before it
	limits  Limits
	lenient bool // it is one of qsub
}

// waits resolves DependsOn.
func (r *relating) waits(ad *classad.Ad) ([]Wait, error) {
	if _, ok := ad.Lookup(roost.AttrDependsOn); !ok {
		return nil, nil
	}
	list, ok := ad.Strings(roost.AttrDependsOn)
	if !ok {
		return nil, fmt.Errorf("attribute %s: %w: a list of strings such as \"afterok:12\" is wanted", roost.AttrDependsOn, roost.Invalid)
	}
	var waits []Wait
	for _, text := range list {
		w, needed, err := r.wait(text)
		if err != nil {
			return nil, fmt.Errorf("dependency %q: %w", text, err)
		}
		if needed && !slices.Contains(waits, w) {
			waits = append(waits, w)
		}
	}
	return waits, r.possible(waits)
}

// wait resolves one dependency, and says whether anything of it is left to wait for.
func (r *relating) wait(text string) (w Wait, needed bool, err error) {
	w, job, err := parseWait(text)
	if err != nil || w.Type == Ons || w.Type == SyncCount {
		return w, true, err
	}
	if back, ok := strings.CutPrefix(job, "@"); ok {
		n, err := strconv.Atoi(back)
		if err != nil || n < 0 || n >= r.part || !w.Type.holds() {
			return w, false, fmt.Errorf("%w: only an earlier job of the same submission can be meant so", roost.Invalid)
		}
		w.Job = r.seq - uint64(r.part-n)
		return w, true, nil
	}
	id, err := roost.ParseJobID(job, r.host)
	switch {
	case err != nil:
		return w, false, fmt.Errorf("%w: it names no job: %w", roost.Invalid, err)
	case !sameHost(id.Host, r.host):
		return w, false, fmt.Errorf("%w: that job is in the queue of %s, and a job can stand to those of its own queue only: submit it there", roost.Invalid, id.Host)
	}
	w.Job = id.Seq
	if r.jobs[w.Job] == nil || r.jobs[w.Job].final() {
		return r.ended(w)
	}
	if w.Type.mirror() != 0 {
		return w, true, r.mayPrecede(w)
	}
	if j := r.jobs[w.Job]; w.Type == RunOne && j.sub.UID != r.who.UID && !r.who.Admin {
		return w, false, fmt.Errorf("%w: it belongs to %s", roost.PermissionDenied, j.sub.Owner)
	}
	if tasks := len(r.jobs[w.Job].state); w.Count > tasks {
		return w, false, fmt.Errorf("%w: that job has %d tasks", roost.Conflict, tasks)
	}
	met, dead, err := r.resolve(w, r.limits)
	if dead {
		return r.hopeless(w)
	}
	return w, !met, err
}

// sameHost reports whether two names are of one host, where one of them may be short.
func sameHost(a, b string) bool {
	short, _, dotted := strings.Cut(a, ".")
	other, _, too := strings.Cut(b, ".")
	return a == b || short == other && dotted != too
}

// ended resolves a dependency on a job that has ended, as it ended.
func (r *relating) ended(w Wait) (Wait, bool, error) {
	met, dead, err := r.resolve(Wait{AfterAny, w.Job, 0}, r.limits)
	if err != nil || !met && !dead {
		return w, false, err
	}
	if w.Type.holds() && w.Type != SyncWith {
		if met, _, err = r.resolve(w, r.limits); err != nil || met {
			return w, false, err
		}
	}
	return r.hopeless(w)
}

// hopeless is for what cannot come any more.
func (r *relating) hopeless(w Wait) (Wait, bool, error) {
	if r.lenient {
		return Wait{Type: Never, Job: w.Job}, true, nil
	}
	return w, false, fmt.Errorf("%w: that job has ended otherwise already, so this one would never run", roost.Conflict)
}

// mayPrecede checks whether a job may come before another: that one has to wait for such jobs, and belong to the same user.
func (r *relating) mayPrecede(w Wait) error {
	j := r.jobs[w.Job]
	if j.sub.UID != r.who.UID && !r.who.Admin {
		return fmt.Errorf("%w: it belongs to %s", roost.PermissionDenied, j.sub.Owner)
	}
	if j.on == 0 {
		return fmt.Errorf("%w: that job does not wait for any that are to come: submit it with on:1", roost.Conflict)
	}
	return nil
}

// possible refuses jobs that would wait for themselves, or for what their own start or end rules out.
func (r *relating) possible(waits []Wait) error {
	before := r.preceding(waits)
	for _, w := range waits {
		other := roost.JobID{Seq: w.Job, Host: r.host}
		switch {
		case w.Type.holds() && before[r.seq]: // only a job that is altered can be known to others
			return fmt.Errorf("dependency \"%s\": %w: the job would wait for itself", w.text(r.host), roost.Conflict)
		case w.Type.mirror() != 0 && before[w.Job]:
			return fmt.Errorf("dependency \"%s\": %w: %v is to end before this job, too, and it would wait for itself", w.text(r.host), roost.Conflict, other)
		case w.Type == RunOne && before[w.Job]:
			return fmt.Errorf("dependency \"%s\": %w: this job waits for %v, which is not to run if this one does", w.text(r.host), roost.Conflict, other)
		case w.Type == AfterOK && w.Count == 0 && slices.Contains(waits, Wait{AfterNotOK, w.Job, 0}):
			return fmt.Errorf("dependency \"%s\": %w: %v cannot succeed and fail", w.text(r.host), roost.Conflict, other)
		case w.Type == RunOne && slices.ContainsFunc(waits, func(o Wait) bool { return o.Job == w.Job && o.Type.mirror() != 0 }):
			return fmt.Errorf("dependency \"%s\": %w: %v waits for this job, and is not to run if this one does", w.text(r.host), roost.Conflict, other)
		}
	}
	return nil
}

// preceding collects the jobs that a new one with these waits waits for, and that those wait for in their turn.
func (r *relating) preceding(waits []Wait) map[uint64]bool {
	seen := map[uint64]bool{}
	var visit func(list []Wait)
	visit = func(list []Wait) {
		for _, w := range list {
			if !w.Type.holds() || seen[w.Job] {
				continue
			}
			seen[w.Job] = true
			if j := r.jobs[w.Job]; j != nil {
				visit(j.waits)
			}
			for _, e := range r.earlier {
				if e.Job == w.Job {
					visit(e.Submission.Waits)
				}
			}
		}
	}
	visit(waits)
	return seen
}

// resolve says how a dependency stands: met, or dead, or neither yet.
func (q *Queue) resolve(w Wait, limits Limits) (met, dead bool, err error) {
	j := q.jobs[w.Job]
	if j == nil {
		return resolvePast(w, limits)
	}
	all, counts, failed := j.tally()
	done, gone, active := counts[roost.Completed], counts[roost.Removed], j.active
	if len(j.gangs.shown.of) > 0 {
		active = counts[roost.Starting] + counts[roost.Running] + counts[roost.Suspended]
	}
	least := w.Count
	if least == every {
		least = all
	}
	final := j.final()
	reach := func(now, open int) (met, dead bool, err error) { return now >= least, now+open < least, nil }
	open := all - done - gone
	switch {
	case w.Type == Never:
		return false, true, nil
	case w.Type == SyncWith:
		return j.sync == 0, j.sync > 0 && final, nil
	case w.Count != 0 && w.Type == After:
		return reach(active+done, open-active)
	case w.Count != 0 && w.Type == AfterOK:
		return reach(done-failed, open)
	case w.Count != 0 && w.Type == AfterNotOK:
		return reach(failed+gone, open)
	case w.Count != 0:
		return reach(done+gone, open)
	case w.Type == After:
		return j.ran(), final && !j.ran(), nil
	case w.Type == AfterAny:
		return final, false, nil
	}
	ok := done == all && failed == 0
	if w.Type == AfterOK {
		return final && ok, final && !ok, nil
	}
	return final && !ok, final && ok, nil
}

// resolvePast is resolve for a job that has left the queue.
func resolvePast(w Wait, limits Limits) (met, dead bool, err error) {
	none := fmt.Errorf("%w: there is no job %d", roost.NotFound, w.Job)
	if limits.Past == nil {
		return false, false, none
	}
	past, ok, known := limits.Past(w.Job)
	switch {
	case !known || !past:
		return false, false, none
	case w.Type == After || w.Type == AfterAny:
		return true, false, nil
	case w.Type == AfterOK:
		return ok, !ok, nil
	case w.Type == AfterNotOK:
		return !ok, ok, nil
	}
	return false, true, nil
}
