package cgroup

import (
	"fmt"

	"github.com/roost-batch/roost"
)

// Join puts a process under the limits and among the processes of the task: it is frozen and killed with them.
func (g *Group) Join(pid int) error {
	if err := g.Add(pid); err != nil {
		return err
	}
	if g.task == "" {
		return nil
	}
	if err := move(g.task, pid); err != nil {
		return fmt.Errorf("control group %s: process %d: %w: %w", g.path, pid, roost.Unavailable, err)
	}
	return nil
}

// Frozen reports whether the task stands still, or is about to.
func (g *Group) Frozen() bool { return g.task != "" && g.frozen() }
