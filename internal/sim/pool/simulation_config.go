package pool

import (
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/classad"
	"github.com/roost-batch/roost/gpu"
	"github.com/roost-batch/roost/internal/sim/audit"
	"github.com/roost-batch/roost/internal/wire"
	"github.com/roost-batch/roost/schedd/queue"
	"github.com/roost-batch/roost/startd/desktop/policy"
)

// SimulationConfig describes a pool, the actions of its users, and its speed. It is data:
// the same config gives the same run, event for event.
type SimulationConfig struct {
	Seed     uint64
	Managers int // central managers, each with a collector, a negotiator and a replica
	Schedds  int
	// members of the cell's queue, each on a host of its own; 0: there is no such queue
	CellMembers int
	Machines    []MachineConfig
	Jobs        []JobConfig // in the order of submission
	Actions     []UserAction
	Drains      []MachineDrain

	StartTime time.Time // wall clock at time 0; zero: a day in January 2027
	Ledger    []byte    // the ledger at time 0, as ledger.Ledger saves it; nil: empty

	Times TimeModel
	// for long runs without faults: no beats, no renewal of ads, hardly any of leases,
	// and less polling while nothing changes
	OnlyOnChange bool
	SelfCheck    bool // the cores check themselves after each event
	AdsAsText    bool // collectors parse the text of ads, as real ones do; otherwise they take the parsed ad

	// Observe gets every event that an omniscient observer would see; nil: none.
	Observe func(audit.Event)
	// CrashesAt reports whether a daemon must crash at a failpoint (package
	// internal/failpoint); nil: never.
	CrashesAt func(node, point string) bool
}

// MachineConfig describes an execute node.
type MachineConfig struct {
	Name      string
	Resources roost.Resources
	Devices   []gpu.Device
	Layout    gpu.LayoutConfig
	Units     []gpu.ResourceUnit // what is handed out; nil: what Layout makes of Resources and Devices
	Ad        *classad.Ad        // what it says of itself besides; nil: nothing
	// policy of its owner; nil: the machine has no owner
	OwnerPolicy   *policy.Policy
	OwnerSchedule OwnerSchedule // of its owner, where it has one
	// every attempt ends at once, with the machine at fault
	FailsAll           bool
	UnrequestedOutputs int // this many attempts end there with an output file that nobody requested
}

// JobConfig describes one submission of a user.
type JobConfig struct {
	// submission time; below 0: the job is in its schedd's log at the start, submitted
	// that long before
	At                time.Duration
	Schedd            int
	InCell            bool             // it goes into the cell's queue, from the node of its schedd
	Spec              queue.SubmitSpec // its ad is copied and gets the program name that the simulation looks up
	Owner             string
	Runtimes          []time.Duration    // run time by task, or ForEver; the last one serves further tasks
	InitialPlacements []InitialPlacement // where its first tasks run at the start, if At is below 0
	ExitCodes         []int32            // exit code by task; the last one serves further tasks; empty: 0
	// above 0: its tasks run inside the alloc set that is the job before this index; its
	// user submits it when that set is there
	InsideOf int
	// of a service: so many attempts of each task end after its run time, and the others
	// run until they are ended
	EarlyEnds int
	Service   *audit.ServiceTerms  // of a service: what Spec says of it, for the observer
	Schedule  *audit.ScheduleTerms // of a job with a schedule: what Spec says of it, for the observer
	Flow      *audit.FlowTerms     // of a flow: Spec is the job of each of its nodes
	Health    *HealthModel         // of a service with checks
	Load      *LoadModel           // of a service whose number of tasks follows its load
	Output    bool                 // its tasks write output that must be fetched
	MemoryUse roost.Bytes          // of each task: it cannot be given less while it runs
	// above 0: this long after its id was shown it is submitted again with the same key
	ResubmitAfter time.Duration
}

// HealthModel is how the programs of a service answer its checks. They begin unready, and
// change from time to time.
type HealthModel struct {
	Change time.Duration // longest time until the next change of a program that is not ready
	Ready  time.Duration // longest time for which one is ready, before Until
	Until  time.Duration // from then on a program that is ready remains so
}

// InitialPlacement says where a task runs at the start.
type InitialPlacement struct {
	Machine          int           // index in SimulationConfig.Machines
	Placement        gpu.Placement // placement on that machine
	Resources        roost.Resources
	RunningFor       time.Duration // time that it has run already
	Remaining        time.Duration // run time left, or ForEver
	PredictedRuntime time.Duration // run time of tasks like it; 0: unknown
}

// ForEver is longer than any simulation.
const ForEver = 100 * 365 * 24 * time.Hour

// UserAction is an action of a user on a job, done as soon as its id is known.
type UserAction struct {
	At   time.Duration
	Job  int // index in SimulationConfig.Jobs
	Verb wire.ActRequest_Verb
	// of a service, in place of Verb: it is updated so that its environment is this
	Environment string
	Command     string          // of a service: what its update is to do, as roost update says it
	Resources   roost.Resources // of a service, with CPU: it is updated so that its tasks have this CPU and memory
}

// MachineDrain is that an administrator drains a machine, and ends that later. The tasks
// of services go elsewhere meanwhile, within the budgets of their jobs.
type MachineDrain struct {
	At       time.Duration
	Machine  string
	Span     time.Duration // from the word that it is drained to the word that it is not
	Deadline time.Duration // this long after the first word all tasks end there; 0: they may go on
}

// TimeModel holds the durations of simulated operations.
type TimeModel struct {
	Message, MessageMax time.Duration // transit of a message
	Write, WriteMax     time.Duration // a durable write
	Start, StartMax     time.Duration // from the order to a task's first process
	Cycle               time.Duration // a negotiator's cycle
	Restart             time.Duration // until a master restarts a daemon that ended by itself
	Lease               time.Duration // of running tasks, as schedds set it
	RenewMax            time.Duration // longest time between two renewals of a lease; 0: as schedds do
}

// DefaultTimes returns the durations of machines in one room.
func DefaultTimes() TimeModel {
	return TimeModel{
		Message: 100 * time.Microsecond, MessageMax: 500 * time.Microsecond, Write: time.Millisecond,
		WriteMax: 4 * time.Millisecond,
		Start:    2 * time.Millisecond, StartMax: 6 * time.Millisecond, Cycle: 2 * time.Millisecond,
		Restart: time.Second,
		Lease:   40 * time.Minute,
	}
}

// runtimeAndCode returns the run time and the exit code of an attempt of a task.
func (j *JobConfig) runtimeAndCode(index int, attempt roost.AttemptNumber) (time.Duration, int32) {
	var code int32
	if n := len(j.ExitCodes); n > 0 {
		code = j.ExitCodes[min(index, n-1)]
	}
	if j.Service != nil && int(attempt) > j.EarlyEnds {
		return ForEver, code
	}
	if n := len(j.Runtimes); n > 0 {
		return j.Runtimes[min(index, n-1)], code
	}
	return 0, code
}
