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
	"github.com/roost-batch/roost/internal/files"
)

// stopTime bounds how long CRIU tries to get hold of all processes, which stand still already, in seconds.
const stopTime = 3

// dumper is an agent that dumps.
type dumper struct {
	gocriu.NoNotify
	ctx    context.Context
	spec   *DumpSpec
	exe    string
	note   note
	result DumpResult
	began  time.Time // when the task was about to be stopped
	failed error     // what went wrong while it stood still
}

// dump does it, in the agent. Errors are those of the spec and the machine; what CRIU finds is in the result.
func dump(ctx context.Context, spec *DumpSpec, exe string) (DumpResult, error) {
	start := time.Now()
	d := &dumper{ctx: ctx, spec: spec, exe: exe}
	if spec.Mounts == nil {
		var err error
		if spec.Mounts, err = outer(spec.PID); err != nil {
			return d.result, err
		}
	}
	d.note.Mounts, d.note.Scratch, d.note.Nested = spec.Mounts, spec.Scratch != "", namespace(spec.PID, "user") != namespace(os.Getpid(), "user")
	// What is plain to see needs no standing still.
	if d.result.failure = Probe(spec.PID); d.result.failure != nil {
		return d.result, nil
	}
	images := filepath.Join(spec.Dir, image.CRIU)
	if err := os.Mkdir(images, 0o700); err != nil {
		return d.result, err
	}
	stopped := frozen(spec.Group)
	if spec.InitStop && !stopped { // else whoever has frozen it has seen to that
		release(spec.PID, syscall.SIGUSR2, patience)
		defer release(spec.PID, syscall.SIGUSR1, patience)
	}
	err := d.run(images)
	if !stopped {
		thaw(spec.Group)
	}
	if !d.began.IsZero() {
		d.result.Frozen = time.Since(d.began)
	}
	if err != nil {
		d.result.failure = d.explain(err)
	} else if d.result.Bytes, d.result.Entries, err = measure(spec.Dir); err != nil {
		return d.result, err
	}
	d.result.Total = time.Since(start)
	return d.result, nil
}

func (d *dumper) explain(err error) *Failure {
	if d.failed != nil {
		return &Failure{Reason: d.failed.Error()}
	}
	if ended(d.spec.PID) {
		return &Failure{Reason: "it has ended meanwhile"}
	}
	return failureOf(filepath.Join(d.spec.Dir, dumpLog), err)
}

func (d *dumper) run(images string) error {
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
	o := options(dir, work, dumpLog)
	o.Pid = proto.Int32(int32(d.spec.PID))
	o.LeaveRunning = proto.Bool(true)
	o.GhostLimit = proto.Uint32(ghostLimit)
	o.Timeout = proto.Uint32(stopTime)
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
		err = d.failed
	}
	return err
}

// options are those that a dump and a restore have in common.
func options(images, work *os.File, log string) *rpc.CriuOpts {
	return &rpc.CriuOpts{
		ImagesDirFd: proto.Int32(int32(images.Fd())), WorkDirFd: proto.Int32(int32(work.Fd())), LogLevel: proto.Int32(logLevel), LogFile: proto.String(log),
		// Cgroups are the startd's business: what is restored lands where the agent is.
		ManageCgroups: proto.Bool(true), ManageCgroupsMode: rpc.CriuCgMode_IGNORE.Enum(),
		TcpEstablished: proto.Bool(true), NetworkLock: rpc.CriuNetworkLockMethod_SKIP.Enum(),
		FileLocks: proto.Bool(true), LinkRemap: proto.Bool(true),
	}
}

// PreDump is called before the processes are stopped. CRIU leaves a group frozen that it found so.
func (d *dumper) PreDump() error {
	d.began = time.Now()
	if d.spec.Group == "" {
		return nil
	}
	var err error
	d.began, err = still(d.spec.Group)
	return err
}

// PostDump is called when the memory is written and all processes still stand still. An error from here would leave CRIU waiting for an
// answer, so it is kept.
func (d *dumper) PostDump() error {
	d.result.Memory = time.Since(d.began)
	d.failed = d.snapshot()
	return nil
}

func (d *dumper) snapshot() error {
	pids := tree(d.spec.PID)
	d.note.Pins = pins(pids)
	d.note.Streams = lengths(pids, d.spec.Streams)
	var err error
	if d.note.IO, err = capture(d.spec.IO, d.spec.Dir); err != nil {
		return fmt.Errorf("captured output: %w", err)
	}
	if d.spec.Scratch != "" {
		if err := d.pack(); err != nil {
			return fmt.Errorf("scratch directory: %w", err)
		}
	}
	return d.note.write(d.spec.Dir)
}

func (d *dumper) pack() error {
	out, err := os.OpenFile(filepath.Join(d.spec.Dir, image.Scratch), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	limit := d.spec.Limit
	if limit <= 0 {
		limit = image.MaxRaw / 4
	}
	d.result.Scratch, err = files.Pack(d.ctx, d.spec.User, d.exe, d.spec.Scratch, limit, out)
	if cerr := out.Close(); err == nil {
		err = cerr
	}
	return err
}

// lengths finds how long the files are that a task has open for its streams. It goes through the descriptors: the path is the user's.
func lengths(pids []int, streams []string) map[string]int64 {
	found := map[string]int64{}
	for _, pid := range pids {
		for fd, to := range links(pid) {
			if !slices.Contains(streams, to) {
				continue
			}
			if info, err := os.Stat(proc(pid, "fd/"+strconv.Itoa(fd))); err == nil && info.Mode().IsRegular() {
				found[to] = info.Size()
			}
		}
	}
	return found
}

// measure counts the files of a staging directory.
func measure(dir string) (bytes int64, entries int, err error) {
	err = filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || !e.Type().IsRegular() || filepath.Dir(path) == dir && e.Name() != image.Scratch {
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

// Detach asks the first process of a box to live on without its parent, and waits for a moment until it has heard. Whoever freezes a task that is
// to be dumped does it before: what is frozen hears nothing, and would die where it is restored, with the agent.
func Detach(pid int) { release(pid, syscall.SIGUSR2, 50*time.Millisecond) }

// patience is how long a first process that is not frozen may take to hear.
const patience = time.Second

// hearing is how long one may take that has just been restored: it has to be sure that it has heard. It is counted in looks, of which none are taken while
// all that is restored stands still, and we with it.
const hearing = time.Minute

// release asks the first process to live on without its parent (SIGUSR2), or to die with it again (SIGUSR1), and reports whether it has heard in time, or
// has ended: a task may end before anybody asks.
func release(pid int, signal syscall.Signal, wait time.Duration) bool {
	if syscall.Kill(pid, signal) != nil {
		return true
	}
	const look = 200 * time.Microsecond
	bit := uint64(1) << (signal - 1)
	for looks := wait / look; looks > 0; looks-- {
		fields := status(proc(pid, "status"))
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

// namespace names a namespace of a process.
func namespace(pid int, kind string) string {
	name, err := os.Readlink(proc(pid, "ns/"+kind))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return ""
	}
	return name
}
