package cgroup

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/kernfs"
)

// TaskDir is a directory of a group that another process made, known only by its path. It
// is that of ClaimGroup.FreezeDir or one above it. Another process uses it to stop tasks
// when the startd does not.
type TaskDir string

// Check refuses a path that is no directory of a control group.
func (d TaskDir) Check() error {
	if !filepath.IsAbs(string(d)) || filepath.Clean(string(d)) != string(d) {
		return fmt.Errorf("control group %q: %w: the path is not plain", string(d), roost.Invalid)
	}
	if _, err := os.Stat(filepath.Join(string(d), "cgroup.procs")); err != nil {
		return fmt.Errorf("control group %s: %w: %w", d, roost.NotFound, err)
	}
	return nil
}

func (d TaskDir) group() *ClaimGroup {
	_, err := os.Stat(filepath.Join(string(d), "freezer.state"))
	return &ClaimGroup{path: string(d), taskDir: string(d), holdDir: string(d), isVersion1: err == nil}
}

// Freeze freezes all processes in the directory and below it, and returns when they are
// frozen. If that takes longer than within, the error is roost.Unavailable, and the
// kernel continues to freeze.
func (d TaskDir) Freeze(within time.Duration) error { return d.group().freeze(true, within) }

// Thaw thaws the directory, which stays frozen while one above is. Processes of a sandbox
// that was killed meanwhile do not run again.
func (d TaskDir) Thaw() error { return d.group().setFrozen(false) }

// Frozen reports whether the directory itself is frozen, even if not all processes are
// frozen yet.
func (d TaskDir) Frozen() bool { return d.group().isHeld() }

// Populated reports whether there is a process in the directory or below it.
func (d TaskDir) Populated() bool {
	if n, ok := readNumber(filepath.Join(string(d), "cgroup.events"), "populated"); ok {
		return n == 1
	}
	if len(processes(string(d))) > 0 {
		return true
	}
	entries, _ := os.ReadDir(string(d))
	for _, e := range entries {
		if e.IsDir() && (d + "/" + TaskDir(e.Name())).Populated() {
			return true
		}
	}
	return false
}

// FreezeDirs freezes all processes in some directories and returns how many directories
// with processes are frozen. It waits for at most within; the kernel continues to freeze
// the others. A missing directory is no error. Groups that yield to everything else get
// normal CPU until they are frozen, as in SuspendYielding; if they are not frozen in
// time, their ParentGroup lets them yield again at its next freeze or thaw.
func FreezeDirs(dirs []TaskDir, within time.Duration) (frozen int, err error) {
	end := time.Now().Add(within)
	yielding := yieldingAbove(dirs)
	setFrozenDirs(yielding, "0")
	defer func() {
		if err == nil {
			setFrozenDirs(yielding, "1")
		}
	}()
	groups := make([]*ClaimGroup, 0, len(dirs))
	var errs []error
	for _, d := range dirs {
		if d.Populated() {
			groups = append(groups, d.group())
		}
	}
	for wait := 50 * time.Microsecond; ; wait = min(2*wait, 5*time.Millisecond) {
		left := groups[:0:0]
		for _, g := range groups {
			switch err := g.setFrozen(true); {
			case isGone(err):
			case err != nil:
				errs = append(errs, fmt.Errorf("control group %s: %w: %w", g.path, roost.Unavailable, err))
			case g.frozen():
				frozen++
			default:
				left = append(left, g)
			}
		}
		if groups = left; len(groups) == 0 {
			return frozen, errors.Join(errs...)
		}
		if !time.Now().Before(end) {
			return frozen, errors.Join(append(errs,
				fmt.Errorf("%d control groups, %s the first: %w: not frozen after %v", len(groups), groups[0].path,
					roost.Unavailable, within))...)
		}
		time.Sleep(wait)
	}
}

// yieldingAbove lists the files by which the directories above those given yield, as far
// as they do.
func yieldingAbove(dirs []TaskDir) (files []string) {
	m := findMounts()
	seen := map[string]bool{}
	for _, d := range dirs {
		for _, root := range []string{m.v2, filepath.Join(m.v1, "freezer")} {
			at, ok := strings.CutPrefix(d.Parent(), root+"/")
			if !ok || root == "" {
				continue
			}
			if m.version1Controllers["cpu"] {
				root = filepath.Join(m.v1, "cpu")
			}
			for ; at != "." && !seen[at]; at = filepath.Dir(at) {
				seen[at] = true
				file := filepath.Join(root, at, "cpu.idle")
				if text, err := kernfs.ReadFile(file); err == nil && strings.TrimSpace(string(text)) == "1" {
					files = append(files, file)
				}
			}
		}
	}
	return files
}

func setFrozenDirs(files []string, value string) {
	for _, file := range files {
		kernfs.WriteFile(file, []byte(value))
	}
}

// CountFrozen counts the directories with processes that are all frozen.
func CountFrozen(dirs []TaskDir) (n int) {
	for _, d := range dirs {
		if d.group().frozen() && d.Populated() {
			n++
		}
	}
	return n
}

// Processes lists the processes in the directory and below it.
func (d TaskDir) Processes() []int {
	pids := processes(string(d))
	entries, _ := os.ReadDir(string(d))
	for _, e := range entries {
		if e.IsDir() {
			pids = append(pids, (d + "/" + TaskDir(e.Name())).Processes()...)
		}
	}
	return pids
}

// Parent returns the directory that contains the groups of the same startd.
func (d TaskDir) Parent() string {
	if filepath.Base(string(d)) == taskPart {
		return filepath.Dir(filepath.Dir(string(d)))
	}
	return filepath.Dir(string(d))
}

// TaskDirs lists the task directories of the groups below a parent, including empty ones.
// A missing parent has none.
func TaskDirs(parent string) (all []TaskDir) {
	entries, _ := os.ReadDir(parent)
	for _, e := range entries {
		if !e.IsDir() {
			continue
		}
		d := filepath.Join(parent, e.Name())
		if _, err := os.Stat(filepath.Join(d, taskPart, "cgroup.procs")); err == nil {
			all = append(append(all, TaskDir(filepath.Join(d, taskPart))), innerTaskDirs(d)...)
			continue
		}
		all = append(all, TaskDir(d)) // in version 1 those of the groups inside it are below it
	}
	return all
}

// innerTaskDirs lists the task directories of the groups inside one of version 2.
func innerTaskDirs(group string) (all []TaskDir) {
	entries, _ := os.ReadDir(group)
	for _, e := range entries {
		d := filepath.Join(group, e.Name(), taskPart)
		if _, err := os.Stat(filepath.Join(d, "cgroup.procs")); err == nil && !isGroupPart(e.Name()) {
			all = append(all, TaskDir(d))
		}
	}
	return all
}

// CPUTime returns the CPU time in nanoseconds of all processes below a parent, including
// ended ones. The freezer of version 1 does not count it; there it comes from the CPU
// accounting hierarchy. ok is false if there is none.
func CPUTime(parent string) (ns uint64, ok bool) {
	if usec, ok := readNumber(filepath.Join(parent, "cpu.stat"), "usage_usec"); ok {
		return uint64(usec) * 1000, true
	}
	root := findMounts().v1
	below, inside := strings.CutPrefix(parent, filepath.Join(root, "freezer")+"/")
	if root == "" || !inside {
		return 0, false
	}
	text, err := kernfs.ReadFile(filepath.Join(root, "cpuacct", below, "cpuacct.usage"))
	if err != nil {
		return 0, false
	}
	n, err := strconv.ParseUint(strings.TrimSpace(string(text)), 10, 64)
	return n, err == nil
}
