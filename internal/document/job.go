package document

import (
	"strings"
	"time"

	"github.com/roost-batch/roost/internal/wire/scheddapi"
)

// Job is a job, or a task of it.
type Job struct {
	ID             string            `json:"id"`
	Name           string            `json:"name"`
	Owner          string            `json:"owner"`
	Band           string            `json:"band"`
	Queue          string            `json:"queue,omitempty"`
	Priority       int32             `json:"priority"`
	State          string            `json:"state"`
	Submitted      string            `json:"submitted"`
	Started        string            `json:"started,omitempty"`
	Ended          string            `json:"ended,omitempty"`
	Array          bool              `json:"array"`
	Tasks          uint32            `json:"tasks"`
	Counts         map[string]uint32 `json:"counts"`
	Request        Resources         `json:"request"`
	Reason         string            `json:"reason,omitempty"`
	Index          *uint32           `json:"index,omitempty"`
	Attempt        uint32            `json:"attempt,omitempty"`
	Node           string            `json:"node,omitempty"`
	Pool           string            `json:"pool,omitempty"` // another pool, of which the node is
	Exit           *Exit             `json:"exit,omitempty"`
	Placed         *Placement        `json:"placed,omitempty"`
	Removed        bool              `json:"removed,omitempty"`
	Usage          *Usage            `json:"usage,omitempty"`
	Dumpable       string            `json:"dumpable,omitempty"`
	Checkpoints    uint32            `json:"checkpoints,omitempty"`
	CheckpointedAt string            `json:"checkpointed,omitempty"`
	Epochs         []GangEpoch       `json:"epochs,omitempty"` // of gangs that save their state together
	Suspended      bool              `json:"suspended,omitempty"`
	SuspendBy      string            `json:"suspended_by,omitempty"`
	HeldBy         string            `json:"held_by,omitempty"`
	RunNow         *RunNow           `json:"run_now,omitempty"`
	Transfers      []FileTransfer    `json:"transfers,omitempty"`
	Steps          []Step            `json:"steps,omitempty"` // of the present attempt, as exit has
	Update         *Update           `json:"update,omitempty"`
	Service        *Service          `json:"service,omitempty"`
	Alloc          *Alloc            `json:"alloc,omitempty"`
	InAlloc        *InAlloc          `json:"in_alloc,omitempty"`
	Flow           *FlowProgress     `json:"flow,omitempty"`
}

// RunNow is how a request to run a job now, out of turn, stands.
type RunNow struct {
	By      string   `json:"by,omitempty"`
	Since   string   `json:"since,omitempty"`
	Nodes   []string `json:"nodes,omitempty"`
	Pending uint32   `json:"pending"`
	Denied  string   `json:"denied,omitempty"`
}

func runNowOf(r *scheddapi.RunNow) *RunNow {
	if r == nil {
		return nil
	}
	return &RunNow{r.GetBy(), Timestamp(r.GetSince()), r.GetNodes(), r.GetPending(), r.GetDenied()}
}

// Resources are what a task asks for. Sizes are in bytes.
type Resources struct {
	CPUs   float64 `json:"cpus"`
	Memory int64   `json:"memory_bytes"`
	Disk   int64   `json:"disk_bytes"`
	GPUs   int64   `json:"gpus"`
	GPUMem int64   `json:"gpu_memory_bytes,omitempty"`

	DiskIO  int64 `json:"disk_io_bytes_per_second,omitempty"`
	Network int64 `json:"network_bytes_per_second,omitempty"`
}

// Exit is how an attempt ended, and what it used.
type Exit struct {
	Code      int32   `json:"code"`
	Signal    int32   `json:"signal,omitempty"`
	Core      bool    `json:"core,omitempty"`
	Reason    string  `json:"reason,omitempty"`
	Cause     string  `json:"cause"`
	Wall      float64 `json:"wall_seconds"`
	UserCPU   float64 `json:"user_cpu_seconds"`
	SystemCPU float64 `json:"system_cpu_seconds"`
	MaxRSS    int64   `json:"max_rss_bytes"`

	PeakMemory    int64 `json:"peak_memory_bytes,omitempty"`
	Read          int64 `json:"read_bytes,omitempty"`
	Written       int64 `json:"written_bytes,omitempty"`
	PeakGPUMemory int64 `json:"peak_gpu_memory_bytes,omitempty"`
	Disk          int64 `json:"disk_bytes,omitempty"`

	SuccessCode int32 `json:"success_code,omitempty"` // the exit code that its job calls success

	Preemptor *PreemptionParty `json:"preemptor,omitempty"` // of a preempted attempt, if it is known
	Stored    *StoredOutput    `json:"stored,omitempty"`    // what it wrote that is on the checkpoint server
	Steps     []Step           `json:"steps,omitempty"`     // of srun
}

