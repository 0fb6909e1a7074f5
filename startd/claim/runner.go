package claim

import (
	"errors"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"

	"github.com/roost-batch/roost/internal/cgroup"
	"github.com/roost-batch/roost/internal/failpoint"
	"github.com/roost-batch/roost/internal/sendqueue"
	"github.com/roost-batch/roost/internal/tasktrace"
	"github.com/roost-batch/roost/internal/userfiles"
	"github.com/roost-batch/roost/internal/wire"
	"github.com/roost-batch/roost/startd/meter"
	"github.com/roost-batch/roost/startd/slot"
	"github.com/roost-batch/roost/startd/starter/proto"
	"github.com/roost-batch/roost/startd/starterclient"
)

// Runner does the work of one claim, in a goroutine of its own. It owns the claim's
// directory, drives the starter, and prepares and cleans up after each attempt.
type Runner struct {
	machine *Machine
	id      slot.ClaimID
	dir     string
	file    File
	cred    userfiles.UserCredential
	queue   *sendqueue.Queue[any]

	ownerSuspension OwnerSuspension    // for the machine's owner
	group           *cgroup.ClaimGroup // nil: the claim has none
	starter         *starterclient.Starter
	spare           *SpareStarter // that the claim is to use; nil: it makes its own
	attemptFile     *os.File
	dirs            claimDirs
	baseline        *meter.Baseline         // of the next attempt; nil: it is to be measured
	attempt         *Attempt                // that is on the claim, until it is forgotten
	sharedAttempt   atomic.Pointer[Attempt] // now, for transfers
	stopping        bool                    // dismissed or left: the starter's end is awaited
	keepFiles       bool                    // left
	done            bool
}

// NewRunner returns the runner of a claim. Run starts it. A spare, if not nil, was made
// under the claim's id.
func (m *Machine) NewRunner(file File, spare *SpareStarter) *Runner {
	id, cred := slot.ClaimID(file.ID), m.accounts.credential(&file)
	m.lastUser.Store(cred.UID)
	return &Runner{
		machine: m, id: id, dir: m.claimDir(id), file: file, cred: cred, spare: spare,
		queue: sendqueue.New[any](),
		dirs:  claimDirs{dirs: m.dirs, id: id, cred: cred, agents: m.agents, log: m.log},
	}
}

// Run carries out commands until the claim and its starter are gone.
func (h *Runner) Run() {
	for !h.done {
		<-h.queue.Ready()
		for _, o := range h.queue.Take() {
			h.handle(o)
		}
	}
	h.dirs.close()
	if h.attemptFile != nil {
		h.attemptFile.Close()
	}
	h.machine.host.Post(GoneEvent{h.id})
}

// ID returns the claim's id.
func (h *Runner) ID() slot.ClaimID { return h.id }

// Send gives the runner a command (commands.go), which it carries out after those before.
func (h *Runner) Send(command any) { h.queue.Put(command) }

// Suspension returns by what the claim is suspended for the machine's owner. That does
// not wait for the runner.
func (h *Runner) Suspension() *OwnerSuspension { return &h.ownerSuspension }

// Attempt returns the attempt that is on the claim; nil while there is none. Others than
// the runner may call it.
func (h *Runner) Attempt() *Attempt { return h.sharedAttempt.Load() }

// HasSlotUser reports whether the claim's tasks run as that slot user, for another user
// of a submit node.
func (h *Runner) HasSlotUser(slotUID uint32, schedd string, uid uint32) bool {
	return h.file.Rights != nil && h.file.Rights.UID == slotUID && (h.file.UID != uid || h.file.Schedd != schedd)
}

// createClaim writes the claim down, reports that, and only then makes a starter. Until
// the schedd's first attempt is here it is ready.
func (h *Runner) createClaim(o CreateCmd) {
	err := os.Mkdir(h.dir, 0o700)
	if err == nil || h.spare != nil {
		err = writeClaimFile(h.dir, h.file)
	}
	if err == nil {
		h.attemptFile, err = os.OpenFile(filepath.Join(h.dir, "attempt"), os.O_WRONLY|os.O_CREATE, 0o600)
	}
	if err != nil {
		h.machine.host.Post(FailedEvent{h.id, "the claim could not be written down: " + err.Error()})
		return
	}
	failpoint.Point(failpoint.StartdAfterClaim)
	tasktrace.Mark(tasktrace.Created, tasktrace.Task{})
	h.machine.host.Post(CreatedEvent{h.id})
	failpoint.Point(failpoint.StartdBeforeStarter)
	if err := h.makeStarter(o.Lease); err != nil {
		h.machine.log.Error("no starter", "claim", h.id, "err", err)
		h.machine.host.Post(FailedEvent{h.id, err.Error()})
		return
	}
	h.ownerSuspension.attach(h.group, h.starter, h.machine.sandboxed)
	failpoint.Point(failpoint.StartdAfterStarter)
	tasktrace.Mark(tasktrace.Spawned, tasktrace.Task{})
}

