package pool

import (
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/classad"
	"github.com/roost-batch/roost/gpu"
	"github.com/roost-batch/roost/internal/sim/audit"
	"github.com/roost-batch/roost/internal/wire"
	"github.com/roost-batch/roost/schedd/queue"
	"github.com/roost-batch/roost/startd/owner"
)

// Config is a pool, what is done to it by its users, and how fast it is. It is data: the same config is the same run, event for event.
type Config struct {
	Seed     uint64
	Managers int // central managers: each has a collector, a negotiator and a replica of the log
	Schedds  int
	Machines []Machine
	Jobs     []Job // by the time of their submission
	Acts     []Act

	Began  time.Time // what calendars show at the instant 0; zero: some day in January 2027
	Ledger []byte    // what the negotiators' log amounts to then, as a ledger.Ledger is saved; nil: nothing

	Times  Times
	Quiet  bool // no beats, ads are neither renewed nor restated, leases hardly ever, and who has seen that nothing has changed looks less often: for long runs without faults
	Checks bool // the cores check themselves after each event
	Spelt  bool // collectors read the text of an ad, as real ones do; else they take what it was written from

	// Observe is told what somebody sees who looks into all nodes at once; nil: nobody looks.
	Observe func(audit.Seen)
	// Point is asked at each named instant of a daemon (package internal/fault names them) whether it is to die there; nil: it is not.
	Point func(node, point string) bool
}

// Machine is one that executes.
type Machine struct {
	Name      string
	Resources roost.Resources
	Devices   []gpu.Device
	Layout    gpu.Layout
	Units     []gpu.Unit    // what is handed out; nil: what Layout makes of Resources and Devices
	Ad        *classad.Ad   // what it says of itself besides; nil: nothing
	Owner     *owner.Policy // when it is lent, and how those that run there go when it is not; nil: it is nobody's
	Visits    Visits        // of its owner, where it has one
	Fails     bool          // whatever begins there ends at once, and the machine says that it is its own fault
	Lies      int           // so many attempts end there with an output that nobody has asked for
}

// Job is what a user submits once.
type Job struct {
	At     time.Duration // below 0: it stands in the log of its schedd at the beginning, as it was submitted so long before
	Schedd int
	Spec   queue.Spec // its ad is copied, and names the program that the simulation looks up
	Owner  string
	Run    []time.Duration // how long each task runs, or ForEver; the last stands for those after it
	Placed []Place         // where its first tasks run already, of a job with an At below 0
	Codes  []int32         // exit code of each, likewise; none: 0
	Output bool            // it writes something, that has to be brought home
	Again  time.Duration   // above 0: so long after its id was shown it is submitted once more with the same key
}

// Place is where a task runs at the beginning.
type Place struct {
	Machine   int           // of Config.Machines
	Placement gpu.Placement // there
	Resources roost.Resources
	Since     time.Duration // for how long it has run
	Left      time.Duration // for which it runs yet; ForEver
	Expected  time.Duration // that it takes, as tasks like it did; 0: nobody knows
}

// ForEver is longer than anything takes.
const ForEver = 100 * 365 * 24 * time.Hour

// Act is what a user does to a job, as soon as he knows its id.
type Act struct {
	At   time.Duration
	Job  int // of Config.Jobs
	Verb wire.ActRequest_Verb
}

// Times are how long things take.
type Times struct {
	Message, MessageMost time.Duration // on its way
	Write, WriteMost     time.Duration // until it is on disk
	Start, StartMost     time.Duration // of a task, from the word until its first process lives
	Cycle                time.Duration // of a negotiator
	Restart              time.Duration // after which a master starts a daemon again that has ended by itself
	Lease                time.Duration // of a schedd's running tasks
	Renew                time.Duration // the longest time between two renewals of it; 0: as schedds have it
}

// DefaultTimes are those of machines in one room.
func DefaultTimes() Times {
	return Times{
		Message: 100 * time.Microsecond, MessageMost: 500 * time.Microsecond, Write: time.Millisecond, WriteMost: 4 * time.Millisecond,
		Start: 2 * time.Millisecond, StartMost: 6 * time.Millisecond, Cycle: 2 * time.Millisecond, Restart: time.Second, Lease: 40 * time.Minute,
	}
}

// run is how long a task runs, and with which code it ends.
func (j *Job) run(index int) (time.Duration, int32) {
	var code int32
	if n := len(j.Codes); n > 0 {
		code = j.Codes[min(index, n-1)]
	}
	if n := len(j.Run); n > 0 {
		return j.Run[min(index, n-1)], code
	}
	return 0, code
}
