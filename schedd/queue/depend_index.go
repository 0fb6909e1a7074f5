package queue

import (
	"fmt"
	"slices"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/mutant"
	"github.com/roost-batch/roost/schedd/queue/eventlog"
)

// dependencyIndex is which job waits for which, and for which of them something follows.
type dependencyIndex struct {
	*jobTable
	dependents        map[uint64]map[uint64]bool // job -> jobs that wait for it
	countedDependents map[uint64]bool            // of those, jobs of which a number of tasks is waited for
	toResolve         map[uint64]bool            // jobs that may be unblocked, or dropped
	startTimes        map[uint64]bool            // jobs that wait for their start time
	delays            map[uint64]int64           // when jobs are due that wait some time after a start, unix ns
}

func newDependencyIndex(jobs *jobTable) *dependencyIndex {
	return &dependencyIndex{jobTable: jobs, dependents: map[uint64]map[uint64]bool{},
		countedDependents: map[uint64]bool{}, toResolve: map[uint64]bool{}, startTimes: map[uint64]bool{},
		delays: map[uint64]int64{}}
}

// addDependent notes that a job depends on another, and has to be resolved when that one
// changes.
func (q *dependencyIndex) addDependent(j *job, other uint64) {
	if other == 0 {
		return
	}
	if q.dependents[other] == nil {
		q.dependents[other] = map[uint64]bool{}
	}
	q.dependents[other][j.seq] = true
	q.toResolve[j.seq] = true
}

// removeDependent forgets that a job stands to another one, unless it still does in
// another way.
func (q *dependencyIndex) removeDependent(j *job, other uint64) {
	if slices.Contains(j.runOneSet, other) || slices.ContainsFunc(j.dependencies, func(w eventlog.JobDependency) bool {
		return w.Job == other
	}) {
		return
	}
	delete(q.dependents[other], j.seq)
	if len(q.dependents[other]) == 0 {
		delete(q.dependents, other)
	}
}

// NextDue is when the next job may start that waits for its time; zero when none does.
func (q *dependencyIndex) NextDue() (at time.Time) {
	for seq := range q.startTimes {
		j := q.jobs[seq]
		t := time.Unix(j.spec.StartAfter, 0)
		if j.schedule != nil {
			if j.counts[roost.Blocked] == 0 {
				continue
			}
			t = time.Unix(j.schedule.next(j), 0)
		}
		if at.IsZero() || t.Before(at) {
			at = t
		}
	}
	for _, due := range q.delays {
		if t := time.Unix(0, due); at.IsZero() || t.Before(at) {
			at = t
		}
	}
	return at
}

// markToResolve marks the jobs that wait for this one.
func (q *dependencyIndex) markToResolve(j *job) {
	for seq := range q.dependents[j.seq] {
		q.toResolve[seq] = true
	}
}

// clearDependencies forgets that a job waits for anything.
func (q *dependencyIndex) clearDependencies(j *job) {
	others := slices.Clone(j.runOneSet)
	for _, w := range append(slices.Clone(j.submission.dependencies), j.dependencies...) {
		others = append(others, w.Job)
	}
	for _, other := range others {
		delete(q.dependents[other], j.seq)
		if len(q.dependents[other]) == 0 {
			delete(q.dependents, other)
		}
	}
	delete(q.startTimes, j.seq)
	delete(q.toResolve, j.seq)
	delete(q.delays, j.seq)
}

// How a job stands to others goes to disk with the job: what it said itself is in its
// submission, and the rest here.

// savedWaits is how the job stands to others, beyond what it said itself when it was
// submitted.
func (j *job) savedWaits() eventlog.JobWaits {
	w := eventlog.JobWaits{ExpectedBefore: j.expectedBefore, ExpectedSync: j.expectedSync, RunOneSet: j.runOneSet,
		RunOneStarted: j.runOneStarted, RemovedUnstarted: j.removedUnstarted,
		StartTimeReached: j.startTimeReached && (j.isBlocked() || j.waitsByIndex()) && j.spec.StartAfter > 0}
	for _, d := range j.dependencies {
		if !slices.Contains(j.submission.dependencies, d) {
			w.Added = append(w.Added, d)
		}
	}
	return w
}