// Event is something that happened to a job.
type Event struct {
	Sequence uint64 `json:"sequence"`
	Time     string `json:"time"`
	ID       string `json:"id"`
	Attempt  uint32 `json:"attempt,omitempty"`
	What     string `json:"what"`
	Text     string `json:"text,omitempty"`
	Node     string `json:"node,omitempty"`
	Pool     string `json:"pool,omitempty"`
	Exit     *Exit  `json:"exit,omitempty"`
	Chunk    uint32 `json:"chunk,omitempty"`
	// of a start: whose attempts were told to end for it
	Displaced []PreemptionParty `json:"displaced,omitempty"`
}

// JobOf returns the document of a job, or of one of its tasks.
func JobOf(s *scheddapi.JobStatus, task bool) Job {
	r := Job{
		ID: s.GetId(), Name: s.GetName(), Owner: s.GetOwner(), Band: s.GetBand(), Queue: s.GetQueue(),
		Priority: s.GetPriority(), State: StateOf(s),
		Submitted: Timestamp(s.GetSubmitted()), Started: Timestamp(s.GetStarted()),
		Ended: Timestamp(s.GetEnded()),
		Array: s.GetArray(), Tasks: s.GetTasks(),
		Counts: s.GetCounts(), Reason: s.GetReason(), Attempt: s.GetAttempt(), Node: s.GetNode(),
		Pool: PoolOfNode(s.GetNode()),
		Exit: ExitOf(s.GetExit()), Removed: s.GetRemoved(),
		Request: ResourcesOf(s.GetRequest()), Placed: PlacementOf(s.GetPlaced()),
		Usage: UsageOf(s.GetUsage()), Dumpable: s.GetDumpable(),
		Checkpoints: s.GetCheckpoints(), CheckpointedAt: Timestamp(s.GetCheckpointed()),
		Epochs:    gangEpochsOf(s),
		Suspended: s.GetSuspended(),
		SuspendBy: s.GetSuspendedBy(), HeldBy: s.GetHeldBy(),
		RunNow: runNowOf(s.GetRunNow()), Update: UpdateOf(s.GetUpdate()),
		Service: ServiceOf(s.GetService()),
		Alloc:   AllocOf(s.GetAlloc()), InAlloc: inAllocOf(s.GetInside()),
		Flow:      FlowProgressOf(s.GetFlow()),
		Transfers: FileTransfersOf(s), Steps: stepsOf(s.GetSteps()),
	}
	if r.Counts == nil {
		r.Counts = map[string]uint32{}
	}
	if task {
		index := s.GetIndex()
		r.Index = &index
	}
	return r
}

// PoolOfNode returns the pool of a machine of another pool; "" for one of this pool. It
// is in the name of the machine, as in "n1@physics".
func PoolOfNode(node string) string {
	_, pool, _ := strings.Cut(node, "@")
	return pool
}

// ResourcesOf returns the document of a request.
func ResourcesOf(r *scheddapi.Resources) Resources {
	return Resources{float64(r.GetMilliCpu()) / 1000, r.GetMemory(), r.GetDisk(), r.GetGpus(), r.GetGpuMemory(),
		r.GetDiskIo(), r.GetNetwork()}
}

// ExitOf returns the document of an end; nil for none.
func ExitOf(e *scheddapi.ExitStatus) *Exit {
	if e == nil {
		return nil
	}
	const second = 1e9
	return &Exit{
		Code: e.GetCode(), Signal: e.GetSignal(), Core: e.GetCore(), Reason: e.GetReason(),
		Cause: causeName(e.GetCause()), SuccessCode: e.GetSuccessCode(),
		Wall: float64(e.GetWall()) / second, UserCPU: float64(e.GetUserCpu()) / second,
		SystemCPU: float64(e.GetSystemCpu()) / second, MaxRSS: e.GetMaxRss(),
		PeakMemory: e.GetUsage().GetPeakMemory(), Read: e.GetUsage().GetReadBytes(),
		Written:       e.GetUsage().GetWriteBytes(),
		PeakGPUMemory: e.GetUsage().GetPeakGpuMemory(), Disk: e.GetUsage().GetDisk(),
		Preemptor: PartyOf(e.GetPreemptor()), Stored: StoredOutputOf(e), Steps: stepsOf(e.GetSteps()),
	}
}

