package queue

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/classad"
	"github.com/roost-batch/roost/internal/mutant"
	"github.com/roost-batch/roost/schedd/queue/eventlog"
	"github.com/roost-batch/roost/schedd/queue/jobad"
)

// submissionIndex is what was submitted, by submit key.
type submissionIndex struct {
	*jobTable
	*openTaskCounts
	jobByKey  map[string]uint64   // the only job of a key in the queue, or one of them
	moreByKey map[string][]uint64 // the others
}

func newSubmissionIndex(jobs *jobTable, open *openTaskCounts) *submissionIndex {
	return &submissionIndex{jobTable: jobs, openTaskCounts: open, jobByKey: map[string]uint64{},
		moreByKey: map[string][]uint64{}}
}

// CallerIdentity is who asks, as the kernel says.
type CallerIdentity struct {
	User     string
	UID, GID uint32
	Host     string
	Admin    bool // root, or the schedd's own user: may touch everybody's jobs
	// Origin is the submit node of a user of the cell's queue, which vouches for User and
	// UID; empty for a user of this host.
	Origin string
}

// Owns reports whether jobs of an owner are the caller's. Submit nodes may have given one
// uid to different people, so there the names must be the same too.
func (c CallerIdentity) Owns(owner string, uid uint32) bool {
	return c.UID == uid && (c.Origin == "" || c.User == owner)
}

// requester names the caller in the events of a job of that owner. A user of another
// submit node is USER@NODE there, unless the job is the user's own.
func (c CallerIdentity) requester(owner string, uid uint32) string {
	if c.Origin == "" || c.Owns(owner, uid) {
		return c.User
	}
	return c.User + "@" + c.Origin
}

// CheckOwner returns roost.PermissionDenied unless the caller may act on an owner's jobs.
// Besides the owner, root may, and who has the capability for the jobs of everybody.
func (c CallerIdentity) CheckOwner(subject fmt.Stringer, owner string, uid uint32) error {
	if c.Admin || c.Owns(owner, uid) {
		return nil
	}
	name := c.User
	if node := cmp.Or(c.Origin, c.Host); node != "" && !strings.Contains(name, "@") {
		name += "@" + node
	}
	return fmt.Errorf("%v: %w: it belongs to %s, and %s lacks the capability \"jobs\"; root on a central manager "+
		"gives it with: roost admin give %s jobs", subject, roost.PermissionDenied, owner, name, name)
}

// SubmitLimits bound what a queue takes, and answer for jobs that have left it.
type SubmitLimits struct {
	MaxQueued  int                                          // tasks of all users; 0 for no limit
	MaxPerUser int                                          // tasks of one user; 0 for no limit but those of all
	MaxLog     int                                          // bytes of a submission in the log; 0 for no limit
	Domain     string                                       // the schedd's own FileSystemDomain
	JobsByKey  func(key string) []roost.JobID               // the jobs that a key made and that are in the history
	PastJob    func(seq uint64) (ok, succeeded, known bool) // how a job in the history ended
	// makes that of the keys of a job's images, SecretSize random bytes; nil: no images
	// are taken
	NewSecret func() []byte
	LastSeq   uint64 // the highest number that the history knows

	// why no machine could ever run these jobs, nil if one might; a key that was taken
	// before is answered all the same
	Infeasible error
}

