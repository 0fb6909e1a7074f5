package hrm

import (
	"fmt"
	"time"

	"github.com/roost-batch/roost"
)

// SchedulingStyle says who places containers.
type SchedulingStyle uint8

// The styles.
const (
	LeaderOnly SchedulingStyle = iota // the leader
	CellParts                         // the schedds, each in its part of the cell first, as in Roost
	WholeCell                         // the schedds, each in the whole cell, as in HRM
)

func (s SchedulingStyle) String() string {
	return [...]string{"central", "distributed", "undivided"}[s]
}

// SimulationOptions holds the parameters of a simulation. Zero is valid only for fields
// that say so: see [PaperOptions].
type SimulationOptions struct {
	Machines, Cores   int
	Schedds           int
	Jobs, Containers  int           // number of jobs, and of containers of one core each in a job
	SubmitInterval    time.Duration // mean time between two jobs, which come at random; 0: all come at once
	Shortest, Longest time.Duration // run time of a container, uniformly distributed
	Style             SchedulingStyle
	MessageDelay      time.Duration // transit time of each message
	CommitDelay       time.Duration // until an entry of the ledger is on the disks of a majority
	ReportInterval    time.Duration // shortest time between two ads of a machine: HRM's heartbeat; 0: at once
	Seed              uint64
}

// PaperOptions returns the parameters of the paper as far as it states them. The run
// times make jobs last about 25 s.
func PaperOptions(jobs int, style SchedulingStyle) SimulationOptions {
	return SimulationOptions{
		Machines: 1050, Cores: 16, Schedds: 6, Jobs: jobs, Containers: 40, Shortest: 15 * time.Second,
		Longest: 25 * time.Second,
		Style:   style, MessageDelay: 500 * time.Microsecond, CommitDelay: 3 * time.Millisecond, Seed: 1,
	}
}

// maxThings bounds the size of a simulation.
const maxThings = 1 << 22

func (o *SimulationOptions) validate() error {
	switch {
	case o.Machines < 1 || o.Cores < 1 || o.Machines > maxThings/o.Cores:
		return fmt.Errorf("%w: a cell of %d machines with %d cores", roost.Invalid, o.Machines, o.Cores)
	case o.Schedds < 1 || o.Schedds > 1000:
		return fmt.Errorf("%w: %d schedds", roost.Invalid, o.Schedds)
	case o.Jobs < 1 || o.Containers < 1 || o.Containers > roost.MaxTasks || o.Jobs > maxThings/o.Containers:
		return fmt.Errorf("%w: %d jobs with %d containers", roost.Invalid, o.Jobs, o.Containers)
	case o.Shortest <= 0 || o.Longest < o.Shortest || o.Longest > 24*time.Hour:
		return fmt.Errorf("%w: containers that run from %v to %v", roost.Invalid, o.Shortest, o.Longest)
	case min(o.SubmitInterval, o.MessageDelay, o.CommitDelay, o.ReportInterval) < 0 ||
		max(o.SubmitInterval, o.MessageDelay, o.CommitDelay, o.ReportInterval) > time.Hour:
		return fmt.Errorf("%w: times have to be between 0 and an hour", roost.Invalid)
	}
	return nil
}

// JobResult holds the times of one job, since the start of the simulation.
type JobResult struct {
	Submitted    time.Duration
	FirstStarted time.Duration // when its first container started
	LastStarted  time.Duration // when its last container started
	Ended        time.Duration
	Proposed     int // containers for which its schedd proposed a place
	Conflicts    int // proposed containers that were granted elsewhere or had to wait
}

// RunResult is the result of a simulation.
type RunResult struct {
	Jobs   []JobResult
	Steps  [stepCount]StepTotal
	Events uint64
	Digest uint64 // equal digests mean equal runs
}

// StepTotal adds up the steps of one kind.
type StepTotal struct {
	Count  int
	Things int // number of items handled
	Total  time.Duration
	Max    time.Duration
}

// Simulate runs a simulation.
func Simulate(o SimulationOptions, costs StepCosts) (*RunResult, error) {
	if err := o.validate(); err != nil {
		return nil, err
	}
	w, err := newWorld(o, costs)
	if err != nil {
		return nil, err
	}
	return w.run()
}
