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

// The parts of a group of version 2: processes are in leaves only.
const (
	taskPart    = "task"
	starterLeaf = "starter"
)

// runLeaf is the task directory inside of the directory that FreezeForOwner freezes.
const runLeaf = "run"

// isGroupPart reports whether a directory in a group is a part of it, and no group inside
// it.
func isGroupPart(name string) bool { return name == taskPart || name == starterLeaf || name == runLeaf }

// ClaimGroup is the control group of one claim. Its methods are safe for concurrent use.
type ClaimGroup struct {
	host       *ParentGroup
	name       string
	path       string // below each mount
	unified    string // directory of version 2 with the limits; empty in version 1
	holdDir    string // the parent of taskDir, which only FreezeForOwner freezes
	taskDir    string // directory of the task's processes; empty: none
	isVersion1 bool   // the task directory is of version 1

	files kernfs.OpenFiles // that are read over and over
}

// Path returns the kernel's path of the group, the same in all hierarchies.
func (g *ClaimGroup) Path() string { return g.path }

// TaskDir returns the directory by which the task's processes are frozen and killed. It
// is empty if there is none. It is of version 2, and a process can be cloned into it,
// unless IsVersion1 is true.
func (g *ClaimGroup) TaskDir() string { return g.taskDir }

// IsVersion1 reports whether the task directory is of version 1. Then a process must be
// moved into it by its pid.
func (g *ClaimGroup) IsVersion1() bool { return g.isVersion1 }

// Add puts a process under the limits. Processes that it forks afterwards are under the
// limits, too; earlier ones are not.
func (g *ClaimGroup) Add(pid int) error {
	for _, dir := range g.limits() {
		if err := moveProcess(dir, pid); err != nil {
			return fmt.Errorf("control group %s: process %d: %w: %w", g.path, pid, roost.Unavailable, err)
		}
	}
	return nil
}

// SetLimits changes the limits that are not zero.
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

// RestrictDevices has the group open only the given devices beside the harmless ones;
// nil: all. It is for a group that was made without restricting them, once.
func (g *ClaimGroup) RestrictDevices(devices []DeviceNode) (err error) {
	switch l := (GroupLimits{Devices: devices}); {
	case devices == nil:
	case g.host.v1 != nil && g.host.v1["devices"]:
		err = g.update1(l)
	case g.unified != "":
		err = g.update2(l)
	}
	if err != nil {
		return fmt.Errorf("control group %s: devices: %w: %w", g.path, roost.Unavailable, err)
	}
	return nil
}

// limits returns the directories that the starter is in.
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

// version1Dir returns the group's directory in a hierarchy of version 1.
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

// moveProcess moves a process into a directory. The kernel refuses a new process for a
// moment (EINVAL, runc issue 1950), so it tries again.
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

// How often Delete tries, and how long it waits between tries.
const (
	deleteTries = 200
	deleteWait  = 5 * time.Millisecond
)

// Delete kills every process of the group, its starter included, and removes the group. A
// missing group is no error. Directories are removed one by one with rmdir(2), and no
// directory outside of this group is touched.
func (g *ClaimGroup) Delete() error {
	g.files.Close()
	g.blockForks()
	if err := g.deleteInner(); err != nil {
		return err
	}
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

// deleteInner deletes the groups inside the group.
func (g *ClaimGroup) deleteInner() error {
	inner := g.host.Inside(g.name)
	names, err := inner.names()
	errs := []error{err}
	for name := range names {
		errs = append(errs, inner.group(name).Delete())
	}
	return errors.Join(errs...)
}

// blockForks prevents further forks in the group, so that it cannot escape from being
// killed.
func (g *ClaimGroup) blockForks() {
	switch {
	case g.unified != "":
		kernfs.WriteFile(filepath.Join(g.unified, "pids.max"), []byte("0"))
	case g.host.v1["pids"]:
		kernfs.WriteFile(filepath.Join(g.version1Dir("pids"), "pids.max"), []byte("0"))
	}
}

// KillAll kills all processes of the group, its starter included. Processes forked
// meanwhile may escape one call, but not Delete.
func (g *ClaimGroup) KillAll() {
	if g.taskDir != "" {
		g.Kill()
	}
	for _, dir := range g.allDirs() {
		killEach(dir)
	}
}

// removeTree removes a directory of a control group with those below it, which a task may
// have made. The kernel refuses while it has processes.
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

// processes lists the processes in a directory, not below it.
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
