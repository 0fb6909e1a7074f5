package master

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/atomicfile"
)

// NodeState is the master's record of its daemons, in run/master.json below the node's
// directory.
type NodeState struct {
	PID     int           `json:"pid"` // of the master
	Node    string        `json:"node"`
	Config  string        `json:"config"` // path of the node file
	Ready   bool          `json:"ready"`  // every daemon has served at least once
	Daemons []DaemonState `json:"daemons"`

	CanReload bool         `json:"can_reload"`       // the master knows RequestReload
	Reload    *ReloadState `json:"reload,omitempty"` // the last one; nil: there was none
}

// DaemonState is one daemon in a NodeState.
type DaemonState struct {
	Role     string    `json:"role"`
	Name     string    `json:"name"` // of a startd; empty for the others
	PID      int       `json:"pid"`  // 0: it is not running
	Ready    bool      `json:"ready"`
	Started  time.Time `json:"started"` // start of the process PID
	Restarts int       `json:"restarts"`
	LastExit string    `json:"last_exit,omitempty"` // how the previous process ended, and its last output
	Log      string    `json:"log"`
}

func statePath(dir string) string { return filepath.Join(dir, "run", "master.json") }
func lockPath(dir string) string  { return filepath.Join(dir, "run", "master.lock") }

// ReadState reads the state file of the master of the node in dir. running reports
// whether that master still runs.
func ReadState(dir string) (state *NodeState, running bool, err error) {
	text, err := os.ReadFile(statePath(dir))
	if err != nil {
		return nil, false, fmt.Errorf("master in %s: %w: %w", dir, roost.NotFound, err)
	}
	state = new(NodeState)
	if err := json.Unmarshal(text, state); err != nil {
		return nil, false, fmt.Errorf("%s: %w", statePath(dir), err)
	}
	lock, err := os.Open(lockPath(dir))
	if err != nil {
		return state, false, nil
	}
	defer lock.Close()
	held := unix.Flock(int(lock.Fd()), unix.LOCK_SH|unix.LOCK_NB)
	return state, errors.Is(held, unix.EWOULDBLOCK), nil
}

// save replaces the file atomically, so that a reader never sees half of it.
func (s *NodeState) save(dir string) error {
	text, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		return err
	}
	return atomicfile.Write(statePath(dir), append(text, '\n'), 0o644)
}

// takeLock makes this process the only master in dir until the file is closed or the
// process ends.
func takeLock(dir string) (*os.File, error) {
	f, err := os.OpenFile(lockPath(dir), os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return nil, fmt.Errorf("lock of %s: %w: %w", dir, roost.NoOutput, err)
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		holder := make([]byte, 32)
		n, _ := f.ReadAt(holder, 0)
		f.Close()
		if !errors.Is(err, unix.EWOULDBLOCK) {
			return nil, fmt.Errorf("lock of %s: %w", dir, err)
		}
		return nil, fmt.Errorf("%s: %w: a pool runs there already, under process %s; stop that one, or choose "+
			"another directory with --dir",
			dir, roost.Conflict, strings.TrimSpace(string(holder[:n])))
	}
	if err := f.Truncate(0); err != nil {
		f.Close()
		return nil, fmt.Errorf("lock of %s: %w", dir, err)
	}
	if _, err := fmt.Fprintf(f, "%d\n", os.Getpid()); err != nil {
		f.Close()
		return nil, fmt.Errorf("lock of %s: %w", dir, err)
	}
	return f, nil
}

func (s *NodeState) equal(t *NodeState) bool {
	return s.PID == t.PID && s.Ready == t.Ready && slices.Equal(s.Daemons, t.Daemons) &&
		reflect.DeepEqual(s.Reload, t.Reload)
}