func causeName(c scheddapi.Cause) string {
	switch c {
	case scheddapi.Cause_CAUSE_EXITED:
		return "exited"
	case scheddapi.Cause_CAUSE_WALLTIME:
		return "walltime"
	case scheddapi.Cause_CAUSE_REMOVED:
		return "removed"
	case scheddapi.Cause_CAUSE_VACATED:
		return "vacated"
	case scheddapi.Cause_CAUSE_PREEMPTED:
		return "preempted"
	case scheddapi.Cause_CAUSE_LEASE:
		return "lease"
	case scheddapi.Cause_CAUSE_LAUNCH:
		return "launch"
	case scheddapi.Cause_CAUSE_MACHINE:
		return "machine"
	case scheddapi.Cause_CAUSE_MEMORY:
		return "memory"
	case scheddapi.Cause_CAUSE_GPU_MEMORY:
		return "gpu_memory"
	case scheddapi.Cause_CAUSE_DISK:
		return "disk"
	case scheddapi.Cause_CAUSE_RESTORE:
		return "restore"
	case scheddapi.Cause_CAUSE_CPU_TIME:
		return "cpu_time"
	case scheddapi.Cause_CAUSE_VIRTUAL:
		return "virtual_memory"
	case scheddapi.Cause_CAUSE_REFUSED:
		return "refused"
	}
	return "unknown"
}

// EventOf returns the document of an event.
func EventOf(e *scheddapi.JobEvent) Event {
	d := Event{e.GetSequence(), Timestamp(e.GetTime()), e.GetId(), e.GetAttempt(), e.GetWhat(),
		e.GetText(),
		e.GetNode(), PoolOfNode(e.GetNode()), ExitOf(e.GetExit()), e.GetChunk(), nil}
	for _, p := range e.GetDisplaced() {
		d.Displaced = append(d.Displaced, *PartyOf(p))
	}
	return d
}

// Usage is what a task uses, for programs.
type Usage struct {
	Time          string  `json:"time,omitempty"`
	Wall          float64 `json:"wall_seconds"`
	UserCPU       float64 `json:"user_cpu_seconds"`
	SystemCPU     float64 `json:"system_cpu_seconds"`
	Memory        int64   `json:"memory_bytes"`
	PeakMemory    int64   `json:"peak_memory_bytes"`
	Cache         int64   `json:"cache_bytes"`
	Read          int64   `json:"read_bytes"`
	Write         int64   `json:"write_bytes"`
	Processes     uint32  `json:"processes"`
	GPUs          float64 `json:"gpus_busy"`
	GPUMemory     int64   `json:"gpu_memory_bytes"`
	PeakGPUMemory int64   `json:"peak_gpu_memory_bytes"`
	Disk          int64   `json:"disk_bytes"`
	Frozen        bool    `json:"frozen,omitempty"`
}

// UsageOf returns the document of a usage; nil for none.
func UsageOf(u *scheddapi.TaskUsage) *Usage {
	if u == nil {
		return nil
	}
	seconds := func(ns int64) float64 { return time.Duration(ns).Seconds() }
	return &Usage{
		Time: Timestamp(u.GetTime()), Wall: seconds(u.GetWall()), UserCPU: seconds(u.GetUserCpu()),
		SystemCPU: seconds(u.GetSystemCpu()), Memory: u.GetMemory(),
		PeakMemory: u.GetPeakMemory(), Cache: u.GetCache(), Read: u.GetReadBytes(), Write: u.GetWriteBytes(),
		Processes: u.GetProcesses(), GPUs: u.GetGpu(),
		GPUMemory: u.GetGpuMemory(), PeakGPUMemory: u.GetPeakGpuMemory(), Disk: u.GetDisk(), Frozen: u.GetFrozen(),
	}
}
