package startd

import (
	"errors"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/checkpoint/criu"
	"github.com/roost-batch/roost/internal/boottime"
	"github.com/roost-batch/roost/internal/cgroup"
	"github.com/roost-batch/roost/internal/failpoint"
	"github.com/roost-batch/roost/internal/sendqueue"
	"github.com/roost-batch/roost/internal/userfiles"
	"github.com/roost-batch/roost/internal/wire"
	"github.com/roost-batch/roost/startd/slot"
	"github.com/roost-batch/roost/startd/starter/proto"
	"github.com/roost-batch/roost/startd/starterclient"
)

// claimRunner does the work of one claim, in a goroutine of its own: it keeps the claim's
// directory, drives the starter, and prepares and cleans up after each attempt.
type claimRunner struct {
	host  *claimHost
	id    slot.ClaimID
	dir   string
	file  claimFile
	cred  userfiles.UserCredential
	queue *sendqueue.Queue[any]

	ownerSuspension ownerSuspension    // for the machine's owner
	group           *cgroup.ClaimGroup // nil: the claim has none
	starter         *starterclient.Starter
	attemptFile     *os.File
	agent           *userfiles.Agent
	// directory for the files of its attempts, which the user owns; empty: it is not made
	// yet
	baseDir       string
	ioDir         bool                         // that for their streams is made
	attempt       *claimAttempt                // that is on the claim, until it is forgotten
	sharedAttempt atomic.Pointer[claimAttempt] // now, for transfers
	stopping      bool                         // dismissed or left: the starter's end is awaited
	keepFiles     bool                         // left
	done          bool
}

func (m *claimHost) newClaimRunner(file claimFile) *claimRunner {
	return &claimRunner{
		host: m, id: slot.ClaimID(file.ID), dir: filepath.Join(m.claimsDir(), slot.ClaimID(file.ID).String()),
		file: file, queue: sendqueue.New[any](),
	}
}

// run obeys until the claim and its starter are gone.
func (h *claimRunner) run() {
	for !h.done {
		<-h.queue.Ready()
		for _, o := range h.queue.Take() {
			h.handle(o)
		}
	}
	if h.agent != nil {
		h.host.agents.Release(h.cred)
	}
	if h.attemptFile != nil {
		h.attemptFile.Close()
	}
	h.host.postEvent(runnerGone{h.id})
}

func (h *claimRunner) handle(order any) {
	switch o := order.(type) {
	case createClaimCmd:
		h.createClaim(o)
	case startAttemptCmd:
		h.startAttempt(o)
	case placementCmd:
		h.recordPlacement(o)
	case throttleCmd:
		h.throttleCPU(o)
	case inputReadyCmd:
		if h.hasAttempt(o.attemptID) && h.attempt.awaitsInput() {
			h.startPrepared(h.attempt)
		}
	case vacateCmd:
		h.vacateAttempt(o)
	case renewLeaseCmd:
		if h.starter != nil {
			h.starter.RenewLease(o.deadline - boottime.Now())
		}
	case discardAttemptCmd:
		h.discardAttempt(o.id)
	case removeClaimCmd:
		h.removeClaim(false)
	case detachCmd:
		h.removeClaim(true)
	case processesCmd:
		h.onProcessesCmd(o)
	case checkpointCmd:
		if h.hasAttempt(o.id) {
			h.beginCheckpoint(h.attempt, o.reason)
		}
	case checkpointDue:
		if h.hasAttempt(o.id) && h.attempt.recordedExit == nil {
			h.onCheckpointDue(h.attempt)
		}
	case probeDumpableCmd:
		if h.hasAttempt(o.id) && h.attempt.recordedExit == nil {
			h.probeDumpable(h.attempt)
		}
	case dumpDone:
		if h.hasAttempt(o.id) {
			h.reapplySuspend(h.attempt)
		}
	case checkpointDone:
		h.onCheckpointDone(o)
	case imageFetched:
		h.onImageFetched(o)
	case imageStored:
		if h.hasAttempt(o.id) {
			h.onImageStored(h.attempt, o.sequence)
		}
	case freezeCmd:
		h.setSuspended(o)
	case signalCmd:
		if h.hasAttempt(o.id) && h.attempt.recordedExit == nil {
			h.signalAttempt(h.attempt, o.signal)
		}
	case setLimitsCmd:
		if h.hasAttempt(o.id) && h.attempt.recordedExit == nil {
			h.setAttemptLimits(h.attempt, o)
		}
	case outputMessageCmd:
		if h.hasAttempt(o.id) && h.attempt.recordedExit == nil {
			h.host.addOutputMessage(h.attempt, o)
		}
	case ownerResumed:
		if h.attempt != nil && h.attempt.recordedExit == nil && h.attempt.checkpoint.cancel == nil {
			h.scheduleCheckpoint(h.attempt)
		}
	case trimMemoryCmd:
		h.trimMemory()
	case resendPendingCmd:
		if h.attempt != nil && h.attempt.recordedExit == nil && h.attempt.checkpoint.unstored != nil {
			h.reportCheckpoint(h.attempt.checkpoint.unstored)
		}
	case prologueDone:
		h.onPrologueDone(o)
	case epilogueDone:
		h.onEpilogueDone(o)
	case starterEvent:
		h.onStarterEvent(o.event)
	case leaseOverdue:
		h.endLeaseOverdue(o.id)
	}
}

