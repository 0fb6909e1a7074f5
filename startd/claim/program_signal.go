package claim

import (
	"bytes"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// survivesSignal reports whether a program does something else than die of a signal. It
// does if it catches, ignores or blocks it: the masks SigCgt, SigIgn and SigBlk of
// proc_pid_status(5). In a sandbox the program is the first child of its init. A process
// that cannot be read is said to survive: the signal does nothing to what has ended.
func survivesSignal(pid int, isSandboxed bool, signal unix.Signal) bool {
	if isSandboxed {
		number := strconv.Itoa(pid)
		text, err := os.ReadFile("/proc/" + number + "/task/" + number + "/children")
		list := bytes.Fields(text)
		if err != nil || len(list) == 0 {
			return true
		}
		pid, _ = strconv.Atoi(string(list[0]))
	}
	status, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/status")
	if err != nil {
		return true
	}
	var masks uint64
	for line := range bytes.Lines(status) {
		for _, name := range [...]string{"SigBlk:", "SigIgn:", "SigCgt:"} {
			if value, ok := bytes.CutPrefix(line, []byte(name)); ok {
				n, _ := strconv.ParseUint(string(bytes.TrimSpace(value)), 16, 64)
				masks |= n
			}
		}
	}
	return masks>>(signal-1)&1 == 1
}
