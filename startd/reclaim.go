package startd

import (
	"math"
	"os"
	"strconv"
	"strings"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/cgroup"
	"github.com/roost-batch/roost/startd/reclaim"
	"github.com/roost-batch/roost/startd/slot"
)

// usesNews is what all tasks use now, and what the machine has left. It is looked at as often as they are measured.
type usesNews struct {
	use      map[slot.ClaimID]reclaim.Amount
	pressure slot.Pressure
}

// tellUses has the books know what tasks use. Where nothing is lent, and nothing was by a startd before this one, they learn that too: it costs little.
func (m *machine) tellUses() {
	news := usesNews{use: make(map[slot.ClaimID]reclaim.Amount), pressure: memoryLeft("/proc/meminfo")}
	for _, t := range m.meters.list() {
		t.mu.Lock()
		news.use[t.claim] = reclaim.Amount{CPU: roost.MilliCPU(math.Ceil(t.rate * 1000)), Memory: roost.Bytes(t.last.GetMemory())}
		t.mu.Unlock()
	}
	m.post(news)
}

// memoryLeft is what the kernel could give without pushing anybody out (proc(5), MemAvailable). What cannot be read is not known.
func memoryLeft(path string) (p slot.Pressure) {
	text, err := os.ReadFile(path)
	if err != nil {
		return p
	}
	for line := range strings.Lines(string(text)) {
		name, rest, _ := strings.Cut(line, ":")
		n, err := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(rest), " kB"), 10, 64)
		if err != nil {
			continue
		}
		switch name {
		case "MemTotal":
			p.Total = roost.Bytes(n) * roost.KiB
		case "MemAvailable":
			p.Available = roost.Bytes(n) * roost.KiB
		}
	}
	return p
}

// reclaimed reports whether the claim has nothing of its own.
func (f *claimFile) reclaimed() bool { return f.Placed != nil && f.Placed.Reclaimed }

// everyCore stands for no quota of processor time at all: a limit that is set cannot be taken away, only raised.
const everyCore roost.MilliCPU = 1000 * 1000

// squeeze holds the claim's processor time to what production leaves, or lets it have again what there is.
func (h *hand) squeeze(o squeeze) {
	if h.group == nil {
		return
	}
	quota := o.most
	if quota == 0 {
		if quota = everyCore; h.m.own.Limits.CPU {
			quota = h.file.Resources.CPU
		}
	}
	if err := h.group.Set(cgroup.Limits{Quota: quota}); err != nil {
		h.m.log.Warn("cannot hold back a claim", "claim", h.id, "err", err)
	}
}
