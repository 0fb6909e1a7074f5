package proto

// TaskAttempt says which execution of which task; its numbers mean nothing to the
// starter.
type TaskAttempt struct {
	Job    uint64
	Index  uint32
	Number uint32
}

// Less orders attempts by job, index and number.
func (a TaskAttempt) Less(b TaskAttempt) bool {
	if a.Job != b.Job {
		return a.Job < b.Job
	}
	if a.Index != b.Index {
		return a.Index < b.Index
	}
	return a.Number < b.Number
}

// Captured stands in Order.Stdout and Order.Stderr for a file in the attempt's directory,
// which CapturedFile names.
const Captured = "\x00captured"

// StartCmd says what to run, and how. Durations are nanoseconds.
type StartCmd struct {
	Attempt        TaskAttempt
	Executable     string   // a path, or a name to be looked for along PATH of Environment
	Arguments      []string // with argv[0]
	Environment    []string // the whole of it
	Cwd            string
	Stdin          string // a path, relative ones below Cwd; empty: /dev/null. So the next two
	Stdout         string // or Captured
	Stderr         string // or Captured
	Join           bool   // stderr goes where stdout goes
	Append         bool   // do not empty stdout and stderr first
	Umask          uint32
	UID, GID       uint32
	Groups         []uint32 // supplementary ones
	Walltime       int64    // 0: no limit
	Notice         int64    // between SIGTERM and SIGKILL when the walltime is over
	Lease          int64    // from now; 0: leave the lease as it is
	WalltimeReason string   // the sentence for a task that ran too long
	IO             string   // directory of the attempt, where captured streams are; inside a box it is SandboxIODir
	Sandbox        Sandbox
	Restore        RestoreSpec
	// how readily the kernel kills the task when the machine runs out of memory, from 0
	// to 1000 (oom_score_adj)
	OOMScore int32
	Limits   ProcessLimits
}

// ProcessLimits are what the kernel holds each process of a task to (setrlimit(2),
// setpriority(2)). The zero value is none.
type ProcessLimits struct {
	CPU          int64 // seconds; 0: no bound, so the next two
	AddressSpace int64 // bytes of addresses
	File         int64 // bytes of a file that it writes
	Nice         int32
}

// CPUGrace is how many seconds of CPU time more a process has that was told that it is
// over its bound.
const CPUGrace = 5

// Sandbox says in what a task is shut: namespaces of its own. The zero value is no box.
type Sandbox struct {
	Wanted  bool
	TempDir string       // what is /tmp inside; empty: the machine's
	Devices []DeviceNode // beside those that everybody has
}

// DeviceNode is the node of a device.
type DeviceNode struct {
	Path         string // absolute, below /dev
	Major, Minor uint32
}

// RestoreSpec says from what a task goes on, instead of being started anew. The zero
// value starts it anew.
type RestoreSpec struct {
	Helper []string // program and arguments; the task's first process is its child, and becomes ours when it ends
	Input  string   // path of its standard input
	Output string   // and of its standard output
	PID    string   // path of the file where it leaves the pid, in decimal
}

// SandboxIODir is where the attempt's directory is seen inside a box, SandboxTempDir
// where its files for a while are.
const (
	SandboxIODir   = "/dev/roost"
	SandboxTempDir = "/tmp"
)

// EndCause says why a task ended. The numbers are those of wire.Cause.
type EndCause uint8

// The causes.
const (
	Exited        EndCause = 0 // by itself
	Walltime      EndCause = 1
	Removed       EndCause = 2
	Vacated       EndCause = 3
	LeaseOver     EndCause = 4 // its lease ran out
	LaunchFailed  EndCause = 5 // could not be started: the job's fault
	Machine       EndCause = 6 // could not be started, or lost: the machine's fault
	Preempted     EndCause = 11
	RestoreFailed EndCause = 10 // could not be restored: what Restore.Output holds says why
)

// StartStep says how far the start of a task came when it failed.
type StartStep uint8

// The steps, in order.
const (
	StepNone     StartStep = iota // it did start
	Busy                          // another task is running or not yet forgotten
	Journal                       // the record could not be written
	Credentials                   // the user's rights could not be taken on
	EnterCwd                      // Cwd is missing or closed to the user
	OpenStdin                     //
	OpenStdout                    //
	OpenStderr                    //
	FindProgram                   // no such program
	Fork                          // the machine has no process to give
	ExecProgram                   // the program is there and cannot be executed
	VerifyRights                  // it ran with rights that are not the user's, and was killed
	MakeSandbox                   // the namespaces could not be set up
	FromImage                     // the checkpoint could not be restored
)

// TaskExit is how a task ended. A task that could not be started has Step and Errno set,
// and Cause LaunchFailed or Machine.
type TaskExit struct {
	Code, Signal       int32
	Core               bool
	Cause              EndCause
	Reason             string // set when it did not end by itself
	Step               StartStep
	Errno              int32
	Wall               int64 // nanoseconds of CLOCK_BOOTTIME
	UserCPU, SystemCPU int64 // nanoseconds, of all its processes that were waited for
	MaxRSS             int64 // bytes, of the largest of them
}

// StarterPhase says what a starter is doing.
type StarterPhase uint8

// The phases.
const (
	Idle    StarterPhase = iota // no task
	Running                     // a task runs
	Ended                       // a task has ended, and startd did not say Forget yet
)

func (p StarterPhase) String() string {
	switch p {
	case Idle:
		return "idle"
	case Running:
		return "running"
	case Ended:
		return "ended"
	}
	return "unknown"
}

// StarterState is the whole truth about a starter. Attempt counts unless Idle, PID and
// Since while Running (or before, when Ended), Exit when Ended.
type StarterState struct {
	Phase   StarterPhase
	Attempt TaskAttempt
	PID     int64 // of the task's first process; 0 when not known
	Since   int64 // start of the task, nanoseconds of CLOCK_BOOTTIME
	Exit    TaskExit
	Starter int64 // the starter's own pid
}

// StopCmd asks a starter to end its task.
type StopCmd struct {
	Attempt TaskAttempt
	Cause   EndCause
	Fast    bool   // SIGKILL at once
	Notice  int64  // nanoseconds between SIGTERM and SIGKILL
	Signal  uint32 // to the program alone, instead of SIGTERM to all of its processes; 0: SIGTERM
	Reason  string // goes into Exit.Reason
}

// SignalCmd asks for a signal to the task's program.
type SignalCmd struct {
	Attempt TaskAttempt
	Signal  uint32
	All     bool // and to all that it has started
}

// CapturedFile is the name of the file in the attempt's directory that holds what it
// wrote.
func CapturedFile(stderr bool) string {
	if stderr {
		return "stderr"
	}
	return "stdout"
}

// StatusFile is the name of the file in the attempt's directory that gets the wait status
// of the program: four bytes, little endian, all ones until then.
const StatusFile = "status"
