package jobs

import (
	ucli "github.com/urfave/cli/v2"

	"github.com/roost-batch/roost/internal/cli/frame"
	"github.com/roost-batch/roost/internal/wire/scheddapi"
)

func hereFlag() ucli.Flag {
	return &ucli.BoolFlag{Name: "here",
		Usage: "only jobs that were submitted on this machine: no other schedd is asked"}
}

// queryJobList is QueryPool for a command that has a flag to keep to this machine.
func queryJobList(c *frame.Invocation, req *scheddapi.QueryRequest) ([]*scheddapi.JobStatus, []frame.UnreachableSchedd,
	error) {
	if c.Flag("here") {
		found, err := c.QueryJobs(req)
		return found, nil, err
	}
	return c.QueryPool("", req)
}
