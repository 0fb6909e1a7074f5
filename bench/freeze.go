package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/bench/gauge"
	"github.com/roost-batch/roost/internal/cgroup"
)

// Work to freeze: a number of processes that use all CPU time that they get, and a number
// of repetitions.
const (
	spinners     = 60
	freezes      = 200
	freezeTarget = 50 * time.Millisecond // the target for 99 of 100
)

// spinLimits returns the limits of a claim of one core.
func spinLimits() cgroup.GroupLimits {
	return cgroup.GroupLimits{Weight: 20, Memory: roost.GiB, Pids: 1000}
}

// spinScript forks the spinners and waits for them.
var spinScript = fmt.Sprintf("for i in $(seq %d); do (while :; do :; done) & done; wait", spinners)

// measureFreeze measures the time until the kernel reports that every process of a task
// is frozen. It freezes by the control group itself, and by a command to the task's
// starter.
func (b *poolBencher) measureFreeze() error {
	host, err := cgroup.Open(fmt.Sprintf("/roost/bench-%d", os.Getpid()))
	if err != nil {
		return err
	}
	if !host.Enforcement().Freeze {
		b.addRow("freezing", "not measured: %q", host.Enforcement().Missing)
		return nil
	}
	defer host.Close()
	defer host.Sweep(nil)
	if err := b.freezeGroup(host); err != nil {
		return err
	}
	return b.freezeTask(host)
}

func (b *poolBencher) freezeGroup(host *cgroup.ParentGroup) error {
	g, err := host.MakeGroup("group", spinLimits())
	if err != nil {
		return err
	}
	c := exec.Command("/bin/sh", "-c", "read go; "+spinScript)
	if g.IsVersion1() {
		return fmt.Errorf("%s: %w: no control group of version 2", g.TaskDir(), roost.Unavailable)
	}
	dir, err := os.Open(g.TaskDir())
	if err != nil {
		return err
	}
	defer dir.Close()
	c.SysProcAttr = &syscall.SysProcAttr{UseCgroupFD: true, CgroupFD: int(dir.Fd())}
	in, err := c.StdinPipe()
	if err != nil {
		return err
	}
	if err := c.Start(); err != nil {
		return err
	}
	defer func() { g.Kill(); c.Wait() }()
	if host.Enforcement().Version == 1 { // in version 2 the limits are those of the directory above
		if err := g.Add(c.Process.Pid); err != nil {
			return err
		}
	}
	if _, err := io.WriteString(in, "go\n"); err != nil {
		return err
	}
	took, err := b.freezeRepeatedly(g, g.Freeze, g.Thaw)
	if err == nil {
		b.addFreezeRow("freeze 60 spinning processes by their control group", took)
	}
	return err
}

// freezeTask freezes a task of a starter.
func (b *poolBencher) freezeTask(host *cgroup.ParentGroup) error {
	g, err := host.MakeGroup("task", spinLimits())
	if err != nil {
		return err
	}
	s, err := b.startStarter("freeze", g)
	if err != nil {
		return err
	}
	defer s.end()
	o, err := s.newTask(1, os.Geteuid(), true, "/bin/sh", "-c", spinScript)
	if err != nil {
		return err
	}
	if _, err := s.startTask(o); err != nil {
		return err
	}
	freeze := func() error { return errors.Join(g.Freeze(), s.Suspend(o.Attempt)) } // as a startd does it
	took, err := b.freezeRepeatedly(g, freeze, func() error { return s.Resume(o.Attempt) })
	if err == nil {
		b.addFreezeRow("freeze a task of 60 spinning processes", took)
	}
	return err
}

// freezeRepeatedly freezes and thaws a group when all its spinners run.
func (b *poolBencher) freezeRepeatedly(g *cgroup.ClaimGroup, freeze, thaw func() error) (gauge.DurationSamples, error) {
	deadline := time.Now().Add(20 * time.Second)
	for {
		u, err := g.Usage()
		if err != nil {
			return nil, err
		}
		if u.Processes > spinners {
			break
		}
		if time.Now().After(deadline) {
			return nil, fmt.Errorf("%d processes after 20s, want %d", u.Processes, spinners)
		}
		if err := sleepFor(b.ctx, 10); err != nil {
			return nil, err
		}
	}
	events, err := os.Open(filepath.Join(g.TaskDir(), "cgroup.events"))
	if err != nil {
		return nil, err
	}
	defer events.Close()
	var took gauge.DurationSamples
	for range freezes {
		if err := sleepFor(b.ctx, 20); err != nil {
			return nil, err
		}
		began := time.Now()
		if err := freeze(); err != nil {
			return nil, err
		}
		if err := awaitFrozen(events, true); err != nil {
			return nil, err
		}
		took = append(took, time.Since(began))
		if err := thaw(); err != nil {
			return nil, err
		}
		if err := awaitFrozen(events, false); err != nil {
			return nil, err
		}
	}
	return took, nil
}

// awaitFrozen waits until the file cgroup.events has the wanted state. The kernel wakes a
// poll of it at each change.
func awaitFrozen(events *os.File, want bool) error {
	text := make([]byte, 256)
	deadline := time.Now().Add(10 * time.Second)
	for time.Now().Before(deadline) {
		n, err := events.ReadAt(text, 0)
		if n == 0 {
			return err
		}
		if contains := containsLine(string(text[:n]), "frozen 1"); contains == want {
			return nil
		}
		if _, err := unix.Poll([]unix.PollFd{{Fd: int32(events.Fd()), Events: unix.POLLPRI}}, 1000); err != nil &&
			err != unix.EINTR {
			return err
		}
	}
	return fmt.Errorf("not frozen (or thawed) after 10s: %w", roost.Unavailable)
}

func (b *poolBencher) addFreezeRow(what string, took gauge.DurationSamples) {
	b.addAimedRow(what, took.Percentile(99) <= freezeTarget, "50ms for 99 of 100", "p50 %v  p99 %v",
		took.Percentile(50), took.Percentile(99))
}
