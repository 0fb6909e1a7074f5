package meter

import (
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/cgroup"
	"github.com/roost-batch/roost/internal/wire"
)

// attributeFailure finds out whether an attempt that has failed was killed for its limit
// of memory. The kernel may have killed only one process of it. One that got over the
// loss of a process, and succeeded, has succeeded. Any other cause stays.
func (m *attemptMeter) attributeFailure(status *wire.ExitStatus) {
	if status.Reason == "" {
		status.Reason = m.Limits.exceededLimit(status)
	}
	failed := status.Cause == wire.Cause_CAUSE_EXITED && (status.Signal != 0 || status.Code != 0)
	if m.Group == nil || !failed && status.Cause != wire.Cause_CAUSE_MACHINE {
		return
	}
	o, err := m.Group.OOM()
	if err != nil || o.Kills <= m.Baseline.Group.Kills {
		return
	}
	// The kernel killed because the group was full of what it could not drop. Of memory
	// files that a process has only written to, nothing is in what it held itself, and
	// what fills up between two samples was never seen.
	m.last.PeakMemory = max(m.last.PeakMemory, int64(o.ProcessRSS), int64(o.PeakMemory))
	if o.MemoryLimit > 0 {
		m.last.PeakMemory = min(m.last.PeakMemory, int64(o.MemoryLimit))
	}
	status.Cause, status.Reason = wire.Cause_CAUSE_MEMORY, oomReason(o, roost.Bytes(m.last.PeakMemory))
	// it asked for nothing but a bound of what it addresses, and held as much
	if v := m.Limits.Virtual; v > 0 && v <= o.MemoryLimit {
		status.Cause = wire.Cause_CAUSE_VIRTUAL
	}
}

// oomReason is the sentence.
func oomReason(o cgroup.OOMEvent, peak roost.Bytes) string {
	text := "it needed more memory than it asked for"
	if o.MemoryLimit > 0 {
		text += fmt.Sprintf(": the limit is %v, the peak was %v", o.MemoryLimit, peak)
	}
	if o.Process != "" {
		return text + fmt.Sprintf("; the kernel killed its process %s (%d)", o.Process, o.PID)
	}
	return text + fmt.Sprintf("; the kernel killed a process of it (signal %d)", unix.SIGKILL)
}
