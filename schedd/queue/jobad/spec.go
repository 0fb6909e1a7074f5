package jobad

import (
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/classad"
	"github.com/roost-batch/roost/schedd/flow/plan"
	"github.com/roost-batch/roost/schedd/queue/jobpolicy"
	"github.com/roost-batch/roost/schedd/queue/update"
)

// TransferStore is the Transfer of a job whose files are copied to the checkpoint server.
// Its input is when it is submitted, its output when it has ended. The queue of the cell
// alone has such jobs.
const TransferStore = "store"

// SubmitSpec is a job to be submitted: an ad, a number of tasks, and columns of values.
// A column has one value for each task.
type SubmitSpec struct {
	Ad                *classad.Ad
	Count             int
	Columns           []TaskColumn
	DeferredAdmission bool // nobody could say whether quotas allow it
	Flow              *FlowSubmission
}

// FlowSubmission is the flow of a job that is one.
type FlowSubmission struct {
	Form []byte        // the plan as it was sent
	Plan *plan.Plan    // the plan
	Ads  []*classad.Ad // of its templates, as they are admitted; by number
}

// JobSpec is what the queue itself needs to know of an ad, read once.
type JobSpec struct {
	Name              string
	Group             string
	Band              roost.PriorityBand
	Priority          int
	Resources         roost.Resources
	AppClass          string // of the application: roost.AppBatch or roost.AppStream
	requirements      string // the user's Requirements, as text
	queueRequirements string // and its queue's
	rank              string
	softConstraints   softConstraints
	machineOptions    machineOptions
	Walltime          time.Duration
	GangSize          int  // so many tasks start together; below 2: each for itself
	MPIGang           bool // by the first of them
	Ports             []roost.PortRequest
	NoFlock           bool // its tasks run in no other pool
	Secrets           []SecretSpec
	Container         *ContainerSpec // nil: the tasks see the files of their machines
	PackageMounts     []PackageSpec  // that the tasks have
	Processes         int            // of a task, in the file of nodes; below 0: there is none
	MPI               string         // protocol of its ranks; empty: they are not started
	StartTimeout      time.Duration  // for all ranks to be beyond their first barrier
	Reservation       string
	NoticePeriod      time.Duration
	Lease             time.Duration
	Retries           int
	SuccessCode       int32 // the exit code of a program that has succeeded
	Rerunnable        bool
	Interactive       bool // it has a terminal, and ends with it
	MaxRunning        int
	StartAfter        int64             // unix seconds
	Schedule          *ScheduleSettings // nil: the job runs once; else only its runs do
	HoldOnSubmit      bool
	Transfer          string
	Domain            string // FileSystemDomain
	Array             bool
	ArrayMPIGang      int // the gang of tasks that one of them leads
	Queue             string
	Checkpoints       *CheckpointSettings // nil: no checkpoints
	NeedsRestore      bool                // wants a machine that can restore an image
	SlotUser          bool                // of a slot user's processes
	Now               string              // to start now, out of turn: anywhere, or the machines; empty: in turn
	ProcessLimits     ProcessLimits
	Mail              *MailOptions   // nil: nobody is told of anything
	RunCount          int            // attempts that are counted before the first; below 0: none are counted
	FromQsub          bool           // it came by qsub
	Slurm             *SlurmSettings // nil: it did not come by sbatch
	ScriptFile        string
	SubmitHost        string       // whose user submitted the job
	Service           *ServiceSpec // nil: it ends by itself
	Update            *update.Policy
	UserLog           bool              // a file gets a record of each thing that happens to it
	IsFlow            bool              // its task runs nothing, and ends with the flow
	SubmitNodeTask    bool              // its tasks run at the submit node, beside others
	Policy            *jobpolicy.Policy // nil: nothing is done with its tasks under conditions
	IsAlloc           bool              // an alloc set: its tasks hold resources, and run nothing
	AllocCount        int               // of an alloc set: how many allocs its user wants; 0: not stated
	AllocUsers        []string          // of an alloc set: whose jobs may be inside besides its owner's
	Inside            AllocPlace
}

