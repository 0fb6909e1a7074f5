package criu

import (
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
)

// restorer is an agent that restores.
type restorer struct {
	spec    *RestoreSpec
	note    note
	mounts  map[string]string // where each mount from outside is to be taken from, by key
	pid     int
	evil    error // what the user may not have
	checked bool  // the processes were looked at when they had their rights
}

// restore does it, in the agent, on a thread that is not used for anything else afterwards. The tree is a child of this process.
func restore(spec *RestoreSpec) (result RestoreResult, err error) {
	start := time.Now()
	r := &restorer{spec: spec}
	if r.note, err = readNote(spec.Dir); err != nil {
		return result, err
	}
	if err := screen(spec, &r.note); err != nil {
		result.failure = refusal(err)
		result.Total = time.Since(start)
		return result, nil
	}
	if err := mountRoot(spec.Root); err != nil {
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
	// The kernel lets nobody put a connection in order from within a user namespace that does not own the network.
	result.Closed = r.note.Nested
	err = r.run(streams, result.Closed)
	if err != nil && r.evil == nil && !result.Closed && r.connections() {
		result.Closed = true
		err = r.run(streams, true)
	}
	if err != nil && r.evil == nil && r.ended() {
		err = nil
	}
	if err != nil {
		if result.failure = failureOf(filepath.Join(spec.Dir, restoreLog), err); r.evil != nil {
			result.failure = refusal(r.evil)
		}
		result.Total = time.Since(start)
		return result, nil
	}
	// It may have been saved before it heard that it was to live on without its parent, as on a machine that has no time for it: then it would die with us.
	if spec.InitStop && !release(r.pid, syscall.SIGUSR2, hearing) {
		return result, fmt.Errorf("first process %d: %w: it does not hear that it is to live on without its parent", r.pid, roost.Unavailable)
	}
	result.PID, result.Total = r.pid, time.Since(start)
	if spec.PIDFile != "" {
		err = leave(spec.PIDFile, strconv.Itoa(r.pid))
	}
	return result, err
}

// refusal is the failure of an image that was refused.
func refusal(err error) *Failure {
	_, forged := errors.AsType[forgedError](err)
	return &Failure{Class: Never, Reason: err.Error(), Forged: forged}
}

// mountRoot makes the machine's root, without what is mounted below it, the root of what is restored. It is seen by this thread alone.
func mountRoot(root string) error {
	runtime.LockOSThread()
	if err := unix.Unshare(unix.CLONE_NEWNS); err != nil {
		return fmt.Errorf("mount namespace: %w", err)
	}
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("mount on /: %w", err)
	}
	if err := unix.Mount("/", root, "", unix.MS_BIND, ""); err != nil {
		return fmt.Errorf("mount on %s: %w", root, err)
	}
	return nil
}

// leave writes a file under its name only when it is whole.
func leave(path, text string) error {
	if err := os.WriteFile(path+".new", []byte(text), 0o600); err != nil {
		return err
	}
	return os.Rename(path+".new", path)
}

// stream is an open file for a task's stream, and what it was called.
type stream struct {
	key  string
	file *os.File
}

func closeAll(list []stream) {
	for _, s := range list {
		s.file.Close()
	}
}

// openStreams opens files with the user's rights, and cuts off what was written to them after the checkpoint: it will be written again.
func (r *restorer) openStreams() (list []stream, err error) {
	for _, s := range r.spec.Streams {
		length, ok := r.note.Streams[s.Inside]
		if !ok {
			continue
		}
		f, err := openAs(r.spec.User, s.Path)
		if err != nil {
			closeAll(list)
			return nil, fmt.Errorf("stream %s: %w", s.Path, err)
		}
		list = append(list, stream{strings.TrimPrefix(s.Inside, "/"), f})
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

func (r *restorer) run(streams []stream, shut bool) error {
	dir, err := os.Open(filepath.Join(r.spec.Dir, image.CRIU))
	if err != nil {
		return err
	}
	defer dir.Close()
	work, err := os.Open(r.spec.Dir)
	if err != nil {
		return err
	}
	defer work.Close()
	o := options(dir, work, restoreLog)
	o.RstSibling = proto.Bool(true)
	o.Root = proto.String(r.spec.Root)
	if shut {
		o.TcpEstablished, o.TcpClose = nil, proto.Bool(true)
	}
	for _, m := range r.note.Mounts {
		o.External = append(o.External, "mnt["+m.key()+"]:"+r.mounts[m.key()])
	}
	for _, s := range streams {
		// The library starts CRIU without handing on files, so this one must survive exec by itself.
		fd, err := unix.FcntlInt(s.file.Fd(), unix.F_DUPFD, 100)
		if err != nil {
			return err
		}
		defer unix.Close(fd)
		o.InheritFd = append(o.InheritFd, &rpc.InheritFd{Key: proto.String(s.key), Fd: proto.Int32(int32(fd))})
	}
	r.checked = false
	err = swrkRestore(r.spec.CRIU, o, r.stage)
	if r.evil != nil {
		return r.evil
	}
	if err != nil {
		return err
	}
	if r.pid == 0 {
		return fmt.Errorf("CRIU told no pid")
	}
	if !r.checked {
		r.evil = errors.New("it runs, and nobody has looked at what it is")
		destroy(tree(r.pid))
		return r.evil
	}
	return nil
}

// connections reports whether the last run failed over a TCP connection.
func (r *restorer) connections() bool {
	return slices.ContainsFunc(errorsIn(filepath.Join(r.spec.Dir, restoreLog)), func(line string) bool {
		return strings.Contains(line, "TCP repair") || strings.Contains(line, "Cannot assign requested address") || strings.Contains(line, "Can't connect inet socket")
	})
}

// ended reports whether the last run failed because the task was restored and has ended since. CRIU lets go of one process after the other, and those that run
// already may end the others, as the first of a PID namespace does by its own end; CRIU gives up then and kills what is left. A first process that had ended
// before is as it would be without that: it waits for its parent to be told its status.
func (r *restorer) ended() bool {
	if r.pid == 0 || !slices.ContainsFunc(errorsIn(filepath.Join(r.spec.Dir, restoreLog)), letGo) {
		return false
	}
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(time.Millisecond) { // the first waits for all others to be gone
		if code, ok := exitCode(r.pid); ok {
			return !(code.Signaled() && code.Signal() == syscall.SIGKILL)
		}
	}
	return false
}

// letGo reports whether a line of CRIU's says that a process was gone when it was to be let go of.
func letGo(line string) bool {
	return strings.Contains(line, "Unable to detach") && strings.Contains(line, "No such process")
}

// stage is called while the restored processes stand still.
func (r *restorer) stage(stage string, pid int) error {
	switch stage {
	case processesThere:
		r.pid = pid
		r.judge(lawful(tree(r.pid), r.spec.User, filepath.Join(r.spec.Dir, restoreLog)))
	case rightsTaken:
		if r.evil == nil {
			r.judge(r.unchanged())
		}
		if r.evil == nil {
			r.judge(r.rebound(tree(r.pid)))
		}
		if r.checked = r.evil == nil; r.checked {
			repin(tree(r.pid), r.note.Pins)
		}
	}
	return r.evil
}

// judge kills all that was restored if there is something against it. None of it has made a step.
func (r *restorer) judge(evil error) {
	if r.evil = evil; evil == nil {
		return
	}
	all := tree(r.pid)
	for _, pid := range append(all, tree(os.Getpid())[1:]...) { // what is in no tree of ours, and CRIU last, which would let go of those that it traces
		syscall.Kill(pid, syscall.SIGKILL)
	}
	destroy(all)
}
