package queue

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/schedd/queue/eventlog"
	"github.com/roost-batch/roost/schedd/queue/indexset"
)

// The tasks of a gang start together or not at all: the first so many tasks of a job are
// one, the next as many another. A gang is whole while all of its tasks that are not
// final are idle; only then it is offered. When one of its tasks has to be made again,
// because it was lost or vacated or has failed with retries left, the others could do
// nothing with the new attempt: they are vacated, and the gang starts again when all are
// there. Tasks that have completed stay completed, and the gang is smaller then.
//
// A stream job is a gang of all its tasks until the first of them runs: whoever serves
// others serves with all that it asked for, or is refused (HRM §4.3.1). From then on each
// task that has to be made again starts by itself, for the others go on serving
// meanwhile: such a gang is loose.

// gangState is how the gangs of a job stand. The zero value is that of a job without.
type gangState struct {
	size           int
	firstStartOnly bool         // only their first start is together
	idleTasks      []int32      // by gang: of its tasks
	openTasks      []int32      // by gang: of its tasks, not final
	wholeCount     indexset.Set // of gangs
	splitCount     indexset.Set // of gangs: those whose tasks were told to end
	userView       userView     // how gangs stand that are a task of an array to their user
	// what is saved of gangs whose tasks are saved together; a gang of which nothing was
	// saved or failed may be missing
	epochs map[int]*eventlog.GangEpoch
	// when the present attempts of a gang were last asked to save, unix nanoseconds; in
	// memory only
	askedAt map[int]int64
}

// formGangs parts the tasks of a new job, whose states are set, into gangs.
func (j *job) formGangs() {
	size, loose := j.spec.StartTogether(j.submission.count, j.submission.columns)
	if size == 0 {
		return
	}
	n := len(j.state) / size
	j.ownExtras().gangs = gangState{size: size, firstStartOnly: loose, idleTasks: make([]int32, n),
		openTasks: make([]int32, n)}
	for i := range j.state {
		j.gangs.taskMoved(i, roost.Removed, j.state[i])
	}
	j.updateUserStates()
}

// taskMoved notes that a task has changed its state.
func (g *gangState) taskMoved(i int, from, to roost.TaskState) {
	if g.size == 0 {
		return
	}
	n := i / g.size
	g.idleTasks[n] += boolToInt(to == roost.Idle) - boolToInt(from == roost.Idle)
	g.openTasks[n] += boolToInt(!to.IsFinal()) - boolToInt(!from.IsFinal())
	if g.idleTasks[n] > 0 && g.idleTasks[n] == g.openTasks[n] {
		g.wholeCount.Add(n)
		if g.splitCount.Has(n) {
			g.splitCount.Remove(n)
		}
	} else if g.wholeCount.Has(n) {
		g.wholeCount.Remove(n)
	}
}

func boolToInt(b bool) int32 {
	if b {
		return 1
	}
	return 0
}

// nextGang returns the tasks of the first gang of a request that is whole, by their
// indexes.
func (j *job) nextGang(r *Request) (tasks []int) {
	n := -1
	if j.gangs.size > 0 {
		n = j.gangs.wholeCount.First()
	}
	if j.spec.MPIGang && !j.gangs.wholeCount.Has(r.mpiGang) || n < 0 {
		return nil
	}
	if j.spec.MPIGang {
		n = r.mpiGang
	}
	// some gangs are asked for by another request than the rest
	for !j.spec.MPIGang && len(j.urgent) > 0 && j.idleIn(n, r) == 0 {
		if n = j.gangs.wholeCount.After(n); n < 0 {
			return nil
		}
	}
	for i := n * j.gangs.size; i < (n+1)*j.gangs.size; i++ {
		if j.state[i] == roost.Idle {
			tasks = append(tasks, i)
		}
	}
	return tasks
}

// idleIn counts the idle tasks of a gang that a request asks for.
func (j *job) idleIn(n int, r *Request) (idle int) {
	for i := n * j.gangs.size; i < (n+1)*j.gangs.size; i++ {
		if j.state[i] == roost.Idle && j.class(i).request == r {
			idle++
		}
	}
	return idle
}