// makeStarter makes the claim's control group and its starter, or takes those of its
// spare.
func (h *Runner) makeStarter(lease time.Duration) error {
	if h.spare != nil && h.useSpare(lease) {
		return nil
	}
	var err error
	if h.group, err = h.machine.groups.create(h.file, h.openableDevices()); err == nil {
		join, tasks := h.cgroupJoin()
		h.starter, err = starterclient.Spawn(starterclient.SpawnOptions{
			Binary: h.machine.starterPath, Dir: h.dir, Lease: lease, Events: func(e starterclient.Event) {
				h.queue.Put(starterEvent{e})
			}, Join: join, TaskGroup: tasks, Nested: h.machine.sandboxed && makesNestedSandboxes(),
		})
	}
	return err
}

// recordPlacement writes down what the claim holds now. Should that not succeed, a
// restart finds a claim that waits, or one that holds what it held before; the attempt
// that is about to start is lost then, and only then.
func (h *Runner) recordPlacement(o PlacementCmd) {
	reclaimed := h.file.isReclaimed()
	h.file.Placed, h.file.Cores = &o.Placement, o.Cores
	if err := writeClaimFile(h.dir, h.file); err != nil {
		h.machine.log.Error("what a claim holds cannot be written down", "claim", h.id, "err", err)
	}
	if h.group != nil && (h.file.Cores != nil || h.file.isReclaimed() != reclaimed) {
		if err := h.group.SetLimits(limitsOf(h.file, h.machine.config)); err != nil {
			h.machine.log.Error("a claim goes with the limits of its last turn", "claim", h.id, "err", err)
		}
	}
}

func (h *Runner) startAttempt(o StartCmd) {
	a := h.machine.newAttempt(o.ID, h.cred, o.Program)
	a.disk = h.file.Resources.Disk
	h.attempt = a
	err := o.PortError
	if err == nil {
		err = h.launcher().prepareAttempt(a)
	}
	if err == nil {
		err = h.containerizer().prepare(a)
	}
	a.mustAwaitInput = o.AwaitInput && err == nil
	h.sharedAttempt.Store(a)
	if err != nil {
		h.failAttempt(a, err)
		return
	}
	h.checkpointer().fetchImage(a)
	h.containerizer().begin(a)
	if o.AwaitInput {
		h.machine.host.Post(InputAwaitedEvent{h.id, a.id, a.record.Scratch})
		return
	}
	h.startPrepared(a)
}

func (h *Runner) startPrepared(a *Attempt) {
	if a.checkpoint.awaitsImage || a.container.awaited {
		a.checkpoint.otherwiseReady = true // imageFetched or containerReady follows
		return
	}
	if h.siteScripts().startPrologue(a) {
		h.baseline = nil // it uses the claim's group
		return           // prologued follows
	}
	if err := h.launcher().launchAttempt(a); err != nil {
		h.failAttempt(a, err)
		return
	}
	h.sendPendingSignals(a)
}

// errJobFault marks what is the job's fault, and not the machine's.
var errJobFault = errors.New("the job cannot run here")

