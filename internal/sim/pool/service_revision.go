package pool

import (
	"hash/fnv"
	"slices"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/classad"
	"github.com/roost-batch/roost/internal/sim/audit"
	"github.com/roost-batch/roost/schedd/queue"
	"github.com/roost-batch/roost/schedd/queue/jobad"
)

// noteRevision follows the ad of a service through its log, and reports which revision
// its tasks are to get. The queue itself may be ahead of what is durable.
func (s *jobReporter) noteRevision(id roost.JobID, e *queue.JobEvent) {
	u := s.userOf(id)
	if e.Submission == nil || u.ad == nil {
		return
	}
	if e.Submission.Ad != "" {
		jobad.ApplyChanges(u.ad, parseLoggedAd(e.Submission.Ad))
	}
	if n := e.Submission.Count; n > 0 && e.Type != queue.SurgeChanged {
		u.count = n
	}
	if e.Type == queue.Revised {
		s.reportRevision(id, e.Update.Target())
	}
}

// reportRevision reports the revision that the tasks of a service are to get. The number
// of changes is no part of it.
func (s *jobReporter) reportRevision(id roost.JobID, revision uint32) {
	u, sum := s.userOf(id), fnv.New64a()
	ad := u.ad.Copy()
	ad.Delete(roost.AttrAlterations)
	if s.sim.cfg.Jobs[s.jobs[id.Seq]].Load != nil {
		ad.Delete(roost.AttrTaskCount)
		ad.Delete(jobad.AttrArray) // it says whether there are several
	}
	for _, name := range slices.Sorted(slices.Values(ad.Names())) {
		value, _ := ad.Lookup(name)
		_, _ = sum.Write([]byte(name + "=" + value.String() + "\n")) // it never fails
	}
	s.sim.observe(audit.Event{Type: audit.RevisionSet, Job: id, Revision: revision, Digest: sum.Sum64(),
		Tasks: u.count})
}

// parseLoggedAd parses an ad that is in a log.
func parseLoggedAd(text string) *classad.Ad {
	ad, err := classad.Parse(text)
	if err != nil {
		panic(err) // it was the queue's
	}
	return ad
}
