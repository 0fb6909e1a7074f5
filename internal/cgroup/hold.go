package cgroup

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/kernfs"
)

// Hold lets no process of the task run, nor any that is born in it, or lets them run again as far as they are not frozen besides. It is one word to
// the kernel and waits for nothing: Stands says when it has come about. In version 1 it is to be said again until then, for those that were forked
// meanwhile. Without a task directory it is roost.Unavailable; of a group that is gone it is no error.
func (g *Group) Hold(on bool) error {
	if g.hold == "" {
		return fmt.Errorf("control group %s: %w: nothing can be held on this machine", g.path, roost.Unavailable)
	}
	if err := g.set(g.hold, on); err != nil && !gone(err) {
		return fmt.Errorf("control group %s: %w: %w", g.path, roost.Unavailable, err)
	}
	return nil
}

// Stands reports whether the group is held, and all processes of its task stand still; or that it is not there.
func (g *Group) Stands() bool {
	if g.stands(g.hold) {
		return true
	}
	_, err := os.Lstat(g.hold)
	return gone(err)
}

// Held reports whether the group is held, at rest already or not.
func (g *Group) Held() bool { return g.hold != "" && g.held() }

func (g *Group) held() bool {
	name := "cgroup.freeze"
	if g.freezer {
		name = "freezer.self_freezing"
	}
	text, _ := kernfs.Read(filepath.Join(g.hold, name))
	return strings.TrimSpace(string(text)) == "1"
}

// HoldDir is the directory by which the group is held, for whoever has to do it in our place; empty where there is none.
func (g *Group) HoldDir() string { return g.hold }

// Apart lets one process of a task that stands still run while f does, and nothing else of it: it is moved out of the task and back again. With an
// error that is roost.Conflict it has run away, and the task is to be killed.
func (g *Group) Apart(pid int, f func()) error {
	if g.task == "" {
		return fmt.Errorf("control group %s: %w: it has no directory for tasks", g.path, roost.Unavailable)
	}
	away := filepath.Dir(g.hold)
	if g.unified != "" {
		away = filepath.Join(g.unified, starterLeaf)
	}
	if err := move(away, pid); err != nil {
		return fmt.Errorf("control group %s: process %d: %w: %w", g.path, pid, roost.Unavailable, err)
	}
	f()
	if err := move(g.task, pid); err != nil && !gone(err) {
		return fmt.Errorf("control group %s: process %d cannot be brought back: %w: %w", g.path, pid, roost.Conflict, err)
	}
	return nil
}
