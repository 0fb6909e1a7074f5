package hrm

import (
	"fmt"
	"time"

	"github.com/roost-batch/roost"
)

// Style is who places.
type Style uint8

// The styles.
const (
	Central Style = iota // the leader
	Parts                // the schedds, each in its part of the cell first, as Roost's do
	Whole                // the schedds, each looking at the whole cell, as HRM's do
)

func (s Style) String() string { return [...]string{"central", "distributed", "undivided"}[s] }

// Options say what is played. The zero value of none but those that say so makes sense: see [Paper].
type Options struct {
	Machines, Cores   int
	Schedds           int
	Jobs, Containers  int           // so many of each job, of one core each
	Every             time.Duration // the mean time between two jobs, which come at random; 0: all come at once
	Shortest, Longest time.Duration // for which a container runs, evenly spread
	Style             Style
	Delay             time.Duration // of each message
	Commit            time.Duration // until an entry of the ledger is on the disks of a majority
	News              time.Duration // how often a machine tells of itself at most: HRM's heartbeat; 0: at once
	Seed              uint64
}

// Paper is the paper's simulation, as far as it says: containers run for a time that makes jobs last about 25 s.
func Paper(jobs int, style Style) Options {
	return Options{
		Machines: 1050, Cores: 16, Schedds: 6, Jobs: jobs, Containers: 40, Shortest: 15 * time.Second, Longest: 25 * time.Second,
		Style: style, Delay: 500 * time.Microsecond, Commit: 3 * time.Millisecond, Seed: 1,
	}
}

// mostThings bounds what is simulated.
const mostThings = 1 << 22

func (o *Options) check() error {
	switch {
	case o.Machines < 1 || o.Cores < 1 || o.Machines > mostThings/o.Cores:
		return fmt.Errorf("%w: a cell of %d machines with %d cores", roost.Invalid, o.Machines, o.Cores)
	case o.Schedds < 1 || o.Schedds > 1000:
		return fmt.Errorf("%w: %d schedds", roost.Invalid, o.Schedds)
	case o.Jobs < 1 || o.Containers < 1 || o.Containers > roost.MaxTasks || o.Jobs > mostThings/o.Containers:
		return fmt.Errorf("%w: %d jobs with %d containers", roost.Invalid, o.Jobs, o.Containers)
	case o.Shortest <= 0 || o.Longest < o.Shortest || o.Longest > 24*time.Hour:
		return fmt.Errorf("%w: containers that run from %v to %v", roost.Invalid, o.Shortest, o.Longest)
	case min(o.Every, o.Delay, o.Commit, o.News) < 0 || max(o.Every, o.Delay, o.Commit, o.News) > time.Hour:
		return fmt.Errorf("%w: times have to be between 0 and an hour", roost.Invalid)
	}
	return nil
}

// Job is what became of one job, at times since the beginning.
type Job struct {
	Submitted time.Duration
	First     time.Duration // the first of its containers started
	Placed    time.Duration // the last did
	Ended     time.Duration
	Proposed  int // containers for which its schedd had a place in mind
	Conflicts int // of those: that were granted elsewhere, or had to wait
}

// Result is what a run came to.
type Result struct {
	Jobs   []Job
	Steps  [steps]Spent
	Events uint64
	Digest uint64 // two runs with the same were the same
}

// Spent is what one kind of step took.
type Spent struct {
	Number int
	Things int // that it dealt with
	Total  time.Duration
	Most   time.Duration
}

// Run plays what the options say.
func Run(o Options, costs Costs) (*Result, error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	w, err := newWorld(o, costs)
	if err != nil {
		return nil, err
	}
	return w.run()
}
