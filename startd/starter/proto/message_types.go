package proto

// TaskAttempt identifies an execution of a task. The starter does not interpret its
// numbers.
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

// Captured is a value of StartCmd.Stdout and StartCmd.Stderr. It denotes a file in the
// attempt's directory, which CapturedFile names.
const Captured = "\x00captured"

// StartCmd describes what to run and how. Durations are in nanoseconds.
type StartCmd struct {
	Attempt        TaskAttempt
	Executable     string   // a path, or a name to search for in PATH of Environment
	Arguments      []string // with argv[0]
	Environment    []string // the complete environment
	Cwd            string
	Stdin          string // a path, relative to Cwd; empty: /dev/null
	Stdout         string // a path, relative to Cwd; empty: /dev/null; or Captured
	Stderr         string // a path, relative to Cwd; empty: /dev/null; or Captured
	Join           bool   // stderr goes to the same file as stdout
	Append         bool   // do not truncate stdout and stderr first
	Umask          uint32
	UID, GID       uint32
	Groups         []uint32 // supplementary groups
	Walltime       int64    // 0: no limit
	Notice         int64    // between SIGTERM and SIGKILL at the end of the walltime
	Lease          int64    // from now; 0: leave the lease unchanged
	WalltimeReason string   // reason for a task that exceeds its walltime
	IO             string   // the attempt's directory with captured streams; inside a sandbox it is SandboxIODir
	Sandbox        Sandbox
	Restore        RestoreSpec
	// how readily the kernel kills the task when the machine runs out of memory, from 0
	// to 1000 (oom_score_adj)
	OOMScore int32
	Limits   ProcessLimits
	// sockets that listen, which the starter has bound for the claim and passes to the
	// task as sd_listen_fds(3) says
	Sockets []ListenSocket
	Secrets []SecretFile
	// stdout and stderr are not truncated first unless they are Captured
	AppendFiles bool
	EndSignal   EndSignal
	// where the starter has mounted the secrets; it is in no message
	SecretsDir string
}

// EndSignal is a signal that a task gets before its walltime ends. The zero value is
// none.
type EndSignal struct {
	Signal      uint32
	Before      int64 // nanoseconds before the end
	ProgramOnly bool  // the program gets it, and not all processes
}

// SecretFile is a secret of the task, in SandboxSecretsDir.
type SecretFile struct {
	Name string
	Text []byte // empty: it stays as it is
}

// ListenSocket is a socket that listens on a TCP port.
type ListenSocket struct {
	Name    string
	Address string // the bytes of an IP address; empty: all addresses
	Port    uint32
}

// MaxSockets bounds the sockets of a claim.
const MaxSockets = 64

// ProcessLimits are the kernel limits of each process of a task (setrlimit(2),
// setpriority(2)). The zero value sets none.
type ProcessLimits struct {
	CPU          int64 // seconds; 0: no limit
	AddressSpace int64 // bytes of address space; 0: no limit
	File         int64 // bytes of a file that it writes; 0: no limit
	Nice         int32
}

// CPUGrace is the CPU time, in seconds, between the signal for exceeding the limit and
// SIGKILL.
const CPUGrace = 5

// Sandbox describes the namespaces of a task. The zero value is no sandbox.
type Sandbox struct {
	Wanted  bool
	TempDir string       // the directory that is /tmp inside; empty: the machine's
	Devices []DeviceNode // in addition to those that everybody has
	Image   RootImage
	// packages below the root, of the machine or of the image
	Packages  []PackageMount
	Namespace string // path of the mount namespace that has them; empty: the starter's
}

// PackageMount is a package in a sandbox. Nobody writes to it.
type PackageMount struct {
	Root   string // directory where it is mounted
	Inside string // absolute; Root is to be seen there
}

// MaxPackages bounds the packages of a sandbox.
const MaxPackages = 64

// AllCapabilities lists all capabilities (capabilities(7)).
func AllCapabilities() []uintptr {
	list := make([]uintptr, lastCapability+1)
	for i := range list {
		list[i] = uintptr(i)
	}
	return list
}

// lastCapability is CAP_CHECKPOINT_RESTORE, of Linux 5.9. An older kernel refuses it.
const lastCapability = 40

// RootImage is a container image that is the root of a sandbox. The zero value is the
// machine's root.
type RootImage struct {
	Root string // directory where the image is mounted; empty: the machine's root
	// path of the mount namespace that has Root (namespaces(7)); empty: the starter's
	Namespace string
	Writable  string // directory, on a disk, that gets what tasks change; empty: they change nothing
	Files     []ImageFile
	Mounts    []ImageMount
}

// ImageFile is a text that a file of the image begins with in the sandbox.
type ImageFile struct {
	Path, Text string
	Replace    bool // nothing else is in it
}

