package claim

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/checkpoint/image"
	"github.com/roost-batch/roost/internal/boottime"
	"github.com/roost-batch/roost/internal/userfiles"
	"github.com/roost-batch/roost/internal/wire"
	"github.com/roost-batch/roost/startd/starter/proto"
	"github.com/roost-batch/roost/startd/starterclient"
)

// A program that saves its own state in files is asked for it by a signal, if its job
// names one, and says that it has done so by how it ends. Then those files are packed,
// with its user's rights, into an image like any other, before the end of the attempt is
// told: the next one gets its input as usual, those files on top of it, and is started
// anew. Nothing is packed while the program runs: a file may be half written.

// isSelfCheckpointing reports whether the attempt's program saves its own state.
func (a *Attempt) isSelfCheckpointing() bool {
	return a.checkpoint.policy.GetMethod() == wire.CheckpointPolicy_METHOD_SELF
}

// selfCheckpointCost is the assumed time in which a program saves its state and starts
// again. Nobody measures it.
const selfCheckpointCost = 10 * time.Second

// storesWorkAfter reports whether what is saved is to be kept when the attempt ends from
// that cause.
func (a *Attempt) storesWorkAfter(c wire.Cause) bool {
	switch c {
	case wire.Cause_CAUSE_VACATED, wire.Cause_CAUSE_PREEMPTED:
		return a.checkpoint.policy.GetOnVacate()
	case wire.Cause_CAUSE_WALLTIME:
		return a.checkpoint.policy.GetBeforeWalltime()
	}
	return false
}

// hasSelfCheckpoint reports whether a program has saved its state, by how it has ended.
// It has ended with the exit code that says so; or, if there is no such code, in the
// time that it was given to leave.
func (a *Attempt) hasSelfCheckpoint(x *wire.ExitStatus) bool {
	if !a.isSelfCheckpointing() {
		return false
	}
	if code := a.checkpoint.policy.GetExitCode(); code != 0 {
		return x.GetSignal() == 0 && x.GetCode() == code &&
			(x.GetCause() == wire.Cause_CAUSE_EXITED || a.storesWorkAfter(x.GetCause()))
	}
	return a.storesWorkAfter(x.GetCause()) && !a.checkpoint.packingAborted
}

// onProgramEnded takes in the end of an attempt: what it has saved is packed before that
// is told.
func (h checkpointer) onProgramEnded(a *Attempt, status *wire.ExitStatus) {
	if a.recordedExit != nil || a.checkpoint.packedExit != nil {
		return // told again
	}
	if !a.hasSelfCheckpoint(status) || a.AcquireFiles() != nil {
		h.onExit(a, status)
		return
	}
	s := &a.checkpoint
	h.stopCheckpoints(a)
	ctx, cancel := context.WithTimeout(a.ctx, maxVacateTime)
	s.packedExit, s.cancel = status, cancel
	h.machine.checkpoints.vacating.Add(1)
	job := h.newSelfCheckpointFiles(a, status)
	go func() {
		defer a.ReleaseFiles()
		defer cancel()
		taken, result := h.machine.checkpoints.takeCheckpoint(ctx, job)
		h.queue.Put(checkpointDone{a.id, taken, result, true})
	}()
}

// hurryPacking is for an attempt that is to leave while its files are packed. Only a
// vacate that does not wait for anything goes without them.
func (h checkpointer) hurryPacking(a *Attempt, v VacateCmd) {
	if v.Fast && a.checkpoint.cancel != nil {
		a.checkpoint.cancel()
	}
}

