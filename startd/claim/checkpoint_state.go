package claim

import (
	"cmp"
	"context"
	"path/filepath"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/checkpoint"
	"github.com/roost-batch/roost/checkpoint/criu"
	"github.com/roost-batch/roost/internal/boottime"
	"github.com/roost-batch/roost/internal/wire"
	"github.com/roost-batch/roost/startd/slot"
	"github.com/roost-batch/roost/startd/starterclient"
)

// Why a checkpoint is taken, as it stands in CheckpointTaken.
const (
	reasonPeriodic = "periodic"
	reasonVacate   = "vacate"
	reasonWalltime = "walltime"
)

// checkpointState is what a runner knows of the checkpoints of its present attempt. The
// zero value is that of one of which none are taken.
type checkpointState struct {
	mayBeStaged    bool // files that its restore needed may be left
	policy         *wire.CheckpointPolicy
	dumpable       bool           // one of its processes could be taken, when that was tried or looked at last
	lastStored     time.Time      // when the last good one was taken; zero: none was
	pid            int            // of the sandbox's first process, 0 before it runs
	startedAt      roost.BootTime // when it ran
	lastCheckpoint roost.BootTime // when the last checkpoint ended, or the attempt began
	cost           time.Duration
	failures       int // in a row
	timer          *time.Timer
	cancel         context.CancelFunc // of the one that is being taken; nil: none is
	reason         string             // it is taken
	requestedAgain bool               // another was asked for meanwhile
	whenDone       *VacateCmd         // to be done when it is taken
	unstored       *wire.CheckpointTaken
	packedExit     *wire.ExitStatus // the attempt has ended like this, and what it has saved itself is being packed
	packingAborted bool             // it was not given time to save anything
	suspended      bool             // it is suspended
	wasSuspended   bool             // it was when the checkpoint that is being taken began
	awaitsImage    bool             // the image to go on from is on its way here from a checkpoint server
	otherwiseReady bool             // everything else is there
	probeWait      time.Duration    // how long the last probe, whether it can be dumped, was waited for
	unhandledSince roost.BootTime   // since when the program is seen not to handle its signal; 0: it does
	signalledAt    roost.BootTime   // when the program was last asked to save its state and to end; 0: never
	leaving        bool             // it was asked because the attempt has to leave
}

// checkpointObstacle says why no image of the attempt can be taken; empty when one can.
func (h checkpointer) checkpointObstacle(a *Attempt) string {
	s := &a.checkpoint
	switch {
	case s.policy == nil:
		return "the job allows no checkpoints"
	case a.isSelfCheckpointing():
		return "the program saves its own state, and its job names no signal that asks for it"
	case !h.machine.checkpoints.criu.Works:
		return "this machine takes none: " + cmp.Or(h.machine.checkpoints.criu.Why, "it has no CRIU")
	case a.record.Container != nil && a.record.Container.Root.Writable != "":
		return "its container image is writable, and what it has changed there cannot be saved"
	case !a.record.Boxed:
		return "it does not run in a sandbox"
	case s.pid == 0 || a.recordedExit != nil:
		return "it does not run"
	}
	return ""
}

// startCheckpoints begins to think of checkpoints: the attempt runs.
func (h checkpointer) startCheckpoints(a *Attempt, pid int) {
	s := &a.checkpoint
	if a.record.Stopped { // the starter stops what is stopped, and lets all of it go on
		h.starter.Suspend(a.ref)
		h.starter.Resume(a.ref)
		a.record.Stopped = false
		h.writeRecord(a)
	}
	if s.pid != 0 {
		return
	}
	s.pid, s.startedAt = pid, boottime.Now()
	s.lastCheckpoint = s.startedAt
	if s.policy == nil {
		return
	}
	if a.isSelfCheckpointing() {
		s.cost = selfCheckpointCost
		h.reportCheckpointInfo(a)
	}
	s.probeWait = firstDumpableProbe
	time.AfterFunc(s.probeWait, func() { h.queue.Put(probeDumpableCmd{a.id}) })
	h.scheduleCheckpoint(a)
}

// firstDumpableProbe is how soon after its start an attempt is probed, whether it can be
// dumped. By then most programs have opened what they need. The probe is repeated after
// twice the time as long as that is at most lastDumpableProbe: others take longer.
const (
	firstDumpableProbe = 2 * time.Second
	lastDumpableProbe  = time.Minute
)

// probeDumpable finds out whether the attempt can be dumped, and has that told.
func (h checkpointer) probeDumpable(a *Attempt) {
	if a.isSelfCheckpointing() {
		return
	}
	why := h.checkpointObstacle(a)
	if why == "" {
		if f := criu.Probe(a.checkpoint.pid); f != nil {
			why = f.Reason
		}
	}
	h.machine.meters.SetDumpable(h.id, a.id, cmp.Or(why, "yes"))
	a.checkpoint.dumpable = why == ""
	h.reportCheckpointInfo(a)
	if s := &a.checkpoint; why == "" && 2*s.probeWait <= lastDumpableProbe {
		s.probeWait *= 2
		time.AfterFunc(s.probeWait, func() { h.queue.Put(probeDumpableCmd{a.id}) })
	}
}

