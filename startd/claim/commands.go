package claim

import (
	"net/netip"
	"time"

	"golang.org/x/sys/unix"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/checkpoint/criu"
	"github.com/roost-batch/roost/gpu"
	"github.com/roost-batch/roost/internal/wire"
	"github.com/roost-batch/roost/startd/health"
	"github.com/roost-batch/roost/startd/slot"
	"github.com/roost-batch/roost/startd/starter/proto"
	"github.com/roost-batch/roost/startd/starterclient"
)

// What the loop tells a runner (Runner.Send), in order.
type (
	// CreateCmd makes the claim on disk, with its control group and its starter.
	CreateCmd struct{ Lease time.Duration }

	// StartCmd starts an attempt, at once or when its input is there.
	StartCmd struct {
		ID         roost.AttemptID
		Program    *wire.Program
		AwaitInput bool
		PortError  error // why the attempt cannot have its ports; nil: it can
	}

	// PortsCmd replaces the ports of the claim: something else on the machine has taken
	// one of them.
	PortsCmd struct{ Ports []roost.ClaimPort }

	// PlacementCmd is what the claim holds now that has waited.
	PlacementCmd struct {
		Placement gpu.SavedPlacement
		Cores     []int
	}

	// ResizeCmd changes the limits of a claim on which an attempt runs; ResizedEvent
	// follows. Held is what the machine's books hold until then.
	ResizeCmd struct {
		ID         roost.AttemptID
		Held, To   roost.Resources
		Saved      gpu.SavedPlacement // for Held
		SavedAfter gpu.SavedPlacement // for To
	}

	// InputReadyCmd says that all input of an attempt is there.
	InputReadyCmd struct{ ID roost.AttemptID }

	// ThrottleCmd limits the claim's CPU time; 0: it may have what there is.
	ThrottleCmd struct{ CPUMax roost.MilliCPU }

	// CoresCmd binds the claim's tasks to other cores.
	CoresCmd struct{ Cores []int }

	// MemorySlackCmd sets how much memory the claim may use beyond its request.
	MemorySlackCmd struct{ Slack roost.Bytes }

	// VacateCmd ends an attempt.
	VacateCmd struct {
		ID     roost.AttemptID
		Cause  wire.Cause
		Fast   bool
		Reason string
		Notice time.Duration // at most, when above 0
	}

	// SignalCmd sends a signal of somebody's to all processes of the task.
	SignalCmd struct {
		ID     roost.AttemptID
		Signal unix.Signal
	}

	// HostFilesCmd replaces the files that name the machines of the job.
	HostFilesCmd struct {
		ID          roost.AttemptID
		Nodes, GPUs []string // lines
	}

	// SetLimitsCmd changes the limits of an attempt; 0: none.
	SetLimitsCmd struct {
		ID                roost.AttemptID
		Walltime, CPUTime time.Duration
	}

	// OutputMessageCmd writes a line of somebody's into the output of the task.
	OutputMessageCmd struct {
		ID             roost.AttemptID
		Line           string // with its end
		Stdout, Stderr bool
	}

	// RenewLeaseCmd has the claim's starter go on until then.
	RenewLeaseCmd struct{ Deadline roost.BootTime }

	// DiscardCmd removes what is left of an attempt whose end its schedd knows.
	DiscardCmd struct{ ID roost.AttemptID }

	// RemoveCmd ends the starter and removes everything.
	RemoveCmd struct{}

	// DetachCmd ends the starter, and leaves what a later startd needs. After a RemoveCmd
	// it has no effect.
	DetachCmd struct{}

	// OwnerResumedCmd says that the owner of the machine lets the claim go on.
	OwnerResumedCmd struct{}

	// TrimMemoryCmd has the task give back the memory that it can do without.
	TrimMemoryCmd struct{}

	// CheckpointCmd asks for a checkpoint.
	CheckpointCmd struct {
		ID     roost.AttemptID
		Reason string
	}

	// ImageStoredCmd says that the schedd has an image, or does not want it.
	ImageStoredCmd struct {
		ID       roost.AttemptID
		Sequence uint64
	}

	// FreezeCmd suspends an attempt, or resumes it.
	FreezeCmd struct {
		ID     roost.AttemptID
		Frozen bool
	}

	// HoldChecksCmd has the health checks of an attempt not run for a time; 0: they run
	// again.
	HoldChecksCmd struct {
		ID  roost.AttemptID
		For time.Duration
	}

	// SecretsCmd gives an attempt its secrets, before it is launched or in the place of
	// others. The program gets the signals afterwards.
	SecretsCmd struct {
		ID      roost.AttemptID
		Secrets []*wire.SecretText
		Signals []uint32
	}

	// NameRightCmd replaces the right with which an attempt is found by name.
	NameRightCmd struct {
		ID    roost.AttemptID
		Right *wire.NameRight
	}

	// ResendPendingCmd asks to report again what the schedd may not have heard.
	ResendPendingCmd struct{}

	// ProcessesCmd asks where the processes of an attempt are.
	ProcessesCmd struct {
		ID    roost.AttemptID
		Reply chan<- Processes // holds one
	}
)

