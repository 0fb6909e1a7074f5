package main

import (
	"context"

	"github.com/roost-batch/roost/bench/gauge"
)

// batchSystem is one batch system, as an agent beside it sees it. Commands are words as
// for exec; those that the user types in a loop are lines of a shell.
type batchSystem interface {
	startSystem(ctx context.Context) error // starts it; returns when it would take and run jobs
	stopSystem()                           // lets it clean up what outlives its processes
	version(ctx context.Context) string

	submitJob(argv ...string) ([]string, error) // submits a job that runs this
	// submits n that run this, in the way that costs the system least
	submitArray(n int, argv ...string) ([]string, error)
	submitHeld() string // submits a job that waits until it is let go
	// submits n that wait, likewise in the way that costs least
	submitHeldArray(ctx context.Context, n int) error
	// submits n that wait, each a job of its own, as fast as possible
	submitHeldJobs(ctx context.Context, n int) error
	listCommand() []string // prints something while there are jobs
	clearQueue() []string  // removes them
	// the central daemon that the process is; "" for any other
	daemonRole(p gauge.ProcessStat) string
	queueDaemon() string // role of the one that has the queue
	// starts that one anew, where nobody does so by himself
	restartDaemon(ctx context.Context) error
	// matches jobs with machines that do not exist; the place has a cell
	matchJobs(ctx context.Context, s workSizes) (measureResult, error)
}

func systemNames() []string { return []string{"roost", "htcondor", "slurm", "gridengine"} }

// systemTitle is the system's name for people.
func systemTitle(system string) string {
	return map[string]string{"roost": "Roost", "htcondor": "HTCondor", "slurm": "Slurm",
		"gridengine": "Grid Engine"}[system]
}
