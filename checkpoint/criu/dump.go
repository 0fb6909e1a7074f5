package criu

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"
	"time"

	gocriu "github.com/checkpoint-restore/go-criu/v7"
	"github.com/checkpoint-restore/go-criu/v7/rpc"
	"google.golang.org/protobuf/proto"

	"github.com/roost-batch/roost/checkpoint/image"
	"github.com/roost-batch/roost/internal/userfiles"
)

// stopTimeout bounds how long CRIU tries to seize all processes, which are already
// frozen, in seconds.
const stopTimeout = 3

// dumpAgent is the state of an agent that dumps.
type dumpAgent struct {
	gocriu.NoNotify
	ctx       context.Context
	spec      *DumpSpec
	exe       string
	metadata  imageMetadata
	result    DumpResult
	stoppedAt time.Time // when stopping the task began
	failure   error     // the error while the task was stopped
}

// dumpTask makes a dump, in the agent. Errors are those of the spec and the machine;
// failures of the task are in the result.
func dumpTask(ctx context.Context, spec *DumpSpec, exe string) (DumpResult, error) {
	start := time.Now()
	d := &dumpAgent{ctx: ctx, spec: spec, exe: exe}
	if spec.Mounts == nil {
		var err error
		if spec.Mounts, err = externalMounts(spec.PID, spec.User); err != nil {
			return d.result, err
		}
	}
	d.metadata.Mounts, d.metadata.Scratch, d.metadata.Nested = spec.Mounts, spec.Scratch != "",
		namespaceOf(spec.PID, "user") != namespaceOf(os.Getpid(), "user")
	// Probe finds what does not need a stopped task.
	if d.result.failure = Probe(spec.PID); d.result.failure != nil {
		return d.result, nil
	}
	images := filepath.Join(spec.Dir, image.CRIUDir)
	if err := os.Mkdir(images, 0o700); err != nil {
		return d.result, err
	}
	stopped := isFrozen(spec.Group)
	if spec.InitStop && !stopped { // otherwise the process that froze the task has already sent the signal
		signalInit(spec.PID, syscall.SIGUSR2, detachTimeout)
		defer signalInit(spec.PID, syscall.SIGUSR1, detachTimeout)
	}
	err := d.run(images)
	if !stopped {
		thawCgroup(spec.Group)
	}
	if !d.stoppedAt.IsZero() {
		d.result.Frozen = time.Since(d.stoppedAt)
	}
	if err != nil {
		d.result.failure = d.explain(err)
	} else if d.result.Bytes, d.result.Entries, err = measureStaging(spec.Dir); err != nil {
		return d.result, err
	}
	d.result.Total = time.Since(start)
	return d.result, nil
}

func (d *dumpAgent) explain(err error) *CheckpointError {
	if d.failure != nil {
		return &CheckpointError{Reason: d.failure.Error()}
	}
	if hasEnded(d.spec.PID) {
		return &CheckpointError{Reason: "it has ended meanwhile"}
	}
	return errorFromLog(filepath.Join(d.spec.Dir, dumpLog), err)
}

func (d *dumpAgent) run(images string) error {
	dir, err := os.Open(images)
	if err != nil {
		return err
	}
	defer dir.Close()
	work, err := os.Open(d.spec.Dir)
	if err != nil {
		return err
	}
	defer work.Close()
	o := criuOptions(dir, work, dumpLog)
	o.Pid = proto.Int32(int32(d.spec.PID))
	o.LeaveRunning = proto.Bool(true)
	o.GhostLimit = proto.Uint32(maxGhostBytes)
	o.Timeout = proto.Uint32(stopTimeout)
	if d.spec.Group != "" {
		o.FreezeCgroup = proto.String(d.spec.Group)
	}
	for _, m := range d.spec.Mounts {
		o.External = append(o.External, "mnt["+m.Inside+"]:"+m.key())
	}
	c := gocriu.MakeCriu()
	c.SetCriuPath(d.spec.CRIU)
	err = c.Dump(o, d)
	if err == nil {
		err = d.failure
	}
	return err
}

// criuOptions returns the options common to dump and restore.
func criuOptions(images, work *os.File, log string) *rpc.CriuOpts {
	return &rpc.CriuOpts{
		ImagesDirFd: proto.Int32(int32(images.Fd())), WorkDirFd: proto.Int32(int32(work.Fd())),
		LogLevel: proto.Int32(logLevel), LogFile: proto.String(log),
		// The startd manages cgroups: restored processes are in the cgroup of the agent.
		ManageCgroups: proto.Bool(true), ManageCgroupsMode: rpc.CriuCgMode_IGNORE.Enum(),
		TcpEstablished: proto.Bool(true), NetworkLock: rpc.CriuNetworkLockMethod_SKIP.Enum(),
		FileLocks: proto.Bool(true), LinkRemap: proto.Bool(true),
	}
}

