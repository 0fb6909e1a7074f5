package cli

import (
	"fmt"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/classad"
	"github.com/roost-batch/roost/internal/wire"
)

// maxSamples bounds how many tasks of an array are looked at for a hint.
const maxSamples = 5000

// taskSampleOf is what a task that has ended tells about how much to ask for.
func taskSampleOf(s *wire.JobStatus, walltime time.Duration) taskSample {
	return taskSample{asked: s.GetRequest().Vector(), walltime: walltime, end: s.GetExit()}
}

// adWalltime is the limit that a job's ad sets, 0 for none.
func adWalltime(text string) time.Duration {
	ad, err := classad.Parse(text)
	if text == "" || err != nil {
		return 0
	}
	seconds, ok := ad.Int(roost.AttrWalltime)
	if !ok || seconds <= 0 || seconds > int64(1<<62/time.Second) {
		return 0
	}
	return time.Duration(seconds) * time.Second
}

// hints says what to ask for the next time, from the tasks of a job that have succeeded
// so far. The row has the job's ad. What cannot be found out is not worth an error:
// nobody asked.
func (c *invocation) hints(s *wire.JobStatus) []string {
	walltime := adWalltime(s.GetAd())
	if s.GetState() != "" {
		if !isFinal(s) {
			return nil
		}
		return rightSize([]taskSample{taskSampleOf(s, walltime)})
	}
	if s.GetCounts()[roost.Completed.String()] == 0 {
		return nil
	}
	found, _, err := c.queryPool("", &wire.QueryRequest{
		Selection: &wire.Selection{Selectors: []string{s.GetId()}, States: []string{roost.Completed.String()}},
		History:   true, Tasks: true, Limit: maxSamples,
	})
	if err != nil {
		return nil
	}
	samples := make([]taskSample, len(found))
	for i, one := range found {
		samples[i] = taskSampleOf(one, walltime)
	}
	return rightSize(samples)
}

// hint prints hints to somebody who has just waited for a job.
func (c *invocation) hint(id string) {
	if !c.err.terminal {
		return // what a program reads has its form
	}
	s, err := c.findJob(id, &wire.QueryRequest{Ads: true})
	if err != nil {
		return
	}
	for _, text := range c.hints(s) {
		fmt.Fprintln(c.stderr, c.err.colourText(dim, "hint: "+text))
	}
}
