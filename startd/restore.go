package startd

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
	"google.golang.org/grpc"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/checkpoint/criu"
	"github.com/roost-batch/roost/checkpoint/image"
	"github.com/roost-batch/roost/checkpoint/store"
	"github.com/roost-batch/roost/internal/files"
	"github.com/roost-batch/roost/internal/wire"
	"github.com/roost-batch/roost/startd/starter/proto"
)

// restores reports whether the attempt goes on from an image of its processes.
func (a *attempt) restores() bool {
	i := a.program.GetRestore()
	return i != nil && i.GetMethod() == wire.CheckpointPolicy_METHOD_IMAGE
}

// continues reports whether the attempt goes on from any image.
func (a *attempt) continues() bool { return a.program.GetRestore() != nil }

// errRestore marks what is wrong with a checkpoint: the attempt ends with cause RESTORE, and the submit side looks for another one.
var errRestore = errors.New("checkpoint")

// errElsewhere marks what another machine can do: the image is good, and is kept.
var errElsewhere = errors.New("the checkpoint is of no use here")

// unpack verifies the image that the attempt goes on from, and puts its files where they belong. Nothing in it is looked at before it is known
// to be whole and what the submit side has kept.
func (h *hand) unpack(a *attempt) error {
	dir := h.m.stageDir(a, "restore")
	header, err := h.readImage(a, dir)
	if err != nil {
		return err
	}
	if err := criu.PutIO(dir, a.record.IO); err != nil {
		return fmt.Errorf("%w: %w", errRestore, err)
	}
	if a.record.Base != "" {
		if err := h.unpackScratch(a, filepath.Join(dir, image.Scratch)); err != nil {
			return fmt.Errorf("%w: scratch directory: %w", errRestore, err)
		}
	}
	json.Unmarshal([]byte(header.Notes[noteBefore]), &a.record.Before) // without it all files come back
	a.record.Stopped = header.Notes[noteStopped] != ""
	return h.writeSpec(a, dir)
}

// readImage verifies the image that the attempt goes on from, and unpacks it to a directory of ours.
func (h *hand) readImage(a *attempt, dir string) (image.Header, error) {
	i := a.program.GetRestore()
	key := i.GetKey()
	if len(key) == 0 { // the schedd is of a release in which all attempts had the same
		key = a.program.GetCheckpoint().GetKey()
	}
	if i.GetSlotUser() != h.isSlotUser() {
		return image.Header{}, fmt.Errorf("%w: it was taken of processes with another user's number than tasks have here (accounts in the node file of %s)", errElsewhere, h.m.own.Name)
	}
	at := h.imageKey(a, i)
	defer h.m.images.Remove(at)
	from, err := h.m.images.Open(at)
	if err != nil {
		return image.Header{}, fmt.Errorf("%w: %w", errRestore, err)
	}
	defer from.Close()
	if err := os.RemoveAll(dir); err != nil {
		return image.Header{}, err
	}
	header, err := image.Read(from, dir, key, image.Want{
		Job: a.id.Task.Job.String(), Index: a.record.Index, UID: h.cred.UID, Sequence: i.GetSequence(), MAC: i.GetMac(),
	})
	if err != nil {
		return image.Header{}, fmt.Errorf("%w: %w", errRestore, err)
	}
	a.record.Work = work{i.GetWall(), i.GetUserCpu(), i.GetSystemCpu()}
	return header, nil
}

// unpackScratch brings the scratch directory back, with the user's rights. What is in it was there before, and whoever watches the disks says
// whether it is too much: a job that asked for no disk has no bound.
func (h *hand) unpackScratch(a *attempt, path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = files.Unpack(a.ctx, h.cred, ownProgram, a.record.Base, image.MaxRaw, f)
	return err
}