// restoreDependencies brings a restored job to how it stood to others.
func (q dependencyChanges) restoreDependencies(j *job, r *eventlog.JobWaits, free bool) {
	if !free {
		j.ownExtras()
		j.expectedBefore, j.expectedSync, j.runOneStarted = r.ExpectedBefore, r.ExpectedSync, r.RunOneStarted
		j.dependencies = append(slices.Clip(j.dependencies), r.Added...)
	}
	if r.StartTimeReached {
		j.ownExtras().startTimeReached = true
		delete(q.startTimes, j.seq)
	}
	if len(r.RunOneSet) > 0 || r.RemovedUnstarted {
		j.ownExtras()
		j.runOneSet, j.removedUnstarted = r.RunOneSet, r.RemovedUnstarted
	}
	for _, w := range r.Added {
		q.addDependent(j, w.Job)
	}
	for _, other := range j.runOneSet {
		q.addDependent(j, other)
	}
}

// Followups decides what follows for jobs that wait for others or for their time. They
// are unblocked, or dropped when what they wait for cannot come any more. Asking twice is
// harmless.
func (q *dependencyIndex) Followups(now time.Time) (events []eventlog.JobEvent) {
	for seq := range q.startTimes {
		if now.Unix() >= q.jobs[seq].spec.StartAfter {
			q.toResolve[seq] = true
		}
	}
	for seq, due := range q.delays {
		if now.UnixNano() >= due {
			delete(q.delays, seq)
			q.toResolve[seq] = true
		}
	}
	for _, seq := range takeAll(&q.toResolve) {
		if j := q.jobs[seq]; j != nil && !j.isFinal() {
			events = append(events, q.followup(now, j)...)
		}
	}
	return events
}

func (q *dependencyIndex) followup(now time.Time, j *job) []eventlog.JobEvent {
	drop := func(text string, other uint64) []eventlog.JobEvent {
		return []eventlog.JobEvent{{Type: eventlog.Dropped, Time: now.UnixNano(), Job: j.seq,
			Reason: q.dropReason(j, text, other)}}
	}
	for _, seq := range j.runOneSet {
		if o := q.jobs[seq]; o == nil || o.isFinal() && o.hasRun() { // who did not run is no rival any more
			return drop("only one of it and job %d was to run, and that has ended", seq)
		}
	}
	s := q.weighDependencies(now, j)
	if s.isDead {
		return drop("it was to run "+s.dead.Type.String()+" job %d, and that has ended otherwise", s.dead.Job)
	}
	events := q.dropUnmatched(now, j, s)
	if len(events) == 1 && len(events[0].Ranges) == 0 {
		return events
	}
	isOver := j.isWaiting() || s.ended > 0
	if s.open == 0 && j.expectedBefore == 0 && j.expectedSync == 0 && now.Unix() >= j.spec.StartAfter && isOver &&
		(len(j.dependencies) > 0 || !j.startTimeReached) {
		events = append(events, eventlog.JobEvent{Type: eventlog.Unblocked, Time: now.UnixNano(), Job: j.seq})
	}
	return events
}

// dependencySums is how the dependencies of a job stand.
type dependencySums struct {
	open   int                    // that may come yet, beside those by index
	ended  int                    // those by index whose other array has ended
	lost   eventlog.JobDependency // one of these
	isDead bool                   // the job can never run
	dead   eventlog.JobDependency // for this one
}

