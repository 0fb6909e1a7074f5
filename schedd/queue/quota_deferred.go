package queue

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/schedd/queue/eventlog"
)

// A job that was submitted while nobody could say whether quotas allow it was taken: an
// outage of the negotiators keeps no work out. It is asked about later, and until then
// nothing of it counts for its owner's quota. If it is refused it is held, whole, with
// the refusal for a reason; whoever releases it has it asked about again.

// DeferredJobs lists the deferred jobs that have a task which may run, oldest first. The
// negotiators are yet to be asked about them.
func (q *quotaDemands) DeferredJobs() []uint64 {
	if len(q.deferredJobs) == 0 {
		return nil
	}
	return slices.DeleteFunc(slices.Sorted(maps.Keys(q.deferredJobs)), func(seq uint64) bool {
		return !q.jobs[seq].mayRun()
	})
}

// mayRun reports whether a task of the job runs, or may run without another word.
func (j *job) mayRun() bool {
	if j.counts[roost.Idle]+j.counts[roost.Blocked] > 0 {
		return true
	}
	for i := 0; i < len(j.state) && j.active > 0; i++ {
		if j.state[i].IsActive() && !j.records.MakeOwn(i).HoldWanted { // else it is to end, and to be held then
			return true
		}
	}
	return false
}

// DeferredDemand is SubmissionDemand for a job that is in the queue.
func (q *quotaDemands) DeferredDemand(seq uint64) (QuotaKey, QuotaDemand, bool) {
	j := q.jobs[seq]
	if j == nil || !q.deferredJobs[seq] {
		return QuotaKey{}, QuotaDemand{}, false
	}
	return j.payer(), j.demand(), true
}

// quotaRefusal is how the reason begins for which a job is held that was refused after it
// had been taken.
const quotaRefusal = "refused, as it was "

// IsQuotaRefusal reports whether that is why a job is held.
func IsQuotaRefusal(reason string) bool { return strings.HasPrefix(reason, quotaRefusal) }

// AdmitDeferred decides that a job is one like any other.
func (q *quotaDemands) AdmitDeferred(now time.Time, seq uint64) []eventlog.JobEvent {
	if !q.deferredJobs[seq] {
		return nil
	}
	return []eventlog.JobEvent{{Type: eventlog.Admitted, Time: now.UnixNano(), Job: seq}}
}

// HoldOverQuota decides to hold a deferred job that quotas do not allow. why says it with
// the numbers.
func (q *quotaDemands) HoldOverQuota(now time.Time, seq uint64, why string) []eventlog.JobEvent {
	j := q.jobs[seq]
	if j == nil || !q.deferredJobs[seq] || !j.mayRun() {
		return nil
	}
	what := "submitted"
	var waiting []eventlog.IndexRange // of one that was altered, what runs was allowed before
	for i, s := range j.state {
		if j.spec.Alterations > 0 && !s.IsActive() && !s.IsFinal() {
			waiting = appendIndex(waiting, i)
		}
	}
	if j.spec.Alterations > 0 {
		what = "altered"
		if len(waiting) == 0 {
			return q.AdmitDeferred(now, seq)
		}
	}
	return []eventlog.JobEvent{{Type: eventlog.Held, Time: now.UnixNano(), Job: seq, Ranges: waiting,
		Reason: fmt.Sprintf(
			quotaRefusal+"%s while no negotiator could be asked: %s; to try again: roost release %v", what, why,
			j.id(q.host))}}
}
