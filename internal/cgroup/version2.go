package cgroup

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"

	"github.com/containerd/cgroups/v3/cgroup2"

	"github.com/roost-batch/roost/internal/kernfs"
)

// make2 makes a directory of version 2 with its leaves. The library enables the
// controllers in every directory above it, as far as it may.
func (g *ClaimGroup) make2(l GroupLimits) error {
	below := strings.TrimPrefix(g.unified, g.host.mounts.v2)
	if _, err := cgroup2.NewManager(g.host.mounts.v2, below,
		l.version2(g.host.enforcement, g.limitsSwap())); err != nil {
		return err
	}
	for _, leaf := range []string{starterLeaf, filepath.Join(taskPart, runLeaf)} {
		if err := os.MkdirAll(filepath.Join(g.unified, leaf), 0o755); err != nil {
			return err
		}
	}
	return nil
}

func (g *ClaimGroup) set2(l GroupLimits) error {
	l.Devices = nil // each call adds another program, and the strictest wins
	return g.update2(l)
}

func (g *ClaimGroup) update2(l GroupLimits) error {
	m, err := cgroup2.Load(strings.TrimPrefix(g.unified, g.host.mounts.v2), cgroup2.WithMountpoint(g.host.mounts.v2))
	if err != nil {
		return err
	}
	return m.Update(l.version2(g.host.enforcement, g.limitsSwap()))
}

// limitsSwap reports whether the kernel limits swap here. Swap accounting may be off
// (swapaccount=0), and then the file does not exist. It looks in the group if that
// exists, else in this process's own.
func (g *ClaimGroup) limitsSwap() bool {
	for _, dir := range []string{g.unified, g.host.mounts.ownGroup} {
		if _, err := os.Stat(filepath.Join(dir, "memory.swap.max")); err == nil {
			return true
		}
	}
	return false
}

// prepareTree prepares the tree for groups. In a delegated part of the tree, it moves the
// processes of the top directory, this one included, to a leaf: the kernel enables no
// controllers below a directory with processes, except in the root.
func (h *ParentGroup) prepareTree() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.prepared {
		return nil
	}
	base := strings.TrimSuffix(h.taskBase, h.parent)
	if _, err := os.Stat(filepath.Join(base, "cgroup.type")); h.enforcement.Version == 2 && err == nil {
		if err := moveToLeaf(base); err != nil {
			return err
		}
	}
	h.prepared = true
	return nil
}

// raiseWeight gives the directories above the groups a weight as if each core were an
// ordinary group. Then a busy system does not starve a machine full of tasks. It is
// called when they exist; a failure does no harm.
func (h *ParentGroup) raiseWeight() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.weightRaised || !h.enforcement.CPU {
		return
	}
	h.weightRaised = true
	h.writeCPUMax()
	if h.yieldsToOwner {
		h.applyYielding()
		return
	}
	all := GroupLimits{Weight: 100 * runtime.NumCPU()}
	for at := h.parent; at != "/"; at = filepath.Dir(at) {
		if h.v1 != nil {
			kernfs.WriteFile(filepath.Join(h.mounts.v1, "cpu", at, "cpu.shares"), fmt.Append(nil, all.shares()))
		} else {
			base := strings.TrimSuffix(h.taskBase, h.parent)
			kernfs.WriteFile(filepath.Join(base, at, "cpu.weight"), fmt.Append(nil, all.weight()))
		}
	}
}

// moveToLeaf moves the processes of a directory to a leaf of it.
func moveToLeaf(base string) error {
	pids := processes(base)
	if len(pids) == 0 {
		return nil
	}
	leaf := filepath.Join(base, "daemons")
	if err := os.MkdirAll(leaf, 0o755); err != nil {
		return err
	}
	for range 5 {
		for _, pid := range pids {
			if err := kernfs.WriteFile(filepath.Join(leaf, "cgroup.procs"), []byte(strconv.Itoa(pid))); err != nil &&
				!isGone(err) {
				return err
			}
		}
		if pids = processes(base); len(pids) == 0 {
			return nil
		}
	}
	return nil
}