// SubmitJobs decides on new jobs: all of them, or none. The same key again gives the ids
// that it gave before.
func (q *submissionIndex) SubmitJobs(now time.Time, who CallerIdentity, key string, specs []jobad.SubmitSpec,
	limits SubmitLimits) (events []eventlog.JobEvent, ids []roost.JobID, repeated bool, err error) {
	if key == "" || len(key) > 256 {
		return nil, nil, false, fmt.Errorf("submit key: %w: it has %d bytes, and 1 to 256 are wanted",
			roost.Invalid, len(key))
	}
	key = submissionKey(who, key)
	if ids := q.submissionJobs(key, limits); len(ids) > 0 {
		return nil, ids, true, nil
	}
	if len(specs) == 0 {
		return nil, nil, false, fmt.Errorf("%w: there is no job in the submission", roost.Invalid)
	}
	if limits.Infeasible != nil {
		return nil, nil, false, limits.Infeasible
	}
	total := q.tasks
	seq := max(q.lastSeq, limits.LastSeq)
	for part := range specs {
		e, err := q.checkSubmission(now, who, &specs[part], &dependencyResolver{jobTable: q.jobTable, caller: who,
			jobNumber: seq + 1, part: part, earlier: events, limits: limits})
		if err != nil {
			if len(specs) > 1 {
				err = fmt.Errorf("job %d of the submission: %w", part, err)
			}
			return nil, nil, false, err
		}
		e.Submission.Key, e.Submission.PartIndex, e.Submission.PartCount = key, part, len(specs)
		events = append(events, e)
		seq = lastNumber(q.jobTable, &e)
		ids = append(ids, roost.JobID{Seq: e.Job, Host: q.host})
		total += specs[part].Count
	}
	if err := q.checkOpenLimit(who, total-q.tasks, limits); err != nil {
		return nil, nil, false, err
	}
	if err := checkLogSize(events, limits.MaxLog); err != nil {
		return nil, nil, false, err
	}
	return events, ids, false, nil
}

// lastNumber is the last number that a new job takes.
func lastNumber(q *jobTable, e *eventlog.JobEvent) uint64 {
	p, _, err := q.specs.ReadText(e.Submission.Ad)
	if err != nil {
		return e.Job
	}
	return e.Job + numberCount(&p.JobSpec, e.Submission.Count) - 1
}

// checkLogSize refuses a submission that takes more room in the log than it may. Each job
// of it has its own event, so it may be many times as large as what was sent.
func checkLogSize(events []eventlog.JobEvent, most int) error {
	if most == 0 {
		return nil
	}
	var b []byte
	size := 0
	for i := range events {
		b = eventlog.AppendEvent(b[:0], &events[i])
		size += len(b) + eventOverhead
	}
	if size > most {
		return fmt.Errorf("%w: a submission of %d jobs that takes %v in the log of the queue, and %v is the most: "+
			"submit the jobs in parts, or as the tasks of one job", roost.Exhausted, len(events), roost.Bytes(size),
			roost.Bytes(most))
	}
	return nil
}

// eventOverhead is more than the log has of an event beside its encoding, in bytes.
const eventOverhead = 16

// keyJobs lists the jobs in the queue that were submitted with a key.
func (q *submissionIndex) keyJobs(key string) []uint64 {
	if seq, known := q.jobByKey[key]; known {
		return append([]uint64{seq}, q.moreByKey[key]...)
	}
	return nil
}

func (q *submissionIndex) addKeyJob(key string, seq uint64) {
	if _, known := q.jobByKey[key]; known {
		q.moreByKey[key] = append(q.moreByKey[key], seq)
		return
	}
	q.jobByKey[key] = seq
}

func (q *submissionIndex) removeKeyJob(key string, seq uint64) {
	more := q.moreByKey[key]
	switch {
	case q.jobByKey[key] != seq:
		more = slices.DeleteFunc(more, func(other uint64) bool { return other == seq })
	case len(more) == 0:
		delete(q.jobByKey, key)
	default:
		q.jobByKey[key], more = more[len(more)-1], more[:len(more)-1]
	}
	if q.moreByKey[key] = more; len(more) == 0 {
		delete(q.moreByKey, key)
	}
}

// submissionKey makes of a user's key one that nobody else's is.
func submissionKey(who CallerIdentity, key string) string {
	return strconv.FormatUint(uint64(who.UID), 10) + ":" + key
}

// submissionJobs lists all jobs of a submission, wherever they are now.
func (q *submissionIndex) submissionJobs(key string, limits SubmitLimits) (ids []roost.JobID) {
	for _, seq := range q.keyJobs(key) {
		if mutant.Active(mutant.KeyForgotten) && q.jobs[seq].firstStarted != 0 {
			continue
		}
		ids = append(ids, roost.JobID{Seq: seq, Host: q.host})
	}
	if limits.JobsByKey != nil {
		ids = append(ids, limits.JobsByKey(key)...)
	}
	slices.SortFunc(ids, roost.JobID.Compare)
	return slices.Compact(ids)
}