// ReadSpec reads and checks an ad. Errors name the attribute.
func ReadSpec(ad *classad.Ad) (p JobSpec, err error) {
	r := adReader{ad: ad}
	p.Name, p.Group = r.text(roost.AttrJobName, "job"), r.text(roost.AttrGroup, "")
	if p.Band, err = roost.ParsePriorityBand(r.text(roost.AttrBand, roost.BatchBand.String())); err != nil {
		r.fail(roost.AttrBand, err.Error())
	}
	p.Priority = int(r.number(roost.AttrPriority, 0, roost.MinPriority, roost.MaxPriority))
	p.Resources = roost.Resources{
		CPU: roost.MilliCPU(math.Ceil(r.real(roost.AttrRequestCpus, roost.DefaultCPU.Cores(), 1e6) * 1000)),
		Memory: roost.Bytes(r.number(roost.AttrRequestMemory, int64(roost.DefaultMemory/roost.MiB), 0, 1<<32)) *
			roost.MiB,
		Disk: roost.Bytes(r.number(roost.AttrRequestDisk, 0, 0, 1<<42)) * roost.KiB,
	}
	r.readMachineOptions(&p)
	usual := roost.AppBatch
	if p.Service = r.serviceSpec(); p.Service != nil {
		usual, p.Update = roost.AppStream, r.updatePolicy()
	}
	if p.IsAlloc = r.boolean(roost.AttrAlloc, false); p.IsAlloc {
		usual, p.AllocCount = roost.AppStream, r.allocCount()
	}
	p.Inside, p.AllocUsers = r.allocPlace(), r.allocUsers()
	if p.AppClass = r.text(roost.AttrAppClass, usual); p.AppClass != roost.AppBatch &&
		p.AppClass != roost.AppStream {
		r.fail(roost.AttrAppClass, fmt.Sprintf("%q is none of %s, %s", p.AppClass, roost.AppBatch, roost.AppStream))
	}
	if p.Resources.CPU < 1 {
		r.fail(roost.AttrRequestCpus, "a task needs some part of a core")
	}
	p.Walltime = time.Duration(r.number(roost.AttrWalltime, 0, 0, maxSeconds)) * time.Second
	p.NoticePeriod = time.Duration(r.number(roost.AttrNoticePeriod, defaultNotice, 0, maxSeconds)) * time.Second
	p.ProcessLimits, p.Mail = r.processLimits(), r.mailOptions()
	p.Lease = time.Duration(r.number(roost.AttrJobLease, 0, 0, maxSeconds)) * time.Second
	p.Retries, p.RunCount, p.SuccessCode = int(r.number(roost.AttrMaxRetries, 0, 0, 1_000_000)),
		int(r.number(roost.AttrRunCount, -1, 0, math.MaxInt32)), int32(r.number(roost.AttrSuccessCode, 0, 0, 255))
	p.GangSize, p.Reservation = int(r.number(roost.AttrGangSize, 0, 0, roost.MaxTasks)),
		r.text(roost.AttrReservation, "")
	p.MPIGang, p.Processes = r.boolean(roost.AttrMPIGang, false),
		int(r.number(roost.AttrProcesses, -1, 0, maxProcesses))
	p.MPI, p.StartTimeout = r.text(roost.AttrMPI, ""), time.Duration(r.number(roost.AttrStartTimeout,
		defaultStartTimeout, 1, maxSeconds))*time.Second
	if p.MPI != "" {
		p.Processes = max(p.Processes, 1)
	}
	p.Array, p.MaxRunning = r.boolean(AttrArray, false), int(r.number(roost.AttrMaxRunning, 0, 0, roost.MaxTasks))
	p.StartAfter = r.number(roost.AttrStartAfter, 0, 0, math.MaxInt64/int64(time.Second))
	if p.Schedule = r.schedule(); p.Schedule != nil {
		p.StartAfter = NeverStarts
	}
	p.Rerunnable, p.HoldOnSubmit = r.boolean(roost.AttrRerunnable, true), r.boolean(roost.AttrHoldOnSubmit, false)
	// whoever sat there sits there no more the second time
	if p.Interactive = r.boolean(roost.AttrInteractive, false); p.Interactive {
		p.Rerunnable, p.Retries = false, 0
	}
	p.Transfer, p.Domain, p.Queue, p.SubmitHost = r.text(roost.AttrTransfer, "auto"),
		r.text(roost.AttrFileSystemDomain, ""), r.text(roost.AttrQueue, ""), r.text(roost.AttrSubmitHost, "")
	r.checkTransfer(&p)
	p.Ports, p.Secrets, p.Container, p.PackageMounts = r.ports(), r.secrets(), r.container(), r.packageMounts()
	if p.Checkpoints = r.checkpointSettings(); p.Checkpoints != nil && p.cannotRestore() {
		p.Checkpoints = nil
	}
	p.FromQsub, p.ScriptFile, p.softConstraints = r.has(roost.AttrPBS), r.text(roost.AttrScriptFile, ""),
		r.softConstraints(p.ContentDigests())
	p.requirements, p.rank, p.queueRequirements = r.expression(roost.AttrRequirements), r.expression(roost.AttrRank),
		r.expression(roost.AttrQueueRequires)
	p.IsFlow, p.SubmitNodeTask = r.boolean(roost.AttrIsFlow, false), r.boolean(roost.AttrSubmitNodeTask, false)
	p.UserLog, p.Policy, p.Slurm = r.text(roost.AttrUserLog, "") != "", r.policy(&p), r.slurmSettings()
	r.requireProgram(&p)
	return p, r.err
}