// PreDump is called before the processes are stopped. CRIU leaves a group frozen that was
// frozen before.
func (d *dumpAgent) PreDump() error {
	d.stoppedAt = time.Now()
	if d.spec.Group == "" {
		return nil
	}
	var err error
	d.stoppedAt, err = freezeStably(d.spec.Group)
	return err
}

// PostDump is called when the memory is written and all processes are still stopped. With
// an error CRIU would wait for an answer without end, so the error is stored instead of
// returned.
func (d *dumpAgent) PostDump() error {
	d.result.Memory = time.Since(d.stoppedAt)
	d.failure = d.snapshotTask()
	return nil
}

func (d *dumpAgent) snapshotTask() error {
	pids := processTree(d.spec.PID)
	d.metadata.Pins = threadAffinities(pids)
	d.metadata.Streams = streamLengths(pids, d.spec.Streams)
	var err error
	if d.metadata.IO, err = copyCaptured(d.spec.IO, d.spec.Dir); err != nil {
		return fmt.Errorf("captured output: %w", err)
	}
	if d.spec.Scratch != "" {
		if err := d.packFiles(); err != nil {
			return fmt.Errorf("scratch directory: %w", err)
		}
	}
	return d.metadata.write(d.spec.Dir)
}

func (d *dumpAgent) packFiles() error {
	out, err := os.OpenFile(filepath.Join(d.spec.Dir, image.ScratchEntry), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	limit := d.spec.Limit
	if limit <= 0 {
		limit = image.MaxRaw / 4
	}
	d.result.Scratch, err = userfiles.Pack(d.ctx, d.spec.User, d.exe, d.spec.Scratch, limit, out)
	if cerr := out.Close(); err == nil {
		err = cerr
	}
	return err
}

// streamLengths finds the lengths of the files that a task has open for its streams. It
// uses the descriptors, because the user controls the path.
func streamLengths(pids []int, streams []string) map[string]int64 {
	found := map[string]int64{}
	for _, pid := range pids {
		for fd, to := range descriptorTargets(pid) {
			if !slices.Contains(streams, to) {
				continue
			}
			if info, err := os.Stat(procPath(pid, "fd/"+strconv.Itoa(fd))); err == nil && info.Mode().IsRegular() {
				found[to] = info.Size()
			}
		}
	}
	return found
}

// measureStaging sums the sizes and counts the files of a staging directory.
func measureStaging(dir string) (bytes int64, entries int, err error) {
	err = filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || !e.Type().IsRegular() || filepath.Dir(path) == dir && e.Name() != image.ScratchEntry {
			return err
		}
		info, err := e.Info()
		if err != nil {
			return err
		}
		bytes, entries = bytes+info.Size(), entries+1
		return nil
	})
	return bytes, entries, err
}

// Detach tells the first process of a sandbox to outlive its parent, and waits briefly
// for its reaction. A caller that freezes a task for a dump calls it before: a frozen
// process handles no signal, and would die with the agent where it is restored.
func Detach(pid int) { signalInit(pid, syscall.SIGUSR2, 50*time.Millisecond) }

// detachTimeout is how long a first process that is not frozen may take to handle the
// signal.
const detachTimeout = time.Second

// restoredDetachTimeout is how long a restored first process may take to handle the
// signal, which must be certain here. It is counted in polls, and polls stop while the
// restored processes and this one are frozen.
const restoredDetachTimeout = time.Minute

// signalInit tells the first process to outlive its parent (SIGUSR2), or to die with it
// again (SIGUSR1). It reports whether the process has handled the signal in time, or has
// ended: a task may end before the call.
func signalInit(pid int, signal syscall.Signal, wait time.Duration) bool {
	if syscall.Kill(pid, signal) != nil {
		return true
	}
	const look = 200 * time.Microsecond
	bit := uint64(1) << (signal - 1)
	for looks := wait / look; looks > 0; looks-- {
		fields := statusFields(procPath(pid, "status"))
		pending, err := strconv.ParseUint(fields["ShdPnd"], 16, 64)
		if err != nil || fields["State"] == "" {
			return true
		}
		switch fields["State"][0] {
		case 'Z', 'X':
			return true
		case 'S':
			if pending&bit == 0 {
				return true
			}
		}
		time.Sleep(look)
	}
	return false
}

// namespaceOf returns the name of a namespace of a process.
func namespaceOf(pid int, kind string) string {
	name, err := os.Readlink(procPath(pid, "ns/"+kind))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return ""
	}
	return name
}
