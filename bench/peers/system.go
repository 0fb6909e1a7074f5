package main

import (
	"context"

	"github.com/roost-batch/roost/bench/gauge"
)

// system is one batch system, as an agent beside it sees it. Commands are words as for exec; those that the user types in a loop are lines of a shell.
type system interface {
	begin(ctx context.Context) error // starts it; returns when it would take and run jobs
	end()                            // lets it clean up what outlives its processes
	version(ctx context.Context) string

	one(argv ...string) ([]string, error)               // submits a job that runs this
	array(n int, argv ...string) ([]string, error)      // submits n that run this, in the way that costs the system least
	held() string                                       // submits a job that waits until it is let go
	heldArray(ctx context.Context, n int) error         // submits n that wait, likewise in the way that costs least
	heldEach(ctx context.Context, n int) error          // submits n that wait, each a job of its own, as fast as possible
	list() []string                                     // prints something while there are jobs
	clear() []string                                    // removes them
	role(p gauge.Process) string                        // the central daemon that the process is; "" for any other
	queue() string                                      // role of the one that has the queue
	revive(ctx context.Context) error                   // starts that one anew, where nobody does so by himself
	match(ctx context.Context, s sizes) (answer, error) // matches jobs with machines that do not exist; the place has a cell
}

func systemNames() []string { return []string{"roost", "htcondor", "slurm", "gridengine"} }

// title is the system's name for people.
func title(system string) string {
	return map[string]string{"roost": "Roost", "htcondor": "HTCondor", "slurm": "Slurm", "gridengine": "Grid Engine"}[system]
}