// What a runner tells itself: the news of its starter, timers and helpers.
type (
	starterEvent struct{ event starterclient.Event }

	// leaseOverdue says that the starter has had time enough to end an attempt whose
	// lease is over.
	leaseOverdue struct{ id roost.AttemptID }

	// selfCheckpointOverdue says that the time is over in which a program was to save its
	// state and to end.
	selfCheckpointOverdue struct{ vacate VacateCmd }

	// healthChanged is the news of the prober.
	healthChanged struct {
		id      roost.AttemptID
		report  health.Report
		results []health.CheckResult
	}

	// drained says that an attempt of a service is to be stopped now that it has left.
	drained struct{ id roost.AttemptID }

	// checkpointDue says that the time of a checkpoint may have come.
	checkpointDue struct{ id roost.AttemptID }

	// selfCheckpointDue says that a program may handle the signal now by which it is told
	// to save its state.
	selfCheckpointDue struct {
		id  roost.AttemptID
		why string
	}

	// probeDumpableCmd asks whether an attempt can be dumped at all.
	probeDumpableCmd struct{ id roost.AttemptID }

	// checkpointDone tells how a checkpoint went.
	checkpointDone struct {
		id         roost.AttemptID
		taken      *wire.CheckpointTaken
		result     criu.DumpResult
		exitStatus bool // of an attempt that has saved itself and ended
	}

	// dumpDone tells that an attempt need not be frozen for a checkpoint any more. Its
	// image is yet to be made.
	dumpDone struct{ id roost.AttemptID }

	// imageFetched tells that the image from which an attempt is to be restored is here,
	// or why it is not.
	imageFetched struct {
		id  roost.AttemptID
		err error
	}

	// containerReady tells that the container image and the packages of an attempt are
	// mounted, or why not.
	containerReady struct {
		id     roost.AttemptID
		mounts []contentMount
		image  proto.RootImage // without Root: it has no container image
		driver string          // directory of the GPU driver for the image; empty: none
		err    error
		failed contentMount // that err is about
	}

	prologueDone struct {
		id  roost.AttemptID
		err error
	}
	epilogueDone struct {
		id  roost.AttemptID
		err error
	}
)

// What a runner tells the loop (Host.Post).
type (
	// CreatedEvent says that the claim is on disk. Its starter follows.
	CreatedEvent struct{ Claim slot.ClaimID }

	// FailedEvent says that the claim can run nothing, or nothing more.
	FailedEvent struct {
		Claim  slot.ClaimID
		Reason string
	}

	// InputAwaitedEvent says that there is a place for the input of an attempt.
	InputAwaitedEvent struct {
		Claim   slot.ClaimID
		ID      roost.AttemptID
		Scratch string
	}

	// StartedEvent says that the program of an attempt runs.
	StartedEvent struct {
		Claim slot.ClaimID
		ID    roost.AttemptID
		PID   int64
	}

	// ResizedEvent says that a claim has its new limits, or why it does not have them.
	ResizedEvent struct {
		Claim   slot.ClaimID
		Refusal string // empty: it has them
	}

	// HealthEvent says how an attempt of a service is now.
	HealthEvent struct {
		Claim    slot.ClaimID
		ID       roost.AttemptID
		Health   *wire.TaskHealth
		Name     string                    // of the job
		Revision uint64                    // of the job, from which the attempt was started
		Ports    map[string]netip.AddrPort // the task's own, by name
		Right    *wire.NameRight           // to its name; nil: its schedd has given none
	}

	// MetricEvent says what the metric of an attempt is now.
	MetricEvent struct {
		Claim  slot.ClaimID
		ID     roost.AttemptID
		Metric *wire.TaskMetric
	}

	// ContainerEvent says how far the container image of an attempt is.
	ContainerEvent struct {
		Claim    slot.ClaimID
		ID       roost.AttemptID
		Progress *wire.ContainerProgress
	}

	// EndedEvent says how an attempt has ended.
	EndedEvent struct {
		Claim  slot.ClaimID
		ID     roost.AttemptID
		Exited *wire.Exited
	}

	// GoneEvent is the last of a runner: nothing of the claim is left.
	GoneEvent struct{ Claim slot.ClaimID }

	// CheckpointReport is for a schedd: a checkpoint was taken, or why not.
	CheckpointReport struct {
		Schedd string
		Taken  *wire.CheckpointTaken
	}

	// LeavingReport is for a schedd: an attempt that saves its own state has to leave.
	LeavingReport struct {
		Schedd string
		Health *wire.TaskHealth
	}
)
