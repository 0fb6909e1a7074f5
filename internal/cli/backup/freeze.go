package backup

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"time"

	"golang.org/x/sys/unix"

	"github.com/roost-batch/roost/internal/config"
	"github.com/roost-batch/roost/internal/master"
)

// While files are copied the daemons stand still, so that the copies are those of one
// instant: that of a kill -9, from which every daemon recovers. A child of this command
// lets them go on if the command itself is killed.

// frozenRoles are the daemons whose files are copied. Startds have nothing that a backup
// needs, and go on.
func frozenRoles() map[string]bool {
	return map[string]bool{"collector": true, "negotiator": true, "schedd": true, "authority": true, "accountant": true,
		"cell-queue": true, "checkpoint-server": true}
}

// frozenDaemons are daemons that stand still.
type frozenDaemons struct {
	pids  []int
	guard *exec.Cmd // goes on when its standard input is closed
	input io.Closer
	since time.Time
}

// freezeTime is how long a process may take until it stands still.
const freezeTime = 10 * time.Second

// freezeDaemons stops the daemons of a node that write files. There are none if no master
// runs.
func freezeDaemons(n *config.Node) (f *frozenDaemons, err error) {
	f = &frozenDaemons{since: time.Now()}
	state, running, err := master.ReadState(n.Dir)
	if err != nil || !running {
		return f, nil // nothing writes there
	}
	arguments := []string{"-c", `read x; kill -CONT "$@"`, "sh"}
	for _, d := range state.Daemons {
		if d.PID > 0 && frozenRoles()[d.Role] {
			f.pids, arguments = append(f.pids, d.PID), append(arguments, strconv.Itoa(d.PID))
		}
	}
	if len(f.pids) == 0 {
		return f, nil
	}
	f.guard = exec.Command("/bin/sh", arguments...)
	if f.input, err = f.guard.StdinPipe(); err == nil {
		err = f.guard.Start()
	}
	if err != nil {
		return nil, fmt.Errorf("the process that lets the daemons go on: %w", err)
	}
	for _, pid := range f.pids {
		if err := unix.Kill(pid, unix.SIGSTOP); err != nil && !errors.Is(err, unix.ESRCH) {
			return nil, errors.Join(fmt.Errorf("process %d of the node cannot be stopped: %w", pid, err), f.thaw())
		}
	}
	for _, pid := range f.pids {
		if err := awaitStopped(pid, f.since.Add(freezeTime)); err != nil {
			return nil, errors.Join(err, f.thaw())
		}
	}
	return f, nil
}

// thaw lets the daemons go on.
func (f *frozenDaemons) thaw() error {
	if f.guard == nil {
		return nil
	}
	err := errors.Join(f.input.Close(), f.guard.Wait())
	f.guard = nil
	var exit *exec.ExitError
	if errors.As(err, &exit) { // one of them has ended meanwhile
		err = nil
	}
	for _, pid := range f.pids {
		if kerr := unix.Kill(pid, unix.SIGCONT); kerr != nil && !errors.Is(kerr, unix.ESRCH) {
			err = errors.Join(err, kerr)
		}
	}
	return err
}

// awaitStopped waits until a process stands still, or has ended.
func awaitStopped(pid int, until time.Time) error {
	for {
		text, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
		if errors.Is(err, os.ErrNotExist) || errors.Is(err, unix.ESRCH) {
			return nil
		} else if err != nil {
			return err
		}
		// the name in parentheses may contain any characters
		if at := bytes.LastIndexByte(text, ')'); at > 0 && at+2 < len(text) && bytes.IndexByte([]byte("TtZX"),
			text[at+2]) >= 0 {
			return nil
		}
		if time.Now().After(until) {
			return fmt.Errorf("process %d of the node does not stand still", pid)
		}
		time.Sleep(5 * time.Millisecond)
	}
}
