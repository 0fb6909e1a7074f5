package store

import (
	"cmp"
	"database/sql"
	"fmt"

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

// rowValues are the columns of a row as the driver returns them. That database/sql
// converts each to a type of this program takes a third of the time of a long read.
type rowValues struct {
	values  []any
	targets []any
	wrong   bool // a column had another type
}

func newRowValues(columns int) *rowValues {
	v := &rowValues{values: make([]any, columns), targets: make([]any, columns)}
	for i := range v.values {
		v.targets[i] = &v.values[i]
	}
	return v
}

// scan reads a row.
func (v *rowValues) scan(rows *sql.Rows) error {
	v.wrong = false
	return rows.Scan(v.targets...)
}

// number returns a column, or 0 for NULL.
func (v *rowValues) number(i int) int64 {
	n, ok := v.values[i].(int64)
	v.wrong = v.wrong || !ok && v.values[i] != nil
	return n
}

// text returns a column, or "" for NULL.
func (v *rowValues) text(i int) string {
	t, ok := v.values[i].(string)
	v.wrong = v.wrong || !ok && v.values[i] != nil
	return t
}

// bytes returns a column, or nil for NULL.
func (v *rowValues) bytes(i int) []byte {
	b, ok := v.values[i].([]byte)
	v.wrong = v.wrong || !ok && v.values[i] != nil
	return b
}

// err returns an error if a column that was read had another type.
func (v *rowValues) err() error {
	if v.wrong {
		return fmt.Errorf("%w: a column has a value of another type", roost.Internal)
	}
	return nil
}

// The numbers of the columns.
const (
	jobColumnCount     = 26
	attemptColumnCount = 30
)

// job returns the job whose columns begin at first, or nil if a join found none.
func (v *rowValues) job(store *Store, first int) *accounting.JobEntry {
	if v.values[first] == nil {
		return nil
	}
	n := func(i int) int64 { return v.number(first + i) }
	name := func(i int) string { return store.names.text(n(i)) }
	source := store.sources.byID(n(1))
	return &accounting.JobEntry{
		JobKey: accounting.JobKey{Month: accounting.Month(n(0)), Source: source.source, Seq: uint64(n(2))},
		Host:   source.host, Name: v.text(first + 3), Owner: name(4), UID: uint32(n(5)), GID: uint32(n(6)),
		UnixGroup: name(7), Group: name(8), Project: name(9), Band: bandOf(n(10)), Queue: name(11), Array: n(12) != 0,
		Tasks: int(n(13)),
		Request: roost.Resources{
			CPU: roost.MilliCPU(n(14)), Memory: roost.Bytes(n(15)), Disk: roost.Bytes(n(16)), GPUs: int(n(17)),
			GPUMemory: roost.Bytes(n(18)),
		},
		Walltime: n(19), Arguments: v.text(first + 20), WorkDir: v.text(first + 21),
		Submitted: accounting.Millis(n(22)), Eligible: accounting.Millis(n(23)), Ended: accounting.Millis(n(24)),
		Removed: n(25) != 0,
	}
}

// attempt returns the attempt of the first columns, and the id of its source.
func (v *rowValues) attempt(store *Store) (a accounting.AttemptEntry, source int64, err error) {
	n := v.number
	source = n(1)
	a = accounting.AttemptEntry{
		AttemptKey: accounting.AttemptKey{
			JobKey: accounting.JobKey{Month: accounting.Month(n(0)), Source: store.sources.byID(source).source,
				Seq: uint64(n(2))},
			Index: int(n(3)), Attempt: roost.AttemptNumber(n(4)),
		},
		Node: store.names.text(n(5)), AppClass: store.names.text(n(6)), Assigned: accounting.Millis(n(7)),
		Started: accounting.Millis(n(8)), Ended: accounting.Millis(n(9)),
		Held: roost.Resources{
			CPU: roost.MilliCPU(n(10)), Memory: roost.Bytes(n(11)), Disk: roost.Bytes(n(12)), GPUs: int(n(13)),
			GPUMemory: roost.Bytes(n(14)),
		},
		Wall: n(15), UserCPU: n(16), SystemCPU: n(17), Suspended: n(18), Useful: n(19),
		Peak: roost.Resources{Memory: roost.Bytes(n(20)), Disk: roost.Bytes(n(21)), GPUMemory: roost.Bytes(n(22))},
		Read: n(23), Written: n(24), Cause: accounting.EndCause(n(25)), ExitCode: int32(n(26)), Signal: int32(n(27)),
		Reason: v.text(28),
	}
	a.Class = store.attemptClass(n(5), &a)
	a.Segments, err = unpackSegments(v.bytes(29))
	return a, source, cmp.Or(err, v.err())
}