// gangChanges folds in what becomes of a gang when one of its tasks changes.
type gangChanges struct{ *Queue }

func (q *Queue) gang() gangChanges { return gangChanges{q} }

// requeueRestOfGang ends the others of a gang of which a task has to be made again.
func (q gangChanges) requeueRestOfGang(j *job, i int) {
	checkpoint := j.spec.Checkpoints != nil && j.spec.Checkpoints.OnVacate
	if g := j.gangs.epochs[gangOf(j, i)]; savesTogether(j) { // what one of them lacks the others save in vain
		checkpoint = (checkpoint || stagedImage(j, i) != nil) && (g == nil || !g.Failed)
	}
	q.vacateRestOfGang(j, i, checkpoint,
		fmt.Sprintf("task %d of its gang has to start again, and they start together", i%max(j.gangs.size, 1)))
}

// vacateRestOfGang ends the others of a gang, unless they were told to end already.
func (q gangChanges) vacateRestOfGang(j *job, i int, checkpoint bool, reason string) {
	if j.gangs.size == 0 || j.gangs.firstStartOnly || j.gangs.splitCount.Has(i/j.gangs.size) {
		return
	}
	first := i / j.gangs.size * j.gangs.size
	for k := first; k < first+j.gangs.size; k++ {
		if r := j.records.Own(k); k != i && r != nil && r.Live {
			j.gangs.splitCount.Add(i / j.gangs.size)
			q.vacates = append(q.vacates, VacateAttempt{Attempt: q.attemptOf(j, k), Checkpoint: checkpoint,
				Reason: reason})
		}
	}
}

// RepairGangs asks for the end of what is left of gangs of which not all are active.
// After a restart that may be so: the schedd may have ended while it assigned one.
func (q *Queue) RepairGangs() {
	for _, seq := range slices.Sorted(maps.Keys(q.jobs)) {
		j := q.jobs[seq]
		q.gang().repairMPIGang(j)
		for n := range j.gangs.idleTasks {
			if i := n * j.gangs.size; j.gangs.idleTasks[n] > 0 && j.gangs.idleTasks[n] < j.gangs.openTasks[n] {
				for k := i; k < i+j.gangs.size; k++ {
					if j.state[k] == roost.Idle {
						q.gang().requeueRestOfGang(j, k)
						break
					}
				}
			}
		}
	}
}

// NextGang is how many tasks of a request start together next. It is 0 if none of its
// gangs is whole, or it has none. ok is false if its tasks start one by one.
func (q *requestIndex) NextGang(id RequestID) (size int, ok bool) {
	r := q.requests[id]
	if r == nil || r.gangSize == 0 {
		return 0, false
	}
	if len(r.classes) == 0 {
		return 0, true
	}
	j := r.classes[0].job
	if j.gangs.size == 0 || j.gangs.firstStartOnly && (j.firstStarted != 0 || j.active > 0) {
		return 0, false
	}
	return len(j.nextGang(r)), true
}

// GangClaim is a claim that a task of a gang is to run on.
type GangClaim struct {
	Node, Address string
	Claim         uint64
	Request       RequestID // 0: the one that all of the gang are of
}

// AssignGang decides to make the next attempts of a gang, one task on each claim. It is
// false if no whole gang has as many tasks as there are claims.
func (q *requestIndex) AssignGang(now time.Time, id RequestID,
	seats []GangClaim) (events []eventlog.JobEvent, attempts []roost.AttemptID, ok bool) {
	r := q.requests[id]
	if r == nil || len(r.classes) == 0 {
		return nil, nil, false
	}
	j := r.classes[0].job
	tasks := j.nextGang(r)
	if len(tasks) == 0 || len(tasks) != len(seats) {
		return nil, nil, false
	}
	if tasks, ok = j.assignSeats(tasks, seats); !ok {
		return nil, nil, false
	}
	for n, i := range tasks {
		e, a, err := attemptDecisions{q.jobTable}.AssignNext(now, j.id(q.host).Task(i), seats[n].Node,
			seats[n].Address, seats[n].Claim)
		if err != nil {
			panic(err) // they are idle
		}
		events, attempts = append(events, e), append(attempts, a)
	}
	return events, attempts, true
}

