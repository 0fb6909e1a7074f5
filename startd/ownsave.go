package startd

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
	"github.com/roost-batch/roost/internal/files"
	"github.com/roost-batch/roost/internal/wire"
	"github.com/roost-batch/roost/startd/starter"
	"github.com/roost-batch/roost/startd/starter/proto"
)

// A program that saves its own state in files is asked for it by a signal, if its job names one, and says that it has done so by how it ends.
// Then those files are packed, with its user's rights, into an image like any other, before the end of the attempt is told: the next one gets its
// input as usual, those files on top of it, and is started anew. Nothing is packed while the program runs: a file may be half written.

// savesItself reports whether the attempt's program saves its own state.
func (a *attempt) savesItself() bool {
	return a.saving.policy.GetMethod() == wire.CheckpointPolicy_METHOD_SELF
}

// ownCost is what it is taken to cost a program to save its state and to be started again: nobody measures it.
const ownCost = 10 * time.Second

// keepsWork reports whether what is saved is to be kept when the attempt ends from that cause.
func (a *attempt) keepsWork(c wire.Cause) bool {
	switch c {
	case wire.Cause_CAUSE_VACATED, wire.Cause_CAUSE_PREEMPTED:
		return a.saving.policy.GetOnVacate()
	case wire.Cause_CAUSE_WALLTIME:
		return a.saving.policy.GetBeforeWalltime()
	}
	return false
}

// hasSaved reports whether a program has saved its state, by how it has ended: with the exit code that says so; or, if there is no such code, in
// the time that it was given to leave.
func (a *attempt) hasSaved(x *wire.ExitStatus) bool {
	if !a.savesItself() {
		return false
	}
	if code := a.saving.policy.GetExitCode(); code != 0 {
		return x.GetSignal() == 0 && x.GetCode() == code && (x.GetCause() == wire.Cause_CAUSE_EXITED || a.keepsWork(x.GetCause()))
	}
	return a.keepsWork(x.GetCause()) && !a.saving.cut
}

// finished takes in the end of an attempt: what it has saved is packed before that is told.
func (h *hand) finished(a *attempt, status *wire.ExitStatus) {
	if a.exited != nil || a.saving.status != nil {
		return // told again
	}
	if !a.hasSaved(status) || a.enter() != nil {
		h.exit(a, status)
		return
	}
	s := &a.saving
	h.stopSaving(a)
	ctx, cancel := context.WithTimeout(a.ctx, longestVacate)
	s.status, s.cancel = status, cancel
	h.m.leaving.Add(1)
	job := h.ownJob(a, status)
	go func() {
		defer a.leave()
		defer cancel()
		taken, result := h.m.dump(ctx, job)
		h.box.put(saved{a.id, taken, result, true})
	}()
}

// hurry is for an attempt that is to leave while its files are packed: only who does not wait for anything does not get them.
func (h *hand) hurry(a *attempt, v vacate) {
	if v.fast && a.saving.cancel != nil {
		a.saving.cancel()
	}
}

// askProgram tells a program to save its state.
func (h *hand) askProgram(a *attempt, why string) {
	s := &a.saving
	signal := unix.Signal(s.policy.GetSignal())
	if why == atWalltime { // and to end
		notice := beforeEnd(a.record.Walltime, s.cost)
		h.starter.Vacate(starter.Stop{
			Attempt: a.ref, Cause: proto.Walltime, Notice: int64(notice), Signal: uint32(signal),
			Reason: fmt.Sprintf("walltime of %v exceeded; it was told %v before", a.record.Walltime, notice),
		})
		return
	}
	h.starter.Signal(a.ref, signal)
	s.last = boottime()
	h.nextSave(a)
	if why == asked && s.policy.GetExitCode() == 0 { // nobody hears when it is done
		h.tellTaken(&wire.CheckpointTaken{Attempt: reference(a.id), Reason: why, Error: fmt.Sprintf(
			"the program was told by %v to save its state and runs on: its files are kept when it has to leave its machine", signal)})
	}
}

// ownFiles are what a program has saved, and what it has printed.
type ownFiles struct {
	user     files.Credential
	scratch  string // empty: it has none, and its files lie where the next attempt finds them
	patterns []string
	limit    int64
	captured []string // names of streams that are captured
	io       string
}

// ownJob says what is to be packed.
func (h *hand) ownJob(a *attempt, x *wire.ExitStatus) dumpJob {
	r := &a.record
	why := asked
	switch x.GetCause() {
	case wire.Cause_CAUSE_VACATED, wire.Cause_CAUSE_PREEMPTED:
		why = onVacate
	case wire.Cause_CAUSE_WALLTIME:
		why = atWalltime
	}
	j := h.imageJob(a, why)
	j.spec.Dir = h.m.stageDir(a, "dump")
	j.own = &ownFiles{
		user: h.cred, scratch: r.Scratch, patterns: a.saving.policy.GetFiles(), limit: cmp.Or(int64(h.file.Resources.Disk), image.MaxRaw), io: r.IO,
	}
	if r.Stdout == "" {
		j.own.captured = append(j.own.captured, proto.CapturedName(false))
	}
	if r.Stderr == "" && !r.Join {
		j.own.captured = append(j.own.captured, proto.CapturedName(true))
	}
	i := j.taken.Image
	i.Wall += x.GetWall()
	i.UserCpu += x.GetUserCpu()
	i.SystemCpu += x.GetSystemCpu()
	return j
}

// gather puts into the staging directory what the program has saved, and what was captured of its output.
func (m *machine) gather(ctx context.Context, j *dumpJob) error {
	if err := os.Mkdir(filepath.Join(j.spec.Dir, image.IO), 0o700); err != nil {
		return err
	}
	for _, name := range j.own.captured {
		err := copyPlain(filepath.Join(j.own.io, name), filepath.Join(j.spec.Dir, image.IO, name), nil)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	if j.own.scratch == "" {
		return nil
	}
	to, err := os.OpenFile(filepath.Join(j.spec.Dir, image.Scratch), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = files.Pack(ctx, j.own.user, ownProgram, j.own.scratch, j.own.limit, to, j.own.patterns...)
	return errors.Join(err, to.Close())
}

// copyPlain copies a regular file between directories in which only we make files. Given an owner, the copy is his.
func copyPlain(from, to string, owner *files.Credential) error {
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

// bringBack verifies the image that the attempt goes on from, and puts the program's files and what it has printed where they were. Its input
// is there already.
func (h *hand) bringBack(a *attempt) error {
	dir := h.m.stageDir(a, "restore")
	if _, err := h.readImage(a, dir); err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	for _, stderr := range []bool{false, true} {
		name := proto.CapturedName(stderr)
		to := filepath.Join(a.record.IO, name) // what an attempt before may have left on the claim is not added to
		err := os.Remove(to)
		if err == nil || errors.Is(err, fs.ErrNotExist) {
			err = copyPlain(filepath.Join(dir, image.IO, name), to, &h.cred)
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("%w: captured output: %w", errRestore, err)
		}
	}
	from, err := os.Open(filepath.Join(dir, image.Scratch))
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
	if _, err := files.Add(a.ctx, h.cred, ownProgram, a.record.Scratch, cmp.Or(int64(h.file.Resources.Disk), image.MaxRaw), from); err != nil {
		return fmt.Errorf("%w: scratch directory: %w", errRestore, err)
	}
	return nil
}
