package cgroup

import (
	"errors"
	"fmt"
	"path/filepath"
	"strconv"

	"golang.org/x/sys/unix"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/kernfs"
)

// Resize changes the limits of a group with processes, and kills none of them. If they
// use more memory than they may then, the limits stay, and the error is roost.Conflict.
//
// Version 1 refuses a limit below what is in use. Version 2 kills processes until
// the limit holds. So the task is frozen until its memory was measured and the limit
// written: what does not run asks for no memory.
func (g *ClaimGroup) Resize(before, after GroupLimits) error {
	if after.Memory < before.Memory {
		used, err := g.Usage()
		if err == nil && used.Memory > roost.Bytes(after.memoryMax()) {
			return g.tooLarge(used.Memory, after)
		}
		if g.unified != "" && !g.frozen() {
			if err := g.Freeze(); err != nil {
				return err
			}
			defer g.Thaw()
		}
		if g.unified != "" {
			if used, fits := g.reclaimTo(after.memoryMax()); !fits {
				return g.tooLarge(used, after)
			}
		}
	}
	err := g.SetLimits(after)
	if err == nil {
		return nil
	}
	if back := g.SetLimits(before); back != nil {
		err = errors.Join(err, back)
	}
	if errors.Is(err, unix.EBUSY) {
		used, _ := g.Usage()
		return g.tooLarge(used.Memory, after)
	}
	return err
}

func (g *ClaimGroup) tooLarge(used roost.Bytes, after GroupLimits) error {
	return fmt.Errorf("%w: its processes use %v of memory, and it would have %v", roost.Conflict, used, after.Memory)
}

// reclaimTo has the kernel drop caches of a group of version 2. It ends when no more than
// limit bytes are charged to the group. It reports what is left, and whether that fits.
func (g *ClaimGroup) reclaimTo(limit int64) (used roost.Bytes, fits bool) {
	for range 3 {
		used = g.chargedMemory()
		if int64(used) <= limit {
			return used, true
		}
		kernfs.WriteFile(filepath.Join(g.unified, "memory.reclaim"), []byte(strconv.FormatInt(int64(used)-limit, 10)))
	}
	used = g.chargedMemory()
	return used, int64(used) <= limit
}
