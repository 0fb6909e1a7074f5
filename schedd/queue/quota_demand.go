package queue

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/schedd/queue/eventlog"
	"github.com/roost-batch/roost/schedd/queue/jobad"
)

// QuotaKey is whose quota a job is held against, and at which band, and whose count of
// which queue.
type QuotaKey struct {
	Owner, Group string
	Band         roost.PriorityBand
	Queue        string
	GID          uint32
}

// Compare orders payers by band, group, owner, queue and Unix group.
func (p QuotaKey) Compare(o QuotaKey) int {
	return cmp.Or(cmp.Compare(p.Band, o.Band), strings.Compare(p.Group, o.Group), strings.Compare(p.Owner, o.Owner),
		strings.Compare(p.Queue, o.Queue),
		cmp.Compare(p.GID, o.GID))
}

// QuotaDemand is what jobs may hold at once when all goes well. It is compared with a
// quota (Borg §2.5, where a job's tasks all run at once). Of a job with a limit of
// running tasks no more than those count: an array of a thousand tasks, ten at a time,
// needs the quota of ten.
type QuotaDemand struct {
	roost.Resources
	Tasks int // that run at once
	// that are not done, whether or not they may run at once; several of a program that
	// has several machines count as one
	Open int

	Total roost.Resources // what these would hold all together
}

// quotaDemands is what the jobs of each payer may hold, as quotas count it.
type quotaDemands struct {
	*jobTable
	demands        map[QuotaKey]QuotaDemand
	changedDemands map[QuotaKey]bool // of those, which have changed
	sharedDemands  map[QuotaDemand]*QuotaDemand
	demandChanged  map[uint64]bool // jobs whose demand may have changed
	deferredJobs   map[uint64]bool // jobs that were taken while nobody could say whether quotas allow them
}

func newQuotaDemands(jobs *jobTable) *quotaDemands {
	return &quotaDemands{jobTable: jobs, demands: map[QuotaKey]QuotaDemand{}, changedDemands: map[QuotaKey]bool{},
		demandChanged: map[uint64]bool{}, sharedDemands: map[QuotaDemand]*QuotaDemand{},
		deferredJobs: map[uint64]bool{}}
}

// Add returns the sum.
func (d QuotaDemand) Add(e QuotaDemand) QuotaDemand {
	return QuotaDemand{d.Resources.Add(e.Resources), d.Tasks + e.Tasks, d.Open + e.Open, d.Total.Add(e.Total)}
}

// Sub returns the difference.
func (d QuotaDemand) Sub(e QuotaDemand) QuotaDemand {
	return QuotaDemand{d.Resources.Sub(e.Resources), d.Tasks - e.Tasks, d.Open - e.Open, d.Total.Sub(e.Total)}
}

// totalDemand is what tasks of several kinds may hold at once when no more than most run
// together. most is 0 for all. Where the kinds differ and not all run together, each
// resource is counted as if those ran that want most of it.
func totalDemand(kinds []demandKind, most int) (d QuotaDemand) {
	var largest roost.Resources
	for _, k := range kinds {
		if k.open > 0 {
			held := multiply(k.each, k.open)
			d = d.Add(QuotaDemand{held, k.open, k.open, held})
			largest = roost.Resources{
				CPU: max(largest.CPU, k.each.CPU), Memory: max(largest.Memory, k.each.Memory),
				Disk: max(largest.Disk, k.each.Disk),
				GPUs: max(largest.GPUs, k.each.GPUs), IO: largest.IO.Max(k.each.IO),
			}
		}
	}
	if most <= 0 || d.Tasks <= most {
		return d
	}
	bound := multiply(largest, most)
	return QuotaDemand{roost.Resources{
		CPU: min(d.CPU, bound.CPU), Memory: min(d.Memory, bound.Memory), Disk: min(d.Disk, bound.Disk),
		GPUs: min(d.GPUs, bound.GPUs), IO: d.IO.Min(bound.IO),
	}, most, d.Open, d.Total}
}

// countGangOnce counts the tasks of a led gang as one, as its user does.
func (d QuotaDemand) countGangOnce(p *jobad.JobSpec) QuotaDemand {
	if p.MPIGang {
		d.Open = (d.Open + p.GangSize - 1) / p.GangSize
	}
	return d
}

// demandKind is so many tasks that ask for the same.
type demandKind struct {
	each roost.Resources
	open int // not final
}

// multiply is what n tasks hold. A share of a GPU counts as one, since nobody says who
// else could use the rest.
func multiply(r roost.Resources, n int) roost.Resources {
	return roost.Resources{
		CPU: r.CPU * roost.MilliCPU(n), Memory: r.Memory * roost.Bytes(n), Disk: r.Disk * roost.Bytes(n),
		GPUs: r.GPUs * n, IO: r.IO.Times(n),
	}
}

// demand is what a job may hold at once from now on.
func (j *job) demand() QuotaDemand {
	if j.spec.Inside.Alloc != 0 { // its alloc set is held against the quota
		return QuotaDemand{}
	}
	kinds := make([]demandKind, len(j.classes))
	for n, c := range j.classes {
		kinds[n] = demandKind{c.spec.Resources, c.open}
	}
	return totalDemand(kinds, j.spec.MaxRunning*j.tasksPerIndex()).countGangOnce(&j.spec.JobSpec)
}

