package cgroup

import (
	"fmt"

	"github.com/roost-batch/roost"
)

// AddTask puts a process under the limits and into the task, with which it is frozen and
// killed.
func (g *ClaimGroup) AddTask(pid int) error {
	if err := g.Add(pid); err != nil {
		return err
	}
	if g.taskDir == "" {
		return nil
	}
	if err := moveProcess(g.taskDir, pid); err != nil {
		return fmt.Errorf("control group %s: process %d: %w: %w", g.path, pid, roost.Unavailable, err)
	}
	return nil
}

// Frozen reports whether the task is frozen or being frozen.
func (g *ClaimGroup) Frozen() bool { return g.taskDir != "" && g.frozen() }
