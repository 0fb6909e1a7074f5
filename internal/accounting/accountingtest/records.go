// Package accountingtest has records for the tests of what reads and writes accounting.
package accountingtest

import (
	"fmt"
	"iter"
	"math/rand/v2"
	"slices"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/accounting"
)

// Begin is the first millisecond of the records: 2026-11-01 in UTC.
const Begin accounting.Millis = 1793491200_000

const (
	second = 1000
	hour   = 3600 * second
)

// Job returns a job that a test can change.
func Job(seq uint64) *accounting.JobEntry {
	return &accounting.JobEntry{
		JobKey: accounting.JobKey{Source: accounting.SourceID{1, 2, 3}, Seq: seq}, Host: "submit1.pool", Name: "fit",
		Owner: "ann", UID: 1001, GID: 200, UnixGroup: "staff", Group: "physics.atlas", Project: "higgs",
		Band: roost.BatchBand, Queue: "batch", Tasks: 1,
		Request:  roost.Resources{CPU: 1500, Memory: 4 * roost.GiB, Disk: roost.GiB},
		Walltime: 2 * hour, Arguments: "fit.sh", WorkDir: "/home/ann/fit",
		Submitted: Begin + 10*second + 250, Eligible: Begin + 20*second, Ended: Begin + hour,
	}
}

// Attempt returns an attempt of a job that ended with exit code 0.
func Attempt(job *accounting.JobEntry, index int, number roost.AttemptNumber) *accounting.AttemptEntry {
	return &accounting.AttemptEntry{
		AttemptKey: accounting.AttemptKey{JobKey: job.JobKey, Index: index, Attempt: number}, Node: "node7.pool",
		AppClass: "batch", Class: "linux-x86_64", Assigned: Begin + 59*second, Started: Begin + 60*second + 125,
		Ended: Begin + hour - 5*second, Held: roost.Resources{CPU: 1500, Memory: 4 * roost.GiB, Disk: roost.GiB},
		Wall: 3534_875, UserCPU: 5000_123, SystemCPU: 61_456, Useful: 3534_875,
		Peak: roost.Resources{Memory: 3*roost.GiB + 1, Disk: roost.MiB}, Read: 123_456_789, Written: 4096,
		Cause: accounting.EndedExit,
	}
}

// Sample returns attempts of every end, and ones that run. There are arrays, an attempt
// that was suspended, and a job without attempts. They are in the order of jobs, tasks
// and attempts.
func Sample() []*accounting.AttemptRecord {
	var list []*accounting.AttemptRecord
	seq := uint64(10)
	add := func(change func(j *accounting.JobEntry, a *accounting.AttemptEntry)) {
		seq++
		j := Job(seq)
		a := Attempt(j, 0, 1)
		change(j, a)
		list = append(list, &accounting.AttemptRecord{AttemptEntry: *a, Job: j})
	}
	add(func(*accounting.JobEntry, *accounting.AttemptEntry) {})
	for cause := accounting.EndedWalltime; cause <= accounting.EndedPrologue; cause++ {
		add(func(j *accounting.JobEntry, a *accounting.AttemptEntry) {
			a.Cause, a.Reason, a.Useful = cause, fmt.Sprintf("cause %d: it ended", cause), 0
			if j.Removed = cause == accounting.EndedRemoval; j.Removed {
				a.Signal = 15
			}
		})
	}
	add(func(_ *accounting.JobEntry, a *accounting.AttemptEntry) { a.ExitCode, a.Reason = 3, "exit code 3" })
	add(func(j *accounting.JobEntry, a *accounting.AttemptEntry) { // it runs, on GPUs
		j.Ended, a.Ended, a.Cause, a.Useful = 0, 0, accounting.NotEnded, 0
		a.Held.GPUs, a.Held.GPUMemory, j.Request.GPUs, j.Band = 2, 8*roost.GiB, 2, roost.ProductionBand
	})
	add(func(j *accounting.JobEntry, a *accounting.AttemptEntry) { // it was suspended
		a.Suspended, a.Segments = 600_000, []accounting.Segment{
			{From: a.Started, Wall: 1000_000, Held: a.Held},
			{From: a.Started + 1000_000, Wall: 600_000, Suspended: true, Held: a.Held},
			{From: a.Started + 1600_000, Wall: a.Wall - 1600_000, Held: a.Held},
		}
		j.Group, j.Project, j.Walltime, j.Band = "", "", 0, roost.FreeBand
	})
	add(func(_ *accounting.JobEntry, a *accounting.AttemptEntry) { a.Ended = a.Started - 5*second }) // a clock jumped
	seq++
	array := Job(seq)
	array.Array, array.Tasks, array.Name = true, 3, "scan|of=all"
	for i := range array.Tasks {
		list = append(list, &accounting.AttemptRecord{AttemptEntry: *Attempt(array, i, 1), Job: array})
	}
	list[len(list)-2].Cause = accounting.EndedPreemption
	again := Attempt(array, 1, 2)
	again.Started, again.Ended = again.Ended+second, again.Ended+2*hour
	list = slices.Insert(list, len(list)-1, &accounting.AttemptRecord{AttemptEntry: *again, Job: array})
	seq++
	waiting := Job(seq)
	waiting.Ended = 0
	return append(list, &accounting.AttemptRecord{Job: waiting})
}