// weighDependencies sums up what a job waits for. A job that has left the queue was final
// when it did, and its dependants were ripe before that.
func (q *dependencyIndex) weighDependencies(now time.Time, j *job) (s dependencySums) {
	var alternatives struct{ met, open, dead int }
	for _, w := range j.dependencies {
		if w.Type == eventlog.AfterCorr {
			if o := q.jobs[w.Job]; o == nil || o.isFinal() {
				s.ended++
				s.lost = w
			}
			continue
		}
		met, dead, err := q.dependencyState(w, SubmitLimits{})
		dead = dead || err != nil || met && q.neverRan(j, w)
		if met && !dead {
			met = q.isDelayOver(now, j, w)
		}
		switch {
		case dead && w.Alternative:
			alternatives.dead++
			s.dead = w
		case dead:
			return dependencySums{isDead: true, dead: w}
		case w.Alternative && met:
			alternatives.met++
		case w.Alternative:
			alternatives.open++
		case !met:
			s.open++
		}
	}
	if mutant.Active(mutant.AlternativesJoined) && alternatives.open > 0 {
		alternatives.met = 0
	}
	if alternatives.met == 0 {
		s.open += alternatives.open
		s.isDead = alternatives.dead > 0 && alternatives.open == 0
	}
	return s
}

// isDelayOver reports whether the time has passed that a job waits after the start of
// another. If not, the job is looked at again when it has.
func (q *dependencyIndex) isDelayOver(now time.Time, j *job, w eventlog.JobDependency) bool {
	due := dueAfter(w, q.jobs[w.Job])
	if due <= now.UnixNano() {
		return true
	}
	if at, ok := q.delays[j.seq]; !ok || due < at {
		q.delays[j.seq] = due
	}
	return false
}

// dropUnmatched drops the tasks of an array whose partners in another one cannot succeed
// any more: that one has ended. If no others are left, the whole job is dropped.
func (q *dependencyIndex) dropUnmatched(now time.Time, j *job, s dependencySums) []eventlog.JobEvent {
	if s.ended == 0 {
		return nil
	}
	var ranges []eventlog.IndexRange
	dropped := 0
	for i, state := range j.state {
		waits := state == roost.Held || state == roost.Blocked && !waitsForRestart(j, i)
		if !waits || !waitsForEnded(q.jobTable, j, i) {
			continue
		}
		dropped++
		if n := len(ranges); n > 0 && ranges[n-1].Last == i-1 {
			ranges[n-1].Last = i
			continue
		}
		ranges = append(ranges, eventlog.IndexRange{First: i, Last: i})
	}
	if dropped == 0 {
		return nil
	}
	if dropped == len(j.state) {
		ranges = nil
	}
	return []eventlog.JobEvent{{Type: eventlog.Dropped, Time: now.UnixNano(), Job: j.seq, Ranges: ranges,
		Reason: q.dropReason(j, "it was to run after the task of job %d with its index, and that has not succeeded",
			s.lost.Job)}}
}

// waitsForEnded reports whether a task waits for one that can never succeed any more.
func waitsForEnded(q *jobTable, j *job, i int) bool {
	index := j.names().index(i)
	return slices.ContainsFunc(j.dependencies, func(w eventlog.JobDependency) bool {
		o := q.jobs[w.Job]
		return w.Type == eventlog.AfterCorr && (o == nil || o.isFinal()) && !hasIndexSucceeded(o, index)
	})
}

// neverRan reports whether a job of qsub waits for one that was removed while held or
// blocked. Such a removal takes all jobs with it that wait for the end, or the failure,
// of that one (OpenPBS, depend_on_term). Other jobs run when such a one is gone.
func (q *dependencyIndex) neverRan(j *job, w eventlog.JobDependency) bool {
	other := q.jobs[w.Job]
	return j.spec.FromQsub && other != nil && other.removedUnstarted && !other.hasRun() && w.Count == 0 &&
		(w.Type == eventlog.AfterAny || w.Type == eventlog.AfterNotOK)
}

// dropReason says why a job is dropped. Clients of PBS look for its sentence.
func (q *dependencyIndex) dropReason(j *job, text string, other uint64) string {
	if j.spec.FromQsub {
		return fmt.Sprintf("Job deleted as result of dependency on job %v", roost.JobID{Seq: other, Host: q.host})
	}
	return fmt.Sprintf(text, other)
}
