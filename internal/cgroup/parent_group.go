package cgroup

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/roost-batch/roost"
)

// ParentGroup makes the groups of one startd, all below one parent directory. Its methods
// are safe for concurrent use.
type ParentGroup struct {
	parent      string // such as "/roost/n1"
	mounts      cgroupMounts
	enforcement Enforcement
	v1          map[string]bool // hierarchies of version 1 that this process may use
	swap        bool            // the kernel limits swap
	taskBase    string          // directory of version 2 with the groups; empty: none

	yieldsToOwner bool // the machine has an owner, whose processes come first
	isUnlimited   bool // groups only freeze and kill their processes

	mu                sync.Mutex
	prepared          bool
	weightRaised      bool
	freezesInProgress int            // callers of SuspendYielding(true) that have not ended it
	cpuMax            roost.MilliCPU // CPU limit of all groups together; 0: none
}

// Open finds out what is available for groups below parent, "/roost/NAME", and creates
// nothing. Missing rights or controllers are no error; an invalid name is roost.Invalid.
func Open(parent string) (*ParentGroup, error) {
	if !strings.HasPrefix(parent, "/") {
		return nil, fmt.Errorf("control groups below %q: %w: the path is not absolute", parent, roost.Invalid)
	}
	for _, part := range strings.Split(parent[1:], "/") {
		if err := checkName(part); err != nil {
			return nil, fmt.Errorf("control groups below %q: %w", parent, err)
		}
	}
	h := &ParentGroup{parent: parent, mounts: findMounts()}
	h.detect()
	return h, nil
}

// OpenUnlimited is Open for groups that limit and measure nothing. Their processes can be
// frozen and killed together, if Enforcement().Kill says so.
func OpenUnlimited(parent string) (*ParentGroup, error) {
	h, err := Open(parent)
	if err != nil {
		return nil, err
	}
	can := h.enforcement
	h.isUnlimited, h.enforcement = true, Enforcement{Freeze: can.Freeze, Kill: can.Kill}
	h.v1 = map[string]bool{"freezer": h.v1["freezer"] && h.taskBase == ""}
	return h, nil
}

// YieldToOwner makes all later groups yield to everything else on the machine. It affects
// CPU, disk access and swap.
func (h *ParentGroup) YieldToOwner() { h.yieldsToOwner = true }

// Enforcement returns what this machine can enforce.
func (h *ParentGroup) Enforcement() Enforcement { return h.enforcement }

// maxName is the longest name of a file (NAME_MAX).
const maxName = 255

// checkName refuses a name that is no plain name of a directory. Names are made from
// Roost's own ids, so this is a second line of defence.
func checkName(name string) error {
	if name == "" || len(name) > maxName || name == "." || name == ".." || strings.HasPrefix(name, "cgroup.") {
		return fmt.Errorf("control group %q: %w: that is no name of a group", name, roost.Invalid)
	}
	for _, r := range name {
		if r == '/' || r < ' ' || r == 0x7f || r == '\\' {
			return fmt.Errorf("control group %q: %w: that is no name of a group", name, roost.Invalid)
		}
	}
	return nil
}

// MakeGroup makes a group. An existing one of that name gets these limits. Limits that
// the machine cannot enforce are left out.
func (h *ParentGroup) MakeGroup(name string, l GroupLimits) (*ClaimGroup, error) {
	if err := checkName(name); err != nil {
		return nil, err
	}
	g := h.group(name)
	err := h.prepareTree()
	if err == nil && h.v1 != nil && !h.isUnlimited {
		err = g.make1(l)
	}
	if err == nil && h.enforcement.Version == 2 {
		err = g.make2(l)
	}
	if err == nil && g.taskDir != "" {
		err = os.MkdirAll(g.taskDir, 0o755)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("control group %s: %w: %w", g.path, roost.Unavailable, err), g.Delete())
	}
	if h.yieldsToOwner {
		g.setIOIdle()
	}
	h.raiseWeight()
	return g, nil
}

