package store

import (
	"database/sql"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/accounting"
)

// The columns that jobScan and attemptScan read.
const (
	jobColumns = `j.month, j.source, j.seq, j.name, j.owner, j.uid, j.gid, j.unix_group, j.grp, j.project, j.band, j.queue,
 j.is_array, j.tasks, j.cpu, j.mem, j.disk, j.gpus, j.gpu_mem, j.walltime, j.argument, j.work_dir, j.submitted,
 j.eligible, j.ended, j.removed`
	attemptColumns = `a.month, a.source, a.seq, a.idx, a.attempt, a.node, a.class, a.assigned, a.started, a.ended, a.cpu, a.mem,
 a.disk, a.gpus, a.gpu_mem, a.wall, a.user_cpu, a.system_cpu, a.suspended, a.useful, a.peak_mem, a.peak_disk,
 a.peak_gpu_mem, a.read, a.written, a.cause, a.exit_code, a.signal, a.reason, a.segments`
)

// bandOf returns the band of a column.
func bandOf(column int64) roost.PriorityBand {
	return roost.PriorityBand(min(max(column, 0), 255))
}

// jobScan reads jobColumns. Any of them may be NULL, where a join found no job.
type jobScan struct {
	numbers  [23]sql.NullInt64
	name     sql.NullString
	argument sql.NullString
	workDir  sql.NullString
}

func (s *jobScan) targets() []any {
	n := &s.numbers
	t := []any{&n[0], &n[1], &n[2], &s.name}
	for i := 3; i <= 18; i++ {
		t = append(t, &n[i])
	}
	t = t[:4+15]
	t = append(t, &n[18], &s.argument, &s.workDir)
	return append(t, &n[19], &n[20], &n[21], &n[22])
}

// job returns the job, or nil if there was none.
func (s *jobScan) job(store *Store) *accounting.JobEntry {
	if !s.numbers[0].Valid {
		return nil
	}
	n := func(i int) int64 { return s.numbers[i].Int64 }
	text := func(i int) string { return store.names.text(n(i)) }
	source := store.sources.byID(n(1))
	return &accounting.JobEntry{
		JobKey: accounting.JobKey{Month: accounting.Month(n(0)), Source: source.source, Seq: uint64(n(2))},
		Host:   source.host, Name: s.name.String, Owner: text(3), UID: uint32(n(4)), GID: uint32(n(5)),
		UnixGroup: text(6),
		Group:     text(7), Project: text(8), Band: bandOf(n(9)), Queue: text(10), Array: n(11) != 0, Tasks: int(n(12)),
		Request: roost.Resources{
			CPU: roost.MilliCPU(n(13)), Memory: roost.Bytes(n(14)), Disk: roost.Bytes(n(15)), GPUs: int(n(16)),
			GPUMemory: roost.Bytes(n(17)),
		},
		Walltime: n(18), Arguments: s.argument.String, WorkDir: s.workDir.String, Submitted: accounting.Millis(n(19)),
		Eligible: accounting.Millis(n(20)), Ended: accounting.Millis(n(21)), Removed: n(22) != 0,
	}
}

// attemptScan reads attemptColumns.
type attemptScan struct {
	accounting.AttemptEntry
	source, node, class int64
	segments            []byte
}

func (s *attemptScan) targets() []any {
	a := &s.AttemptEntry
	return []any{
		&a.Month, &s.source, &a.Seq, &a.Index, &a.Attempt, &s.node, &s.class, &a.Assigned, &a.Started, &a.Ended,
		&a.Held.CPU,
		&a.Held.Memory, &a.Held.Disk, &a.Held.GPUs, &a.Held.GPUMemory, &a.Wall, &a.UserCPU, &a.SystemCPU, &a.Suspended,
		&a.Useful, &a.Peak.Memory, &a.Peak.Disk, &a.Peak.GPUMemory, &a.Read, &a.Written, &a.Cause, &a.ExitCode,
		&a.Signal,
		&a.Reason, &s.segments,
	}
}

// attempt returns the attempt that was read.
func (s *attemptScan) attempt(store *Store) (accounting.AttemptEntry, error) {
	a := s.AttemptEntry
	a.Source = store.sources.byID(s.source).source
	a.Node, a.Class = store.names.text(s.node), store.names.text(s.class)
	var err error
	a.Segments, err = unpackSegments(s.segments)
	return a, err
}
