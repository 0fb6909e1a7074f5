package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/bench/gauge"
	"github.com/roost-batch/roost/internal/cgroup"
	"github.com/roost-batch/roost/startd/starterclient"
)

// benchStarter is a starter that the bench itself commands, like a startd.
type benchStarter struct {
	*starterclient.Starter
	dir    string
	events chan starterclient.Event
}

// startStarter starts a starter whose tasks run in the group.
func (b *poolBencher) startStarter(name string, g *cgroup.ClaimGroup) (*benchStarter, error) {
	s := &benchStarter{dir: filepath.Join(b.dir, name), events: make(chan starterclient.Event, 64)}
	if err := os.Mkdir(s.dir, 0o700); err != nil {
		return nil, err
	}
	opts := starterclient.SpawnOptions{
		Binary: filepath.Join(filepath.Dir(b.roost), "roost-starter"), Dir: s.dir, Lease: time.Hour,
		Events: func(e starterclient.Event) {
			s.events <- e
		},
	}
	if g != nil && !g.IsVersion1() {
		opts.Join, opts.TaskGroup = g.Add, g.TaskDir()
	}
	var err error
	s.Starter, err = starterclient.Spawn(opts)
	return s, err
}

// end releases the starter, and its task with it.
func (s *benchStarter) end() {
	s.Release()
	for e := range s.events {
		if _, gone := e.(starterclient.ProcessDied); gone {
			break
		}
	}
	s.Close()
}

// newTask returns a task of a user, in a sandbox if sandboxed is set.
func (s *benchStarter) newTask(number uint32, uid int, sandboxed bool, program string,
	args ...string) (starterclient.StartCmd, error) {
	o := starterclient.StartCmd{
		Attempt: starterclient.TaskAttempt{Job: 1, Number: number}, Executable: program,
		Arguments: append([]string{program}, args...), Cwd: "/",
		Environment: []string{"PATH=/usr/bin:/bin"}, UID: uint32(uid), GID: uint32(uid), Umask: 0o022,
		IO: filepath.Join(s.dir, "io"), // as in a startd, for one task after the other
	}
	if err := os.MkdirAll(o.IO, 0o711); err != nil {
		return o, err
	}
	if sandboxed && os.Geteuid() == 0 {
		o.Sandbox.Wanted, o.Sandbox.TempDir = true, filepath.Join(s.dir, fmt.Sprint("tmp-", uid))
		if err := os.MkdirAll(o.Sandbox.TempDir, 0o700); err != nil {
			return o, err
		}
		return o, os.Chown(o.Sandbox.TempDir, uid, uid)
	}
	return o, nil
}

// startTask starts a task and waits until its processes run.
func (s *benchStarter) startTask(o starterclient.StartCmd) (pid int, err error) {
	if err := s.Start(o); err != nil {
		return 0, err
	}
	switch e := (<-s.events).(type) {
	case starterclient.TaskStarted:
		return e.PID, nil
	case starterclient.TaskExited:
		return 0, fmt.Errorf("task: %w: %+v", roost.Unavailable, e.Exit)
	default:
		return 0, fmt.Errorf("task: %w: %+v", roost.Unavailable, e)
	}
}

// awaitEnd waits until a task has ended.
func (s *benchStarter) awaitEnd(a starterclient.TaskAttempt) error {
	for e := range s.events {
		switch e := e.(type) {
		case starterclient.TaskExited:
			if e.Exit.Code != 0 || e.Exit.Signal != 0 || e.Exit.Step != 0 {
				return fmt.Errorf("task: %w: %+v", roost.Unavailable, e.Exit)
			}
			return s.DiscardAttempt(a)
		case starterclient.ProcessDied:
			return errors.Join(starterclient.ErrGone, e.Err)
		}
	}
	return nil
}

// startTarget is the target of the time of a task in the full sandbox, in times of fork
// and exec.
const startTarget = 1.8

// nobodyUID is a user without rights; only root can run a program as that user.
const nobodyUID = 65534

// measureStart measures /bin/true from its start command to the report of its end. It
// runs by turns as a child process, as a starter's task, and as one in a sandbox; the
// last one as a user, if the bench runs as root.
func (b *poolBencher) measureStart() error {
	host, err := cgroup.Open(fmt.Sprintf("/roost/bench-%d", os.Getpid()))
	if err != nil {
		return err
	}
	defer host.Close()
	defer host.Sweep(nil)
	g, err := host.MakeGroup("start", cgroup.GroupLimits{Weight: 100, Memory: roost.GiB, Pids: 1000})
	if err != nil {
		return err
	}
	s, err := b.startStarter("start", g)
	if err != nil {
		return err
	}
	defer s.end()
	user := os.Geteuid()
	if user == 0 {
		user = nobodyUID
	}
	var plain, task, sandboxed gauge.DurationSamples
	for n := range uint32(1000) {
		began := time.Now()
		if err := exec.Command("/bin/true").Run(); err != nil {
			return err
		}
		plain = append(plain, time.Since(began))
		if err := s.timeTask(&task, 2*n+1, os.Geteuid(), false); err != nil {
			return err
		}
		if err := s.timeTask(&sandboxed, 2*n+2, user, true); err != nil {
			return err
		}
	}
	more := sandboxed.Percentile(50) - plain.Percentile(50)
	b.addRow("/bin/true by fork and exec, to its end", "p50 %v  p99 %v", plain.Percentile(50), plain.Percentile(99))
	b.addRow("/bin/true as a starter's task, to its end", "p50 %v  p99 %v", task.Percentile(50), task.Percentile(99))
	b.addRow("/bin/true in the full sandbox, to its end", "p50 %v  p99 %v", sandboxed.Percentile(50),
		sandboxed.Percentile(99))
	ratio := float64(sandboxed.Percentile(50)) / float64(plain.Percentile(50))
	b.addAimedRow("what the sandbox costs beyond fork and exec", ratio <= startTarget,
		fmt.Sprintf("%.1f times as much in all", startTarget), "%v, %.1f times as much in all", more, ratio)
	return nil
}

// timeTask runs one task.
func (s *benchStarter) timeTask(took *gauge.DurationSamples, number uint32, uid int, sandboxed bool) error {
	o, err := s.newTask(number, uid, sandboxed, "/bin/true")
	if err != nil {
		return err
	}
	began := time.Now()
	if _, err := s.startTask(o); err != nil {
		return err
	}
	if err := s.awaitEnd(o.Attempt); err != nil {
		return err
	}
	*took = append(*took, time.Since(began))
	return nil
}

func containsLine(text, line string) bool {
	return slices.Contains(strings.Split(text, "\n"), line)
}