// cannotRestore reports whether a task could not go on from a checkpoint.
func (p *JobSpec) cannotRestore() bool {
	switch self := p.Checkpoints.Self; {
	case p.Interactive: // neither the terminal nor what runs on it could be brought back
		return true
	case p.GangSize > 1 && p.MPIGang || p.MPI != "":
		return true
	case self:
		return false
	}
	// In turn: an image would have the environment, and the secret in it. The machine
	// still has the socket that an image would bring back. CRIU would have to find the
	// mounts of packages again. Images of processes that talk to each other would be of
	// different moments.
	return hasSecretVariables(p.Secrets) || hasSockets(p.Ports) || len(p.PackageMounts) > 0 || p.GangSize > 1
}

// SavedTogether reports whether the tasks of a gang are saved as a whole. They save their
// own state, and each ends with an exit code that says so.
func (p *JobSpec) SavedTogether() bool {
	return p.GangSize > 1 && !p.MPIGang && p.Checkpoints != nil && p.Checkpoints.Self && p.Checkpoints.ExitCode != 0
}

// policy reads what is done with tasks under conditions.
func (r *adReader) policy(p *JobSpec) *jobpolicy.Policy {
	policy, err := jobpolicy.Read(r.ad)
	switch {
	case err != nil && r.err == nil:
		r.err = err
	case policy != nil && (p.IsAlloc || p.Service != nil || p.IsFlow):
		r.fail("a condition", "services, alloc sets and flows have none: conditions are for tasks that end")
	case policy != nil && policy.HasOnExit() && (p.GangSize > 1 || p.Interactive):
		r.fail(roost.AttrOnExitRemove, "what happens at the end of one task cannot be decided for a gang, and not "+
			"for a job with a terminal: use retries")
	}
	return policy
}

// checkTransfer refuses unknown ways to transfer files.
func (r *adReader) checkTransfer(p *JobSpec) {
	if !slices.Contains([]string{"auto", "always", "never", TransferStore}, p.Transfer) {
		r.fail(roost.AttrTransfer, fmt.Sprintf("%q is none of auto, always, never, store", p.Transfer))
	}
	if p.Transfer == TransferStore && p.Service != nil {
		r.fail(roost.AttrTransfer, "a service cannot have its files stored: each update would need others; put what "+
			"it reads on a file system that its machines have")
	}
	r.checkObjects(p)
}

// requireProgram refuses a job that has nothing to run. Only an alloc set is to have
// nothing.
func (r *adReader) requireProgram(p *JobSpec) {
	r.refuseWithAlloc(p)
	r.checkAutoscale(p)
	r.checkMPI(p)
	if p.IsFlow && (p.IsAlloc || p.Service != nil || p.Schedule != nil || p.GangSize > 1 || p.Interactive) {
		r.fail(roost.AttrIsFlow, "a flow runs nothing itself, so it is no service, gang, alloc set or schedule")
	}
	if !p.IsAlloc && !p.IsFlow && r.text(roost.AttrCmd, "") == "" && r.text(roost.AttrScript, "") == "" &&
		r.text(roost.AttrScriptFile, "") == "" {
		r.fail(roost.AttrCmd, "the job names neither a program nor a script")
	}
}

const (
	maxSeconds    = 100 * 365 * 86400
	maxProcesses  = 1 << 16
	defaultNotice = 10
	// seconds for the ranks of an MPI program to find each other
	defaultStartTimeout = 300
)

// TaskColumn holds one value for each task.
type TaskColumn struct {
	Name   string
	Values []string
}

// AttrArray marks jobs that were submitted as several tasks, though it may be one
// ("0-0").
const AttrArray = "Array"
