package store

import (
	"fmt"
	"math/rand/v2"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/accounting"
)

// The time of the workload of tests: it begins before a month's end, so that jobs and
// attempts lie on both sides of it.
var (
	workloadStart = accounting.NewMonth(2026, 10).End() - 2*accounting.DayMillis
	workloadEnd   = workloadStart + 5*accounting.DayMillis
)

func testSource(n byte) accounting.SourceID { return accounting.SourceID{n, 0xaa, 15: n} }

func testHost(n byte) string { return fmt.Sprintf("submit%d", n) }

// feedMaker makes the feed of one schedd.
type feedMaker struct {
	random  *rand.Rand
	source  byte
	entries []accounting.FeedEntry
}

// testFeed returns the feed of jobs jobs, the same for the same arguments.
func testFeed(source byte, jobs int) []accounting.FeedEntry {
	m := &feedMaker{random: rand.New(rand.NewPCG(uint64(source), uint64(jobs))), source: source}
	for seq := range jobs {
		m.job(uint64(seq + 1))
	}
	return m.entries
}

func (m *feedMaker) add(e accounting.FeedEntry) {
	e.Number = uint64(len(m.entries) + 1)
	m.entries = append(m.entries, e)
}

func (m *feedMaker) pick(names ...string) string { return names[m.random.IntN(len(names))] }

func (m *feedMaker) millis(most accounting.Millis) accounting.Millis {
	return accounting.Millis(m.random.Int64N(int64(most)))
}

// job adds the entries of a job of a few tasks.
func (m *feedMaker) job(seq uint64) {
	submitted := workloadStart + m.millis(3*accounting.DayMillis)
	job := accounting.JobEntry{
		JobKey: accounting.JobKey{Month: accounting.MonthOf(submitted), Source: testSource(m.source), Seq: seq},
		Host:   testHost(m.source), Name: "it's a \"job\"; DROP TABLE job -- \x00\xff", Owner: m.pick("ann", "bob",
			"eve"), UID: 1000,
		GID: 100, UnixGroup: "users", Group: m.pick("", "physics", "physics.atlas", "physics.cms", "bio"),
		Project: m.pick("", "", "p1", "p2"), Band: roost.PriorityBand(m.random.IntN(4)), Queue: m.pick("long", "short"),
		Array: m.random.IntN(2) == 0, Tasks: 1 + m.random.IntN(3),
		Request: roost.Resources{CPU: 1000 * roost.MilliCPU(1+m.random.IntN(16)),
			Memory: roost.Bytes(1+m.random.IntN(64)) * roost.GiB},
		Walltime: 3600_000, Arguments: "sim", WorkDir: "/home/x", Submitted: submitted,
		Eligible: submitted + m.millis(60_000),
	}
	m.add(accounting.FeedEntry{Job: clone(job)})
	last := job.Eligible
	for index := range job.Tasks {
		last = max(last, m.task(&job, index))
	}
	if m.random.IntN(20) == 0 {
		job.Project = "moved"
	}
	if m.random.IntN(3) == 0 {
		m.add(accounting.FeedEntry{Action: &accounting.JobAction{JobKey: job.JobKey, Time: last, Index: -1,
			What: "altered", By: "ann"}})
	}
	job.Ended = last
	m.add(accounting.FeedEntry{Job: clone(job)})
}

func clone[T any](v T) *T { return &v }

// task adds the entries of the attempts of a task, and returns when the last ended.
func (m *feedMaker) task(job *accounting.JobEntry, index int) accounting.Millis {
	at := job.Eligible
	for attempt := roost.AttemptNumber(1); ; attempt++ {
		a := accounting.AttemptEntry{
			AttemptKey: accounting.AttemptKey{JobKey: job.JobKey, Index: index, Attempt: attempt},
			Node:       fmt.Sprintf("node%d", m.random.IntN(8)), AppClass: m.pick("batch", "stream", ""),
			Assigned: at + m.millis(600_000),
			Held:     job.Request,
		}
		m.add(accounting.FeedEntry{Attempt: clone(a)})
		a.Started = a.Assigned + m.millis(5000)
		m.add(accounting.FeedEntry{Attempt: clone(a)})
		m.end(&a)
		m.add(accounting.FeedEntry{Attempt: clone(a)})
		if m.random.IntN(2) == 0 {
			u := accounting.UsageHour{AttemptKey: a.AttemptKey, Hour: a.Started.Hour()}
			u.Windows[m.random.IntN(12)] = accounting.UsageSample{CPUMean: 900, CPUMax: 1000, MemoryMax: roost.GiB,
				GPUMean: int64(m.random.IntN(2)) * 700}
			m.add(accounting.FeedEntry{Usage: &u})
		}
		if at = a.Ended; a.Cause == accounting.EndedExit {
			return at
		}
	}
}

// end sets how an attempt ended.
func (m *feedMaker) end(a *accounting.AttemptEntry) {
	a.Wall = m.random.Int64N(int64(accounting.HourMillis) << m.random.IntN(5))
	a.Ended = a.Started + accounting.Millis(a.Wall) + m.millis(2000)
	a.UserCPU, a.SystemCPU, a.Useful = a.Wall/2, a.Wall/9, a.Wall
	a.Peak = roost.Resources{Memory: roost.GiB}
	a.Read, a.Written = 1000, 2000
	switch m.random.IntN(6) {
	case 0:
		a.Cause, a.Useful, a.Reason = accounting.EndedPreemption, a.Wall/3, "a task of a higher band"
	case 1:
		a.Cause, a.Useful = accounting.EndedMachine, 0
	default:
		a.Cause, a.ExitCode = accounting.EndedExit, int32(m.random.IntN(2))
	}
	if m.random.IntN(5) == 0 {
		half := a.Wall / 2
		a.Suspended = a.Wall - half
		a.Segments = []accounting.Segment{
			{From: a.Started, Wall: half, Held: a.Held},
			{From: a.Started + accounting.Millis(half), Wall: a.Wall - half, Suspended: true, Held: a.Held},
		}
	}
}

// testMachines returns the events of the nodes of the workload.
func testMachines() []accounting.MachineEvent {
	var events []accounting.MachineEvent
	for n := range 8 {
		node := fmt.Sprintf("node%d", n)
		add := func(after accounting.Millis, what accounting.MachineChange) {
			events = append(events, accounting.MachineEvent{
				Node: node, Time: workloadStart + after, What: what, Class: "cpu",
				Capacity: roost.Resources{CPU: 64_000, Memory: 256 * roost.GiB, GPUs: n % 3},
			})
		}
		add(accounting.Millis(n)*1000, accounting.MachineAdded)
		if n%4 == 0 {
			add(30*accounting.HourMillis+1, accounting.MachineReclaimed)
			add(33*accounting.HourMillis+7, accounting.MachineAvailable)
		}
		if n%4 == 1 {
			add(40*accounting.HourMillis, accounting.MachineDrained)
		}
	}
	return events
}
