package queue

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/roost-batch/roost"
)

// The tasks of a gang start together or not at all: the first so many tasks of a job are one, the next as many another. A gang is whole while all
// of its tasks that are not final are idle; only then it is offered. When one of its tasks has to be made again, because it was lost or vacated or has
// failed with retries left, the others could do nothing with the new attempt: they are vacated, and the gang starts again when all are there. Tasks
// that have completed stay completed, and the gang is smaller then.
//
// A stream job is a gang of all its tasks until the first of them runs: whoever serves others serves with all that it asked for, or is refused (HRM
// §4.3.1). From then on each task that has to be made again starts by itself, for the others go on serving meanwhile: such a gang is loose.

// MaxGang bounds how many tasks start together: as many claims have to be there at once.
const MaxGang = 2048

// maxLed bounds how many tasks an array of gangs has that one of each leads: what it asks for it asks for by gang.
const maxLed = 40_000

// gangs is how the gangs of a job stand. The zero value is that of a job without.
type gangs struct {
	size  int
	loose bool    // only their first start is together
	idle  []int32 // by gang: of its tasks
	open  []int32 // by gang: of its tasks, not final
	whole bitmap  // of gangs
	split bitmap  // of gangs: those whose tasks were told to end
	shown shown   // how gangs stand that are a task of an array to their user
}

// checkGang refuses a job whose tasks cannot be parted into gangs.
func checkGang(p *plan, spec *Spec) error {
	bad := func(format string, args ...any) error {
		return fmt.Errorf("attribute %s: %w: %s", roost.AttrGangSize, roost.Invalid, fmt.Sprintf(format, args...))
	}
	stream := p.class == roost.AppStream && spec.Count > 1
	switch {
	case p.wishes.alone && p.class == roost.AppStream:
		return fmt.Errorf("attribute %s: %w: stream tasks share their machines with batch", roost.AttrExclusive, roost.Invalid)
	case p.led && (p.gang < 2 || p.gang != spec.Count && !p.array || p.class == roost.AppStream):
		return fmt.Errorf("attribute %s: %w: a gang with a leader is all tasks of a batch job, or of a task of an array, two at least", roost.AttrGangLed, roost.Invalid)
	case p.led && spec.Count > maxLed:
		return fmt.Errorf("%w: an array of %d tasks of %d parts each; %d parts are the most", roost.Exhausted, spec.Count/p.gang, p.gang, maxLed)
	case stream && p.gang < 2:
		return checkStream(p, spec)
	case p.gang < 2:
		return nil
	case p.gang > MaxGang:
		return bad("%d tasks start together, and %d is the most", p.gang, MaxGang)
	case spec.Count%p.gang != 0:
		return bad("%d tasks are no whole number of gangs of %d", spec.Count, p.gang)
	case p.maxRunning > 0 && !p.led:
		return bad("a job of gangs has no use for %s: submit fewer tasks", roost.AttrMaxRunning)
	case stream && p.gang != spec.Count:
		return bad("the %d tasks of a stream job start together: leave it out", spec.Count)
	}
	if name := differing(spec.Columns); name != "" && !p.led {
		return bad("all tasks of a job of gangs ask for the same, and column %s says otherwise", name)
	}
	return nil
}

// checkStream refuses a stream job whose tasks cannot start together.
func checkStream(p *plan, spec *Spec) error {
	bad := func(format string, args ...any) error {
		return fmt.Errorf("attribute %s: %w: the tasks of a stream job start together, and %s", roost.AttrAppClass, roost.Invalid, fmt.Sprintf(format, args...))
	}
	if name := differing(spec.Columns); name != "" {
		return bad("so all ask for the same, but column %s says otherwise; submit a job for each kind", name)
	}
	switch {
	case spec.Count > MaxGang:
		return bad("%d is the most: submit several jobs instead of one of %d", MaxGang, spec.Count)
	case p.maxRunning > 0:
		return bad("so it has no use for %s: submit fewer tasks", roost.AttrMaxRunning)
	}
	return nil
}

// differing is the first column by which tasks ask for different things; empty if there is none.
func differing(columns []Column) string {
	for _, c := range columns {
		if slices.Contains(overriding, c.Name) && c.Name != roost.AttrProcesses { // which is nothing of the machine's
			return c.Name
		}
	}
	return ""
}

