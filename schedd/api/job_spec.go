package api

import (
	"fmt"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/classad"
	"github.com/roost-batch/roost/internal/wire"
	"github.com/roost-batch/roost/schedd/queue"
)

// maxJobs bounds how many jobs one submission may have.
const maxJobs = 10_000

// parseSpecs reads the jobs of a submission, outside the loop.
func parseSpecs(jobs []*wire.JobSpec) ([]queue.SubmitSpec, error) {
	if len(jobs) > maxJobs {
		return nil, fmt.Errorf("%w: %d jobs in one submission, and %d is the most", roost.Exhausted, len(jobs), maxJobs)
	}
	specs := make([]queue.SubmitSpec, len(jobs))
	for i, j := range jobs {
		if len(j.GetAd()) > roost.MaxAdBytes {
			return nil, fmt.Errorf("job %d: %w: its ad has %d bytes, and %d is the most", i, roost.Exhausted,
				len(j.GetAd()), roost.MaxAdBytes)
		}
		ad, err := classad.Parse(j.GetAd())
		if err != nil {
			return nil, fmt.Errorf("job %d: its ad: %w: %w", i, roost.Invalid, err)
		}
		specs[i] = queue.SubmitSpec{Ad: ad, Count: int(j.GetCount())}
		if specs[i].Flow, err = parseFlow(j.GetFlow()); err != nil {
			return nil, err
		}
		for _, c := range j.GetColumns() {
			specs[i].Columns = append(specs[i].Columns, queue.TaskColumn{Name: c.GetName(), Values: c.GetValues()})
		}
	}
	return specs, nil
}

// wireSpecs is the reverse of parseSpecs.
func wireSpecs(specs []queue.SubmitSpec) (jobs []*wire.JobSpec, err error) {
	for i := range specs {
		job := &wire.JobSpec{Ad: specs[i].Ad.String(), Count: uint32(specs[i].Count)}
		if job.Flow, err = flowForm(specs[i].Flow); err != nil {
			return nil, err
		}
		for _, c := range specs[i].Columns {
			job.Columns = append(job.Columns, &wire.Column{Name: c.Name, Values: c.Values})
		}
		jobs = append(jobs, job)
	}
	return jobs, nil
}