// assignSeats orders tasks by the claims that they are to have. It is false if a claim is
// of a request of which no task is left.
func (j *job) assignSeats(tasks []int, seats []GangClaim) (order []int, ok bool) {
	for _, s := range seats {
		k := slices.IndexFunc(tasks, func(i int) bool { return s.Request == 0 || j.class(i).request.ID == s.Request })
		if k < 0 {
			return nil, false
		}
		order = append(order, tasks[k])
		tasks = slices.Delete(slices.Clone(tasks), k, k+1)
	}
	return order, true
}

// GangRequest returns the leading request of a gang whose tasks make several requests. It
// is false for a request whose gangs make it alone, or that has none.
func (q *requestIndex) GangRequest(id RequestID) (lead RequestID, ok bool) {
	r := q.requests[id]
	if r == nil || r.gangSize == 0 || len(r.classes) == 0 {
		return id, false
	}
	j := r.classes[0].job
	if !j.spec.MPIGang && r.Now { // its gangs are of it alone
		return id, false
	}
	if !j.spec.MPIGang {
		first := slices.IndexFunc(j.shares, func(s *jobReady) bool { return !s.request.Now })
		return j.shares[first].request.ID, slices.ContainsFunc(j.shares[first+1:], func(s *jobReady) bool {
			return !s.request.Now
		})
	}
	head := r.mpiGang * j.spec.GangSize
	for i := head + 1; i <= j.lastOfGang(head); i++ {
		if j.class(i).request != j.class(head).request {
			return j.class(head).request.ID, true
		}
	}
	return id, false
}

// gangPeers returns the rank of a task among the live ones of its gang, and their nodes
// by rank.
func (q *jobTable) gangPeers(j *job, i int) (rank int, nodes []string) {
	if j.gangs.size == 0 || j.gangs.firstStartOnly {
		return 0, nil
	}
	first := i / j.gangs.size * j.gangs.size
	for k := first; k < first+j.gangs.size; k++ {
		if r := j.records.Own(k); r != nil && r.Live {
			if k == i {
				rank = len(nodes)
			}
			nodes = append(nodes, r.Node)
		}
	}
	return rank, nodes
}

// HostsOfAttempt lists where the processes of a live attempt's job are to be. The order
// is that of its file of nodes.
func (q *jobTable) HostsOfAttempt(a roost.AttemptID) []HostProcesses {
	if !q.IsLive(a) {
		return nil
	}
	return q.hostsOf(q.jobs[a.Task.Job.Seq], a)
}

// hostsOf lists where the processes of a task's gang, or of the task alone, are to be. A
// job without a file of nodes has none.
func (q *jobTable) hostsOf(j *job, a roost.AttemptID) (list []HostProcesses) {
	first, last := a.Task.Index, a.Task.Index
	if j.gangs.size > 0 && !j.gangs.firstStartOnly {
		first = first / j.gangs.size * j.gangs.size
		last = first + j.gangs.size - 1
	}
	for i := first; i <= last; i++ {
		n := j.class(i).spec.Processes
		if j.spec.MPIGang && n < 0 {
			n = 1
		}
		if r := j.records.Own(i); r != nil && r.Live && n >= 0 && !j.released[i] {
			list = append(list, HostProcesses{q.attemptOf(j, i), r.Node, n})
		}
	}
	return list
}

// GangRanks is a task's place among the ranks of an MPI program.
type GangRanks struct {
	Index        int             // of the task in its gang
	FirstRank    int             // of the task
	Members      []HostProcesses // of the gang; a member without a node is not live
	Done         []bool          // by member: its ranks have ended well in an earlier attempt
	StartTimeout time.Duration
}

// Size is the number of ranks of the gang.
func (g *GangRanks) Size() (size int) {
	for _, m := range g.Members {
		size += m.Processes
	}
	return size
}

