package guard

import (
	"log/slog"
	"os"
	"path/filepath"
	"runtime/debug"
	"strconv"

	"golang.org/x/sys/unix"
)

const (
	niceness    = -10
	memoryLimit = 32 << 20 // bytes that the runtime tries to stay below
	heapPercent = 50
)

// raiseCPUPriority makes this process quick when the machine is slow: the right of way
// over programs that compute, and its memory never swapped out. Where that is not allowed
// the guard is as quick as everybody else.
//
// It takes no real-time class: a broken guard would then stop the owner's work, where
// this one at worst slows it down.
func raiseCPUPriority(log *slog.Logger) {
	debug.SetMemoryLimit(memoryLimit)
	debug.SetGCPercent(heapPercent)
	// each thread has a niceness of its own; new ones get that of their maker
	threads, _ := filepath.Glob("/proc/self/task/*")
	for _, dir := range threads {
		if tid, err := strconv.Atoi(filepath.Base(dir)); err == nil {
			if err := unix.Setpriority(unix.PRIO_PROCESS, tid, niceness); err != nil {
				log.Debug("no right of way", "err", err)
				break
			}
		}
	}
	// Who may lock only a little memory had better lock none: the next page that does not
	// fit would end the process.
	var limit unix.Rlimit
	if os.Geteuid() != 0 && (unix.Getrlimit(unix.RLIMIT_MEMLOCK, &limit) != nil || limit.Cur != unix.RLIM_INFINITY) {
		return
	}
	// Only what is touched: the address space that the runtime reserves is far larger
	// than what it uses.
	if err := unix.Mlockall(unix.MCL_CURRENT | unix.MCL_FUTURE | unix.MCL_ONFAULT); err != nil {
		log.Debug("memory is not locked", "err", err)
	}
}
