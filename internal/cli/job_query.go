package cli

import (
	ucli "github.com/urfave/cli/v2"

	"github.com/roost-batch/roost/internal/wire"
)

func hereFlag() ucli.Flag {
	return &ucli.BoolFlag{Name: "here",
		Usage: "only jobs that were submitted on this machine: no other schedd is asked"}
}

// queryJobList is queryPool for a command that has a flag to keep to this machine.
func (c *invocation) queryJobList(req *wire.QueryRequest) ([]*wire.JobStatus, []unreachableSchedd, error) {
	if c.flag("here") {
		found, err := c.queryJobs(req)
		return found, nil, err
	}
	return c.queryPool("", req)
}
