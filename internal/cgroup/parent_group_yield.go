package cgroup

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/kernfs"
)

// What a machine with an owner does to yield to its owner, as far as its kernel supports
// it. A missing setting is no error.

// SuspendYielding gives the groups CPU like others for a while, or lets them yield again.
// A process freezes only when it is scheduled, which can take long where others keep the
// CPUs busy. Calls are counted.
func (h *ParentGroup) SuspendYielding(on bool) {
	if !h.yieldsToOwner {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	before := h.freezesInProgress
	if on {
		h.freezesInProgress++
	} else {
		h.freezesInProgress--
	}
	switch {
	case before == 0 && on:
		h.setIdle("0")
	case before == 1 && !on:
		h.setIdle("1")
	}
}

// applyYielding gives the directories above the groups only the CPU that all other
// processes leave. Tasks share that among themselves as usual (Linux 5.15, cpu.idle in
// Documentation/admin-guide/cgroup-v2.rst).
func (h *ParentGroup) applyYielding() { h.setIdle("1") }

func (h *ParentGroup) setIdle(value string) {
	for _, dir := range h.parentDirs("cpu") {
		kernfs.WriteFile(filepath.Join(dir, "cpu.idle"), []byte(value))
	}
}

// SetCPUMax limits the CPU of all groups together, present and future ones; 0 removes the
// limit. The error is of kind roost.Unavailable.
func (h *ParentGroup) SetCPUMax(cpu roost.MilliCPU) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if cpu == h.cpuMax {
		return nil
	}
	h.cpuMax = cpu
	if !h.enforcement.CPU {
		return fmt.Errorf("control groups below %s: %w: processor time is not counted here", h.parent,
			roost.Unavailable)
	}
	return h.writeCPUMax()
}

// writeCPUMax writes the limit of SetCPUMax, if there are groups. The caller holds the
// lock.
func (h *ParentGroup) writeCPUMax() error {
	above := h.parentDirs("cpu")
	if len(above) == 0 {
		return nil
	}
	quota := "max"
	if h.cpuMax > 0 {
		quota = fmt.Sprint(GroupLimits{Quota: h.cpuMax}.quota())
	}
	file := filepath.Join(above[0], "cpu.max")
	text := fmt.Sprintf("%s %d", quota, cfsPeriod)
	if h.v1 != nil {
		file = filepath.Join(above[0], "cpu.cfs_quota_us")
		if text = quota; h.cpuMax == 0 {
			text = "-1"
		}
	}
	if err := kernfs.WriteFile(file, []byte(text)); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("control group %s: %w: %w", above[0], roost.Unavailable, err)
	}
	return nil
}

// parentDirs returns Roost's own directories above the groups, of version 2 or of one
// hierarchy of version 1.
func (h *ParentGroup) parentDirs(controller string) (all []string) {
	for at := h.parent; at != "/"; at = filepath.Dir(at) {
		switch {
		case h.v1 != nil && h.v1[controller]:
			all = append(all, filepath.Join(h.mounts.v1, controller, at))
		case h.v1 == nil && h.taskBase != "":
			all = append(all, filepath.Join(h.taskBase[:len(h.taskBase)-len(h.parent)], at))
		}
	}
	return all
}

// setIOIdle gives a group's I/O the lowest priority, and excludes its memory from swap.
// To make room for it the owner's memory would be swapped in and out all the time.
func (g *ClaimGroup) setIOIdle() {
	switch {
	case g.unified != "":
		kernfs.WriteFile(filepath.Join(g.unified, "io.prio.class"), []byte("idle"))
		kernfs.WriteFile(filepath.Join(g.unified, "io.weight"), []byte("default 1"))
		kernfs.WriteFile(filepath.Join(g.unified, "memory.swap.max"), []byte("0"))
	default:
		if g.host.v1["blkio"] {
			kernfs.WriteFile(filepath.Join(g.version1Dir("blkio"), "blkio.prio.class"), []byte("idle"))
			kernfs.WriteFile(filepath.Join(g.version1Dir("blkio"), "blkio.bfq.weight"), []byte("1"))
		}
		if g.host.v1["memory"] {
			kernfs.WriteFile(filepath.Join(g.version1Dir("memory"), "memory.swappiness"), []byte("0"))
		}
	}
}

// trimTimeout bounds how long TrimMemory continues.
const trimTimeout = 10 * time.Second

// TrimMemory lets the kernel reclaim memory that the group's processes do not need now,
// above all page cache. It returns how much that was. The processes may be frozen or not.
// It takes time. If the kernel does not support it, the error is roost.Unavailable.
func (g *ClaimGroup) TrimMemory() (roost.Bytes, error) {
	before := g.chargedMemory()
	var err error
	switch {
	case g.unified != "":
		err = g.trimPart()
	case g.host.v1["memory"]:
		err = kernfs.WriteFile(filepath.Join(g.version1Dir("memory"), "memory.force_empty"), []byte("0"))
	default:
		err = errors.New("memory is not accounted for here")
	}
	if freed := before - g.chargedMemory(); freed > 0 {
		return freed, nil // the kernel returns an error if it found less than requested
	}
	if err != nil {
		return 0, fmt.Errorf("control group %s: %w: %w", g.path, roost.Unavailable, err)
	}
	return 0, nil
}

// trimPart requests one part of the group's memory after the other (Linux 5.19), until
// the kernel finds no more.
func (g *ClaimGroup) trimPart() error {
	for end := time.Now().Add(trimTimeout); time.Now().Before(end); {
		part := max(g.chargedMemory()/4, roost.MiB)
		if err := kernfs.WriteFile(filepath.Join(g.unified, "memory.reclaim"),
			fmt.Append(nil, int64(part))); err != nil {
			if errors.Is(err, os.ErrNotExist) {
				return err
			}
			return nil
		}
	}
	return nil
}

// ChargedMemory returns all memory charged to the group, with page cache.
func (g *ClaimGroup) ChargedMemory() roost.Bytes { return g.chargedMemory() }

func (g *ClaimGroup) chargedMemory() roost.Bytes {
	if g.unified != "" {
		return roost.Bytes(g.readSingle(filepath.Join(g.unified, "memory.current")))
	}
	return roost.Bytes(g.readSingle(filepath.Join(g.version1Dir("memory"), "memory.usage_in_bytes")))
}
