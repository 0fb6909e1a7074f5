// Package steptable is the file in which the steps of a job share its processors out. It
// lies on the job's first machine, where srun runs, and belongs to the job's user. Who
// changes it has it locked. A step whose process is gone has none of the processors any
// more, however it has ended.
package steptable

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// contents is what the file has, as JSON.
type contents struct {
	Next  uint32 // number of the next step
	Steps []entry
}

// entry is a step that runs, or that waits for processors.
type entry struct {
	Number uint32
	PID    int
	Began  uint64 // start time of the process (proc_pid_stat(5), field 22)
	Waits  bool
	CPUs   []int  // by machine of the allocation; nil: it shares what it has
	Socket string `json:",omitempty"` // by which it is signalled and attached to
}

// Claim is what a step has until it is released.
type Claim struct {
	Number uint32
	path   string
	pid    int
}

// pollInterval is how often a step that waits looks whether others have ended.
const pollInterval = 50 * time.Millisecond

// Acquire gives a step its number and processors. place is called with those that other
// steps have, by machine, and returns those that this one takes: nil for none, or
// ErrBusy, with which it is called again when that may have changed. Steps that wait get
// them in their order. onWait is called once if it waits. done ends the wait.
func Acquire(path string, machines int, place func(used []int) ([]int, error), onWait func(),
	done <-chan struct{}) (*Claim, error) {
	began, err := startTime(os.Getpid())
	if err != nil {
		return nil, err
	}
	c := &Claim{path: path, pid: os.Getpid()}
	known := false
	for {
		var refused error
		err := change(path, func(t *contents) {
			if !known {
				c.Number, known = t.Next, true
				t.Next++
				t.Steps = append(t.Steps, entry{Number: c.Number, PID: c.pid, Began: began, Waits: true})
			}
			refused = t.admit(c.Number, machines, place)
		})
		switch {
		case err != nil:
			return nil, err
		case refused == nil:
			return c, nil
		case !errors.Is(refused, ErrBusy):
			return nil, errors.Join(refused, c.Release())
		}
		if onWait != nil {
			onWait()
			onWait = nil
		}
		select {
		case <-time.After(pollInterval):
		case <-done:
			return nil, errors.Join(ErrInterrupted, c.Release())
		}
	}
}

var (
	// ErrBusy says that processors are lacking that other steps have.
	ErrBusy = errors.New("the processors are busy")
	// ErrInterrupted says that the wait was ended.
	ErrInterrupted = errors.New("interrupted")
)

// admit gives a step its processors, unless one before it waits, too.
func (t *contents) admit(number uint32, machines int, place func([]int) ([]int, error)) error {
	used := make([]int, machines)
	for i := range t.Steps {
		e := &t.Steps[i]
		if e.Number != number {
			if e.Waits {
				return ErrBusy
			}
			for m, n := range e.CPUs {
				if m < machines {
					used[m] += n
				}
			}
			continue
		}
		// those behind it have begun before it came to wait, and count
		for _, later := range t.Steps[i+1:] {
			for m, n := range later.CPUs {
				if m < machines {
					used[m] += n
				}
			}
		}
		cpus, err := place(used)
		if err != nil {
			return err
		}
		e.Waits, e.CPUs = false, cpus
		return nil
	}
	return errors.New("the step is not in its file any more")
}

// SetSocket has others find the socket by which the step is signalled and attached to.
func (c *Claim) SetSocket(path string) error {
	return change(c.path, func(t *contents) {
		for i := range t.Steps {
			if e := &t.Steps[i]; e.Number == c.Number && e.PID == c.pid {
				e.Socket = path
			}
		}
	})
}

// ErrEnded says that a step is not there, or not any more.
var ErrEnded = errors.New("Job/step already completing or completed")

// Find returns the process of a step and its socket; without one the process is the task.
func Find(path string, number uint32) (pid int, socket string, err error) {
	err = change(path, func(t *contents) {
		for _, e := range t.Steps {
			if e.Number == number && !e.Waits {
				pid, socket = e.PID, e.Socket
			}
		}
	})
	if err == nil && pid == 0 {
		err = ErrEnded
	}
	return pid, socket, err
}

// Release gives the processors back.
func (c *Claim) Release() error {
	return change(c.path, func(t *contents) {
		for i, e := range t.Steps {
			if e.Number == c.Number && e.PID == c.pid {
				t.Steps = append(t.Steps[:i], t.Steps[i+1:]...)
				return
			}
		}
	})
}

// maxFile bounds what is read of the file, in bytes.
const maxFile = 16 << 20

// change changes the file, with the lock on it.
func change(path string, apply func(*contents)) error {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	if err := lock(f); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	before, err := io.ReadAll(io.LimitReader(f, maxFile))
	if err != nil {
		return err
	}
	var t contents
	if len(before) > 0 {
		if err := json.Unmarshal(before, &t); err != nil {
			return fmt.Errorf("%s is not what the steps of the job have written: %w", path, err)
		}
	}
	t.dropEnded()
	apply(&t)
	after, err := json.Marshal(t)
	if err != nil {
		return err
	}
	if _, err := f.WriteAt(after, 0); err != nil {
		return err
	}
	return f.Truncate(int64(len(after)))
}

func lock(f *os.File) error {
	for {
		if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX); !errors.Is(err, syscall.EINTR) {
			return err
		}
	}
}

// dropEnded drops the steps whose process is gone.
func (t *contents) dropEnded() {
	alive := t.Steps[:0]
	for _, e := range t.Steps {
		if began, err := startTime(e.PID); err == nil && began == e.Began {
			alive = append(alive, e)
		}
	}
	t.Steps = alive
}

// startTime is when a process began, in clock ticks since boot.
func startTime(pid int) (uint64, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, err
	}
	s := string(text)
	fields := strings.Fields(s[strings.LastIndexByte(s, ')')+1:])
	if len(fields) < 20 {
		return 0, fmt.Errorf("/proc/%d/stat has %d fields", pid, len(fields))
	}
	return strconv.ParseUint(fields[19], 10, 64)
}
