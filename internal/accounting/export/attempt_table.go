package export

import (
	"iter"
	"slices"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/accounting"
)

// causeNames are the words for ends of attempts, by number.
func causeNames() []string {
	return []string{
		accounting.NotEnded: "", accounting.EndedExit: "exit", accounting.EndedWalltime: "walltime",
		accounting.EndedRemoval: "removed", accounting.EndedVacate: "vacated", accounting.EndedLease: "lease",
		accounting.EndedLaunch: "launch", accounting.EndedMachine: "machine", accounting.EndedMemory: "memory",
		accounting.EndedGPUMemory: "gpu memory", accounting.EndedDisk: "disk", accounting.EndedRestore: "restore",
		accounting.EndedPreemption: "preempted", accounting.EndedCPUTime: "cpu time",
		accounting.EndedVirtualMemory: "virtual memory", accounting.EndedPrologue: "prologue",
		accounting.EndedOwnSuccess: "own success", accounting.EndedOwnFailure: "own failure",
	}
}

// Jobs returns the table of jobs.
func Jobs() *Table[accounting.JobEntry] {
	return &Table[accounting.JobEntry]{"jobs", "A record is a job.",
		append(keyColumns(func(j *accounting.JobEntry) *accounting.JobEntry { return j }),
			jobColumns(func(j *accounting.JobEntry) *accounting.JobEntry { return j })...)}
}

// Attempts returns the table of attempts. Each record has the columns of its job, too.
func Attempts() *Table[accounting.AttemptRecord] {
	type record = accounting.AttemptRecord
	jobOf := func(a *record) *accounting.JobEntry { return a.Job }
	return &Table[record]{"attempts", "A record is an execution of a task.",
		slices.Concat(keyColumns(jobOf),
			attemptKeyColumns(func(a *record) *accounting.AttemptKey { return &a.AttemptKey }), jobColumns(jobOf),
			attemptColumns())}
}

// keyColumns are the columns that name a job.
func keyColumns[T any](job func(*T) *accounting.JobEntry) []Column[T] {
	return []Column[T]{
		{"job", "id of the job", func(r *T) cell { return textOf(jobID(job(r))) }},
		{"source", "id of the queue of its schedd, in hexadecimal digits",
			func(r *T) cell { return textOf(job(r).Source.String()) }},
	}
}

// attemptKeyColumns are the columns that name an attempt of a job.
func attemptKeyColumns[T any](key func(*T) *accounting.AttemptKey) []Column[T] {
	return []Column[T]{
		{"index", "index of the task, from 0", func(r *T) cell { return integerOf(key(r).Index) }},
		{"attempt", "number of the execution of the task, from 1",
			func(r *T) cell { return integerOf(key(r).Attempt) }},
	}
}

func jobColumns[T any](job func(*T) *accounting.JobEntry) []Column[T] {
	return slices.Concat([]Column[T]{
		{"name", "name of the job", func(r *T) cell { return textOf(job(r).Name) }},
		{"owner", "account on the submit node", func(r *T) cell { return textOf(job(r).Owner) }},
		{"uid", "its user id", func(r *T) cell { return integerOf(job(r).UID) }},
		{"gid", "its group id", func(r *T) cell { return integerOf(job(r).GID) }},
		{"unix_group", "name of that group", func(r *T) cell { return textOf(job(r).UnixGroup) }},
		{"group", "group of the fair share", func(r *T) cell { return textOf(job(r).Group) }},
		{"project", "what the job is charged to", func(r *T) cell { return textOf(job(r).Project) }},
		{"band", "priority band", func(r *T) cell { return textOf(job(r).Band.String()) }},
		{"queue", "queue", func(r *T) cell { return textOf(job(r).Queue) }},
		{"array", "whether it was submitted as several tasks", func(r *T) cell { return boolOf(job(r).Array) }},
		{"tasks", "number of its tasks", func(r *T) cell { return integerOf(job(r).Tasks) }},
	}, resourceColumns("request_", "one task asked for", func(r *T) *roost.Resources { return &job(r).Request }),
		[]Column[T]{
			{"walltime_seconds", "wall time that one task asked for; 0: no limit",
				func(r *T) cell { return thousandthsOf(job(r).Walltime) }},
			{"command", "first word of the command, without its directory",
				func(r *T) cell { return textOf(job(r).Arguments) }},
			{"work_dir", "directory on the submit node", func(r *T) cell { return textOf(job(r).WorkDir) }},
			{"submitted", "when it was submitted", func(r *T) cell { return timeOf(job(r).Submitted) }},
			{"eligible", "since when it could run", func(r *T) cell { return timeOf(job(r).Eligible) }},
			{"job_ended", "when the job ended", func(r *T) cell { return timeOf(job(r).Ended) }},
			{"removed", "whether it ended because somebody removed it",
				func(r *T) cell { return boolOf(job(r).Removed) }},
		})
}