// ImageMount is a directory or file of the machine in a sandbox with an image. It is
// opened with the user's rights, and Path is not followed out of Base.
type ImageMount struct {
	Base     string // absolute, from a trusted configuration
	Path     string // below Base; empty: Base itself
	Inside   string // absolute
	ReadOnly bool
	File     bool // it is a file, and no directory
}

// MaxImageMounts bounds the mounts, and the files, of an image.
const MaxImageMounts = 64

// DeviceNode is the node of a device.
type DeviceNode struct {
	Path         string // absolute, below /dev
	Major, Minor uint32
}

// RestoreSpec describes the checkpoint image from which a task resumes. The zero value
// starts the task anew.
type RestoreSpec struct {
	Helper []string // program and arguments; the task's first process is its child and later the starter's
	Input  string   // path of the helper's standard input
	Output string   // path of the helper's standard output
	PID    string   // path of the file where the helper writes the pid, in decimal
}

// SandboxServer is the name of a starter's child that belongs to no task. It creates the
// sandboxes.
const SandboxServer = "roost-setup"

// SandboxIODir is the path of the attempt's directory inside a sandbox, SandboxTempDir
// that of its temporary files, SandboxSecretsDir that of its secrets.
const (
	SandboxIODir   = "/dev/roost"
	SandboxTempDir = "/tmp"

	SandboxSecretsDir = "/run/secrets"

	SandboxRootDir = "root" // below the claim's directory, as its starter sees it: the root of the sandboxes
)

// EndCause is the cause of a task's end. The numbers are those of wire.Cause.
type EndCause uint8

// The causes.
const (
	Exited        EndCause = 0 // it ended by itself
	Walltime      EndCause = 1
	Removed       EndCause = 2
	Vacated       EndCause = 3
	LeaseOver     EndCause = 4 // its lease expired
	LaunchFailed  EndCause = 5 // it could not be started: the job's fault
	Machine       EndCause = 6 // it could not be started, or was lost: the machine's fault
	Preempted     EndCause = 11
	RestoreFailed EndCause = 10 // it could not be restored: Restore.Output contains the reason
)

// StartStep is the step of a task's start that failed.
type StartStep uint8

// The steps, in order.
const (
	StepNone     StartStep = iota // the start succeeded
	Busy                          // another task is running or not discarded yet
	Journal                       // the record could not be written
	Credentials                   // the user's ids could not be set
	EnterCwd                      // Cwd is missing or inaccessible to the user
	OpenStdin                     // standard input could not be opened
	OpenStdout                    // standard output could not be opened
	OpenStderr                    // standard error could not be opened
	FindProgram                   // no such program
	Fork                          // the machine could not create a process
	ExecProgram                   // the program exists and could not be executed
	VerifyRights                  // it ran with ids other than the user's, and was killed
	MakeSandbox                   // the namespaces could not be set up
	FromImage                     // the checkpoint could not be restored
	BindPort                      // a port could not be bound
	MountDir                      // a directory for a container is missing or inaccessible to the user
)

// TaskExit is the outcome of a task. A task that could not be started has Step and Errno
// set, and Cause LaunchFailed or Machine.
type TaskExit struct {
	Code, Signal       int32
	Core               bool
	Cause              EndCause
	Reason             string // set unless it ended by itself
	Step               StartStep
	Errno              int32
	Wall               int64 // nanoseconds of CLOCK_BOOTTIME
	UserCPU, SystemCPU int64 // nanoseconds, of all its processes that were waited for
	MaxRSS             int64 // bytes, of the largest of them
}

// StarterPhase is the phase of a starter.
type StarterPhase uint8

// The phases.
const (
	Idle    StarterPhase = iota // no task
	Running                     // a task runs
	Ended                       // a task has ended, and the startd has not sent Discard yet
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

// StarterState is the whole state of a starter. Attempt is valid unless Idle, PID and
// Since while Running (or from before, when Ended), Exit when Ended.
type StarterState struct {
	Phase   StarterPhase
	Attempt TaskAttempt
	PID     int64 // of the task's first process; 0 if unknown
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
	Signal  uint32 // to the program alone, instead of SIGTERM to all its processes; 0: SIGTERM
	Reason  string // goes into Exit.Reason
}

// SignalCmd sends a signal to the task's program.
type SignalCmd struct {
	Attempt TaskAttempt
	Signal  uint32
	All     bool // and to all its descendants
}

// CapturedFile returns the name of the file in the attempt's directory that contains a
// captured stream.
func CapturedFile(stderr bool) string {
	if stderr {
		return "stderr"
	}
	return "stdout"
}

// StatusFile is the file in the attempt's directory that receives the wait status of the
// program. It is there once that has run for more than a moment, and has four bytes,
// little endian, all ones until the end.
const StatusFile = "status"
