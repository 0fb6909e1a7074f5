package claim

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/checkpoint/criu"
	"github.com/roost-batch/roost/checkpoint/image"
	"github.com/roost-batch/roost/checkpoint/store"
	"github.com/roost-batch/roost/internal/userfiles"
	"github.com/roost-batch/roost/internal/wire"
	"github.com/roost-batch/roost/startd/starter/proto"
)

// restoresProcesses reports whether the attempt goes on from an image of its processes.
func (a *Attempt) restoresProcesses() bool {
	i := a.program.GetRestore()
	return i != nil && i.GetMethod() == wire.CheckpointPolicy_METHOD_IMAGE
}

// restoresImage reports whether the attempt goes on from any image.
func (a *Attempt) restoresImage() bool { return a.program.GetRestore() != nil }

// errRestore marks what is wrong with a checkpoint. The attempt ends with cause RESTORE,
// and the submit side looks for another one.
var errRestore = errors.New("checkpoint")

// errForeignImage marks what another machine can do: the image is good, and stays.
var errForeignImage = errors.New("the checkpoint is of no use here")

// unpackImage verifies the image that the attempt goes on from, and puts its files where
// they belong. Nothing in it is looked at before it is known to be whole and what the
// submit side has kept.
func (h checkpointer) unpackImage(a *Attempt) error {
	dir := h.machine.checkpoints.stageDir(a, "restore")
	header, err := h.readImage(a, dir)
	if err != nil {
		return err
	}
	if err := criu.RestoreCaptured(dir, a.record.IO); err != nil {
		return fmt.Errorf("%w: %w", errRestore, err)
	}
	if a.record.Base != "" {
		if err := h.unpackScratch(a, filepath.Join(dir, image.ScratchEntry)); err != nil {
			return fmt.Errorf("%w: scratch directory: %w", errRestore, err)
		}
	}
	json.Unmarshal([]byte(header.Notes[noteScratchFiles]), &a.record.Before) // without it all files come back
	a.record.Stopped = header.Notes[stoppedProcessesNote] != ""
	return h.writeSpec(a, dir)
}

// readImage verifies the image that the attempt goes on from, and unpacks it to a
// directory of ours.
func (h checkpointer) readImage(a *Attempt, dir string) (image.Header, error) {
	i := a.program.GetRestore()
	key := i.GetKey()
	if len(key) == 0 { // the schedd is of a release in which all attempts had the same
		key = a.program.GetCheckpoint().GetKey()
	}
	if i.GetSlotUser() != h.isSlotUser() {
		return image.Header{}, fmt.Errorf("%w: it was taken of processes with another user's number than tasks have "+
			"here (accounts in the node file of %s)", errForeignImage, h.machine.config.Name)
	}
	at := h.imageKey(a, i)
	defer h.machine.checkpoints.images.Remove(at)
	from, err := h.machine.checkpoints.images.Open(at)
	if err != nil {
		return image.Header{}, fmt.Errorf("%w: %w", errRestore, err)
	}
	defer from.Close()
	if err := os.RemoveAll(dir); err != nil {
		return image.Header{}, err
	}
	header, err := image.ReadDirectory(from, dir, key, image.ExpectedImage{
		Job: a.id.Task.Job.String(), Index: a.record.Index, UID: h.cred.UID, Sequence: i.GetSequence(), MAC: i.GetMac(),
	})
	if err != nil {
		return image.Header{}, fmt.Errorf("%w: %w", errRestore, err)
	}
	a.record.Work = priorUsage{i.GetWall(), i.GetUserCpu(), i.GetSystemCpu()}
	return header, nil
}

// unpackScratch brings the scratch directory back, with the user's rights. What is in it
// was there before, and whoever watches the disks says whether it is too much: a job that
// asked for no disk has no bound.
func (h checkpointer) unpackScratch(a *Attempt, path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = userfiles.Unpack(a.ctx, h.cred, userfiles.SelfExecutable, a.record.Base, image.MaxRaw, f)
	return err
}

// writeSpec writes down for the helper what is to be restored, and where.
func (h checkpointer) writeSpec(a *Attempt, dir string) error {
	root := h.machine.checkpoints.stageDir(a, "root")
	if err := os.Mkdir(root, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	to := h.machine.checkpoints.restoreCommand(a)
	spec := criu.RestoreSpec{
		CRIU: h.machine.checkpoints.criu.Path, Dir: dir, Root: root, User: h.cred, InitStop: true, PIDFile: to.PID,
		Init: filepath.Join(h.dir, "dev", "init"), InitFiles: []string{filepath.Join(a.record.IO, proto.StatusFile)},
		Limits: processRlimits(a.record.Bounds.PerProcess()), Nice: int(min(max(a.record.Bounds.Nice, 0), 19)),
		External: map[string]string{"/dev": filepath.Join(h.dir, "dev"), proto.SandboxIODir: a.record.IO},
	}
	if len(a.program.GetSecrets()) > 0 {
		spec.External[proto.SandboxSecretsDir] = filepath.Join(h.dir, "secrets")
	}
	if c := a.record.Container; c != nil {
		spec.Container = criu.ContainerRoot{Root: filepath.Join(h.dir, proto.SandboxRootDir), Dirs: c.Root.Mounts}
	}
	if a.record.OwnTemp {
		spec.External[proto.SandboxTempDir] = a.record.Base
	}
	for _, path := range a.outputStreams() {
		spec.Streams = append(spec.Streams, criu.OutputStream{Inside: path, Path: path})
	}
	text, err := spec.Encode()
	if err != nil {
		return err
	}
	return os.WriteFile(to.Input, text, 0o600)
}

// processRlimits are the kernel's limits of each process, as roost-starter sets them, by
// their numbers.
func processRlimits(b proto.ProcessLimits) map[int]uint64 {
	all := map[int]uint64{}
	for kind, n := range map[int]int64{unix.RLIMIT_CPU: b.CPU + proto.CPUGrace, unix.RLIMIT_AS: b.AddressSpace,
		unix.RLIMIT_FSIZE: b.File} {
		if n > 0 && (kind != unix.RLIMIT_CPU || b.CPU > 0) {
			all[kind] = uint64(n)
		}
	}
	return all
}

// cleanRestore removes what only the restore needed.
func (m *Checkpoints) cleanRestore(a *Attempt) {
	to := m.restoreCommand(a)
	os.RemoveAll(m.stageDir(a, "restore"))
	os.Remove(m.stageDir(a, "root"))
	for _, path := range []string{to.Input, to.Output, to.PID} {
		os.Remove(path)
	}
}

// restoreFailure says why the helper has not restored an attempt. Forged: that is the
// fault of the machine that made the image.
func (m *Checkpoints) restoreFailure(a *Attempt, starterReason string) (reason string, forged bool) {
	text, err := os.ReadFile(m.restoreCommand(a).Output)
	if err == nil {
		_, err = criu.Decode(text)
	}
	if err == nil {
		return strings.TrimSuffix("its checkpoint could not be restored: "+starterReason, ": "), false
	}
	failure, ok := errors.AsType[*criu.CheckpointError](err)
	return "its checkpoint could not be restored: " + err.Error(), ok && failure.Forged
}

func (h checkpointer) imageKey(a *Attempt, i *wire.Image) store.ImageKey {
	return imageKey(h.file.Schedd, a, i)
}

func imageKey(schedd string, a *Attempt, i *wire.Image) store.ImageKey {
	return store.ImageKey{
		Schedd: schedd, Job: a.ref.Job, Index: int(a.ref.Index), Attempt: roost.AttemptNumber(i.GetAttempt()),
		Sequence: i.GetSequence(),
	}
}
