package daemon

import (
	"os"
	"path/filepath"
	"strconv"

	"golang.org/x/sys/unix"
)

// SetNiceness gives this process a nice value (setpriority(2)). Without the rights that a
// lower value than the present one needs, it fails and changes nothing.
func SetNiceness(niceness int) error {
	// each thread has its own, and new ones inherit it
	threads, err := filepath.Glob("/proc/self/task/*")
	for _, dir := range threads {
		tid, terr := strconv.Atoi(filepath.Base(dir))
		if terr != nil {
			continue
		}
		if err := unix.Setpriority(unix.PRIO_PROCESS, tid, niceness); err != nil && err != unix.ESRCH {
			return os.NewSyscallError("setpriority", err)
		}
	}
	return err
}
