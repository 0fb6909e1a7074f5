package queue

import (
	"fmt"

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
	if !r.caller.Owns(j.submission.owner, j.submission.uid) {
		return nil, 0, id, fmt.Errorf("%w: %v belongs to %s, who alone may submit into it", roost.PermissionDenied, id,
			j.submission.owner)
	}
	if j.isFinal() {
		return nil, 0, id, fmt.Errorf("%v: %w: it holds nothing any more: submit an alloc set anew", id, roost.Finished)
	}
	return &j.spec.JobSpec, len(j.state), roost.JobID{Seq: id.Seq, Host: r.host}, nil
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

// checkAllocAfter refuses a change after which a job does not fit into its alloc set. It
// also refuses one after which what is inside an alloc set does not fit.
func (q taskDecisions) checkAllocAfter(j *job, p *jobad.JobSpec, after *jobad.SubmitSpec) error {
	if set := q.jobs[j.spec.Inside.Alloc]; set != nil {
		r := allocResolver{jobTable: q.jobTable}
		return r.checkFits(p, after, &set.spec.JobSpec, len(set.state))
	}
	if !j.spec.IsAlloc {
		return nil
	}
	for _, seq := range q.inside[j.seq] {
		inner := q.jobs[seq]
		if inner.isFinal() {
			continue
		}
		if !inner.spec.Inside.Anywhere && len(inner.state) > after.Count {
			return fmt.Errorf("%w: job %v inside has %d tasks, and there would be %d allocs: remove the job first",
				roost.Conflict, inner.id(q.host), len(inner.state), after.Count)
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
