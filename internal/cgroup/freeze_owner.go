package cgroup

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/kernfs"
)

// FreezeForOwner lets no process of the task run, nor any that is born in it, or lets
// them run again as far as they are not frozen besides. It is one word to the kernel and
// waits for nothing: Stands says when it has come about. In version 1 it is to be said
// again until then, for those that were forked meanwhile. Without a task directory it is
// roost.Unavailable; of a group that is gone it is no error.
func (g *ClaimGroup) FreezeForOwner(on bool) error {
	if g.holdDir == "" {
		return fmt.Errorf("control group %s: %w: nothing can be held on this machine", g.path, roost.Unavailable)
	}
	if err := g.setFrozenDir(g.holdDir, on); err != nil && !isGone(err) {
		return fmt.Errorf("control group %s: %w: %w", g.path, roost.Unavailable, err)
	}
	return nil
}

// Quiesced reports whether the group is held, and all processes of its task stand still;
// or that it is not there.
func (g *ClaimGroup) Quiesced() bool {
	if g.isQuiesced(g.holdDir) {
		return true
	}
	_, err := os.Lstat(g.holdDir)
	return isGone(err)
}

// WasFrozenOutside reports whether the group is held, at rest already or not.
func (g *ClaimGroup) WasFrozenOutside() bool { return g.holdDir != "" && g.isHeld() }

func (g *ClaimGroup) isHeld() bool {
	name := "cgroup.freeze"
	if g.isVersion1 {
		name = "freezer.self_freezing"
	}
	text, _ := kernfs.ReadFile(filepath.Join(g.holdDir, name))
	return strings.TrimSpace(string(text)) == "1"
}

// FreezeDir is the directory by which the group is held, for whoever has to do it in our
// place; empty where there is none.
func (g *ClaimGroup) FreezeDir() string { return g.holdDir }

// RunOneWhileFrozen lets one process of a task that stands still run while f does, and
// nothing else of it: it is moved out of the task and back again. With an error that is
// roost.Conflict it has run away, and the task is to be killed.
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