// Inside returns the parent of the groups that are inside one of its own: what these use
// counts there too.
func (h *ParentGroup) Inside(name string) *ParentGroup {
	inner := &ParentGroup{
		parent: h.parent + "/" + name, mounts: h.mounts, enforcement: h.enforcement, v1: h.v1, swap: h.swap,
		yieldsToOwner: h.yieldsToOwner, prepared: true, weightRaised: true,
	}
	if h.taskBase != "" {
		inner.taskBase = filepath.Join(h.taskBase, name)
	}
	return inner
}

// names lists the groups that there are. The parts of a group that this one may be itself
// are none.
func (h *ParentGroup) names() (names map[string]bool, err error) {
	names = map[string]bool{}
	var errs []error
	for _, dir := range h.baseDirs() {
		entries, err := os.ReadDir(dir)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, err)
		}
		for _, e := range entries {
			if e.IsDir() && checkName(e.Name()) == nil && !isGroupPart(e.Name()) {
				names[e.Name()] = true
			}
		}
	}
	return names, errors.Join(errs...)
}

// FindGroup returns the group of a name, if any part of it exists.
func (h *ParentGroup) FindGroup(name string) (*ClaimGroup, bool) {
	if checkName(name) != nil {
		return nil, false
	}
	g := h.group(name)
	for _, dir := range g.allDirs() {
		if _, err := os.Lstat(dir); err == nil {
			return g, true
		}
	}
	return nil, false
}

// HasGroups reports whether there is any group.
func (h *ParentGroup) HasGroups() bool {
	for _, dir := range h.baseDirs() {
		entries, _ := os.ReadDir(dir)
		for _, e := range entries {
			if e.IsDir() {
				return true
			}
		}
	}
	return false
}

// Sweep kills and removes the groups below the parent that are not wanted, and those
// inside others.
func (h *ParentGroup) Sweep(wanted map[string]bool) error {
	names, err := h.names()
	errs := []error{err}
	for name := range names {
		if !wanted[name] {
			errs = append(errs, h.group(name).Delete())
			continue
		}
		inner := h.Inside(name)
		inside, err := inner.names()
		errs = append(errs, err)
		for name := range inside {
			if !wanted[name] {
				errs = append(errs, inner.group(name).Delete())
			}
		}
	}
	return errors.Join(errs...)
}

// Close removes the parent if it has no groups.
func (h *ParentGroup) Close() {
	for _, dir := range h.baseDirs() {
		for at := dir; at != strings.TrimSuffix(dir, h.parent); at = filepath.Dir(at) {
			if os.Remove(at) != nil {
				break
			}
		}
	}
}

// baseDirs returns the directories that contain the groups.
func (h *ParentGroup) baseDirs() []string {
	var all []string
	for _, name := range controllers() {
		if h.v1[name] {
			all = append(all, filepath.Join(h.mounts.v1, name, h.parent))
		}
	}
	if h.taskBase != "" {
		all = append(all, h.taskBase)
	}
	return slices.Compact(all)
}

// group returns the group of a name, whether it exists or not.
func (h *ParentGroup) group(name string) *ClaimGroup {
	g := &ClaimGroup{host: h, name: name, path: h.parent + "/" + name}
	switch {
	case h.enforcement.Version == 2 && h.taskBase != "":
		g.unified = filepath.Join(h.taskBase, name)
		g.holdDir = filepath.Join(g.unified, taskPart)
	case h.taskBase != "":
		g.holdDir = filepath.Join(h.taskBase, name)
	case h.v1["freezer"]:
		g.holdDir, g.isVersion1 = filepath.Join(h.mounts.v1, "freezer", g.path), true
	}
	if g.holdDir != "" {
		g.taskDir = filepath.Join(g.holdDir, runLeaf)
	}
	return g
}
