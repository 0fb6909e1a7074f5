package export

import (
	"bytes"
	"cmp"
	"iter"

	"github.com/roost-batch/roost/internal/accounting"
)

// joinJobs calls begin for each job, then attempt for each of its attempts, then end.
// Attempts come in the order of index and attempt. Jobs and attempts come in the order of
// submission and of key, as [accounting.Reader] gives them by BySubmit. A job of which
// there are only attempts is the one that they name.
func joinJobs(jobs iter.Seq2[accounting.JobEntry, error], attempts iter.Seq2[accounting.AttemptRecord, error],
	begin func(*accounting.JobEntry) error, attempt func(*accounting.AttemptRecord) error, end func() error,
) error {
	a := openStream("attempts by submission", attempts,
		func(a *accounting.AttemptRecord) accounting.Millis { return a.Job.Submitted })
	defer a.stop()
	j := openStream("jobs by submission", jobs, func(j *accounting.JobEntry) accounting.Millis { return j.Submitted })
	defer j.stop()
	if err := j.advance(); err != nil {
		return err
	}
	if err := a.advance(); err != nil {
		return err
	}
	for j.live || a.live {
		var job accounting.JobEntry
		order := 1
		if j.live && a.live {
			order = compareJobs(&j.head, a.head.Job)
			// jobs of two schedds at one instant are in the order of the store
			if j.head.Submitted == a.head.Job.Submitted && j.head.Source != a.head.Source {
				order = -1
			}
		}
		if job = j.head; !j.live || a.live && order > 0 {
			job = *a.head.Job
		} else if err := j.advance(); err != nil {
			return err
		}
		if err := begin(&job); err != nil {
			return err
		}
		for a.live && a.head.JobKey == job.JobKey {
			if err := attempt(&a.head); err != nil {
				return err
			}
			if err := a.advance(); err != nil {
				return err
			}
		}
		if err := end(); err != nil {
			return err
		}
	}
	return nil
}

// compareJobs orders jobs by submission and key.
func compareJobs(a, b *accounting.JobEntry) int {
	return cmp.Or(cmp.Compare(a.Submitted, b.Submitted), bytes.Compare(a.Source[:], b.Source[:]),
		cmp.Compare(a.Seq, b.Seq))
}
