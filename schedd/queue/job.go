package queue

import (
	"fmt"

	"github.com/roost-batch/roost"
)

// job is one job in the queue. A task costs a byte for its state and a bit in its class; only a task that was touched by itself has a record.
type job struct {
	seq       uint64
	sub       *Submission // its Columns are packed below
	plan      plan
	submitted int64 // unix nanoseconds; so the next two, 0 for not yet
	started   int64
	ended     int64
	state     []roost.TaskState
	counts    [roost.Removed + 1]int
	failed    int // of the completed ones
	records   map[int]*record
	columns   []packed
	classes   []*class
	classOf   []uint16 // of each task; nil when there is one class
	waits     []Wait   // still open
	due       bool     // its start time has come
	active    int      // tasks with a live attempt
}

// record is what is known of a task beyond its state.
type record struct {
	attempt  roost.Attempt
	live     bool
	own      int16           // attempts that failed by the job's own doing
	machine  int16           // attempts in a row that a machine spoiled
	want     roost.TaskState // desired of an active task: Held, Removed, or Running for nothing in particular
	force    bool
	code     int
	node     string
	address  string
	claim    uint64
	assigned int64
	started  int64
	ended    int64
	by       string
	reason   string // why it is held, removed, waits again
	exit     *Exit  // of the last attempt that had one
}

// record finds or makes the record of a task.
func (j *job) record(i int) *record {
	r := j.records[i]
	if r == nil {
		if j.records == nil {
			j.records = map[int]*record{}
		}
		r = &record{want: roost.Running}
		j.records[i] = r
	}
	return r
}

func (j *job) id(host string) roost.JobID { return roost.JobID{Seq: j.seq, Host: host} }

func (j *job) final() bool { return j.counts[roost.Completed]+j.counts[roost.Removed] == len(j.state) }

// succeeded reports whether every task completed with success.
func (j *job) succeeded() bool { return j.counts[roost.Completed] == len(j.state) && j.failed == 0 }

// blocked reports whether the job waits for others or for its time.
func (j *job) blocked() bool { return len(j.waits) > 0 || !j.due }

// full reports whether as many tasks are active as may be.
func (j *job) full() bool { return j.plan.maxRunning > 0 && j.active >= j.plan.maxRunning }

func (j *job) class(i int) *class {
	if j.classOf == nil {
		return j.classes[0]
	}
	return j.classes[j.classOf[i]]
}

// packed is a column in one piece of memory: value i is text[ends[i-1]:ends[i]].
type packed struct {
	name string
	text string
	ends []uint32
}

func pack(c Column) packed {
	p := packed{name: c.Name, ends: make([]uint32, len(c.Values))}
	size := 0
	for _, v := range c.Values {
		size += len(v)
	}
	text := make([]byte, 0, size)
	for i, v := range c.Values {
		text = append(text, v...)
		p.ends[i] = uint32(len(text))
	}
	p.text = string(text)
	return p
}

func (p *packed) value(i int) string {
	if i == 0 {
		return p.text[:p.ends[0]]
	}
	return p.text[p.ends[i-1]:p.ends[i]]
}

func (p *packed) column() Column {
	c := Column{p.name, make([]string, len(p.ends))}
	for i := range c.Values {
		c.Values[i] = p.value(i)
	}
	return c
}

// become is the one place where a task changes its state.
func (q *Queue) become(j *job, i int, to roost.TaskState) {
	from := j.state[i]
	if from == to {
		return
	}
	ok := true
	switch {
	case to == roost.Starting:
		ok = from == roost.Idle
	case to == roost.Running:
		ok = from == roost.Starting
	case to == roost.Completed:
		ok = from.Active()
	case from.Final():
		ok = to == roost.Idle || to == roost.Blocked
	}
	if !ok {
		illegal("task %v goes from %v to %v", j.id(q.host).Task(i), from, to)
	}
	j.state[i] = to
	j.counts[from]--
	j.counts[to]++
	q.changes++
	if from.Final() != to.Final() {
		if to.Final() {
			q.tasks--
		} else {
			q.tasks++
		}
	}
	if (from == roost.Idle) != (to == roost.Idle) {
		q.setReady(j, i, to == roost.Idle)
	}
	if from.Active() != to.Active() {
		step := 1
		if from.Active() {
			step = -1
		}
		j.active += step
		q.active += step
		if j.plan.maxRunning > 0 {
			for _, c := range j.classes {
				q.settle(c)
			}
		}
	}
}

// note marks a job as changed.
func (q *Queue) note(j *job) { q.changed[j.seq], q.unsaved[j.seq] = struct{}{}, struct{}{} }

// each calls f with every task of the job that ranges name; none means all.
func (j *job) each(ranges []Range, f func(i int)) {
	if len(ranges) == 0 {
		ranges = []Range{{0, len(j.state) - 1}}
	}
	for _, r := range ranges {
		if r.Last >= len(j.state) || r.First < 0 {
			panic(fmt.Sprintf("queue: job %d has %d tasks, and %v was named", j.seq, len(j.state), r))
		}
		for i := r.First; i <= r.Last; i++ {
			f(i)
		}
	}
}