// together is how many tasks of a job start together; 0 where each does for itself. Stream jobs from before they did may be such that they cannot.
func together(p *plan, s *Submission) (size int, loose bool) {
	switch {
	case p.gang > 1:
		return p.gang, false
	case p.class != roost.AppStream || s.Count < 2 || s.Count > MaxGang || p.maxRunning > 0 || differing(s.Columns) != "":
		return 0, false
	}
	return s.Count, true
}

// form parts the tasks of a new job, whose states are set, into gangs.
func (j *job) form() {
	size, loose := together(&j.plan, j.sub)
	if size == 0 {
		return
	}
	n := len(j.state) / size
	j.gangs = gangs{size: size, loose: loose, idle: make([]int32, n), open: make([]int32, n)}
	for i := range j.state {
		j.gangs.moved(i, roost.Removed, j.state[i])
	}
	j.showAll()
}

// moved notes that a task has changed its state.
func (g *gangs) moved(i int, from, to roost.TaskState) {
	if g.size == 0 {
		return
	}
	n := i / g.size
	g.idle[n] += one(to == roost.Idle) - one(from == roost.Idle)
	g.open[n] += one(!to.Final()) - one(!from.Final())
	if g.idle[n] > 0 && g.idle[n] == g.open[n] {
		g.whole.set(n)
		if g.split.has(n) {
			g.split.clear(n)
		}
	} else if g.whole.has(n) {
		g.whole.clear(n)
	}
}

func one(b bool) int32 {
	if b {
		return 1
	}
	return 0
}

