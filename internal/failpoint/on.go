//go:build faults

package failpoint

import (
	"os"
	"syscall"
)

// Enabled reports whether Point may kill the process.
const Enabled = true

// Point kills the process if a file with the point's name is in $ROOST_FAULT_DIR, and
// removes the file.
func Point(name string) {
	dir := os.Getenv("ROOST_FAULT_DIR")
	if dir == "" || os.Remove(dir+"/"+name) != nil {
		return
	}
	syscall.Kill(syscall.Getpid(), syscall.SIGKILL)
	select {}
}
