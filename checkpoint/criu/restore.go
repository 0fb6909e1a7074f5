package criu

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/checkpoint-restore/go-criu/v7/rpc"
	"golang.org/x/sys/unix"
	"google.golang.org/protobuf/proto"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/checkpoint/image"
	"github.com/roost-batch/roost/internal/atomicfile"
)

// restoreAgent is the state of an agent that restores.
type restoreAgent struct {
	spec          *RestoreSpec
	metadata      imageMetadata
	mountSources  map[string]string // source of each mount from outside, by key
	pid           int
	violation     error // what the restored processes must not have
	rightsChecked bool  // the processes were checked after they got their final rights
}

// restoreTask makes a restore, in the agent, on a thread that is not used afterwards. The
// restored processes are children of this process.
func restoreTask(spec *RestoreSpec) (result RestoreResult, err error) {
	start := time.Now()
	r := &restoreAgent{spec: spec}
	if r.metadata, err = readNote(spec.Dir); err != nil {
		return result, err
	}
	if err := screenImage(spec, &r.metadata); err != nil {
		result.failure = refusedImageError(err)
		result.Total = time.Since(start)
		return result, nil
	}
	if err := mountRoot(spec); err != nil {
		return result, err
	}
	defer unix.Unmount(spec.Root, unix.MNT_DETACH)
	if err := r.gather(); err != nil {
		return result, err
	}
	streams, err := r.openStreams()
	if err != nil {
		return result, err
	}
	defer closeAll(streams)
	// Within a user namespace that does not own the network, the kernel does not allow a
	// connection to be restored.
	result.Closed = r.metadata.Nested
	err = r.run(streams, result.Closed)
	if err != nil && r.violation == nil && !result.Closed && r.failedOnTCP() {
		result.Closed = true
		err = r.run(streams, true)
	}
	if err != nil && r.violation == nil && r.taskEnded() {
		err = nil
	}
	if err != nil {
		if result.failure = errorFromLog(filepath.Join(spec.Dir, restoreLog), err); r.violation != nil {
			result.failure = refusedImageError(r.violation)
		}
		result.Total = time.Since(start)
		return result, nil
	}
	// The first process may have been dumped before it handled the signal to outlive its
	// parent, as on a busy machine. It would then die with this agent.
	if spec.InitStop && !signalInit(r.pid, syscall.SIGUSR2, restoredDetachTimeout) {
		return result, fmt.Errorf("first process %d: %w: it does not handle the signal to outlive its parent",
			r.pid, roost.Unavailable)
	}
	result.PID, result.Total = r.pid, time.Since(start)
	if spec.PIDFile != "" {
		err = atomicfile.Write(spec.PIDFile, []byte(strconv.Itoa(r.pid)), 0o600)
	}
	return result, err
}

// refusedImageError returns the failure for a refused image.
func refusedImageError(err error) *CheckpointError {
	_, forged := errors.AsType[forgedError](err)
	return &CheckpointError{Class: Permanent, Reason: err.Error(), Forged: forged}
}

// mountRoot mounts the root of the restored processes: the machine's or a container's,
// without the mounts below it. Only this thread sees the mount.
func mountRoot(spec *RestoreSpec) error {
	runtime.LockOSThread()
	if err := unix.Unshare(unix.CLONE_NEWNS); err != nil {
		return fmt.Errorf("mount namespace: %w", err)
	}
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("mount on /: %w", err)
	}
	if err := unix.Mount(cmp.Or(spec.Container.Root, "/"), spec.Root, "", unix.MS_BIND, ""); err != nil {
		return fmt.Errorf("mount on %s: %w", spec.Root, err)
	}
	return nil
}

// taskStream is an open file for a task's stream, with its name at the dump.
type taskStream struct {
	key  string
	file *os.File
}

func closeAll(list []taskStream) {
	for _, s := range list {
		s.file.Close()
	}
}

// openStreams opens files with the user's rights, and cuts off what was written after the
// checkpoint. The task will write it again.
func (r *restoreAgent) openStreams() (list []taskStream, err error) {
	for _, s := range r.spec.Streams {
		length, ok := r.metadata.Streams[s.Inside]
		if !ok {
			continue
		}
		f, err := openAsUser(r.spec.User, s.Path)
		if err != nil {
			closeAll(list)
			return nil, fmt.Errorf("stream %s: %w", s.Path, err)
		}
		list = append(list, taskStream{strings.TrimPrefix(s.Inside, "/"), f})
		info, err := f.Stat()
		if err == nil && info.Mode().IsRegular() && info.Size() > length {
			err = f.Truncate(length)
		}
		if err != nil {
			closeAll(list)
			return nil, fmt.Errorf("stream %s: %w", s.Path, err)
		}
	}
	return list, nil
}

