package guard

import (
	"log/slog"
	"os"
	"runtime/debug"

	"golang.org/x/sys/unix"

	"github.com/roost-batch/roost/internal/daemon"
)

const (
	niceness    = -10
	memoryLimit = 32 << 20 // soft memory limit of the runtime, in bytes
	heapPercent = 50
)

// raiseCPUPriority gives this process a high priority, so that it is fast on a slow
// machine. It runs before CPU-bound programs, and its memory is never swapped out.
// Without the rights to do so it runs with normal priority.
//
// It uses no real-time class: with that a faulty guard would stop the owner's work, and
// now it at worst slows it down.
func raiseCPUPriority(log *slog.Logger) {
	debug.SetMemoryLimit(memoryLimit)
	debug.SetGCPercent(heapPercent)
	if err := daemon.SetNiceness(niceness); err != nil {
		log.Debug("normal CPU priority", "err", err)
	}
	// With a small limit on locked memory it locks none: the next page beyond the limit
	// would end the process.
	var limit unix.Rlimit
	if os.Geteuid() != 0 && (unix.Getrlimit(unix.RLIMIT_MEMLOCK, &limit) != nil || limit.Cur != unix.RLIM_INFINITY) {
		return
	}
	// Only touched pages: the runtime reserves far more address space than it uses.
	if err := unix.Mlockall(unix.MCL_CURRENT | unix.MCL_FUTURE | unix.MCL_ONFAULT); err != nil {
		log.Debug("memory is not locked", "err", err)
	}
}