// requestSelfCheckpoint tells a program to save its state.
func (h checkpointer) requestSelfCheckpoint(a *Attempt, why string) {
	s := &a.checkpoint
	signal := unix.Signal(s.policy.GetSignal())
	if why == reasonWalltime { // and to end
		notice := walltimeLead(a.record.Walltime, s.cost)
		h.starter.Vacate(starterclient.StopCmd{
			Attempt: a.ref, Cause: proto.Walltime, Notice: int64(notice), Signal: uint32(signal),
			Reason: fmt.Sprintf("walltime of %v exceeded; it was told %v before", a.record.Walltime, notice),
		})
		return
	}
	if !survivesSignal(s.pid, a.record.Boxed, signal) {
		h.awaitSignalHandler(a, why)
		return
	}
	s.unhandledSince = 0
	h.starter.Signal(a.ref, signal)
	s.lastCheckpoint = boottime.Now()
	if s.policy.GetExitCode() != 0 {
		s.signalledAt = s.lastCheckpoint
	}
	h.scheduleCheckpoint(a)
	if why == ReasonRequested && s.policy.GetExitCode() == 0 { // nobody hears when it is done
		h.reportCheckpoint(&wire.CheckpointTaken{Attempt: wire.FromAttempt(a.id), Reason: why, Error: fmt.Sprintf(
			"the program was told by %v to save its state and runs on: its files are kept when it has to leave its "+
				"machine", signal)})
	}
}

// A program that was started a moment ago does not handle the signal yet, and would die
// of it. It has so long to begin to, and is looked at so often.
const (
	signalHandlerTimeout  = 10 * time.Second
	signalHandlerInterval = 100 * time.Millisecond
)

// awaitSignalHandler asks a program later, or says that it was not asked.
func (h checkpointer) awaitSignalHandler(a *Attempt, why string) {
	s, now := &a.checkpoint, boottime.Now()
	if s.unhandledSince == 0 {
		s.unhandledSince = now
	}
	if now-s.unhandledSince < signalHandlerTimeout {
		time.AfterFunc(signalHandlerInterval, func() { h.queue.Put(selfCheckpointDue{a.id, why}) })
		return
	}
	s.unhandledSince, s.lastCheckpoint = 0, now
	s.failures++
	h.scheduleCheckpoint(a)
	h.reportCheckpoint(&wire.CheckpointTaken{Attempt: wire.FromAttempt(a.id), Reason: why, Error: fmt.Sprintf(
		"the program does not handle %v, which would end it: it was not told to save its state",
		unix.SignalName(unix.Signal(s.policy.GetSignal())))})
}

// awaitSelfCheckpoint gives a program the rest of its notice, and reports whether it
// does. It does if the program was asked a moment ago to save its state and to end: a
// second signal might come while it saves.
func (h checkpointer) awaitSelfCheckpoint(a *Attempt, o VacateCmd, notice time.Duration) bool {
	s := &a.checkpoint
	left := s.signalledAt + notice - boottime.Now()
	if s.signalledAt == 0 || left <= 0 || o.Fast ||
		o.Cause != wire.Cause_CAUSE_VACATED && o.Cause != wire.Cause_CAUSE_PREEMPTED {
		return false
	}
	o.Fast = true
	time.AfterFunc(left, func() { h.queue.Put(selfCheckpointOverdue{o}) })
	h.reportLeaving(a)
	return true
}

// endOverdue ends a program that has not saved its state in time. What has ended and is
// packed goes on.
func (h checkpointer) endOverdue(o VacateCmd) {
	if h.hasOpenAttempt(o.ID) && h.attempt.checkpoint.packedExit == nil {
		h.vacateAttempt(o)
	}
}

// reportLeaving tells the schedd that a program was asked to save its state because it
// has to leave. The others of its gang are to be asked, too.
func (h checkpointer) reportLeaving(a *Attempt) {
	if a.checkpoint.policy.GetExitCode() == 0 {
		return
	}
	a.checkpoint.leaving = true
	h.machine.host.Post(LeavingReport{h.file.Schedd, &wire.TaskHealth{Attempt: wire.FromAttempt(a.id),
		State: wire.HealthState_HEALTH_STATE_LEAVING, AtNs: time.Now().UnixNano()}})
}

// selfCheckpointFiles are what a program has saved, and what it has printed.
type selfCheckpointFiles struct {
	user          userfiles.UserCredential
	scratch       string // empty: it has none, and its files lie where the next attempt finds them
	patterns      []string
	limit         int64
	capturedNames []string // names of streams that are captured
	io            string
}