func (h *claimRunner) hasAttempt(id roost.AttemptID) bool {
	return h.attempt != nil && h.attempt.id == id
}

// createClaim writes the claim down, says so, and only then spends the time for a
// starter: until the schedd's first attempt is here it is ready.
func (h *claimRunner) createClaim(o createClaimCmd) {
	h.cred = h.host.accounts.credential(&h.file)
	err := os.Mkdir(h.dir, 0o700)
	if err == nil {
		err = writeClaimFile(h.dir, h.file)
	}
	if err == nil {
		h.attemptFile, err = os.OpenFile(filepath.Join(h.dir, "attempt"), os.O_WRONLY|os.O_CREATE, 0o600)
	}
	if err != nil {
		h.host.postEvent(claimFailed{h.id, "the claim could not be written down: " + err.Error()})
		return
	}
	failpoint.Point(failpoint.StartdAfterClaim)
	h.host.postEvent(claimCreated{h.id})
	failpoint.Point(failpoint.StartdBeforeStarter)
	if h.group, err = h.host.groups.create(h.file, h.openableDevices()); err == nil {
		join, tasks := h.cgroupJoin()
		h.starter, err = starterclient.Spawn(starterclient.SpawnOptions{
			Binary: h.host.starterPath, Dir: h.dir, Lease: o.lease, Events: func(e starterclient.Event) {
				h.queue.Put(starterEvent{e})
			}, Join: join, TaskGroup: tasks,
		})
	}
	if err != nil {
		h.host.log.Error("no starter", "claim", h.id, "err", err)
		h.host.postEvent(claimFailed{h.id, err.Error()})
		return
	}
	h.ownerSuspension.attach(h.group, h.starter, h.host.sandboxed)
	failpoint.Point(failpoint.StartdAfterStarter)
}

// recordPlacement writes down what the claim holds now. Should that not succeed, a
// restart finds a claim that waits, or one that holds what it held before; the attempt
// that is about to start is lost then, and only then.
func (h *claimRunner) recordPlacement(o placementCmd) {
	reclaimed := h.file.isReclaimed()
	h.file.Placed, h.file.Cores = &o.placement, o.cores
	if err := writeClaimFile(h.dir, h.file); err != nil {
		h.host.log.Error("what a claim holds cannot be written down", "claim", h.id, "err", err)
	}
	if h.group != nil && (h.file.Cores != nil || h.file.isReclaimed() != reclaimed) {
		if err := h.group.SetLimits(limitsOf(h.file, h.host.config)); err != nil {
			h.host.log.Error("a claim goes with the limits of its last turn", "claim", h.id, "err", err)
		}
	}
}

func (h *claimRunner) startAttempt(o startAttemptCmd) {
	a := newAttempt(o.id, h.cred, o.program)
	a.disk = h.file.Resources.Disk
	h.attempt = a
	err := h.prepareAttempt(a)
	a.mustAwaitInput = o.awaitInput && err == nil
	h.sharedAttempt.Store(a)
	if err != nil {
		h.failAttempt(a, err)
		return
	}
	h.fetchImage(a)
	if o.awaitInput {
		h.host.postEvent(inputReady{h.id, a.id, a.record.Scratch})
		return
	}
	h.startPrepared(a)
}

func (h *claimRunner) startPrepared(a *claimAttempt) {
	if a.checkpoint.awaitsImage {
		a.checkpoint.otherwiseReady = true // fetched follows
		return
	}
	if h.startPrologue(a) {
		return // prologued follows
	}
	if err := h.launchAttempt(a); err != nil {
		h.failAttempt(a, err)
		return
	}
	h.sendPendingSignals(a)
}