// ranksOf returns the place of a task in its gang, or that of one without a gang.
func ranksOf(q *jobTable, j *job, a roost.AttemptID) *GangRanks {
	first, last := a.Task.Index, a.Task.Index
	if j.gangs.size > 0 {
		first = first / j.gangs.size * j.gangs.size
		last = first + j.gangs.size - 1
	}
	g := &GangRanks{Index: a.Task.Index - first, StartTimeout: j.class(a.Task.Index).spec.StartTimeout}
	for i := first; i <= last; i++ {
		m := HostProcesses{Processes: j.class(i).spec.Processes}
		if r := j.records.Own(i); r != nil && r.Live {
			m.Attempt, m.Node = q.attemptOf(j, i), r.Node
		}
		if i < a.Task.Index {
			g.FirstRank += m.Processes
		}
		g.Members, g.Done = append(g.Members, m), append(g.Done, j.state[i] == roost.Completed &&
			j.records.HasSucceeded(i))
	}
	return g
}

// RanksOfAttempt returns the place of a live attempt among the ranks of its program. It
// is nil for an attempt that has none.
func RanksOfAttempt(q *Queue, a roost.AttemptID) *GangRanks {
	if !q.IsLive(a) {
		return nil
	}
	if j := q.jobs[a.Task.Job.Seq]; j.class(a.Task.Index).spec.MPI != "" {
		return ranksOf(q.jobTable, j, a)
	}
	return nil
}

// checkGangs panics when the counts of a job's gangs are wrong, or its epochs.
func checkGangs(j *job) {
	if j.gangs.size == 0 {
		return
	}
	checkEpochs(j)
	again := job{state: j.state, spec: j.spec, submission: j.submission, jobExtras: noExtras()}
	again.formGangs()
	for n := range j.gangs.idleTasks {
		if j.gangs.idleTasks[n] != again.gangs.idleTasks[n] || j.gangs.openTasks[n] != again.gangs.openTasks[n] ||
			j.gangs.wholeCount.Has(n) != again.gangs.wholeCount.Has(n) {
			panic(fmt.Sprintf("queue: gang %d of job %d has %d tasks idle of %d, and says %d of %d, whole: %v",
				n, j.seq,
				again.gangs.idleTasks[n], again.gangs.openTasks[n], j.gangs.idleTasks[n], j.gangs.openTasks[n],
				j.gangs.wholeCount.Has(n)))
		}
	}
}

// Each gang of an array that one leads makes requests of its own, and whoever hands out
// machines looks at every request in every plan. So of an array with very many no more
// are asked for than could start in a moment: the first maxRequestedGangs of those that
// could, and the next when one of these has started.

// maxRequestedGangs is for how many gangs of an array machines are asked at once.
const maxRequestedGangs = 64

// WaitsForEarlierGang reports whether a request asks for nothing yet because enough gangs
// of its array precede it.
func (q *requestIndex) WaitsForEarlierGang(id RequestID) bool {
	r := q.requests[id]
	if r == nil || r.mpiJob == 0 || r.Now {
		return false
	}
	j := q.jobs[r.mpiJob]
	return j != nil && j.waitsForEarlierGang(r.mpiGang)
}

// waitsForEarlierGang reports whether so many whole gangs of the job come before one that
// its turn is yet to come.
func (j *job) waitsForEarlierGang(n int) bool {
	return j.tasksPerIndex() > 1 && n >= maxRequestedGangs && j.gangs.wholeCount.Below(n) >= maxRequestedGangs
}

// earlierGangReason is why a gang waits whose turn is yet to come.
func earlierGangReason() string {
	return fmt.Sprintf("%d others of its array go before it", maxRequestedGangs)
}

// updateGangOrder notes that the turn of a gang may have come or gone. An earlier gang is
// not ready any more, or is again.
func (q *requestIndex) updateGangOrder(j *job, i int, from, to roost.TaskState) {
	if j.tasksPerIndex() == 1 || from != roost.Idle && to != roost.Idle {
		return
	}
	for _, k := range []int{maxRequestedGangs - 1, maxRequestedGangs} {
		if n := j.gangs.wholeCount.Nth(k); n >= 0 {
			for i := n * j.tasksPerIndex(); i < (n+1)*j.tasksPerIndex(); i++ {
				q.markDirty(j.class(i).request)
			}
		}
	}
}
