package sacct

import (
	"cmp"
	"strconv"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/accounting"
)

type attemptRecord = accounting.AttemptRecord

// Fields returns the fields that can be printed, by name.
func Fields() []Field {
	return []Field{
		textField("Account", 10, "group of the fair share", func(r *attemptRecord) string { return r.Job.Group }),
		numberField("AllocCPUS", 10, "CPUs that it held, rounded up to whole ones", heldCPUs),
		numberField("AllocNodes", 10, "nodes that it held: 1, or 0 if it had none", heldNodes),
		resourcesField("AllocTRES", "amounts that it held", heldResources),
		numberField("Attempt", 7, "number of the execution of the task, from 1",
			func(r *attemptRecord) int64 { return int64(r.Attempt) }),
		textField("Band", 10, "priority band", bandName),
		elapsedField("CPUTime", 10, "Elapsed times AllocCPUS", cpuTime),
		numberField("CPUTimeRAW", 10, "the same in seconds", cpuTime),
		textField("Class", 10, "class of the machine", func(r *attemptRecord) string { return r.Class }),
		{"Cluster", 10, "name of the cluster, or node of the schedd", (*rowWriter).appendCluster},
		elapsedField("Elapsed", 10, "time that it ran, without time for which it was suspended", elapsed),
		numberField("ElapsedRaw", 10, "the same in seconds", elapsed),
		timeField("Eligible", "since when it could run",
			func(r *attemptRecord) accounting.Millis { return r.Job.Eligible }),
		timeField("End", "end of the attempt", EndTime),
		{"ExitCode", 8, "exit code and signal, with a colon between them", appendExitCode},
		numberField("GID", 6, "group id on the submit node",
			func(r *attemptRecord) int64 { return int64(r.Job.GID) }),
		textField("Group", 9, "Unix group on the submit node",
			func(r *attemptRecord) string { return r.Job.UnixGroup }),
		{"JobID", 12, "number of the job; for an array with _ and the index of the task", appendJobID},
		{"JobIDRaw", 12, "number of the job", appendJobNumber},
		{"JobName", 10, "name of the job", (*rowWriter).appendJobName},
		sizeField("MaxDiskRead", "read from disks", appendKiB,
			func(r *attemptRecord) roost.Bytes { return roost.Bytes(r.Read) }),
		sizeField("MaxDiskWrite", "written to disks", appendKiB,
			func(r *attemptRecord) roost.Bytes { return roost.Bytes(r.Written) }),
		sizeField("MaxRSS", "memory at its highest", appendKiB,
			func(r *attemptRecord) roost.Bytes { return r.Peak.Memory }),
		numberField("NCPUS", 10, "the same as AllocCPUS", heldCPUs),
		numberField("NNodes", 8, "the same as AllocNodes", heldNodes),
		{"NodeList", 15, "node; \"None assigned\" if it did not start", (*rowWriter).appendNodeList},
		textField("Partition", 10, "queue",
			func(r *attemptRecord) string { return cmp.Or(r.Job.Queue, roost.DefaultQueueName) }),
		elapsedField("Planned", 10, "time from Eligible to Start", waited),
		numberField("PlannedRaw", 10, "the same in seconds", waited),
		textField("Project", 10, "what the job is charged to", func(r *attemptRecord) string { return r.Job.Project }),
		{"QOS", 10, "the same as Band", (*rowWriter).appendQOS},
		textField("Reason", 22, "why it did not succeed", func(r *attemptRecord) string { return r.Reason }),
		numberField("ReqCPUS", 8, "CPUs that one task asked for, rounded up to whole ones",
			func(r *attemptRecord) int64 { return CPUs(r.Job.Request.CPU) }),
		sizeField("ReqMem", "memory that one task asked for", appendSize,
			func(r *attemptRecord) roost.Bytes { return r.Job.Request.Memory }),
		resourcesField("ReqTRES", "amounts that one task asked for",
			func(r *attemptRecord) *roost.Resources { return &r.Job.Request }),
		numberField("Restarts", 8, "executions of the task before this one",
			func(r *attemptRecord) int64 { return max(int64(r.Attempt)-1, 0) }),
		timeField("Start", "start of the attempt", func(r *attemptRecord) accounting.Millis { return r.Started }),
		{"State", 13, "state", (*rowWriter).appendState},
		timeField("Submit", "when it was submitted",
			func(r *attemptRecord) accounting.Millis { return r.Job.Submitted }),
		textField("SubmitLine", 20, "first word of the command",
			func(r *attemptRecord) string { return r.Job.Arguments }),
		elapsedField("Suspended", 10, "time for which it was suspended",
			func(r *attemptRecord) int64 { return r.Suspended / 1000 }),
		cpuTimeField("SystemCPU", "CPU time in the kernel", func(r *attemptRecord) int64 { return r.SystemCPU }),
		{"Timelimit", 10, "time that one task asked for, or UNLIMITED", appendTimeLimit},
		numberField("TimelimitRaw", 12, "the same in minutes, rounded up; 0: no limit",
			func(r *attemptRecord) int64 { return (limitSeconds(r) + 59) / 60 }),
		cpuTimeField("TotalCPU", "CPU time", func(r *attemptRecord) int64 { return r.UserCPU + r.SystemCPU }),
		numberField("UID", 6, "user id on the submit node", func(r *attemptRecord) int64 { return int64(r.Job.UID) }),
		elapsedField("Useful", 10, "time whose result was not lost",
			func(r *attemptRecord) int64 { return r.Useful / 1000 }),
		textField("User", 9, "owner", func(r *attemptRecord) string { return r.Job.Owner }),
		cpuTimeField("UserCPU", "CPU time of the program", func(r *attemptRecord) int64 { return r.UserCPU }),
		textField("WorkDir", 20, "directory on the submit node",
			func(r *attemptRecord) string { return r.Job.WorkDir }),
	}
}

