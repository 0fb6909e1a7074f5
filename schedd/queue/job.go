package queue

import (
	"strings"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/classad"
	"github.com/roost-batch/roost/schedd/queue/adtext"
	"github.com/roost-batch/roost/schedd/queue/eventlog"
	"github.com/roost-batch/roost/schedd/queue/indexset"
	"github.com/roost-batch/roost/schedd/queue/jobad"
	"github.com/roost-batch/roost/schedd/queue/update"
)

// job is one job in the queue. States take a byte for each task, and a bit while it is
// ready; what else is known of tasks is in the records. A hundred thousand jobs of one
// task are nothing unusual: what such jobs have in common they share, and what few of
// them have is in the extras.
type job struct {
	seq           uint64
	submission    *jobSubmission
	spec          *jobad.SharedSpec
	texts         ownTexts
	ad            adtext.Packed
	submitted     int64 // unix nanoseconds
	state         []roost.TaskState
	singleState   [1]roost.TaskState // of a job of one task: the memory of state
	counts        [roost.Removed + 1]int32
	failed        int32        // of the completed ones
	active        int32        // tasks with a live attempt
	countedDemand *QuotaDemand // what of its demand is in the queue's sums
	changes       int32        // what has happened to it, counted
	records       eventlog.TaskRecords
	firstStarted  int64 // when a task of it first started, unix nanoseconds; 0 for not yet
	lastEnded     int64 // when a task of it last became final
	classes       []*taskClass
	shares        []*jobReady // of its classes, by request
	// its place among jobs of one priority: its number, unless somebody has swapped it
	// with another's
	orderRank uint64
	orderTime int64 // likewise its age: when it was submitted, unix nanoseconds
	eligible  eligibleTime
	*jobExtras
}

// jobExtras is what most jobs of one task have not. Those without share one, which is
// never written to: get extras with job.ownExtras before a change.
type jobExtras struct {
	shared bool // by jobs that have nothing of this

	jobWaits
	gangs          gangState
	columns        map[string]*packedColumn
	indexes        *roost.ArrayIndexes    // that users know the tasks of an array by; nil: their own numbers
	shareByRequest map[*Request]*jobReady // of an array of gangs, which has very many
	classOf        []uint16               // empty when there is one class
	// by the values of its columns: the class of tasks with these, where they differ
	classByValues map[string]int
	distrust      recordDamage
	runOrders
	// secondary tasks whose machines were given back while their gang ran, or runs
	released map[int]bool
	parsedAd *classad.Ad         // of an array of which a task was run
	update   *eventlog.JobUpdate // nil: the job was never updated
	// of a service: the tasks that had an attempt, by the state of the live one
	serviceStates   [roost.ServiceLost + 1]int32
	schedule        *jobSchedule // nil: it has none
	flow            *jobFlow     // nil: it is none
	part            *FlowPart    // that it runs of a flow; nil: it runs none
	waitingRestarts int32        // of a service: tasks that wait for their restart
	// of a service: why tasks on drained machines are not evicted
	evictionWaits map[int]string
	tasksToRun    int32  // of a service: how many of the first tasks are to run; 0: all
	overcharged   string // of a service: how its budget was exceeded, which must not happen
	// of a service: its tasks, added up for that; nil while nobody has asked
	tallied *update.Tally
	// of a service: how its number of tasks has followed its load; nil: it never did
	scaled *eventlog.ScaleRecord
	scaler *serviceScaler // of a service whose number of tasks follows its load, once it was looked at
	sizer  *serviceSizer  // likewise of one whose tasks' size follows their use
}

// noExtras are the extras of a job that waits for nothing but machines.
func noExtras() *jobExtras {
	return &jobExtras{shared: true, jobWaits: jobWaits{startTimeReached: true}}
}

// ownExtras returns the extras of a job, to be written to.
func (j *job) ownExtras() *jobExtras {
	if j.shared {
		own := *j.jobExtras
		own.shared = false
		j.jobExtras = &own
	}
	return j.jobExtras
}

// packedColumn holds the values of a column in one piece of memory.
type packedColumn struct {
	text string
	ends []uint32
}

func packColumn(values []string) *packedColumn {
	p := &packedColumn{ends: make([]uint32, len(values))}
	var b strings.Builder
	for i, v := range values {
		b.WriteString(v)
		p.ends[i] = uint32(b.Len())
	}
	p.text = b.String()
	return p
}

func (p *packedColumn) at(i int) string {
	start := uint32(0)
	if i > 0 {
		start = p.ends[i-1]
	}
	return p.text[start:p.ends[i]]
}

func (j *job) id(host string) roost.JobID { return roost.JobID{Seq: j.seq, Host: host} }

// class returns the class of a task.
func (j *job) class(i int) *taskClass {
	if len(j.classOf) == 0 {
		return j.classes[0]
	}
	return j.classes[j.classOf[i]]
}

// isFinal reports whether every task is.
func (j *job) isFinal() bool {
	return int(j.counts[roost.Completed]+j.counts[roost.Removed]) == len(j.state)
}

// atMaxRunning reports whether as many tasks are active as the job allows.
func (j *job) atMaxRunning() bool { return j.startableTasks() == 0 }

// startableTasks is how many more tasks may be active. Those that are suspended do not
// count (OpenPBS, max_run_subjobs).
func (j *job) startableTasks() int {
	if j.spec.MaxRunning <= 0 {
		return len(j.state)
	}
	n := max(j.spec.MaxRunning*j.tasksPerIndex()-int(j.active)-j.release().releasedActive()+
		int(j.counts[roost.Suspended]), 0)
	return n - n%j.tasksPerIndex()
}