func attemptColumns() []Column[accounting.AttemptRecord] {
	type record = accounting.AttemptRecord
	causes := causeNames()
	return slices.Concat([]Column[record]{
		{"node", "node that it ran on", func(a *record) cell { return textOf(a.Node) }},
		{"class", "class of the machine", func(a *record) cell { return textOf(a.Class) }},
		{"assigned", "when it was assigned to the node", func(a *record) cell { return timeOf(a.Assigned) }},
		{"started", "when it started", func(a *record) cell { return timeOf(a.Started) }},
		{"ended", "when it ended", func(a *record) cell { return timeOf(a.Ended) }},
	}, resourceColumns("held_", "it held", func(a *record) *roost.Resources { return &a.Held }), []Column[record]{
		{"wall_seconds", "how long it ran, measured on the node",
			func(a *record) cell { return thousandthsOf(a.Wall) }},
		{"user_cpu_seconds", "CPU time of the program", func(a *record) cell { return thousandthsOf(a.UserCPU) }},
		{"system_cpu_seconds", "CPU time in the kernel", func(a *record) cell { return thousandthsOf(a.SystemCPU) }},
		{"suspended_seconds", "part of wall_seconds for which it was suspended",
			func(a *record) cell { return thousandthsOf(a.Suspended) }},
		{"useful_seconds", "part of wall_seconds whose result was not lost",
			func(a *record) cell { return thousandthsOf(a.Useful) }},
		{"peak_memory_bytes", "memory at its highest", func(a *record) cell { return integerOf(a.Peak.Memory) }},
		{"peak_disk_bytes", "disk space at its highest", func(a *record) cell { return integerOf(a.Peak.Disk) }},
		{"peak_gpu_memory_bytes", "GPU memory at its highest",
			func(a *record) cell { return integerOf(a.Peak.GPUMemory) }},
		{"read_bytes", "read from disks", func(a *record) cell { return integerOf(a.Read) }},
		{"written_bytes", "written to disks", func(a *record) cell { return integerOf(a.Written) }},
		{"cause", "why it ended, in one or two words; roost-accounting(7) lists them", func(a *record) cell {
			if int(a.Cause) >= len(causes) {
				return integerOf(int(a.Cause))
			}
			return textOf(causes[a.Cause])
		}},
		{"exit_code", "exit code of the program", func(a *record) cell { return integerOf(a.ExitCode) }},
		{"signal", "signal that ended the program; 0: none", func(a *record) cell { return integerOf(a.Signal) }},
		{"reason", "in words, why it did not succeed", func(a *record) cell { return textOf(a.Reason) }},
		{"app_class", "batch or stream, as the job asked for", func(a *record) cell { return textOf(a.AppClass) }},
	})
}

// SegmentRecord is a part of an attempt during which what it held did not change.
type SegmentRecord struct {
	accounting.AttemptRecord
	Segment accounting.Segment
}

// Segments returns the table of parts of attempts.
func Segments() *Table[SegmentRecord] {
	type record = SegmentRecord
	return &Table[record]{"segments", "A record is a part of an attempt during which it held the same resources or " +
		"was suspended. An attempt that never changed has none.",
		slices.Concat(keyColumns(func(s *record) *accounting.JobEntry { return s.Job }),
			attemptKeyColumns(func(s *record) *accounting.AttemptKey { return &s.AttemptKey }), []Column[record]{
				{"from", "its begin", func(s *record) cell { return timeOf(s.Segment.From) }},
				{"wall_seconds", "its length, measured on the node",
					func(s *record) cell { return thousandthsOf(s.Segment.Wall) }},
				{"suspended", "whether the attempt was suspended",
					func(s *record) cell { return boolOf(s.Segment.Suspended) }},
			}, resourceColumns("held_", "it held", func(s *record) *roost.Resources { return &s.Segment.Held }))}
}

// SegmentsOf yields the parts of attempts.
func SegmentsOf(attempts iter.Seq2[accounting.AttemptRecord, error]) iter.Seq2[SegmentRecord, error] {
	return func(yield func(SegmentRecord, error) bool) {
		for a, err := range attempts {
			if err != nil {
				yield(SegmentRecord{}, err)
				return
			}
			for _, s := range a.Segments {
				if !yield(SegmentRecord{a, s}, nil) {
					return
				}
			}
		}
	}
}
