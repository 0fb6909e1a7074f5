package queue

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/classad"
	"github.com/roost-batch/roost/schedd/queue/eventlog"
	"github.com/roost-batch/roost/schedd/queue/jobad"
)

// allocResolver checks where a job of a submission is to run.
type allocResolver struct {
	*jobTable
	caller  CallerIdentity
	part    int                 // place of the job in its submission
	earlier []eventlog.JobEvent // the jobs of the same submission before it
}

// findSet returns the ad text, the number of tasks and the id of the alloc set that a job
// names. "@0" is the first job of the same submission.
func (r *allocResolver) findSet(text string) (spec *jobad.JobSpec, tasks int, id roost.JobID, err error) {
	var back int
	if n, err := fmt.Sscanf(text, "@%d", &back); n == 1 && err == nil {
		if back < 0 || back >= r.part {
			return nil, 0, id, fmt.Errorf("%w: only an earlier job of the same submission can be meant so",
				roost.Invalid)
		}
		e := r.earlier[back]
		shared, _, err := r.specs.ReadText(e.Submission.Ad)
		if err != nil {
			return nil, 0, id, err
		}
		return &shared.JobSpec, e.Submission.Count, roost.JobID{Seq: e.Job, Host: r.host}, nil
	}
	id, err = roost.ParseJobID(text, r.host)
	switch {
	case err != nil:
		return nil, 0, id, fmt.Errorf("%w: %q names no alloc set: %w", roost.Invalid, text, err)
	case !sameHost(id.Host, r.host):
		return nil, 0, id, fmt.Errorf("%w: %v is in the queue of %s: submit the job there (--cell, --local)",
			roost.Invalid, id, id.Host)
	}
	j := r.jobs[id.Seq]
	if j == nil {
		return nil, 0, id, fmt.Errorf("%w: there is no alloc set %v: roost jobs lists those that there are",
			roost.NotFound, id)
	}
	if !r.mayUse(j) {
		return nil, 0, id, fmt.Errorf("%w: %v belongs to %s, who has not allowed that: %s allows it with roost alloc "+
			"allow %d %s", roost.PermissionDenied, id, j.submission.owner, j.submission.owner, id.Seq, r.callerName(j))
	}
	switch {
	case j.isFinal():
		return nil, 0, id, fmt.Errorf("%v: %w: it holds nothing any more: submit an alloc set anew", id, roost.Finished)
	case isLeaving(j):
		return nil, 0, id, fmt.Errorf("%v: %w: it was removed, and its last allocs end: submit an alloc set anew", id,
			roost.Finished)
	}
	return &j.spec.JobSpec, taskCount(j), roost.JobID{Seq: id.Seq, Host: r.host}, nil
}

// isLeaving reports whether no task of a job remains: those that have not ended were
// removed.
func isLeaving(j *job) bool {
	for i, s := range j.state {
		if r := j.records.Get(i); !s.IsFinal() && (r == nil || !r.RemoveWanted) {
			return false
		}
	}
	return true
}

// mayUse reports whether the caller may submit into an alloc set: its owner may, and whom
// the owner has named. A name without a node is of the submit node of the set.
func (r *allocResolver) mayUse(set *job) bool {
	if r.caller.Owns(set.submission.owner, set.submission.uid) {
		return true
	}
	node := cmp.Or(r.caller.Origin, r.caller.Host)
	return slices.ContainsFunc(set.spec.AllocUsers, func(name string) bool {
		user, at, isForeign := strings.Cut(name, "@")
		if !isForeign {
			at = set.spec.SubmitHost
		}
		return user == r.caller.User && at == node
	})
}

// callerName is the caller as the owner of an alloc set names them.
func (r *allocResolver) callerName(set *job) string {
	if node := cmp.Or(r.caller.Origin, r.caller.Host); node != set.spec.SubmitHost && node != "" {
		return r.caller.User + "@" + node
	}
	return r.caller.User
}