// next returns the tasks of the first gang of a request that is whole, by their indexes.
func (j *job) next(r *Request) (tasks []int) {
	n := -1
	if j.gangs.size > 0 {
		n = j.gangs.whole.first()
	}
	if j.plan.led && !j.gangs.whole.has(r.subjob) || n < 0 {
		return nil
	}
	if j.plan.led {
		n = r.subjob
	}
	for !j.plan.led && len(j.urgent) > 0 && j.idleIn(n, r) == 0 { // some gangs are asked for by another request than the rest
		if n = j.gangs.whole.after(n); n < 0 {
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

// scatter ends the others of a gang of which a task has to be made again.
func (q *Queue) scatter(j *job, i int) {
	if j.gangs.size == 0 || j.gangs.loose || j.gangs.split.has(i/j.gangs.size) {
		return
	}
	first := i / j.gangs.size * j.gangs.size
	for k := first; k < first+j.gangs.size; k++ {
		if r := j.book.written(k); k != i && r != nil && r.live {
			j.gangs.split.set(i / j.gangs.size)
			q.asked = append(q.asked, Vacate{
				Attempt: q.attemptOf(j, k), Keep: j.plan.saving != nil && j.plan.saving.OnVacate,
				Reason: fmt.Sprintf("task %d of its gang has to start again, and they start together", i%j.gangs.size),
			})
		}
	}
}

// Mend asks for the end of what is left of gangs of which not all are active. After a restart that may be so: the schedd may have ended while it
// assigned one.
func (q *Queue) Mend() {
	for _, seq := range slices.Sorted(maps.Keys(q.jobs)) {
		j := q.jobs[seq]
		q.mendLed(j)
		for n := range j.gangs.idle {
			if i := n * j.gangs.size; j.gangs.idle[n] > 0 && j.gangs.idle[n] < j.gangs.open[n] {
				for k := i; k < i+j.gangs.size; k++ {
					if j.state[k] == roost.Idle {
						q.scatter(j, k)
						break
					}
				}
			}
		}
	}
}

// Gang is how many tasks of a request start together next: 0 if none of its gangs is whole, or it has none. ok is false if its tasks start one by one.
func (q *Queue) Gang(id RequestID) (size int, ok bool) {
	r := q.requests[id]
	if r == nil || r.gang == 0 {
		return 0, false
	}
	if len(r.classes) == 0 {
		return 0, true
	}
	j := r.classes[0].job
	if j.gangs.size == 0 || j.gangs.loose && (j.began != 0 || j.active > 0) {
		return 0, false
	}
	return len(j.next(r)), true
}

// Seat is a claim that a task of a gang is to run on.
type Seat struct {
	Node, Address string
	Claim         uint64
	Request       RequestID // 0: the one that all of the gang are of
}

// AssignGang decides to make the next attempts of a gang, a task on each seat; false if no gang is whole that has as many tasks as there are seats.
func (q *Queue) AssignGang(now time.Time, id RequestID, seats []Seat) (events []Event, attempts []roost.AttemptID, ok bool) {
	r := q.requests[id]
	if r == nil || len(r.classes) == 0 {
		return nil, nil, false
	}
	j := r.classes[0].job
	tasks := j.next(r)
	if len(tasks) == 0 || len(tasks) != len(seats) {
		return nil, nil, false
	}
	if tasks, ok = j.seated(tasks, seats); !ok {
		return nil, nil, false
	}
	for n, i := range tasks {
		e, a, err := q.Assign(now, j.id(q.host).Task(i), seats[n].Node, seats[n].Address, seats[n].Claim)
		if err != nil {
			panic(err) // they are idle
		}
		events, attempts = append(events, e), append(attempts, a)
	}
	return events, attempts, true
}

// seated puts tasks in the order of the seats that they are to have; false if a seat is of a request that none is left of.
func (j *job) seated(tasks []int, seats []Seat) (order []int, ok bool) {
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

// Lead is the request that leads where the tasks of a gang are of several; false for a request whose gangs are of it alone, or that has none.
func (q *Queue) Lead(id RequestID) (lead RequestID, ok bool) {
	r := q.requests[id]
	if r == nil || r.gang == 0 || len(r.classes) == 0 {
		return id, false
	}
	j := r.classes[0].job
	if !j.plan.led && r.Now { // its gangs are of it alone
		return id, false
	}
	if !j.plan.led {
		first := slices.IndexFunc(j.shares, func(s *share) bool { return !s.request.Now })
		return j.shares[first].request.ID, slices.ContainsFunc(j.shares[first+1:], func(s *share) bool { return !s.request.Now })
	}
	head := r.subjob * j.plan.gang
	for i := head + 1; i <= j.tail(head); i++ {
		if j.class(i).request != j.class(head).request {
			return j.class(head).request.ID, true
		}
	}
	return id, false
}

// peers is the rank of a task in its gang among those that are live, and the nodes of all of these by rank.
func (q *Queue) peers(j *job, i int) (rank int, nodes []string) {
	if j.gangs.size == 0 || j.gangs.loose {
		return 0, nil
	}
	first := i / j.gangs.size * j.gangs.size
	for k := first; k < first+j.gangs.size; k++ {
		if r := j.book.written(k); r != nil && r.live {
			if k == i {
				rank = len(nodes)
			}
			nodes = append(nodes, r.node)
		}
	}
	return rank, nodes
}

// Hosts lists where the processes of the job of a live attempt are to be, in the order of its file of nodes.
func (q *Queue) Hosts(a roost.AttemptID) []Host {
	if !q.Live(a) {
		return nil
	}
	return q.hosts(q.jobs[a.Task.Job.Seq], a)
}

// hosts lists where the processes of a job are to be, of its gang or of its task alone; none if it has no file of nodes.
func (q *Queue) hosts(j *job, a roost.AttemptID) (list []Host) {
	first, last := a.Task.Index, a.Task.Index
	if j.gangs.size > 0 && !j.gangs.loose {
		first = first / j.gangs.size * j.gangs.size
		last = first + j.gangs.size - 1
	}
	for i := first; i <= last; i++ {
		n := j.class(i).plan.processes
		if j.plan.led && n < 0 {
			n = 1
		}
		if r := j.book.written(i); r != nil && r.live && n >= 0 {
			list = append(list, Host{q.attemptOf(j, i), r.node, n})
		}
	}
	return list
}

// checkGangs panics when the counts of a job's gangs are wrong.
func (q *Queue) checkGangs(j *job) {
	if j.gangs.size == 0 {
		return
	}
	again := job{state: j.state, plan: j.plan, sub: j.sub}
	again.form()
	for n := range j.gangs.idle {
		if j.gangs.idle[n] != again.gangs.idle[n] || j.gangs.open[n] != again.gangs.open[n] || j.gangs.whole.has(n) != again.gangs.whole.has(n) {
			panic(fmt.Sprintf("queue: gang %d of job %d has %d tasks idle of %d, and says %d of %d, whole: %v", n, j.seq,
				again.gangs.idle[n], again.gangs.open[n], j.gangs.idle[n], j.gangs.open[n], j.gangs.whole.has(n)))
		}
	}
}