// scheduleCheckpoint sets the timer to the next occasion: the interval's end, or a while
// before the walltime's.
func (h checkpointer) scheduleCheckpoint(a *Attempt) {
	s := &a.checkpoint
	if s.timer != nil {
		s.timer.Stop()
		s.timer = nil
	}
	if a.isSelfCheckpointing() && s.policy.GetSignal() == 0 || !a.isSelfCheckpointing() &&
		h.checkpointObstacle(a) != "" {
		return
	}
	at, ok := h.nextCheckpointTime(a)
	if !ok {
		return
	}
	s.timer = time.AfterFunc(max(at-boottime.Now(), 0), func() { h.queue.Put(checkpointDue{a.id}) })
}

// nextCheckpointTime is when the next checkpoint is to be taken.
func (h checkpointer) nextCheckpointTime(a *Attempt) (at roost.BootTime, ok bool) {
	s := &a.checkpoint
	since, ok := checkpoint.NextCheckpoint(time.Duration(s.policy.GetIntervalNs()), s.lastCheckpoint-s.startedAt,
		s.cost, h.machine.checkpoints.mtbf(), s.failures)
	at = s.startedAt + since
	if limit := a.record.Walltime; s.policy.GetBeforeWalltime() && limit > 0 {
		if before := s.startedAt + limit - walltimeLead(limit, s.cost); s.lastCheckpoint < before &&
			(!ok || before < at) {
			return before, true
		}
	}
	return at, ok
}

// walltimeLead returns how long before the end of its walltime a task is saved. It is
// twice what the last checkpoint took and half a minute, but never more than a tenth of
// the whole.
func walltimeLead(walltime, cost time.Duration) time.Duration {
	return min(2*cost+30*time.Second, walltime/10)
}

// onCheckpointDue takes a checkpoint if its time has come.
func (h checkpointer) onCheckpointDue(a *Attempt) {
	at, ok := h.nextCheckpointTime(a)
	if !ok || at > boottime.Now()+time.Second {
		h.scheduleCheckpoint(a)
		return
	}
	why := reasonPeriodic
	if limit := a.record.Walltime; a.checkpoint.policy.GetBeforeWalltime() && limit > 0 &&
		boottime.Now()+time.Second >= a.checkpoint.startedAt+limit-walltimeLead(limit, a.checkpoint.cost) {
		why = reasonWalltime
	}
	h.beginCheckpoint(a, why)
}

// beginCheckpoint takes a checkpoint, or says why not. While one is being taken, another
// that is asked for waits.
func (h checkpointer) beginCheckpoint(a *Attempt, why string) {
	s := &a.checkpoint
	if held := h.ownerSuspension.reason(); held != "" && why != reasonVacate { // it is saved when it leaves
		if why == ReasonRequested {
			h.reportCheckpoint(&wire.CheckpointTaken{Attempt: wire.FromAttempt(a.id), Reason: why,
				Error: errOwnerSuspended.Error() + ": " + held})
		}
		return
	}
	if a.isSelfCheckpointing() && s.policy.GetSignal() != 0 && s.pid != 0 && h.starter != nil &&
		a.recordedExit == nil && s.packedExit == nil {
		h.requestSelfCheckpoint(a, why)
		return
	}
	if cannot := h.checkpointObstacle(a); cannot != "" {
		h.reportCheckpoint(&wire.CheckpointTaken{Attempt: wire.FromAttempt(a.id), Error: cannot, Reason: why})
		return
	}
	if s.cancel != nil {
		s.requestedAgain = s.requestedAgain || why != reasonPeriodic && why != reasonVacate
		return
	}
	if a.AcquireFiles() != nil {
		return
	}
	ctx, stop := context.WithCancelCause(a.ctx)
	cancel := func() { stop(nil) }
	if why == reasonVacate {
		timed, expire := context.WithTimeout(ctx, h.vacateCheckpointTime())
		ctx, cancel = timed, func() { expire(); stop(nil) }
	}
	if err := h.ownerSuspension.beginDump(stop, why == reasonVacate); err != nil { // just now
		cancel()
		a.ReleaseFiles()
		return
	}
	s.cancel, s.reason, s.wasSuspended = cancel, why, s.suspended
	job := h.newDumpRequest(a, why)
	job.done = func() {
		h.ownerSuspension.endDump()
		h.queue.Put(dumpDone{a.id})
	}
	go func() {
		defer a.ReleaseFiles()
		defer cancel()
		taken, result := h.machine.checkpoints.takeCheckpoint(ctx, job)
		h.ownerSuspension.endDump()
		h.queue.Put(checkpointDone{a.id, taken, result, false})
	}()
}