// errJobFault marks what is the job's fault, and not the machine's.
var errJobFault = errors.New("the job cannot run here")

// failAttempt ends an attempt that the machine could not start.
func (h *claimRunner) failAttempt(a *claimAttempt, err error) {
	h.host.log.Warn("cannot start", "attempt", a.label(), "err", err)
	cause := wire.Cause_CAUSE_MACHINE
	switch {
	case errors.Is(err, errOwnerSuspended):
		cause = wire.Cause_CAUSE_VACATED
	case errors.Is(err, errRestore):
		cause = wire.Cause_CAUSE_RESTORE
	case errors.Is(err, errJobFault):
		cause = wire.Cause_CAUSE_LAUNCH
	}
	h.onExit(a, &wire.ExitStatus{Cause: cause, Reason: err.Error(), OwnFiles: errors.Is(err, errForeignImage)})
}

func (h *claimRunner) vacateAttempt(o vacateCmd) {
	if !h.hasAttempt(o.id) || h.attempt.recordedExit != nil {
		return
	}
	if h.attempt.checkpoint.packedExit != nil {
		h.hurryPacking(h.attempt, o)
		return
	}
	if h.attempt.awaitsInput() || h.starter == nil {
		h.onExit(h.attempt, &wire.ExitStatus{Cause: o.cause, Reason: o.reason})
		return
	}
	if !h.vacateWithCheckpoint(h.attempt, o) {
		h.stopAttempt(h.attempt, o)
	}
}

// stopAttempt ends an attempt that runs. What stands still for the machine's owner does
// not run again for that.
func (h *claimRunner) stopAttempt(a *claimAttempt, o vacateCmd) {
	notice := a.record.Notice
	o.fast = o.fast || h.ownerSuspension.reason() != ""
	if o.notice > 0 {
		notice = min(notice, o.notice)
	}
	a.checkpoint.packingAborted = a.checkpoint.packingAborted || o.fast || notice <= 0
	stop := starterclient.StopCmd{Attempt: a.ref, Cause: proto.EndCause(o.cause), Fast: o.fast, Notice: int64(notice),
		Reason: o.reason}
	if a.isSelfCheckpointing() && a.storesWorkAfter(o.cause) {
		stop.Signal = uint32(a.checkpoint.policy.GetSignal())
	}
	h.starter.Vacate(stop)
	if o.cause == wire.Cause_CAUSE_LEASE {
		a.leaseOverReason = o.reason
		time.AfterFunc(leaseEndTimeout, func() { h.queue.Put(leaseOverdue{a.id}) })
	}
}

// setSuspended suspends an attempt, or lets it go on. One that is on its way out is left
// alone, and one that is being saved goes on when it is.
func (h *claimRunner) setSuspended(o freezeCmd) {
	if !h.hasAttempt(o.id) || h.starter == nil || h.attempt.recordedExit != nil ||
		h.attempt.checkpoint.whenDone != nil {
		return
	}
	h.attempt.checkpoint.suspended, h.attempt.record.Still = o.frozen, o.frozen
	h.writeRecord(h.attempt)
	switch {
	case o.frozen:
		h.suspendTask(h.attempt)
	case h.attempt.checkpoint.cancel == nil:
		h.starter.Resume(h.attempt.ref)
	}
}

// suspendTask stops the task at once by its group: a busy task shares its time with its
// starter, which gets to it later, and only stops the walltime then. Without a group the
// starter does both.
func (h *claimRunner) suspendTask(a *claimAttempt) {
	if h.freezeCgroup(a) {
		h.starter.Frozen(a.ref)
	} else {
		h.starter.Suspend(a.ref)
	}
}

// freezeCgroup freezes the task's group, and reports whether it did.
func (h *claimRunner) freezeCgroup(a *claimAttempt) bool {
	if h.group == nil {
		return false
	}
	if a.record.Boxed && a.checkpoint.pid != 0 {
		h.detachSandboxInit(a)
	}
	if err := h.group.Freeze(); err != nil {
		h.host.log.Warn("cannot freeze", "claim", h.id, "err", err)
		return false
	}
	return true
}

// detachSandboxInit has the first process of the box hear, before it is frozen, that it
// is to live on without its parent. If it is held it is let out for that.
func (h *claimRunner) detachSandboxInit(a *claimAttempt) {
	if !h.ownerSuspension.isFrozenOutside() {
		criu.Detach(a.checkpoint.pid)
		return
	}
	err := h.group.RunOneWhileFrozen(a.checkpoint.pid, func() { criu.Detach(a.checkpoint.pid) })
	if err != nil {
		h.host.log.Error("the first process of a task cannot be told that it is saved", "attempt", a.label(),
			"err", err)
	}
	if errors.Is(err, roost.Conflict) { // it must not run outside
		h.group.KillAll()
	}
}

