package starter

import (
	"runtime/debug"
	"syscall"

	"golang.org/x/sys/unix"
)

// memoryReleaseDelay is how long, in milliseconds, a starter must be idle before it
// releases unneeded memory. Most of the time it waits for one task, beside as many other
// starters as the machine has tasks.
const memoryReleaseDelay = 300

// releaseMemory returns memory to the kernel when the starter is idle, and reports
// whether it did.
func (s *starterProcess) releaseMemory(quiet bool) bool {
	if quiet && s.needsMemoryRelease {
		// The next task is far off. A server in a user namespace has a copy of all the
		// machine's mounts, which the kernel locks there: what the machine unmounts would
		// stay in use.
		if s.server.wrapped && s.sandboxReport < 0 {
			s.stopServer()
		}
		s.steps = syscallList{}
		debug.FreeOSMemory()
		disableHugePages()
	}
	s.needsMemoryRelease = !quiet
	return quiet
}

// disableHugePages prevents the kernel from using huge pages in this process. Where
// transparent huge pages are always on, as on Debian, a kernel thread scans every ten
// seconds and collapses any suitable range, even the runtime's own tables, which
// GODEBUG=disablethp=1 omits. A huge page uses two megabytes for some hundred kilobytes,
// and is never split again: hence at the start, and again for new ranges.
// PR_SET_THP_DISABLE would be simpler, but the tasks would inherit it.
func disableHugePages() {
	maps := readAll("/proc/self/maps")
	for len(maps) > 0 {
		text := procStatusLine(maps)
		maps = maps[min(len(text)+1, len(maps)):]
		if start, size := anonymousRange(text); size > 0 {
			syscall.RawSyscall(syscall.SYS_MADVISE, start, size, unix.MADV_NOHUGEPAGE)
		}
	}
}

// anonymousRange parses the memory range in a line of a maps file (proc(5)). The size is
// 0 unless the range is writable, private and anonymous.
func anonymousRange(text []byte) (start, size uintptr) {
	fields := words(text)
	if len(fields) < 5 || fields[1] != "rw-p" || fields[4] != "0" {
		return 0, 0
	}
	end, at := uintptr(0), &start
	for _, c := range []byte(fields[0]) {
		switch {
		case c >= '0' && c <= '9':
			*at = *at<<4 | uintptr(c-'0')
		case c >= 'a' && c <= 'f':
			*at = *at<<4 | uintptr(c-'a'+10)
		default:
			at = &end
		}
	}
	return start, end - start
}
