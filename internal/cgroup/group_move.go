package cgroup

import (
	"fmt"

	"github.com/roost-batch/roost"
)

// moveRounds bounds how often MoveTask looks for processes that were forked meanwhile.
const moveRounds = 100

// MoveTask moves the processes of a group's task into another group. The error is of kind
// roost.Unavailable if some are still here, as when they fork faster than they are moved.
func MoveTask(g, to *ClaimGroup) error {
	var last error
	for range moveRounds {
		pids := TaskDir(g.taskDir).Processes()
		if len(pids) == 0 {
			return nil
		}
		for _, pid := range pids {
			if err := moveProcess(to.taskDir, pid); err != nil && !isGone(err) {
				last = err
			}
		}
	}
	return fmt.Errorf("control group %s: %w: its processes cannot be moved to %s: %w", g.path, roost.Unavailable,
		to.path, last)
}

// DeleteEmpty removes a group if no process is in it, and kills nothing.
func DeleteEmpty(g *ClaimGroup) {
	for _, dir := range g.allDirs() {
		if removeTree(dir) != nil {
			return
		}
	}
}
