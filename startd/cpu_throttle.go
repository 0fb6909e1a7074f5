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

// usageSample is what all tasks use now, and what the machine has left. It is looked at
// as often as they are measured.
type usageSample struct {
	usage    map[slot.ClaimID]reclaim.ResourceAmount
	pressure slot.MemoryPressure
}

// sampleUsage has the books know what tasks use. Where nothing is lent, and nothing was
// by a startd before this one, they learn that too: it costs little.
func (m *claimHost) sampleUsage() {
	update := usageSample{usage: make(map[slot.ClaimID]reclaim.ResourceAmount),
		pressure: availableMemory("/proc/meminfo")}
	for _, t := range m.meters.sortedMeters() {
		t.mu.Lock()
		update.usage[t.claim] = reclaim.ResourceAmount{CPU: roost.MilliCPU(math.Ceil(t.rate * 1000)),
			Memory: roost.Bytes(t.last.GetMemory())}
		t.mu.Unlock()
	}
	m.postEvent(update)
}

// availableMemory is what the kernel could give without pushing anybody out (proc(5),
// MemAvailable). What cannot be read is not known.
func availableMemory(path string) (p slot.MemoryPressure) {
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

// isReclaimed reports whether the claim has nothing of its own.
func (f *claimFile) isReclaimed() bool { return f.Placed != nil && f.Placed.Reclaimed }

// allCores stands for no quota of processor time at all: a limit that is set cannot be
// taken away, only raised.
const allCores roost.MilliCPU = 1000 * 1000

// throttleCPU holds the claim's processor time to what production leaves, or lets it have
// again what there is.
func (h *claimRunner) throttleCPU(o throttleCmd) {
	if h.group == nil {
		return
	}
	quota := o.cpuMax
	if quota == 0 {
		if quota = allCores; h.host.config.Limits.CPU {
			quota = h.file.Resources.CPU
		}
	}
	if err := h.group.SetLimits(cgroup.GroupLimits{Quota: quota}); err != nil {
		h.host.log.Warn("cannot hold back a claim", "claim", h.id, "err", err)
	}
}