// OddNames are names that formats of text easily get wrong.
func OddNames() []string {
	return []string{"two words", "a|b", `say "hi"`, "k=v", "line\nbreak", "cr\r", "\ttab", "semi;colon", "=1+1",
		"+1", "-1", "@sum", "'quoted", "comma,ed", "\xff\xfe", "nul\x00", "näme", "per%cent", "%41",
		"<b>&amp;", "\u2028",
		"h/0+g", "a,b[1-3]", "\x1b[31m", "", " ", "trailing ", "\\", "\\N", "=\"x\",y"}
}

// WithNames returns an ended attempt whose every name is the text.
func WithNames(text string) *accounting.AttemptRecord {
	j := Job(1)
	j.Name, j.Owner, j.UnixGroup, j.Group, j.Project, j.Queue = text, text, text, text, text, text
	j.Arguments, j.WorkDir, j.Host = text, text, text
	a := Attempt(j, 0, 1)
	a.Node, a.AppClass, a.Class, a.Reason = text, text, text, text
	return &accounting.AttemptRecord{AttemptEntry: *a, Job: j}
}

// Rows yields the records of a list.
func Rows[T any](list []*T) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		for _, r := range list {
			if !yield(*r, nil) {
				return
			}
		}
	}
}

// Random yields n ended attempts of a day, in the order of their ends.
func Random(seed uint64, n int) iter.Seq2[accounting.AttemptRecord, error] {
	return func(yield func(accounting.AttemptRecord, error) bool) {
		rng := rand.New(rand.NewPCG(seed, 1))
		for i := range n {
			j := Job(uint64(i) + 1)
			a := Attempt(j, 0, 1)
			a.Ended = Begin + accounting.Millis(int64(i)*24*hour/int64(n))
			a.Wall = rng.Int64N(10 * hour)
			a.Started = a.Ended - accounting.Millis(a.Wall)
			j.Submitted = a.Started - accounting.Millis(rng.Int64N(hour))
			j.Eligible, j.Ended = j.Submitted, a.Ended
			j.Owner, j.UID = fmt.Sprintf("user%d", rng.IntN(400)), uint32(rng.IntN(400))
			a.Node = fmt.Sprintf("node%d.pool", rng.IntN(10_000))
			if !yield(accounting.AttemptRecord{AttemptEntry: *a, Job: j}, nil) {
				return
			}
		}
	}
}

// Machines are changes of machines of every kind, in the order of time.
func Machines() (list []*accounting.MachineEvent) {
	at := Begin
	for _, node := range []string{"node7.pool", "node8.pool"} {
		for what := accounting.MachineAdded; what <= accounting.MachineReclaimed; what++ {
			m := &accounting.MachineEvent{Node: node, Time: at, What: what, Class: "linux-x86_64",
				Capacity: roost.Resources{CPU: 64_000, Memory: 256 * roost.GiB, Disk: roost.TiB, GPUs: 4}}
			if what == accounting.MachineDrained {
				m.Reason, m.By = "disk, \"sda\"", "root"
			}
			list = append(list, m)
			at += 60 * second
		}
	}
	return list
}
