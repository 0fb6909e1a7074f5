package claim

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/checkpoint/criu"
	"github.com/roost-batch/roost/checkpoint/image"
	"github.com/roost-batch/roost/checkpoint/store"
	"github.com/roost-batch/roost/internal/boottime"
	"github.com/roost-batch/roost/internal/userfiles"
	"github.com/roost-batch/roost/internal/wire"
	"github.com/roost-batch/roost/startd/starter/proto"
)

// dumpRequest is all that the taking of one checkpoint needs.
type dumpRequest struct {
	thawBriefly    func() // lets a task that stands still go on for a moment; returns when that is over
	spec           criu.DumpSpec
	header         image.Header
	key            []byte
	serverToken    []byte // shown to the checkpoint server
	takenAt        store.ImageKey
	taken          *wire.CheckpointTaken
	selfCheckpoint *selfCheckpointFiles // of a program that saves itself; nil: its processes are dumped
	done           func()               // called when the attempt need not stand still any more
}

// newDumpRequest says how a checkpoint of the attempt is to be taken.
func (h checkpointer) newDumpRequest(a *Attempt, why string) dumpRequest {
	r, s := &a.record, &a.checkpoint
	j := h.newImageRequest(a, why)
	j.thawBriefly = h.thawBriefly(why == reasonVacate, s.pid)
	j.spec = criu.DumpSpec{
		CRIU: h.machine.checkpoints.criu.Path, PID: s.pid, Dir: h.machine.checkpoints.stageDir(a, "dump"),
		Group: h.taskGroup(), Scratch: r.Base,
		IO: r.IO, Streams: a.outputStreams(),
		User: h.cred, InitStop: true,
	}
	if text, err := json.Marshal(r.Before); err == nil && len(text) < image.MaxHeader/2 {
		j.header.Notes[noteScratchFiles] = string(text)
	}
	if h.group == nil && s.suspended {
		j.header.Notes[stoppedProcessesNote] = "true"
	}
	j.taken.Image.Wall += int64(boottime.Now() - s.startedAt)
	if u := h.machine.meters.LastUsage(h.id, a.id); u != nil {
		j.taken.Image.UserCpu += u.GetUserCpu()
		j.taken.Image.SystemCpu += u.GetSystemCpu()
	}
	return j
}

// newImageRequest is what the images of an attempt have in common, with the work of the
// attempts before.
func (h checkpointer) newImageRequest(a *Attempt, why string) dumpRequest {
	r := &a.record
	sequence := max(r.Next, a.checkpoint.policy.GetNext(), 1)
	return dumpRequest{
		key: a.checkpoint.policy.GetKey(), serverToken: a.checkpoint.policy.GetCapability(),
		takenAt: store.ImageKey{Schedd: h.file.Schedd, Job: r.Job, Index: int(r.Index),
			Attempt: roost.AttemptNumber(r.Attempt), Sequence: sequence},
		header: image.Header{
			Job: a.id.Task.Job.String(), Index: r.Index, Attempt: r.Attempt, Sequence: sequence, UID: h.cred.UID,
			GID: h.cred.GID, Node: h.machine.config.Name,
			Notes: map[string]string{},
		},
		taken: &wire.CheckpointTaken{Attempt: wire.FromAttempt(a.id), Reason: why, Image: &wire.Image{
			Sequence: sequence, Attempt: r.Attempt, Node: h.machine.config.Name, Wall: r.Work.Wall,
			UserCpu:   r.Work.User,
			SystemCpu: r.Work.System,
			Method:    a.checkpoint.policy.GetMethod(), SlotUser: h.isSlotUser(),
		}},
	}
}

// noteScratchFiles is the note of an image that says which files were there at the
// start. So they do not come back as output.
const noteScratchFiles = "before"

// stoppedProcessesNote says that the processes were saved while a signal had stopped
// them. There was no group to freeze, and they come back stopped.
const stoppedProcessesNote = "stopped"

// outputStreams are the files outside of what is saved that the attempt writes its output
// to.
func (a *Attempt) outputStreams() (list []string) {
	r := &a.record
	for _, path := range []string{r.Stdout, r.Stderr} {
		if path == "" {
			continue
		}
		if !filepath.IsAbs(path) {
			if r.Scratch != "" {
				continue
			}
			path = filepath.Join(r.Cwd, path)
		}
		list = append(list, a.sandboxPath(path))
	}
	return list
}

// thawBriefly lets a task that stands still only for its dump go on for a moment. It is
// taken beside the runner, and uses only what does not change.
func (h checkpointer) thawBriefly(frozen bool, pid int) func() {
	group := h.group
	return func() {
		if frozen && group != nil && h.ownerSuspension.reason() == "" {
			group.Thaw()
			defer group.Freeze()
			defer criu.Detach(pid)
		}
		time.Sleep(thawPause)
	}
}

