package main

import (
	"context"

	"github.com/roost-batch/roost/bench/gauge"
)

// batchSystem is one batch system, as the agent beside it sees it. Commands are words as
// for exec; those for a user's loop are lines of a shell.
type batchSystem interface {
	startSystem(ctx context.Context) error // starts it, and returns when it accepts and runs jobs
	stopSystem()                           // lets it clean up what outlives its processes
	version(ctx context.Context) string

	submitJob(argv ...string) ([]string, error) // returns a command that submits a job which runs argv
	// returns a command that submits n jobs which run argv, in the cheapest way for the
	// system
	submitArray(n int, argv ...string) ([]string, error)
	submitHeld() string // returns a command that submits a held job
	// submits n held jobs in the cheapest way for the system
	submitHeldArray(ctx context.Context, n int) error
	// submits n held jobs, each a job of its own, as fast as possible
	submitHeldJobs(ctx context.Context, n int) error
	listCommand() []string // prints something while there are jobs
	clearQueue() []string  // removes all jobs
	// returns the role of a process that is a central daemon; "" for any other
	daemonRole(p gauge.ProcessStat) string
	queueDaemon() string // role of the daemon with the queue
	// restarts that daemon, unless the system does it by itself
	restartDaemon(ctx context.Context) error
	// matches jobs with machines that do not exist; needs a system started for matching
	matchJobs(ctx context.Context, s workSizes) (measureResult, error)
}

func systemNames() []string { return []string{"roost", "htcondor", "slurm", "gridengine"} }

// systemTitle returns the system's name for display.
func systemTitle(system string) string {
	return map[string]string{"roost": "Roost", "htcondor": "HTCondor", "slurm": "Slurm",
		"gridengine": "Grid Engine"}[system]
}
