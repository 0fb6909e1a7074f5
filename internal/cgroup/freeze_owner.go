package cgroup

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/kernfs"
)

// FreezeForOwner freezes the task for the machine owner, including processes that are
// forked into it, or ends that freeze. It writes one kernel file and waits for nothing:
// Quiesced reports when the processes are frozen. In version 1 it must be repeated until
// then, for processes forked meanwhile. Without a task directory the error is
// roost.Unavailable; for a removed group it is nil.
func (g *ClaimGroup) FreezeForOwner(on bool) error {
	if g.holdDir == "" {
		return fmt.Errorf("control group %s: %w: nothing can be held on this machine", g.path, roost.Unavailable)
	}
	if err := g.setFrozenDir(g.holdDir, on); err != nil && !isGone(err) {
		return fmt.Errorf("control group %s: %w: %w", g.path, roost.Unavailable, err)
	}
	return nil
}

// Quiesced reports whether all processes of the task are frozen for the owner. A group
// that does not exist is quiesced, too.
func (g *ClaimGroup) Quiesced() bool {
	if g.isQuiesced(g.holdDir) {
		return true
	}
	_, err := os.Lstat(g.holdDir)
	return isGone(err)
}

// WasFrozenOutside reports whether the group is frozen for the owner, even if not all
// processes are frozen yet.
func (g *ClaimGroup) WasFrozenOutside() bool { return g.holdDir != "" && g.isHeld() }

func (g *ClaimGroup) isHeld() bool {
	name := "cgroup.freeze"
	if g.isVersion1 {
		name = "freezer.self_freezing"
	}
	text, _ := kernfs.ReadFile(filepath.Join(g.holdDir, name))
	return strings.TrimSpace(string(text)) == "1"
}

// FreezeDir returns the directory that FreezeForOwner freezes, for another process that
// has to do it. It is empty if there is none.
func (g *ClaimGroup) FreezeDir() string { return g.holdDir }

// RunOneWhileFrozen lets one process of a frozen task run while f runs. It moves the
// process out of the task and back again. The error roost.Conflict means that the process
// has escaped, and the task must be killed.
func (g *ClaimGroup) RunOneWhileFrozen(pid int, f func()) error {
	if g.taskDir == "" {
		return fmt.Errorf("control group %s: %w: it has no directory for tasks", g.path, roost.Unavailable)
	}
	away := filepath.Dir(g.holdDir)
	if g.unified != "" {
		away = filepath.Join(g.unified, starterLeaf)
	}
	if err := moveProcess(away, pid); err != nil {
		return fmt.Errorf("control group %s: process %d: %w: %w", g.path, pid, roost.Unavailable, err)
	}
	f()
	if err := moveProcess(g.taskDir, pid); err != nil && !isGone(err) {
		return fmt.Errorf("control group %s: process %d cannot be brought back: %w: %w", g.path, pid,
			roost.Conflict, err)
	}
	return nil
}