const thawPause = 30 * time.Millisecond

// taskGroup is the directory of the group that tasks are frozen by.
func (h *Runner) taskGroup() string {
	if h.group == nil {
		return ""
	}
	return h.group.TaskDir()
}

// takeCheckpoint takes a checkpoint and makes its image. The attempt stands still for the
// first part only. An error is in what is told.
func (m *Checkpoints) takeCheckpoint(ctx context.Context, j dumpRequest) (*wire.CheckpointTaken, criu.DumpResult) {
	result, err := m.writeImage(ctx, &j)
	j.taken.FrozenNs = int64(result.Frozen)
	if err == nil {
		m.uploadImage(ctx, &j)
	} else {
		j.taken.Error = err.Error()
		j.taken.Image = nil
		if cause := context.Cause(ctx); errors.Is(cause, errOwnerSuspended) {
			j.taken.Error = cause.Error()
		}
		if ctx.Err() != nil && errors.Is(context.Cause(ctx), context.DeadlineExceeded) {
			j.taken.Error = "there was not enough time for it"
		}
	}
	return j.taken, result
}

func (m *Checkpoints) writeImage(ctx context.Context, j *dumpRequest) (result criu.DumpResult, err error) {
	if len(j.key) < image.KeySize {
		return result, fmt.Errorf("checkpoint: %w: the submit side has given no key for it", roost.Invalid)
	}
	if err := os.RemoveAll(j.spec.Dir); err != nil {
		return result, err
	}
	if err := os.Mkdir(j.spec.Dir, 0o700); err != nil {
		return result, err
	}
	defer os.RemoveAll(j.spec.Dir)
	j.header.Time = time.Now()
	if j.selfCheckpoint != nil {
		err = m.stageSelfCheckpoint(ctx, j)
	} else {
		if result, err = m.dumpWithRetry(ctx, j); err == nil {
			err = criu.AttackImage(j.spec.Dir)
		}
	}
	if j.done != nil {
		j.done()
	}
	if err != nil {
		return result, err
	}
	select { // compressing takes time from tasks: of few at once
	case m.packSlots <- struct{}{}:
		defer func() { <-m.packSlots }()
	case <-ctx.Done():
		return result, ctx.Err()
	}
	var sum image.WriteResult
	err = m.images.Write(j.takenAt, func(w io.Writer) (err error) {
		sum, err = image.WriteDirectory(&ctxWriter{ctx, w}, j.spec.Dir, j.header, j.key)
		return err
	})
	if err != nil {
		return result, err
	}
	i := j.taken.Image
	i.Time, i.Size, i.RawSize, i.Mac = j.header.Time.UnixNano(), sum.Size, sum.Raw, sum.MAC
	return result, nil
}

// dumpWithRetry dumps, and tries again if what was in the way may be gone soon. Between
// two tries the task goes on for a moment. A connection that was just being made is such
// a case.
func (m *Checkpoints) dumpWithRetry(ctx context.Context, j *dumpRequest) (result criu.DumpResult, err error) {
	for n := 1; ; n++ {
		result, err = criu.Dump(ctx, userfiles.SelfExecutable, j.spec)
		f, ok := errors.AsType[*criu.CheckpointError](err)
		if !ok || f.Class != criu.Retry || n == dumpTries || ctx.Err() != nil {
			return result, err
		}
		if err := errors.Join(os.RemoveAll(j.spec.Dir), os.Mkdir(j.spec.Dir, 0o700)); err != nil {
			return result, err
		}
		j.thawBriefly()
	}
}

const dumpTries = 3

// ctxWriter is a writer that fails when its context has ended.
type ctxWriter struct {
	ctx context.Context
	io.Writer
}

func (u *ctxWriter) Write(p []byte) (int, error) {
	if err := u.ctx.Err(); err != nil {
		return 0, err
	}
	return u.Writer.Write(p)
}

// deleteImage deletes an image that was taken here.
func (m *Checkpoints) deleteImage(schedd string, t *wire.CheckpointTaken) {
	if t.GetImage() == nil {
		return
	}
	a := t.GetAttempt()
	k := store.ImageKey{
		Schedd: schedd, Job: a.GetJob(), Index: int(a.GetIndex()),
		Attempt: roost.AttemptNumber(t.GetImage().GetAttempt()), Sequence: t.GetImage().GetSequence(),
	}
	if _, err := m.images.Remove(k); err != nil {
		m.log.Warn("cannot remove a checkpoint", "err", err)
	}
}

// restoreCommand is what a starter runs to restore an attempt, beside the files that it
// works with.
func (m *Checkpoints) restoreCommand(a *Attempt) proto.RestoreSpec {
	dir := m.stageDir(a, "restore")
	return proto.RestoreSpec{
		Helper: []string{m.program, criu.AgentName}, Input: dir + ".spec", Output: dir + ".answer", PID: dir + ".pid",
	}
}