func (h *claimRunner) discardAttempt(id roost.AttemptID) {
	if !h.hasAttempt(id) {
		return
	}
	a := h.attempt
	h.attempt = nil
	h.sharedAttempt.Store(nil)
	if h.starter != nil {
		h.starter.DiscardAttempt(a.ref)
	}
	h.removeAttemptFiles(a)
}

// removeClaim ends the starter; the rest happens when it is gone.
func (h *claimRunner) removeClaim(keep bool) {
	if h.stopping {
		return
	}
	h.stopping, h.keepFiles = true, keep
	if h.starter == nil || h.starter.Release() != nil {
		h.finish()
	}
}

// finish ends the hand.
func (h *claimRunner) finish() {
	if h.done {
		return
	}
	h.done = true
	h.removeCgroup() // its starter is gone
	if h.keepFiles {
		if h.attempt != nil {
			h.attempt.closeFiles()
		}
		return
	}
	if h.attempt != nil {
		h.removeAttemptFiles(h.attempt)
	}
	h.removeFiles()
	if err := os.RemoveAll(h.dir); err != nil {
		h.host.log.Warn("cannot remove a claim", "claim", h.id, "err", err)
	}
}

func (h *claimRunner) onStarterEvent(event starterclient.Event) {
	switch e := event.(type) {
	case starterclient.TaskStarted:
		h.ownerSuspension.startConfirmed()
		if h.attempt != nil && h.attempt.ref == e.Attempt {
			h.host.postEvent(attemptStarted{h.id, h.attempt.id, int64(e.PID)})
			h.watchGPUs(h.attempt.id)
			h.startCheckpoints(h.attempt, e.PID)
			h.awaitTerminal(h.attempt)
			h.host.onProgramStarted(h.attempt)
		}
	case starterclient.TaskExited:
		h.ownerSuspension.startConfirmed()
		if h.attempt != nil && h.attempt.ref == e.Attempt {
			status := h.attempt.exitReport(e.Exit)
			if e.Exit.Step == proto.FromImage && status.Cause == wire.Cause_CAUSE_RESTORE {
				status.Reason, status.ForgedImage = h.host.restoreFailure(h.attempt)
			}
			h.onProgramEnded(h.attempt, status)
		}
	case starterclient.ProcessDied:
		h.onStarterDied(e)
	}
}

// onStarterDied takes in the death of the starter. What its task had forked may still
// live: it is found by its mark.
func (h *claimRunner) onStarterDied(e starterclient.ProcessDied) {
	h.starter = nil
	h.ownerSuspension.detach()
	a := h.attempt
	if a != nil && a.recordedExit == nil && a.checkpoint.packedExit == nil && !a.awaitsInput() {
		if h.group != nil {
			h.group.KillAll()
		}
		if _, err := starterclient.Sweep(h.file.Cookie, h.host.boxPath(h.id)); err != nil {
			h.host.log.Error("processes are left", "claim", h.id, "err", err)
		}
		switch {
		case e.LastState.Phase == proto.Ended && e.LastState.Attempt == a.ref:
			h.onProgramEnded(a, a.exitReport(e.LastState.Exit))
		// the kernel ends a starter that is late with that, and the machine is not at
		// fault
		case a.leaseOverReason != "":
			h.onExit(a, &wire.ExitStatus{Cause: wire.Cause_CAUSE_LEASE, Reason: a.leaseOverReason})
		default:
			h.onExit(a, &wire.ExitStatus{Cause: wire.Cause_CAUSE_MACHINE,
				Reason: "its starter died, and nobody knows how it ended"})
		}
	}
	if h.stopping {
		h.finish()
		return
	}
	reason := "its starter has ended"
	if e.Err != nil && !errors.Is(e.Err, starterclient.ErrGone) {
		reason = e.Err.Error()
	}
	h.host.postEvent(claimFailed{h.id, reason})
}

// userAgent is the claim's share in the agent of its user.
func (h *claimRunner) userAgent() (*userfiles.Agent, error) {
	if h.agent != nil {
		return h.agent, nil
	}
	agent, err := h.host.agents.Acquire(h.cred)
	if err == nil {
		h.agent = agent
	}
	return agent, err
}