func (r *restoreAgent) run(streams []taskStream, shut bool) error {
	dir, err := os.Open(filepath.Join(r.spec.Dir, image.CRIUDir))
	if err != nil {
		return err
	}
	defer dir.Close()
	work, err := os.Open(r.spec.Dir)
	if err != nil {
		return err
	}
	defer work.Close()
	o := criuOptions(dir, work, restoreLog)
	o.RstSibling = proto.Bool(true)
	o.Root = proto.String(r.spec.Root)
	if shut {
		o.TcpEstablished, o.TcpClose = nil, proto.Bool(true)
	}
	for _, m := range r.metadata.Mounts {
		o.External = append(o.External, "mnt["+m.key()+"]:"+r.mountSources[m.key()])
	}
	for _, s := range streams {
		// The library starts CRIU without passing files on, so this descriptor must
		// survive exec.
		fd, err := unix.FcntlInt(s.file.Fd(), unix.F_DUPFD, 100)
		if err != nil {
			return err
		}
		defer unix.Close(fd)
		o.InheritFd = append(o.InheritFd, &rpc.InheritFd{Key: proto.String(s.key), Fd: proto.Int32(int32(fd))})
	}
	r.rightsChecked = false
	err = restoreByRPC(r.spec.CRIU, o, r.onStage)
	if r.violation != nil {
		return r.violation
	}
	if err != nil {
		return err
	}
	if r.pid == 0 {
		return fmt.Errorf("CRIU returned no pid")
	}
	if !r.rightsChecked {
		r.violation = errors.New("it runs, and its rights were not checked")
		killAll(processTree(r.pid))
		return r.violation
	}
	return nil
}

// failedOnTCP reports whether the last run failed because of a TCP connection.
func (r *restoreAgent) failedOnTCP() bool {
	return slices.ContainsFunc(logErrors(filepath.Join(r.spec.Dir, restoreLog)), func(line string) bool {
		return strings.Contains(line, "TCP repair") || strings.Contains(line, "Cannot assign requested address") ||
			strings.Contains(line, "Can't connect inet socket")
	})
}

// taskEnded reports whether the last run failed because the restored task has already
// ended. CRIU releases one process after the other, and those that run can end the
// others, as the first of a PID namespace does by its own end; CRIU then gives up and
// kills the rest. A first process that ended before that is a zombie with its exit
// status, as after any other end.
func (r *restoreAgent) taskEnded() bool {
	if r.pid == 0 || !slices.ContainsFunc(logErrors(filepath.Join(r.spec.Dir, restoreLog)), isProcessGone) {
		return false
	}
	// the first process waits for the end of all others
	for end := time.Now().Add(detachTimeout); time.Now().Before(end); time.Sleep(time.Millisecond) {
		if code, ok := exitCode(r.pid); ok {
			return !(code.Signaled() && code.Signal() == syscall.SIGKILL)
		}
	}
	return false
}

// isProcessGone reports whether a line of CRIU's log says that a process did not exist
// when CRIU released it.
func isProcessGone(line string) bool {
	return strings.Contains(line, "Unable to detach") && strings.Contains(line, "No such process")
}

// onStage is called while the restored processes are stopped.
func (r *restoreAgent) onStage(stage string, pid int) error {
	switch stage {
	case processesCreated:
		r.pid = pid
		r.killOnViolation(checkAccess(processTree(r.pid), r.spec.User, filepath.Join(r.spec.Dir, restoreLog)))
	case rightsAssumed:
		if r.violation == nil {
			r.killOnViolation(r.checkRestored())
		}
		if r.violation == nil {
			r.killOnViolation(r.enforceLimits(processTree(r.pid)))
		}
		if r.rightsChecked = r.violation == nil; r.rightsChecked {
			restoreAffinities(processTree(r.pid), r.metadata.Pins)
		}
	}
	return r.violation
}

// killOnViolation kills all restored processes if evil is not nil. None of them has
// executed anything.
func (r *restoreAgent) killOnViolation(evil error) {
	if r.violation = evil; evil == nil {
		return
	}
	all := processTree(r.pid)
	// then processes outside of the restored tree, with CRIU last, because its end would
	// release the processes that it traces
	for _, pid := range append(all, processTree(os.Getpid())[1:]...) {
		syscall.Kill(pid, syscall.SIGKILL)
	}
	killAll(all)
}
