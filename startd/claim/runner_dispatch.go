package claim

import (
	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/boottime"
)

// handle carries out a command of the loop's about the claim itself. All others are about
// its attempt, or news of the runner's own.
func (h *Runner) handle(order any) {
	switch o := order.(type) {
	case CreateCmd:
		h.createClaim(o)
	case PlacementCmd:
		h.recordPlacement(o)
	case PortsCmd:
		h.recordPorts(o)
	case ThrottleCmd:
		h.throttleCPU(o)
	case CoresCmd:
		claimResizer{h}.bindCores(o)
	case MemorySlackCmd:
		claimResizer{h}.setMemorySlack(o)
	case ResizeCmd:
		claimResizer{h}.resizeClaim(o)
	case RenewLeaseCmd:
		if h.starter != nil {
			h.starter.RenewLease(o.Deadline - boottime.Now())
		}
	case TrimMemoryCmd:
		h.trimMemory()
	case OwnerResumedCmd:
		h.checkpointer().onOwnerResumed()
	case ResendPendingCmd:
		h.checkpointer().resendPending()
	case ProcessesCmd:
		h.onProcessesCmd(o)
	case RemoveCmd:
		h.removeClaim(false)
	case DetachCmd:
		h.removeClaim(true)
	default:
		h.handleAttempt(order)
	}
}

// handleAttempt carries out a command of the loop's about the attempt on the claim. A
// command for an attempt that has ended, or was followed by another, has no effect.
func (h *Runner) handleAttempt(order any) {
	switch o := order.(type) {
	case StartCmd:
		h.startAttempt(o)
	case InputReadyCmd:
		if h.hasAttempt(o.ID) && h.attempt.AwaitsInput() {
			h.startPrepared(h.attempt)
		}
	case VacateCmd:
		h.vacateAttempt(o)
	case selfCheckpointOverdue:
		h.checkpointer().endOverdue(o.vacate)
	case DiscardCmd:
		h.discardAttempt(o.ID)
	case FreezeCmd:
		h.suspender().setSuspended(o)
	case SignalCmd:
		if h.hasOpenAttempt(o.ID) {
			h.signalAttempt(h.attempt, o.Signal)
		}
	case HostFilesCmd:
		if h.hasOpenAttempt(o.ID) {
			h.launcher().replaceHosts(h.attempt, o)
		}
	case SetLimitsCmd:
		if h.hasOpenAttempt(o.ID) {
			h.setAttemptLimits(h.attempt, o)
		}
	case OutputMessageCmd:
		if h.hasOpenAttempt(o.ID) {
			h.attempt.addOutputMessage(o)
		}
	case SecretsCmd:
		h.onSecrets(o)
	case HoldChecksCmd:
		h.service().holdChecks(o)
	case NameRightCmd:
		h.service().setNameRight(o)
	case CheckpointCmd:
		if h.hasAttempt(o.ID) {
			h.checkpointer().beginCheckpoint(h.attempt, o.Reason)
		}
	case ImageStoredCmd:
		if h.hasAttempt(o.ID) {
			h.checkpointer().onImageStored(h.attempt, o.Sequence)
		}
	default:
		h.handleNews(order)
	}
}

// handleNews takes in what the starter, timers and goroutines beside the runner say.
func (h *Runner) handleNews(news any) {
	switch n := news.(type) {
	case starterEvent:
		h.onStarterEvent(n.event)
	case leaseOverdue:
		h.endLeaseOverdue(n.id)
	case healthChanged:
		h.service().onHealthChanged(n)
	case metricRead:
		h.service().onMetricRead(n)
	case drained:
		h.service().onDrained(n)
	case prologueDone:
		h.siteScripts().onPrologueDone(n)
	case epilogueDone:
		h.siteScripts().onEpilogueDone(n)
	case imageFetched:
		h.checkpointer().onImageFetched(n)
	case containerReady:
		h.containerizer().onReady(n)
	case checkpointDue:
		if h.hasOpenAttempt(n.id) {
			h.checkpointer().onCheckpointDue(h.attempt)
		}
	case selfCheckpointDue:
		if h.hasOpenAttempt(n.id) {
			h.checkpointer().beginCheckpoint(h.attempt, n.why)
		}
	case probeDumpableCmd:
		if h.hasOpenAttempt(n.id) {
			h.checkpointer().probeDumpable(h.attempt)
		}
	case dumpDone:
		if h.hasAttempt(n.id) {
			h.suspender().reapplySuspend(h.attempt)
		}
	case checkpointDone:
		h.checkpointer().onCheckpointDone(n)
	}
}

// hasAttempt reports whether the attempt is on the claim, ended or not.
func (h *Runner) hasAttempt(id roost.AttemptID) bool {
	return h.attempt != nil && h.attempt.id == id
}

// hasOpenAttempt reports whether the attempt is on the claim, and has not ended.
func (h *Runner) hasOpenAttempt(id roost.AttemptID) bool {
	return h.hasAttempt(id) && h.attempt.recordedExit == nil
}