// maxRetainedChanges is for how many changed jobs memory is retained.
const maxRetainedChanges = 1000

// updateDemands brings the sums of those jobs up to date of which something has changed.
func (q *quotaDemands) updateDemands() {
	for seq := range q.demandChanged {
		j := q.jobs[seq]
		if j == nil {
			continue // it was final when it left
		}
		now := QuotaDemand{} // as long as nobody has allowed it
		if !q.deferredJobs[seq] {
			now = j.demand()
		}
		if now == *j.countedDemand {
			continue
		}
		who := j.payer()
		sum := q.demands[who].Sub(*j.countedDemand).Add(now)
		j.countedDemand = q.shareDemand(now)
		if sum == (QuotaDemand{}) {
			delete(q.demands, who)
		} else {
			q.demands[who] = sum
		}
		q.changedDemands[who] = true
	}
	if len(q.demandChanged) > maxRetainedChanges { // a map does not shrink
		q.demandChanged = map[uint64]bool{}
	}
	clear(q.demandChanged)
}

// maxSharedDemands bounds the demands that are looked for; at the bound the list starts
// again empty.
const maxSharedDemands = 1 << 12

// shareDemand returns a demand as jobs that demand the same share it.
func (q *quotaDemands) shareDemand(d QuotaDemand) *QuotaDemand {
	shared := q.sharedDemands[d]
	if shared == nil {
		if len(q.sharedDemands) >= maxSharedDemands {
			clear(q.sharedDemands)
		}
		shared = &d
		q.sharedDemands[d] = shared
	}
	return shared
}

func (j *job) payer() QuotaKey {
	return QuotaKey{j.submission.owner, j.spec.Group, j.spec.Band, j.spec.Queue, j.submission.gid}
}

// SubmissionDemand returns whose quota a new job is held against, and how much it adds to
// that demand.
func SubmissionDemand(who CallerIdentity, spec *jobad.SubmitSpec) (QuotaKey, QuotaDemand, error) {
	p, err := jobad.ReadSpec(spec.Ad)
	if err != nil {
		return QuotaKey{}, QuotaDemand{}, err
	}
	if p.Inside.Alloc != 0 { // its alloc set is held against the quota
		return QuotaKey{who.User, p.Group, p.Band, p.Queue, who.GID}, QuotaDemand{}, nil
	}
	all, err := jobad.TaskKinds(spec)
	if err != nil {
		return QuotaKey{}, QuotaDemand{}, err
	}
	kinds := make([]demandKind, len(all))
	for i, k := range all {
		kinds[i] = demandKind{k.Resources, k.Tasks}
	}
	return QuotaKey{who.User, p.Group, p.Band, p.Queue, who.GID},
		totalDemand(kinds, p.MaxRunning*p.TasksPerIndex()).countGangOnce(&p), nil
}

// HasSubmission reports whether a submission with that key was taken already.
func (q *submissionIndex) HasSubmission(who CallerIdentity, key string, limits SubmitLimits) bool {
	return len(q.submissionJobs(submissionKey(who, key), limits)) > 0
}

// ReportDemand has those payers told anew, though nothing of theirs may have changed.
func (q *quotaDemands) ReportDemand(all []QuotaKey) {
	for _, who := range all {
		q.changedDemands[who] = true
	}
}

// DemandOf is what all jobs of a payer may hold at once.
func (q *quotaDemands) DemandOf(who QuotaKey) QuotaDemand {
	q.updateDemands()
	return q.demands[who]
}

// QuotaKeys lists who has any demand, in order.
func (q *quotaDemands) QuotaKeys() []QuotaKey {
	q.updateDemands()
	return slices.SortedFunc(maps.Keys(q.demands), QuotaKey.Compare)
}

// TakeChangedDemands drains the payers whose demand has changed.
func (q *quotaDemands) TakeChangedDemands() []QuotaKey {
	q.updateDemands()
	if len(q.changedDemands) == 0 {
		return nil
	}
	all := slices.SortedFunc(maps.Keys(q.changedDemands), QuotaKey.Compare)
	clear(q.changedDemands)
	return all
}

// removeDemand takes a job out of its payer's sum, which may be another's afterwards.
func (q *quotaDemands) removeDemand(j *job) {
	if *j.countedDemand == (QuotaDemand{}) {
		return
	}
	who := j.payer()
	q.changedDemands[who] = true
	if sum := q.demands[who].Sub(*j.countedDemand); sum == (QuotaDemand{}) {
		delete(q.demands, who)
	} else {
		q.demands[who] = sum
	}
	j.countedDemand = q.shareDemand(QuotaDemand{})
}

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
			events := q.AdmitDeferred(now, seq)
			for i := range events {
				events[i].Reason = "quotas do not allow it: " + why
			}
			return events
		}
	}
	return []eventlog.JobEvent{{Type: eventlog.Held, Time: now.UnixNano(), Job: seq, Ranges: waiting,
		Reason: fmt.Sprintf(
			quotaRefusal+"%s while no negotiator could be asked: %s; to try again: roost release %v", what, why,
			j.id(q.host))}}
}