// newSelfCheckpointFiles says what is to be packed.
func (h checkpointer) newSelfCheckpointFiles(a *Attempt, x *wire.ExitStatus) dumpRequest {
	r := &a.record
	why := ReasonRequested
	switch x.GetCause() {
	case wire.Cause_CAUSE_VACATED, wire.Cause_CAUSE_PREEMPTED:
		why = reasonVacate
	case wire.Cause_CAUSE_WALLTIME:
		why = reasonWalltime
	}
	j := h.newImageRequest(a, why)
	j.spec.Dir = h.machine.checkpoints.stageDir(a, "dump")
	j.selfCheckpoint = &selfCheckpointFiles{
		user: h.cred, scratch: r.Scratch, patterns: a.checkpoint.policy.GetFiles(),
		limit: cmp.Or(int64(h.file.Resources.Disk), image.MaxRaw), io: r.IO,
	}
	if r.Stdout == "" {
		j.selfCheckpoint.capturedNames = append(j.selfCheckpoint.capturedNames, proto.CapturedFile(false))
	}
	if r.Stderr == "" && !r.Join {
		j.selfCheckpoint.capturedNames = append(j.selfCheckpoint.capturedNames, proto.CapturedFile(true))
	}
	i := j.taken.Image
	i.Wall += x.GetWall()
	i.UserCpu += x.GetUserCpu()
	i.SystemCpu += x.GetSystemCpu()
	return j
}

// stageSelfCheckpoint puts into the staging directory what the program has saved, and
// what was captured of its output.
func (m *Checkpoints) stageSelfCheckpoint(ctx context.Context, j *dumpRequest) error {
	if err := os.Mkdir(filepath.Join(j.spec.Dir, image.IODir), 0o700); err != nil {
		return err
	}
	for _, name := range j.selfCheckpoint.capturedNames {
		err := copyRegular(filepath.Join(j.selfCheckpoint.io, name), filepath.Join(j.spec.Dir, image.IODir, name), nil)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	if j.selfCheckpoint.scratch == "" {
		return nil
	}
	to, err := os.OpenFile(filepath.Join(j.spec.Dir, image.ScratchEntry), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = userfiles.Pack(ctx, j.selfCheckpoint.user, userfiles.SelfExecutable, j.selfCheckpoint.scratch,
		j.selfCheckpoint.limit,
		to, j.selfCheckpoint.patterns...)
	return errors.Join(err, to.Close())
}

// copyRegular copies a regular file between directories in which only we make files.
// Given an owner, the copy is the owner's.
func copyRegular(from, to string, owner *userfiles.UserCredential) error {
	in, err := os.OpenFile(from, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if err != nil {
		return err
	}
	defer in.Close()
	if info, err := in.Stat(); err != nil || !info.Mode().IsRegular() {
		return fmt.Errorf("%s: %w: it is no plain file", from, roost.NoInput)
	}
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	if err == nil && owner != nil && int(owner.UID) != os.Geteuid() {
		err = out.Chown(int(owner.UID), int(owner.GID))
	}
	return errors.Join(err, out.Close())
}

// restoreSelfCheckpoint verifies the image of an attempt, and puts the program's files
// and output where they were. Its input is there already.
func (h checkpointer) restoreSelfCheckpoint(a *Attempt) error {
	dir := h.machine.checkpoints.stageDir(a, "restore")
	if _, err := h.readImage(a, dir); err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	for _, stderr := range []bool{false, true} {
		name := proto.CapturedFile(stderr)
		to := filepath.Join(a.record.IO, name) // what an attempt before may have left on the claim is not added to
		err := os.Remove(to)
		if err == nil || errors.Is(err, fs.ErrNotExist) {
			err = copyRegular(filepath.Join(dir, image.IODir, name), to, &h.cred)
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("%w: captured output: %w", errRestore, err)
		}
	}
	from, err := os.Open(filepath.Join(dir, image.ScratchEntry))
	switch there := err == nil; {
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return err
	case there != (a.record.Scratch != ""): // its files stayed in a file system that not both machines see
		if there {
			from.Close()
		}
		return fmt.Errorf("%w: it was saved on a machine that sees other files than this one", errRestore)
	case !there:
		return nil
	}
	defer from.Close()
	if _, err := userfiles.UnpackInto(a.ctx, h.cred, userfiles.SelfExecutable, a.record.Scratch,
		cmp.Or(int64(h.file.Resources.Disk), image.MaxRaw), from); err != nil {
		return fmt.Errorf("%w: scratch directory: %w", errRestore, err)
	}
	return nil
}