// onCheckpointDone takes in how a checkpoint went.
func (h checkpointer) onCheckpointDone(o checkpointDone) {
	if o.exitStatus {
		h.machine.checkpoints.vacating.Add(-1)
	}
	if !h.hasAttempt(o.id) {
		h.machine.checkpoints.deleteImage(h.file.Schedd, o.taken)
		return
	}
	a := h.attempt
	s := &a.checkpoint
	s.cancel, s.lastCheckpoint = nil, boottime.Now()
	if o.taken.GetError() == "" {
		s.failures, s.cost = 0, o.result.Frozen
		s.lastStored, s.dumpable = time.Unix(0, o.taken.GetImage().GetTime()), true
		h.reportCheckpointInfo(a)
		if old := s.unstored; old != nil {
			h.machine.checkpoints.deleteImage(h.file.Schedd, old)
		}
		s.unstored = o.taken
		a.record.Next, a.record.Unkept = o.taken.GetImage().GetSequence()+1, encodeReport(o.taken)
		h.writeRecord(a)
	} else {
		s.failures++
		h.machine.log.Info("no checkpoint", "attempt", a.Label(), "why", o.taken.GetError())
	}
	if a.recordedExit == nil {
		h.reportCheckpoint(o.taken)
	}
	if status := s.packedExit; status != nil {
		s.packedExit = nil
		h.onExit(a, status)
		return
	}
	h.suspender().reapplySuspend(a)
	if v := s.whenDone; v != nil {
		if s.reason != reasonVacate && !v.Fast { // it may have run on since
			h.checkpointThenVacate(a)
			return
		}
		h.cancelVacateCheckpoint(a)
		h.finishVacate(a, *v, o.taken.GetError() == "")
		return
	}
	if s.requestedAgain {
		s.requestedAgain = false
		h.beginCheckpoint(a, ReasonRequested)
		return
	}
	h.scheduleCheckpoint(a)
}

// ReasonRequested is the reason of a checkpoint that the submit side wants.
const ReasonRequested = "asked"

// stopCheckpoints ends what is under way: the attempt has ended.
func (h checkpointer) stopCheckpoints(a *Attempt) {
	s := &a.checkpoint
	if s.timer != nil {
		s.timer.Stop()
	}
	if s.cancel != nil {
		s.cancel()
	}
	h.cancelVacateCheckpoint(a)
}

// onImageStored forgets an image that the submit side has, or does not want.
func (h checkpointer) onImageStored(a *Attempt, sequence uint64) {
	if old := a.checkpoint.unstored; old != nil && old.GetImage().GetSequence() <= sequence {
		h.machine.checkpoints.deleteImage(h.file.Schedd, old)
		a.checkpoint.unstored, a.record.Unkept = nil, nil
		h.writeRecord(a)
	}
}

func (h checkpointer) reportCheckpoint(t *wire.CheckpointTaken) {
	h.machine.host.Post(CheckpointReport{h.file.Schedd, t})
}

// writeRecord writes the attempt's record again.
func (h *Runner) writeRecord(a *Attempt) {
	if err := writeAttempt(h.attemptFile, &a.record); err != nil {
		h.machine.log.Error("cannot write the record of an attempt", "attempt", a.Label(), "err", err)
	}
}

// restoreCheckpoints takes over what an earlier startd knew.
func (h checkpointer) restoreCheckpoints(a *Attempt, state starterclient.ProcessState, running bool) {
	s := &a.checkpoint
	if len(a.record.Policy) > 0 {
		s.policy = &wire.CheckpointPolicy{}
		if proto.Unmarshal(a.record.Policy, s.policy) != nil {
			s.policy = nil
		}
	}
	if len(a.record.Unkept) > 0 {
		s.unstored = &wire.CheckpointTaken{}
		if proto.Unmarshal(a.record.Unkept, s.unstored) != nil {
			s.unstored = nil
		} else {
			s.lastStored = time.Unix(0, s.unstored.GetImage().GetTime())
		}
	}
	if running {
		s.suspended = a.record.Still
		if !s.suspended && h.starter != nil { // an earlier start may have been about to save it
			h.starter.Resume(a.ref)
			if h.group != nil {
				h.group.Thaw()
			}
		}
		h.startCheckpoints(a, int(state.PID))
		s.startedAt = roost.BootTime(state.Since)
	}
}

func encodeReport(m proto.Message) []byte {
	b, err := proto.Marshal(m)
	if err != nil {
		panic(err) // a message of ours that cannot be written down
	}
	return b
}

// stageDir is where an attempt's checkpoint is put together.
func (m *Checkpoints) stageDir(a *Attempt, kind string) string {
	return filepath.Join(m.dir, filepath.Base(a.record.IO)+"."+kind)
}

// reportCheckpointInfo reports how much would be lost if the attempt had to leave. A
// program that saves its own state is taken at its word.
func (h checkpointer) reportCheckpointInfo(a *Attempt) {
	s := &a.checkpoint
	h.machine.meters.SetCheckpointInfo(h.id, a.id, slot.CheckpointInfo{Possible: s.policy.GetOnVacate() &&
		(s.dumpable || a.isSelfCheckpointing()), Last: s.lastStored})
}
