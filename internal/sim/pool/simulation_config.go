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

// SimulationConfig is a pool, what is done to it by its users, and how fast it is. It is
// data: the same config is the same run, event for event.
type SimulationConfig struct {
	Seed     uint64
	Managers int // central managers: each has a collector, a negotiator and a replica of the log
	Schedds  int
	Machines []MachineConfig
	Jobs     []JobConfig // by the time of their submission
	Actions  []UserAction

	StartTime time.Time // what calendars show at the instant 0; zero: some day in January 2027
	Ledger    []byte    // what the negotiators' log amounts to then, as a ledger.Ledger is saved; nil: nothing

	Times TimeModel
	// no beats, ads are neither renewed nor restated, leases hardly ever, and who has
	// seen that nothing has changed looks less often: for long runs without faults
	OnlyOnChange bool
	SelfCheck    bool // the cores check themselves after each event
	AdsAsText    bool // collectors read the text of an ad, as real ones do; else they take what it was written from

	// Observe is told what somebody sees who looks into all nodes at once; nil: nobody
	// looks.
	Observe func(audit.Event)
	// CrashesAt is asked at each named instant of a daemon (package internal/failpoint
	// names them) whether it is to die there; nil: it is not.
	CrashesAt func(node, point string) bool
}

// MachineConfig is one that executes.
type MachineConfig struct {
	Name      string
	Resources roost.Resources
	Devices   []gpu.Device
	Layout    gpu.LayoutConfig
	Units     []gpu.ResourceUnit // what is handed out; nil: what Layout makes of Resources and Devices
	Ad        *classad.Ad        // what it says of itself besides; nil: nothing
	// when it is lent, and how those that run there go when it is not; nil: it is
	// nobody's
	OwnerPolicy   *policy.Policy
	OwnerSchedule OwnerSchedule // of its owner, where it has one
	// whatever begins there ends at once, and the machine says that it is its own fault
	FailsAll           bool
	UnrequestedOutputs int // so many attempts end there with an output that nobody has asked for
}

// JobConfig is what a user submits once.
type JobConfig struct {
	// below 0: it stands in the log of its schedd at the beginning, as it was submitted
	// so long before
	At                time.Duration
	Schedd            int
	Spec              queue.SubmitSpec // its ad is copied, and names the program that the simulation looks up
	Owner             string
	Runtimes          []time.Duration    // how long each task runs, or ForEver; the last stands for those after it
	InitialPlacements []InitialPlacement // where its first tasks run already, of a job with an At below 0
	ExitCodes         []int32            // exit code of each, likewise; none: 0
	Output            bool               // it writes something, that has to be brought home
	// above 0: so long after its id was shown it is submitted once more with the same key
	ResubmitAfter time.Duration
}

// InitialPlacement is where a task runs at the beginning.
type InitialPlacement struct {
	Machine          int           // of SimulationConfig.Machines
	Placement        gpu.Placement // there
	Resources        roost.Resources
	RunningFor       time.Duration // for how long it has run
	Remaining        time.Duration // for which it runs yet; ForEver
	PredictedRuntime time.Duration // that it takes, as tasks like it did; 0: nobody knows
}

// ForEver is longer than anything takes.
const ForEver = 100 * 365 * 24 * time.Hour

// UserAction is what a user does to a job, as soon as he knows its id.
type UserAction struct {
	At   time.Duration
	Job  int // of SimulationConfig.Jobs
	Verb wire.ActRequest_Verb
}

// TimeModel are how long things take.
type TimeModel struct {
	Message, MessageMax time.Duration // on its way
	Write, WriteMax     time.Duration // until it is on disk
	Start, StartMax     time.Duration // of a task, from the word until its first process lives
	Cycle               time.Duration // of a negotiator
	Restart             time.Duration // after which a master starts a daemon again that has ended by itself
	Lease               time.Duration // of a schedd's running tasks
	RenewMax            time.Duration // the longest time between two renewals of it; 0: as schedds have it
}

// DefaultTimes are those of machines in one room.
func DefaultTimes() TimeModel {
	return TimeModel{
		Message: 100 * time.Microsecond, MessageMax: 500 * time.Microsecond, Write: time.Millisecond,
		WriteMax: 4 * time.Millisecond,
		Start:    2 * time.Millisecond, StartMax: 6 * time.Millisecond, Cycle: 2 * time.Millisecond,
		Restart: time.Second,
		Lease:   40 * time.Minute,
	}
}

// runtimeAndCode is how long a task runs, and with which code it ends.
func (j *JobConfig) runtimeAndCode(index int) (time.Duration, int32) {
	var code int32
	if n := len(j.ExitCodes); n > 0 {
		code = j.ExitCodes[min(index, n-1)]
	}
	if n := len(j.Runtimes); n > 0 {
		return j.Runtimes[min(index, n-1)], code
	}
	return 0, code
}