// jobSubmission is what jobs have in common that a user submitted alike. It is shared,
// and never written to.
type jobSubmission struct {
	owner        string
	uid, gid     uint32
	partCount    int // of the submission
	count        int
	columns      []jobad.TaskColumn
	dependencies []eventlog.JobDependency // what it says of other jobs, as far as that was not met at submit
}

// submissionKind identifies the submissions that can be shared: of jobs of one task that
// say nothing of others.
type submissionKind struct {
	owner     string
	uid, gid  uint32
	partCount int
}

// maxSharedSubmissions bounds the submissions that are looked for; at the bound the list
// starts again empty.
const maxSharedSubmissions = 1 << 12

// shareSubmission returns what a job shares with others of its user.
func (q *jobTable) shareSubmission(s *eventlog.SubmittedJob) *jobSubmission {
	kind := submissionKind{s.Owner, s.UID, s.GID, s.PartCount}
	plain := s.Count == 1 && len(s.Columns) == 0 && len(s.Dependencies) == 0
	if shared := q.submissions[kind]; plain && shared != nil {
		return shared
	}
	own := &jobSubmission{s.Owner, s.UID, s.GID, s.PartCount, s.Count, s.Columns, s.Dependencies}
	if !plain {
		return own
	}
	if len(q.submissions) >= maxSharedSubmissions {
		clear(q.submissions)
	}
	q.submissions[kind] = own
	return own
}

// submittedJob is what was submitted, in full.
func (j *job) submittedJob() *eventlog.SubmittedJob {
	s := j.submission
	sub := &eventlog.SubmittedJob{Key: j.texts.key(), PartIndex: int(j.texts.part), PartCount: s.partCount,
		Owner: s.owner, UID: s.uid, GID: s.gid, Ad: j.ad.String(), Count: s.count, Columns: s.columns,
		Dependencies: s.dependencies, Secret: j.texts.secret()}
	if f := j.flow; f != nil {
		sub.Flow, sub.FlowAds, sub.Plan = f.form, f.ads, f.plan
	}
	return sub
}

// ownTexts are the texts that each job has for itself, in one piece of memory.
type ownTexts struct {
	text            string // submit key, name and secret
	keyEnd, nameEnd uint32
	part            int32 // of the submission that had the key
}

func packTexts(s *eventlog.SubmittedJob, name string) ownTexts {
	return ownTexts{s.Key + name + string(s.Secret), uint32(len(s.Key)), uint32(len(s.Key) + len(name)),
		int32(s.PartIndex)}
}

func (t *ownTexts) key() string { return t.text[:t.keyEnd] }

func (t *ownTexts) name() string { return t.text[t.keyEnd:t.nameEnd] }

// secret returns the job's secret, from which the keys of its images are derived; nil
// when it has none.
func (t *ownTexts) secret() []byte {
	if int(t.nameEnd) == len(t.text) {
		return nil
	}
	return []byte(t.text[t.nameEnd:])
}

// taskClass is the tasks of a job that make the same request. It waits in its request's
// heap while a task of it is ready and may run.
type taskClass struct {
	job     *job
	request *Request
	share   *jobReady
	spec    *jobad.JobSpec
	ready   indexset.Set
	count   int // bits set
	open    int // tasks that are not final
	// of one that was made later: the first that is the same but for the image that it
	// wants to restore, and for when it is to run
	twin      *taskClass
	heapIndex int    // in the request's heap, -1 when not in it
	oldAd     *oldAd // the job as it was when these tasks began, which still run; nil: as it is
}

// jobReady is how many ready tasks a job contributes to one request. They are those of
// the classes that make it, and no more than the job may run.
type jobReady struct {
	request *Request
	count   int // tasks ready
	counted int // of those, counted in the request
}

// full reports whether no task of a class may start beside those of its job that are
// active. An operator's word goes past that.
func (c *taskClass) full() bool { return c.spec.Now == "" && c.job.atMaxRunning() }

// most is how many ready tasks of a job's share may count in its request.
func (s *jobReady) most(j *job) int {
	if s.request.Now {
		return s.count
	}
	return min(s.count, j.startableTasks())
}

// eligibleTime is for how long a job has waited for nothing but machines. A job that is
// held, waits for others or for its time, or whose tasks all run, does not (eligible_time
// and etime of OpenPBS's pbs_job_attributes(7B)). Times are unix nanoseconds.
type eligibleTime eventlog.EligibleTime

// update brings that up to date when tasks of its job have changed their states.
func (e *eligibleTime) update(j *job, now int64) {
	idle := j.counts[roost.Idle] > 0
	switch {
	case idle && e.WaitingSince == 0:
		if e.WaitingSince = now; e.Since == 0 {
			e.Since = now
		}
	case !idle && e.WaitingSince != 0:
		e.Waited += max(now-e.WaitingSince, 0)
		e.WaitingSince = 0
	}
	if !idle && j.active == 0 && !j.isFinal() {
		e.Since = 0
	}
}

// restore is update for a job that comes from a snapshot. A job of a snapshot from before
// this was saved has waited since it was submitted.
func (e *eligibleTime) restore(j *job, saved eventlog.EligibleTime) {
	if idle := j.counts[roost.Idle] > 0; idle && saved.WaitingSince == 0 {
		saved = eventlog.EligibleTime{Since: j.submitted, WaitingSince: j.submitted}
	}
	*e = eligibleTime(saved)
}
