package starter

import (
	"runtime/debug"
	"syscall"

	"golang.org/x/sys/unix"
)

// memoryReleaseDelay is for how long nothing has happened before a starter gives back the
// memory that it does not need, in milliseconds. Most of its life it waits for one task,
// beside as many others as the machine has tasks.
const memoryReleaseDelay = 300

// releaseMemory gives memory back when the starter has come to rest, and reports whether
// it has.
func (s *starterProcess) releaseMemory(quiet bool) bool {
	if quiet && s.needsMemoryRelease {
		debug.FreeOSMemory()
		disableHugePages()
	}
	s.needsMemoryRelease = !quiet
	return quiet
}

// disableHugePages keeps the kernel from putting huge pages where this process has a few
// small ones. Where everybody is given huge pages, as on Debian, a thread of the kernel's
// comes round every ten seconds and does that to whatever has room for one, also to the
// runtime's own tables, which GODEBUG=disablethp=1 leaves out. Each is two megabytes for
// some hundred kilobytes, and stays: hence at the start, and again for what was added.
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

// anonymousRange reads where the memory is that a line of a maps file is about (proc(5)),
// if this process writes there and no file is behind it; else its size is 0.
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
