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

// What a machine that belongs to somebody does for him, as far as its kernel knows how. A
// setting that is not there is no error.

// SuspendYielding lets the groups have processor time like others for a moment, or puts
// them back behind everything else. A process comes to rest when it is next to run: where
// others keep the machine busy, that may be long. Calls are counted.
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

// applyYielding gives the directories above the groups, of which any other program comes
// before, what it leaves of processor time: to each other tasks are what they are anyway
// (Linux 5.15, cpu.idle in Documentation/admin-guide/cgroup-v2.rst).
func (h *ParentGroup) applyYielding() { h.setIdle("1") }

func (h *ParentGroup) setIdle(value string) {
	for _, dir := range h.parentDirs("cpu") {
		kernfs.WriteFile(filepath.Join(dir, "cpu.idle"), []byte(value))
	}
}

// SetCPUMax holds the processor time of all groups together, now and later, to so much; 0
// to what there is. The error is of kind roost.Unavailable.
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

// writeCPUMax writes what SetCPUMax says, where there are groups yet. With the lock.
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

// parentDirs are the directories of ours above the groups, of version 2 or of one
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

// setIOIdle lets what a group reads and writes wait for anybody else's, and keeps its
// memory out of swap: to make room, what is there of the owner's would be swapped in and
// out all the time.
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

// trimTimeout bounds how long TrimMemory goes on.
const trimTimeout = 10 * time.Second

// TrimMemory has the kernel take back what the group's processes can do without for now,
// the contents of files above all, whether they stand still or not, and returns how much
// that was. It takes time. Where the kernel cannot be asked for it, it is
// roost.Unavailable.
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
		return freed, nil // the kernel complains when it has found less than was asked for
	}
	if err != nil {
		return 0, fmt.Errorf("control group %s: %w: %w", g.path, roost.Unavailable, err)
	}
	return 0, nil
}

// trimPart asks for a part of what the group holds after the other (Linux 5.19), until
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

// chargedMemory is all memory that counts as the group's.
func (g *ClaimGroup) chargedMemory() roost.Bytes {
	if g.unified != "" {
		return roost.Bytes(readSingle(filepath.Join(g.unified, "memory.current")))
	}
	return roost.Bytes(readSingle(filepath.Join(g.version1Dir("memory"), "memory.usage_in_bytes")))
}