// ownedAd is the ad of a job with what only its queue knows. That is its id, its owner
// and when it was submitted.
func (q *submissionIndex) ownedAd(now time.Time, who CallerIdentity, spec *jobad.SubmitSpec,
	seq uint64) *classad.Ad {
	ad := spec.Ad.Copy()
	ad.SetString(roost.AttrJobID, roost.JobID{Seq: seq, Host: q.host}.String())
	ad.SetString(roost.AttrOwner, who.User)
	ad.SetInt(roost.AttrOwnerUID, int64(who.UID))
	ad.SetInt(roost.AttrOwnerGID, int64(who.GID))
	ad.SetInt(roost.AttrQDate, now.Unix())
	ad.SetInt(roost.AttrTaskCount, int64(spec.Count))
	ad.SetString(roost.AttrSubmitHost, cmp.Or(who.Origin, q.host))
	return ad
}

// checkSubmission checks one job and makes the event that takes it in.
func (q *submissionIndex) checkSubmission(now time.Time, who CallerIdentity, spec *jobad.SubmitSpec,
	r *dependencyResolver) (eventlog.JobEvent, error) {
	seq, limits := r.jobNumber, r.limits
	if spec.Count < 1 || spec.Count > roost.MaxTasks {
		return eventlog.JobEvent{}, fmt.Errorf("%w: %d tasks, and 1 to %d are possible", roost.Exhausted, spec.Count,
			roost.MaxTasks)
	}
	if err := jobad.CheckColumns(spec.Columns, spec.Count); err != nil {
		return eventlog.JobEvent{}, err
	}
	ad := q.ownedAd(now, who, spec, seq)
	if _, ok := ad.Lookup(roost.AttrFileSystemDomain); !ok && limits.Domain != "" {
		ad.SetString(roost.AttrFileSystemDomain, limits.Domain)
	}
	inside := &allocResolver{jobTable: q.jobTable, caller: who, part: r.part, earlier: r.earlier}
	set, allocs, err := inside.resolve(ad)
	if err != nil {
		return eventlog.JobEvent{}, err
	}
	if _, ok := ad.Lookup(jobad.AttrArray); !ok && spec.Count > 1 {
		ad.SetBool(jobad.AttrArray, true)
	}
	p, err := jobad.ReadSpec(ad)
	if err != nil {
		return eventlog.JobEvent{}, err
	}
	if err := errors.Join(p.CheckPinned(), jobad.CheckOverrides(p, spec.Columns)); err != nil {
		return eventlog.JobEvent{}, err
	}
	if err := jobad.CheckGang(&p, spec); err != nil {
		return eventlog.JobEvent{}, err
	}
	if err := jobad.CheckIndexes(ad, spec.Count/p.TasksPerIndex()); err != nil {
		return eventlog.JobEvent{}, err
	}
	if p.Schedule != nil {
		if _, err := p.Schedule.Parse(who.User, p.Name); err != nil {
			return eventlog.JobEvent{}, fmt.Errorf("attribute %s: %w", roost.AttrSchedule, err)
		}
	}
	if p.Interactive && spec.Count > 1 && !p.MPIGang {
		return eventlog.JobEvent{},
			fmt.Errorf("attribute %s: %w: a job with a terminal has one task, and this one has %d",
				roost.AttrInteractive, roost.Invalid, spec.Count)
	}
	if err := inside.checkFits(&p, spec, set, allocs); err != nil {
		return eventlog.JobEvent{}, err
	}
	r.fromQsub, r.isArray, r.now = p.FromQsub, p.Array, now
	waits, err := r.resolveAll(ad)
	if err != nil {
		return eventlog.JobEvent{}, err
	}
	if err := q.checkFlow(now, who, spec, &p, r); err != nil {
		return eventlog.JobEvent{}, err
	}
	text := ad.String()
	if len(text) > roost.MaxAdBytes {
		return eventlog.JobEvent{}, fmt.Errorf("%w: the job's ad has %d bytes, and %d is the most", roost.Exhausted,
			len(text),
			roost.MaxAdBytes)
	}
	return eventlog.JobEvent{Type: eventlog.Submitted, Time: now.UnixNano(), Job: seq,
		Submission: newSubmission(who, spec, &p, text, waits, limits)}, nil
}