func bandName(r *attemptRecord) string { return r.Job.Band.String() }

func hasNode(r *attemptRecord) bool { return r.Started != 0 && r.Node != "" }

func heldNodes(r *attemptRecord) int64 {
	if hasNode(r) {
		return 1
	}
	return 0
}

func heldCPUs(r *attemptRecord) int64 {
	if hasNode(r) {
		return CPUs(r.Held.CPU)
	}
	return 0
}

// heldResources returns what the attempt held; nil: it had no node.
func heldResources(r *attemptRecord) *roost.Resources {
	if hasNode(r) {
		return &r.AttemptEntry.Held
	}
	return nil
}

func elapsed(r *attemptRecord) int64 { return ElapsedSeconds(&r.AttemptEntry) }

func cpuTime(r *attemptRecord) int64 { return product(elapsed(r), heldCPUs(r)) }

func waited(r *attemptRecord) int64 {
	if r.Started == 0 || r.Job.Eligible == 0 {
		return 0
	}
	return max(int64(r.Started-r.Job.Eligible), 0) / 1000
}

// limitSeconds is the wall time that one task asked for, rounded up; 0: no limit.
func limitSeconds(r *attemptRecord) int64 { return (max(min(r.Job.Walltime, 1<<62), 0) + 999) / 1000 }

// EndTime returns when an attempt ended. If the clock of its node was set back meanwhile,
// it is the start and the measured time, since readers refuse an end before the start. A
// job without attempts has the end of the job.
func EndTime(r *accounting.AttemptRecord) accounting.Millis {
	switch {
	case r.Attempt == 0:
		return r.Job.Ended
	case r.Ended != 0 && r.Ended < r.Started:
		return r.Started + accounting.Millis(max(r.Wall, 0))
	}
	return r.Ended
}

func appendJobNumber(w *rowWriter, b []byte, r *attemptRecord) []byte {
	return w.appendStep(strconv.AppendUint(b, cmp.Or(w.part.Number, r.Job.Seq), 10))
}

// appendStep appends the step that a row is about to an id.
func (w *rowWriter) appendStep(b []byte) []byte {
	if w.part.Step == "" {
		return b
	}
	return append(append(b, '.'), w.part.Step...)
}

func (w *rowWriter) appendJobName(b []byte, r *attemptRecord) []byte {
	return w.names.Append(b, cmp.Or(w.part.StepName, w.part.Step, r.Job.Name), w.most)
}

// appendState appends the state. Where steps have rows, that of the job says who removed
// it.
func (w *rowWriter) appendState(b []byte, r *attemptRecord) []byte {
	state := State(r)
	if b = append(b, state...); state == "CANCELLED" && w.part.HasSteps && w.part.Step == "" {
		b = strconv.AppendUint(append(b, " by "...), uint64(r.Job.UID), 10)
	}
	return b
}

// appendQOS appends the band. Slurm's own clients know no bands.
func (w *rowWriter) appendQOS(b []byte, r *attemptRecord) []byte {
	if w.part.HasSteps {
		return append(b, "normal"...)
	}
	return append(b, bandName(r)...)
}

func appendJobID(w *rowWriter, b []byte, r *attemptRecord) []byte {
	b = strconv.AppendUint(b, r.Job.Seq, 10)
	switch {
	case w.part.Indexes != "":
		b = append(append(b, '_'), w.part.Indexes...)
	case r.Job.Array:
		b = strconv.AppendInt(append(b, '_'), int64(r.Index), 10)
	}
	return w.appendStep(b)
}

func (w *rowWriter) appendCluster(b []byte, r *attemptRecord) []byte {
	name := w.Cluster
	if name == "" {
		name = r.Job.Host
	}
	return w.names.Append(b, name, w.most)
}

func (w *rowWriter) appendNodeList(b []byte, r *attemptRecord) []byte {
	if !hasNode(r) {
		return append(b, "None assigned"...)
	}
	return w.hosts.Append(b, r.Node, w.most)
}

func appendExitCode(_ *rowWriter, b []byte, r *attemptRecord) []byte {
	b = append(strconv.AppendInt(b, int64(r.ExitCode), 10), ':')
	return strconv.AppendInt(b, int64(r.Signal), 10)
}

func appendTimeLimit(_ *rowWriter, b []byte, r *attemptRecord) []byte {
	if r.Job.Walltime <= 0 {
		return append(b, "UNLIMITED"...)
	}
	return appendElapsed(b, limitSeconds(r))
}
