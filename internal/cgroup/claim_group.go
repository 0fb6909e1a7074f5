package cgroup

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/kernfs"
)

// The parts of a group of version 2: processes live in leaves only.
const (
	taskPart    = "task"
	starterLeaf = "starter"
)

// runLeaf is the task directory, in the one that the group is held by.
const runLeaf = "run"

// ClaimGroup is the group of one claim. Its methods may be called by several goroutines.
type ClaimGroup struct {
	host       *ParentGroup
	name       string
	path       string // below each mount
	unified    string // directory of version 2 with the limits; empty in version 1
	holdDir    string // the directory above task, for FreezeForOwner alone
	taskDir    string // where tasks live; empty: nowhere of their own
	isVersion1 bool   // the task directory is of version 1
}

// Path is the group's name in the kernel's words, the same in all hierarchies.
func (g *ClaimGroup) Path() string { return g.path }

// TaskDir is the directory that tasks live in, frozen and killed by; empty where there is
// none. It is of version 2 and a place to be cloned into unless IsVersion1 says
// otherwise.
func (g *ClaimGroup) TaskDir() string { return g.taskDir }

// IsVersion1 reports whether the task directory is of version 1: then a process is moved
// into it by its number.
func (g *ClaimGroup) IsVersion1() bool { return g.isVersion1 }

// Add puts a process under the limits. What it forks from then on has them too; what it
// forked before has not.
func (g *ClaimGroup) Add(pid int) error {
	for _, dir := range g.limits() {
		if err := moveProcess(dir, pid); err != nil {
			return fmt.Errorf("control group %s: process %d: %w: %w", g.path, pid, roost.Unavailable, err)
		}
	}
	return nil
}

// SetLimits changes the limits that are given.
func (g *ClaimGroup) SetLimits(l GroupLimits) error {
	var err error
	if g.host.v1 != nil {
		err = g.set1(l)
	} else if g.unified != "" {
		err = g.set2(l)
	}
	if err != nil {
		return fmt.Errorf("control group %s: %w: %w", g.path, roost.Unavailable, err)
	}
	return nil
}

// limits are the directories that the starter is in.
func (g *ClaimGroup) limits() []string {
	if g.unified != "" {
		return []string{filepath.Join(g.unified, starterLeaf)}
	}
	var all []string
	for _, name := range controllers() {
		if g.host.v1[name] && name != "freezer" {
			all = append(all, g.version1Dir(name))
		}
	}
	return all
}

// version1Dir is the group's directory in a hierarchy of version 1.
func (g *ClaimGroup) version1Dir(controller string) string {
	return filepath.Join(g.host.mounts.v1, controller, g.path)
}

// allDirs are all directories of the group, leaves first.
func (g *ClaimGroup) allDirs() []string {
	var all []string
	if g.taskDir != "" {
		all = append(all, g.taskDir, g.holdDir)
	}
	all = append(all, g.limits()...)
	if g.unified != "" {
		all = append(all, g.unified)
	}
	return all
}

// moveProcess puts a process into a directory. A process that the kernel has just made is
// refused for a moment (EINVAL, runc issue 1950).
func moveProcess(dir string, pid int) error {
	path, text := filepath.Join(dir, "cgroup.procs"), []byte(strconv.Itoa(pid))
	var err error
	for range 5 {
		if err = kernfs.WriteFile(path, text); !errors.Is(err, unix.EINVAL) {
			return err
		}
		time.Sleep(time.Millisecond)
	}
	return err
}

// How often Delete looks for what is left, and how long it waits between.
const (
	deleteTries = 200
	deleteWait  = 5 * time.Millisecond
)

// Delete kills every process that is in the group, its starter too, and removes it. A
// group that is gone is no error. Directories are removed one by one with rmdir(2), and
// nothing that is not a directory of this group is touched.
func (g *ClaimGroup) Delete() error {
	g.blockForks()
	var last error
	for range deleteTries {
		g.KillAll()
		last = nil
		for _, dir := range g.allDirs() {
			if err := removeTree(dir); err != nil {
				last = err
			}
		}
		if last == nil {
			return nil
		}
		time.Sleep(deleteWait)
	}
	return fmt.Errorf("control group %s: %w: %w", g.path, roost.Conflict, last)
}

// blockForks lets nothing in the group fork any more, so that it cannot run away from
// being killed.
func (g *ClaimGroup) blockForks() {
	switch {
	case g.unified != "":
		kernfs.WriteFile(filepath.Join(g.unified, "pids.max"), []byte("0"))
	case g.host.v1["pids"]:
		kernfs.WriteFile(filepath.Join(g.version1Dir("pids"), "pids.max"), []byte("0"))
	}
}

// KillAll kills what is in the group, its starter too. What forks meanwhile may escape
// one call, but not Delete.
func (g *ClaimGroup) KillAll() {
	if g.taskDir != "" {
		g.Kill()
	}
	for _, dir := range g.allDirs() {
		killEach(dir)
	}
}

// removeTree removes a directory of a control group and those below it, that a task may
// have made. The kernel refuses while there are processes.
func removeTree(dir string) error {
	err := os.Remove(dir)
	if err == nil || errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	entries, _ := os.ReadDir(dir)
	below := false
	for _, e := range entries {
		if e.IsDir() {
			below = true
			if err := removeTree(filepath.Join(dir, e.Name())); err != nil {
				return err
			}
		}
	}
	if !below {
		return err
	}
	if err = os.Remove(dir); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// processes lists what is in a directory, not below it.
func processes(dir string) []int {
	text, _ := kernfs.ReadFile(filepath.Join(dir, "cgroup.procs"))
	var pids []int
	for word := range strings.FieldsSeq(string(text)) {
		if pid, err := strconv.Atoi(word); err == nil && pid > 0 {
			pids = append(pids, pid)
		}
	}
	return pids
}
