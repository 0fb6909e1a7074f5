package guard

import (
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/boottime"
	"github.com/roost-batch/roost/internal/cgroup"
	"github.com/roost-batch/roost/internal/wire"
)

// PauseOffline pauses a node whose guard is not running. It writes the pause to the
// guard's file, and freezes the tasks of all startds that the guard knew. It needs the
// right to write there. Until is in unix nanoseconds, 0 for no end.
func PauseOffline(nodeDir string, until int64, by, reason string) (*wire.OwnerReply, error) {
	began := time.Now()
	dir := filepath.Join(nodeDir, "owner")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("pause: %w: %w", roost.NoOutput, err)
	}
	p := newPause(until, by, reason[:min(len(reason), maxReason)], began, bootID(), boottime.Now())
	saved := make(chan error, 1)
	go func() { saved <- savePause(dir, p) }() // the disk may be slow, and the tasks must be frozen at once
	groups, err := knownTaskDirs(dir)
	if err == nil {
		_, err = cgroup.FreezeDirs(groups, freezeTimeout)
	}
	reply := &wire.OwnerReply{Pause: p.wire(), Frozen: uint32(cgroup.CountFrozen(groups)),
		Took: int64(time.Since(began))}
	if kerr := <-saved; kerr != nil {
		return nil, kerr
	}
	return reply, err
}

// ResumeOffline ends the pause of a node whose guard is not running. The startds thaw the
// tasks when a guard is running again.
func ResumeOffline(nodeDir string) (*wire.OwnerReply, error) {
	if err := removePause(filepath.Join(nodeDir, "owner")); err != nil {
		return nil, fmt.Errorf("resume: %w: %w", roost.NoOutput, err)
	}
	return &wire.OwnerReply{}, nil
}

// OfflinePause returns the pause of a node whose guard is not running; nil for none.
func OfflinePause(nodeDir string) (*wire.Pause, error) {
	p, err := loadPause(filepath.Join(nodeDir, "owner"), time.Now(), bootID(), boottime.Now())
	return p.wire(), err
}

// knownTaskDirs returns the task directories of all startds that the guard knew.
func knownTaskDirs(dir string) (all []cgroup.TaskDir, err error) {
	entries, err := loadRecords(dir)
	for _, e := range entries {
		r := &startdRecord{name: e.Name, parents: e.Parents}
		all = append(all, r.taskDirs()...)
	}
	return all, err
}