// failAttempt ends an attempt that the machine could not start.
func (h *Runner) failAttempt(a *Attempt, err error) {
	h.machine.log.Warn("cannot start", "attempt", a.Label(), "err", err)
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

func (h *Runner) vacateAttempt(o VacateCmd) {
	if !h.hasOpenAttempt(o.ID) {
		return
	}
	if h.attempt.checkpoint.packedExit != nil {
		h.checkpointer().hurryPacking(h.attempt, o)
		return
	}
	if h.attempt.AwaitsInput() || h.starter == nil {
		h.onExit(h.attempt, &wire.ExitStatus{Cause: o.Cause, Reason: o.Reason})
		return
	}
	if h.service().beginLeaving(h.attempt, o) {
		return // drained follows
	}
	if !h.checkpointer().vacateWithCheckpoint(h.attempt, o) {
		h.stopAttempt(h.attempt, o)
	}
}

// stopAttempt ends an attempt that runs. What stands still for the machine's owner does
// not run again for that.
func (h *Runner) stopAttempt(a *Attempt, o VacateCmd) {
	notice := a.record.Notice
	o.Fast = o.Fast || h.ownerSuspension.reason() != ""
	if o.Notice > 0 {
		notice = min(notice, o.Notice)
	}
	if bound := h.machine.config.PreemptionDelay; o.Cause == wire.Cause_CAUSE_PREEMPTED && bound > 0 {
		notice = min(notice, bound)
	}
	o.Fast = o.Fast || o.Cause == wire.Cause_CAUSE_LEASE && a.service.program != nil
	if h.checkpointer().awaitSelfCheckpoint(a, o, notice) {
		return
	}
	a.checkpoint.packingAborted = a.checkpoint.packingAborted || o.Fast || notice <= 0
	stop := starterclient.StopCmd{Attempt: a.ref, Cause: proto.EndCause(o.Cause), Fast: o.Fast, Notice: int64(notice),
		Reason: o.Reason}
	if a.isSelfCheckpointing() && a.storesWorkAfter(o.Cause) {
		if stop.Signal = uint32(a.checkpoint.policy.GetSignal()); !o.Fast && o.Cause != wire.Cause_CAUSE_WALLTIME {
			h.checkpointer().reportLeaving(a)
		}
	}
	h.starter.Vacate(stop)
	if o.Cause == wire.Cause_CAUSE_LEASE {
		a.leaseOverReason = o.Reason
		time.AfterFunc(leaseEndTimeout, func() { h.queue.Put(leaseOverdue{a.id}) })
	}
}

func (h *Runner) onStarterEvent(event starterclient.Event) {
	switch e := event.(type) {
	case starterclient.TaskStarted:
		h.ownerSuspension.startConfirmed()
		if h.attempt != nil && h.attempt.ref == e.Attempt {
			h.machine.host.Post(StartedEvent{h.id, h.attempt.id, int64(e.PID)})
			h.watchGPUs(h.attempt.id)
			h.checkpointer().startCheckpoints(h.attempt, e.PID)
			h.awaitTerminal(h.attempt)
			h.attempt.onProgramStarted()
			h.service().startChecks(h.attempt, e.PID)
		}
	case starterclient.TaskExited:
		h.ownerSuspension.startConfirmed()
		if h.attempt != nil && h.attempt.ref == e.Attempt {
			status := h.attempt.exitReport(e.Exit)
			if e.Exit.Step == proto.FromImage && status.Cause == wire.Cause_CAUSE_RESTORE {
				status.Reason, status.ForgedImage = h.machine.checkpoints.restoreFailure(h.attempt, e.Exit.Reason)
			}
			h.checkpointer().onProgramEnded(h.attempt, status)
		}
	case starterclient.ProcessDied:
		h.onStarterDied(e)
	}
}

// onStarterDied takes in the death of the starter. What its task had forked may still
// live: it is found by its mark.
func (h *Runner) onStarterDied(e starterclient.ProcessDied) {
	h.starter = nil
	h.ownerSuspension.detach()
	a := h.attempt
	if a != nil && a.recordedExit == nil && a.checkpoint.packedExit == nil && !a.AwaitsInput() {
		if h.group != nil {
			h.group.KillAll()
		}
		if _, err := starterclient.Sweep(h.file.Cookie, h.machine.dirs.ClaimIO(h.id)); err != nil {
			h.machine.log.Error("processes are left", "claim", h.id, "err", err)
		}
		switch {
		case e.LastState.Phase == proto.Ended && e.LastState.Attempt == a.ref:
			h.checkpointer().onProgramEnded(a, a.exitReport(e.LastState.Exit))
		// the kernel ends a starter that is late with that: no fault of the machine's
		case a.leaseOverReason != "":
			h.onExit(a, &wire.ExitStatus{Cause: wire.Cause_CAUSE_LEASE, Reason: a.leaseOverReason})
		default:
			// its journal says that a task begins before it is forked
			begun := e.LastState.Phase == proto.Running && e.LastState.Attempt == a.ref
			h.onExit(a, &wire.ExitStatus{Cause: wire.Cause_CAUSE_MACHINE, Begun: begun,
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
	h.machine.host.Post(FailedEvent{h.id, reason})
}
