package criu

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/cgroup"
	"github.com/roost-batch/roost/internal/kernfs"
)

// isFrozen reports whether a cgroup itself is frozen.
func isFrozen(group string) bool { return group != "" && cgroup.TaskDir(group).Frozen() }

// thawCgroup thaws a cgroup.
func thawCgroup(group string) error {
	if group == "" {
		return nil
	}
	return cgroup.TaskDir(group).Thaw()
}

// freezeStably freezes a cgroup so that CRIU can begin at once. It returns when the final
// freeze began.
//
// CRIU could freeze the cgroup itself, but then checks only every 100 ms whether all
// processes are frozen. And if it finds a process inside vfork(2), it waits until it
// times out: ptrace(2) cannot stop the parent before the child has called exec, and the
// child is frozen. Shells are often in this state. In that case freezeStably thaws the
// cgroup for a moment and tries again.
func freezeStably(group string) (began time.Time, err error) {
	const patience = 10 * time.Second
	for first := time.Now(); time.Since(first) < patience; {
		began = time.Now()
		if err := cgroup.TaskDir(group).Freeze(patience - time.Since(first)); err != nil {
			return began, err
		}
		if !isVforking(group) {
			return began, nil
		}
		thawCgroup(group)
		time.Sleep(time.Millisecond)
	}
	return began, fmt.Errorf("%s: %w: it cannot be frozen in a stable state", group, roost.Unavailable)
}

// isVforking reports whether a process of a frozen cgroup waits for its child to call
// exec.
func isVforking(group string) bool {
	text, _ := kernfs.ReadFile(filepath.Join(group, "cgroup.procs"))
	for word := range strings.FieldsSeq(string(text)) {
		pid, err := strconv.Atoi(word)
		if err != nil {
			continue
		}
		for _, tid := range threadIDs(pid) {
			where, _ := os.ReadFile(procPath(pid, "task/"+strconv.Itoa(tid)+"/wchan"))
			if at := string(where); strings.Contains(at, "fork") || strings.Contains(at, "clone") {
				return true
			}
		}
	}
	return false
}
