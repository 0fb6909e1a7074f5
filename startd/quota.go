package startd

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"strings"
	"syscall"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/files"
	"github.com/roost-batch/roost/internal/wire"
	"github.com/roost-batch/roost/startd/starter/proto"
)

// How often the scratch directories of tasks that asked for disk are measured, and how long one may take.
const (
	diskEvery  = 15 * time.Second
	diskWithin = 10 * time.Second
)

// watchDisks holds attempts to the disk that they asked for until ctx ends, one after the other: measuring is what the disk has to do beside
// their work. Between two measurements a task may write more than it may keep.
func (m *machine) watchDisks(ctx context.Context) {
	tick := time.NewTicker(diskEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		for _, t := range m.meters.list() {
			if t.disk > 0 && ctx.Err() == nil {
				m.checkDisk(ctx, t)
			}
		}
	}
}

// checkDisk measures one scratch directory, with the rights of its user, and what was captured, and ends its attempt when that is too large.
func (m *machine) checkDisk(ctx context.Context, t *meter) {
	ctx, cancel := context.WithTimeout(ctx, diskWithin)
	defer cancel()
	agent, err := m.agents.take(t.cred)
	if err != nil {
		return
	}
	defer m.agents.giveBack(t.cred)
	used, largest, whole := int64(0), []files.Entry(nil), true
	if base := cmp.Or(t.temp, t.scratch); base != "" {
		if used, largest, whole, err = agent.Measure(ctx, base); err != nil {
			m.log.Info("a scratch directory was not measured", "attempt", t.id, "err", err)
		}
	}
	written := ofDirectory(t.io)
	used += written
	t.mu.Lock()
	if t.last != nil {
		t.last.Disk = used
	}
	over := roost.Bytes(used) > t.disk && !t.full
	t.full = t.full || over
	t.mu.Unlock()
	if over {
		if t.scratch != "" && t.temp != "" {
			_, largest, _, _ = agent.Measure(ctx, t.scratch) // for the names that its user knows
		}
		if written > used/2 {
			largest = append([]files.Entry{{Name: "its captured output", Size: written}}, largest...)
		}
		t.box.put(vacate{id: t.id, cause: wire.Cause_CAUSE_DISK, reason: tooLarge(roost.Bytes(used), t.disk, largest, whole)})
	}
}

// ofDirectory is how much disk the user's files in an attempt's directory take. Their names belong to us alone.
func ofDirectory(dir string) (used int64) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return 0
	}
	for _, e := range entries {
		if info, err := e.Info(); err == nil && info.Mode().IsRegular() && e.Name() != proto.StatusName {
			used += info.Sys().(*syscall.Stat_t).Blocks * 512 // the unit of st_blocks (stat(2))
		}
	}
	return used
}

// tooLarge is the sentence.
func tooLarge(used, limit roost.Bytes, largest []files.Entry, whole bool) string {
	least := ""
	if !whole {
		least = "at least "
	}
	text := fmt.Sprintf("it used more disk than it asked for: the limit is %v, and its directories hold %s%v", limit, least, used)
	if len(largest) == 0 {
		return text
	}
	parts := make([]string, len(largest))
	for i, e := range largest {
		parts[i] = fmt.Sprintf("%s (%v)", e.Name, roost.Bytes(e.Size))
	}
	return text + "; most of it in " + strings.Join(parts, ", ")
}
