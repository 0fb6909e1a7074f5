package hrm

import (
	"fmt"
	"time"

	"github.com/roost-batch/roost"
)

// SchedulingStyle is who places.
type SchedulingStyle uint8

// The styles.
const (
	LeaderOnly SchedulingStyle = iota // the leader
	CellParts                         // the schedds, each in its part of the cell first, as Roost's do
	WholeCell                         // the schedds, each looking at the whole cell, as HRM's do
)

func (s SchedulingStyle) String() string {
	return [...]string{"central", "distributed", "undivided"}[s]
}

// SimulationOptions say what is played. The zero value of none but those that say so
// makes sense: see [PaperOptions].
type SimulationOptions struct {
	Machines, Cores   int
	Schedds           int
	Jobs, Containers  int           // so many of each job, of one core each
	SubmitInterval    time.Duration // the mean time between two jobs, which come at random; 0: all come at once
	Shortest, Longest time.Duration // for which a container runs, evenly spread
	Style             SchedulingStyle
	MessageDelay      time.Duration // of each message
	CommitDelay       time.Duration // until an entry of the ledger is on the disks of a majority
	ReportInterval    time.Duration // how often a machine tells of itself at most: HRM's heartbeat; 0: at once
	Seed              uint64
}

// PaperOptions is the paper's simulation, as far as it says: containers run for a time
// that makes jobs last about 25 s.
func PaperOptions(jobs int, style SchedulingStyle) SimulationOptions {
	return SimulationOptions{
		Machines: 1050, Cores: 16, Schedds: 6, Jobs: jobs, Containers: 40, Shortest: 15 * time.Second,
		Longest: 25 * time.Second,
		Style:   style, MessageDelay: 500 * time.Microsecond, CommitDelay: 3 * time.Millisecond, Seed: 1,
	}
}

// maxThings bounds what is simulated.
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

// JobResult is what became of one job, at times since the beginning.
type JobResult struct {
	Submitted    time.Duration
	FirstStarted time.Duration // the first of its containers started
	LastStarted  time.Duration // the last did
	Ended        time.Duration
	Proposed     int // containers for which its schedd had a place in mind
	Conflicts    int // of those: that were granted elsewhere, or had to wait
}

// RunResult is what a run came to.
type RunResult struct {
	Jobs   []JobResult
	Steps  [stepCount]StepTotal
	Events uint64
	Digest uint64 // two runs with the same were the same
}

// StepTotal is what one kind of step took.
type StepTotal struct {
	Count  int
	Things int // that it dealt with
	Total  time.Duration
	Max    time.Duration
}

// Simulate plays what the options say.
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