// newSubmission is a job that was checked, as it is stored.
func newSubmission(who CallerIdentity, spec *jobad.SubmitSpec, p *jobad.JobSpec, ad string,
	waits []eventlog.JobDependency, limits SubmitLimits) *eventlog.SubmittedJob {
	sub := &eventlog.SubmittedJob{
		Owner: who.User, UID: who.UID, GID: who.GID, Ad: ad, Count: spec.Count, Columns: spec.Columns,
		Dependencies: waits, DeferredAdmission: spec.DeferredAdmission,
	}
	if p.Checkpoints != nil && limits.NewSecret != nil {
		sub.Secret = limits.NewSecret()
	}
	if f := spec.Flow; f != nil {
		sub.Flow, sub.Plan, sub.FlowAds = f.Form, f.Plan, make([]string, len(f.Ads))
		for i, ad := range f.Ads[1:] {
			sub.FlowAds[i+1] = ad.String()
		}
	}
	return sub
}

// openTaskCounts counts the tasks that are not final, and bounds them.
type openTaskCounts struct {
	tasks      int
	openByUser map[uint32]int // by uid; only users who have any
}

// Parts of the bound on all open tasks. The last tenth is for users who have few, so that
// the users who have many cannot keep everybody else out.
const (
	reservedShare = 10  // one in so many of all open tasks is reserved for users with few
	fewTasksShare = 100 // a user has few tasks who has at most one in so many
)

// OpenTaskCount counts the tasks that are not final.
func (q *openTaskCounts) OpenTaskCount() int { return q.tasks }

// countOpen counts n more tasks of a job that are not final.
func (q *openTaskCounts) countOpen(j *job, n int) {
	q.tasks += n
	if q.openByUser[j.submission.uid] += n; q.openByUser[j.submission.uid] == 0 {
		delete(q.openByUser, j.submission.uid)
	}
}

// OpenTasks counts the tasks of a user that are not final.
func (q *openTaskCounts) OpenTasks(uid uint32) int { return q.openByUser[uid] }

// checkOpenLimit refuses n more tasks of a user where the queue has no room for them.
// Three bounds hold: MaxQueued on the tasks of all users, MaxPerUser on those of one, and
// nine tenths of MaxQueued on the tasks of all for a user who has more than a hundredth
// of it. Whoever may touch everybody's jobs is held to the first alone.
func (q *openTaskCounts) checkOpenLimit(who CallerIdentity, n int, limits SubmitLimits) error {
	total, own := q.tasks+n, q.openByUser[who.UID]+n
	switch most := limits.MaxQueued; {
	case limits.MaxPerUser > 0 && own > limits.MaxPerUser && !who.Admin:
		return fmt.Errorf("%w: %d of your tasks are queued, these would make %d, and this schedd takes %d of one "+
			"user; wait until some have ended, or submit fewer at once",
			roost.Exhausted, own-n, own, limits.MaxPerUser)
	case most == 0:
	case total > most:
		return fmt.Errorf("%w: %d tasks of all users are queued, these would make %d, and this schedd takes %d; wait "+
			"until some have ended", roost.Exhausted, q.tasks, total, most)
	case total > most-most/reservedShare && !who.Admin && own > max(most/fewTasksShare, 1):
		return fmt.Errorf("%w: %d tasks of all users are queued, these would make %d, and the last %d of the %d that "+
			"this schedd takes are for users who have at most %d; you would have %d: wait until some have ended",
			roost.Exhausted, q.tasks, total, most/reservedShare, most, max(most/fewTasksShare, 1), own)
	}
	return nil
}