// writeSpec writes down for the helper what is to be restored, and where.
func (h *hand) writeSpec(a *attempt, dir string) error {
	root := h.m.stageDir(a, "root")
	if err := os.Mkdir(root, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	to := h.m.helper(a)
	spec := criu.RestoreSpec{
		CRIU: h.m.criu.Path, Dir: dir, Root: root, User: h.cred, InitStop: true, PIDFile: to.PID,
		Init: filepath.Join(h.dir, "dev", "init"), InitFiles: []string{filepath.Join(a.record.IO, proto.StatusName)},
		Limits: limitsOfEach(a.record.Bounds.each()), Nice: int(min(max(a.record.Bounds.Nice, 0), 19)),
		External: map[string]string{"/dev": filepath.Join(h.dir, "dev"), proto.IOInside: a.record.IO},
	}
	if a.record.OwnTemp {
		spec.External[proto.TempInside] = a.record.Base
	}
	for _, path := range a.streams() {
		spec.Streams = append(spec.Streams, criu.Stream{Inside: path, Path: path})
	}
	text, err := spec.Encode()
	if err != nil {
		return err
	}
	return os.WriteFile(to.Input, text, 0o600)
}

// limitsOfEach are the kernel's limits of each process, as roost-starter sets them, by their numbers.
func limitsOfEach(b proto.Bounds) map[int]uint64 {
	all := map[int]uint64{}
	for kind, n := range map[int]int64{unix.RLIMIT_CPU: b.CPU + proto.CPUGrace, unix.RLIMIT_AS: b.Address, unix.RLIMIT_FSIZE: b.File} {
		if n > 0 && (kind != unix.RLIMIT_CPU || b.CPU > 0) {
			all[kind] = uint64(n)
		}
	}
	return all
}

// cleanRestore removes what only the restore needed.
func (m *machine) cleanRestore(a *attempt) {
	to := m.helper(a)
	os.RemoveAll(m.stageDir(a, "restore"))
	os.Remove(m.stageDir(a, "root"))
	for _, path := range []string{to.Input, to.Output, to.PID} {
		os.Remove(path)
	}
}

// restoreFailure is why the helper has not brought an attempt back, and whether that is the fault of the machine that made the image.
func (m *machine) restoreFailure(a *attempt) (reason string, forged bool) {
	text, err := os.ReadFile(m.helper(a).Output)
	if err == nil {
		_, err = criu.Decode(text)
	}
	if err == nil {
		return "its checkpoint could not be restored", false
	}
	failure, ok := errors.AsType[*criu.Failure](err)
	return "its checkpoint could not be restored: " + err.Error(), ok && failure.Forged
}

func (h *hand) imageKey(a *attempt, i *wire.Image) store.Key { return imageKey(h.file.Schedd, a, i) }

func imageKey(schedd string, a *attempt, i *wire.Image) store.Key {
	return store.Key{
		Schedd: schedd, Job: a.ref.Job, Index: int(a.ref.Index), Attempt: roost.Attempt(i.GetAttempt()), Sequence: i.GetSequence(),
	}
}

// PutImage takes the image that an attempt is to be restored from, while it holds for it.
func (m *machine) PutImage(stream grpc.ClientStreamingServer[wire.FileChunk, wire.PutReply]) error {
	first, err := stream.Recv()
	if err != nil {
		return err
	}
	a, err := m.enter(stream.Context(), first.GetSchedd(), first.GetAttempt())
	if err != nil {
		return err
	}
	defer a.leave()
	if !a.waits() || !a.continues() {
		return fmt.Errorf("attempt %v: %w: it does not wait for an image", a.id, roost.Conflict)
	}
	i := a.program.GetRestore()
	at := imageKey(first.GetSchedd(), a, i)
	if err := m.images.Receive(at, i.GetSize(), stream.Recv); err != nil {
		return err
	}
	return stream.SendAndClose(&wire.PutReply{Files: 1, Bytes: i.GetSize()})
}

// FetchImage sends an image that was taken here.
func (m *machine) FetchImage(req *wire.FetchImageRequest, stream grpc.ServerStreamingServer[wire.FileChunk]) error {
	a, err := m.enter(stream.Context(), req.GetSchedd(), req.GetAttempt())
	if err != nil {
		return err
	}
	defer a.leave()
	return m.images.Send(store.Key{
		Schedd: req.GetSchedd(), Job: a.ref.Job, Index: int(a.ref.Index), Attempt: a.id.Attempt, Sequence: req.GetSequence(),
	}, stream.Send)
}
