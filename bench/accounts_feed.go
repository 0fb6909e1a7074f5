package main

import (
	"container/heap"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/accounting"
)

// The pool whose accounts are generated.
const (
	accountUsers    = 400
	accountGroups   = 40
	accountProjects = 12
	accountNodes    = 2000
	accountHost     = "submit"
)

// accountsFeed generates the feed of a schedd over some months, in the order of time.
// Jobs come as they are submitted, attempts as they end. The same arguments give the same
// feed.
type accountsFeed struct {
	random *rand.Rand
	source accounting.SourceID
	now    accounting.Millis
	pace   accounting.Millis // from a job to the next, on average
	number uint64
	seq    uint64
	made   int // attempts
	ahead  attemptHeap
}

// attemptHeap has attempts that will end, the first one first.
type attemptHeap []*accounting.AttemptEntry

func (h attemptHeap) Len() int           { return len(h) }
func (h attemptHeap) Less(i, j int) bool { return h[i].Ended < h[j].Ended }
func (h attemptHeap) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }
func (h *attemptHeap) Push(x any)        { *h = append(*h, x.(*accounting.AttemptEntry)) }
func (h *attemptHeap) Pop() any {
	last := len(*h) - 1
	x := (*h)[last]
	*h = (*h)[:last]
	return x
}

// tasksPerJob is the mean of what newJob draws, and attemptsPerTask that of a task.
const (
	tasksPerJob     = 5.5
	attemptsPerTask = 1.05
)

// newAccountsFeed returns a feed whose attempts, so many of them, fill the months.
func newAccountsFeed(attempts int, months accounting.TimeRange) *accountsFeed {
	jobs := float64(attempts) / (tasksPerJob * attemptsPerTask)
	return &accountsFeed{
		random: rand.New(rand.NewPCG(1, uint64(attempts))), source: accounting.SourceID{0xbe, 15: 1}, now: months.From,
		pace: max(1, accounting.Millis(float64(months.To-months.From)/jobs)),
	}
}

// next returns entries with some attempts that have ended, and the jobs before them.
func (f *accountsFeed) next(attempts int) (entries []accounting.FeedEntry) {
	add := func(e accounting.FeedEntry) {
		f.number++
		e.Number = f.number
		entries = append(entries, e)
	}
	for n := 0; n < attempts; {
		if len(f.ahead) > 0 && f.ahead[0].Ended <= f.now {
			add(accounting.FeedEntry{Attempt: heap.Pop(&f.ahead).(*accounting.AttemptEntry)})
			n++
			continue
		}
		add(accounting.FeedEntry{Job: f.newJob()})
		f.now += 1 + accounting.Millis(f.random.Int64N(2*int64(f.pace)))
	}
	f.made += attempts
	return entries
}

// newJob makes a job, and the attempts that will end.
func (f *accountsFeed) newJob() *accounting.JobEntry {
	f.seq++
	user := int(float64(accountUsers) * f.random.Float64() * f.random.Float64()) // few users have many jobs
	job := &accounting.JobEntry{
		JobKey: accounting.JobKey{Month: accounting.MonthOf(f.now), Source: f.source, Seq: f.seq}, Host: accountHost,
		Name: "simulation", Owner: accountUser(user), UID: uint32(1000 + user), GID: 100, UnixGroup: "users",
		Group: fmt.Sprintf("field%d.group%d", user%5, user%accountGroups), Project: fmt.Sprintf("project%d",
			user%accountProjects),
		Band: roost.PriorityBand(f.random.IntN(4)), Queue: []string{"short", "long", "gpu"}[f.random.IntN(3)],
		Tasks: 1 + f.random.IntN(10), Array: true, Arguments: "simulate --steps 1000", WorkDir: "/home/user/work",
		Request:   roost.Resources{CPU: 1000 * roost.MilliCPU(1+f.random.IntN(8)), Memory: 4 * roost.GiB},
		Submitted: f.now, Eligible: f.now, Walltime: 8 * int64(accounting.HourMillis),
	}
	for index := range job.Tasks {
		started := f.now + accounting.Millis(f.random.Int64N(int64(30*time.Minute/time.Millisecond)))
		for attempt := roost.AttemptNumber(1); ; attempt++ {
			a := f.newAttempt(job, index, attempt, started)
			heap.Push(&f.ahead, a)
			if a.Cause == accounting.EndedExit {
				break
			}
			started = a.Ended + 60_000
		}
	}
	return job
}

func accountUser(n int) string { return fmt.Sprintf("user%d", n) }

func (f *accountsFeed) newAttempt(job *accounting.JobEntry, index int, attempt roost.AttemptNumber,
	started accounting.Millis) *accounting.AttemptEntry {
	node := f.random.IntN(accountNodes)
	wall := f.random.Int64N(int64(accounting.HourMillis)) << f.random.IntN(3)
	a := &accounting.AttemptEntry{
		AttemptKey: accounting.AttemptKey{JobKey: job.JobKey, Index: index, Attempt: attempt},
		Node:       fmt.Sprintf("node%d", node), AppClass: "batch", Assigned: started - 1000,
		Started: started, Ended: started + accounting.Millis(wall), Held: job.Request, Wall: wall, UserCPU: wall,
		SystemCPU: wall / 50, Useful: wall, Peak: roost.Resources{Memory: roost.GiB}, Read: 1 << 30, Written: 1 << 20,
		Cause: accounting.EndedExit, ExitCode: int32(f.random.IntN(20) / 19),
	}
	if f.random.IntN(21) == 0 {
		a.Cause, a.Useful, a.ExitCode = accounting.EndedPreemption, wall/2, 0
	}
	return a
}