// resolve puts the id of the alloc set into the ad of a job that is to be inside one. It
// puts the band of the set there too, which pays for the job. It returns the set, or nil
// for a job on machines, and the number of its allocs.
func (r *allocResolver) resolve(ad *classad.Ad) (set *jobad.JobSpec, allocs int, err error) {
	if _, ok := ad.Lookup(roost.AttrInAlloc); !ok {
		return nil, 0, nil
	}
	text, ok := ad.Str(roost.AttrInAlloc)
	if !ok {
		return nil, 0, fmt.Errorf("attribute %s: %w: the id of an alloc set is wanted, as a string", roost.AttrInAlloc,
			roost.Invalid)
	}
	set, allocs, id, err := r.findSet(text)
	switch {
	case err != nil:
		return nil, 0, fmt.Errorf("attribute %s: %w", roost.AttrInAlloc, err)
	case !set.IsAlloc:
		return nil, 0, fmt.Errorf("attribute %s: %w: %v is a job, and no alloc set", roost.AttrInAlloc, roost.Invalid,
			id)
	}
	ad.SetString(roost.AttrInAlloc, id.String())
	ad.SetString(roost.AttrBand, set.Band.String())
	return set, allocs, nil
}

// checkFits refuses tasks for which their alloc is too small, or that have none. The set
// is nil for a job on machines.
func (r *allocResolver) checkFits(p *jobad.JobSpec, spec *jobad.SubmitSpec, set *jobad.JobSpec, allocs int) error {
	if set == nil {
		return nil
	}
	if !p.Inside.Anywhere && spec.Count > allocs {
		return fmt.Errorf("%w: it has %d tasks, and the alloc set %d allocs, one for each: submit at most as many, "+
			"or write place = \"any\"", roost.Invalid, spec.Count, allocs)
	}
	kinds, err := jobad.TaskKinds(spec)
	if err != nil {
		return err
	}
	for _, k := range kinds {
		if why := jobad.AllocTooSmall(k.Resources, set.Resources); why != "" {
			return fmt.Errorf("%w: a task of it does not fit into its alloc: it asks for %s: ask for less, or submit "+
				"a larger alloc set", roost.Invalid, why)
		}
	}
	return nil
}

// leavesAlloc reports whether changes take a job out of its alloc set. Its tasks then run
// on machines of their own, and are charged for.
func leavesAlloc(j *job, changes *classad.Ad) bool {
	e, ok := changes.Lookup(roost.AttrInAlloc)
	return ok && j.spec.Inside.Alloc != 0 && e.String() == "undefined"
}

// checkAllocAfter refuses a change after which a job does not fit into its alloc set. It
// also refuses one after which what is inside an alloc set does not fit.
func (q taskDecisions) checkAllocAfter(j *job, p *jobad.JobSpec, after *jobad.SubmitSpec) error {
	if set := q.jobs[p.Inside.Alloc]; set != nil {
		r := allocResolver{jobTable: q.jobTable}
		return r.checkFits(p, after, &set.spec.JobSpec, taskCount(set))
	}
	if !j.spec.IsAlloc {
		return nil
	}
	for _, seq := range q.inside[j.seq] {
		inner := q.jobs[seq]
		if inner.isFinal() {
			continue
		}
		if n := taskCount(inner); !inner.spec.Inside.Anywhere && n > after.Count {
			return fmt.Errorf("%w: job %v inside has %d tasks, and there would be %d allocs: remove the job first",
				roost.Conflict, inner.id(q.host), n, after.Count)
		}
		for _, c := range inner.classes {
			if why := jobad.AllocTooSmall(c.spec.Resources, p.Resources); c.open > 0 && why != "" {
				return fmt.Errorf("%w: job %v inside asks for %s then: remove the job first", roost.Conflict,
					inner.id(q.host), why)
			}
		}
	}
	return nil
}
