package jobs

import (
	"fmt"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/cli/frame"
	"github.com/roost-batch/roost/internal/document"
	"github.com/roost-batch/roost/internal/wire/scheddapi"
)

// maxSamples bounds how many tasks of an array are looked at for a hint.
const maxSamples = 5000

// hints says what to ask for the next time, from the tasks of a job that have succeeded
// so far. The row has the job's ad. What cannot be found out is not worth an error:
// nobody asked.
func hints(c *frame.Invocation, s *scheddapi.JobStatus) []string {
	walltime := document.AdWalltime(s.GetAd())
	if s.GetState() != "" {
		if !document.IsFinal(s) {
			return nil
		}
		return document.RightSize([]document.TaskSample{document.TaskSampleOf(s, walltime)})
	}
	if s.GetCounts()[roost.Completed.String()] == 0 {
		return nil
	}
	found, _, err := c.QueryPool("", &scheddapi.QueryRequest{
		Selection: &scheddapi.Selection{Selectors: []string{s.GetId()}, States: []string{roost.Completed.String()}},
		History:   true, Tasks: true, Limit: maxSamples,
	})
	if err != nil {
		return nil
	}
	samples := make([]document.TaskSample, len(found))
	for i, one := range found {
		samples[i] = document.TaskSampleOf(one, walltime)
	}
	return document.RightSize(samples)
}

// hint prints hints to somebody who has just waited for a job.
func hint(c *frame.Invocation, id string) {
	if !c.ErrScreen.Terminal {
		return // what a program reads has its form
	}
	s, err := FindJob(c, id, &scheddapi.QueryRequest{Ads: true})
	if err != nil {
		return
	}
	for _, text := range hints(c, s) {
		fmt.Fprintln(c.Stderr, c.ErrScreen.ColourText(frame.Dim, "hint: "+text))
	}
}
