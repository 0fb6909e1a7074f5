package startd

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/files"
	"github.com/roost-batch/roost/internal/wire"
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
			if t.disk > 0 && cmp.Or(t.temp, t.scratch) != "" && ctx.Err() == nil {
				m.checkDisk(ctx, t)
			}
		}
	}
}

// checkDisk measures one scratch directory, with the rights of its user, and ends its attempt when that is too large.
func (m *machine) checkDisk(ctx context.Context, t *meter) {
	ctx, cancel := context.WithTimeout(ctx, diskWithin)
	defer cancel()
	agent, err := m.agents.take(t.cred)
	if err != nil {
		return
	}
	defer m.agents.giveBack(t.cred)
	used, largest, whole, err := agent.Measure(ctx, cmp.Or(t.temp, t.scratch))
	if err != nil {
		m.log.Info("a scratch directory was not measured", "attempt", t.id, "err", err)
		return
	}
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
		t.box.put(vacate{id: t.id, cause: wire.Cause_CAUSE_DISK, reason: tooLarge(roost.Bytes(used), t.disk, largest, whole)})
	}
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
