package starter

import (
	"runtime"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/roost-batch/roost/startd/starter/proto"
)

// prepareAs prepares on a separate thread that has the user's ids and cannot get others
// back. The thread ends with its goroutine, because that never unlocks it. Raw system
// calls set the ids, because they affect one thread only. The calls of package syscall
// change all threads.
func prepareAs(o *proto.StartCmd, files *[3]int) (program string, why startError) {
	type result struct {
		program string
		why     startError
	}
	done := make(chan result)
	go func() {
		runtime.LockOSThread()
		if err := setCredentials(o); err != 0 {
			done <- result{why: startError{proto.Credentials, err, ""}}
			return
		}
		program, why := prepareFiles(o, files)
		done <- result{program, why}
	}()
	r := <-done
	return r.program, r.why
}

// setCredentials gives the calling thread the user's groups and ids, all of them, and
// checks that it has them.
func setCredentials(o *proto.StartCmd) syscall.Errno {
	groups := unsafe.Pointer(unsafe.SliceData(append([]uint32{}, o.Groups...)))
	if _, _, e := syscall.RawSyscall(syscall.SYS_SETGROUPS, uintptr(len(o.Groups)), uintptr(groups), 0); e != 0 {
		return e
	}
	gid, uid := uintptr(o.GID), uintptr(o.UID)
	if _, _, e := syscall.RawSyscall(syscall.SYS_SETRESGID, gid, gid, gid); e != 0 {
		return e
	}
	if _, _, e := syscall.RawSyscall(syscall.SYS_SETRESUID, uid, uid, uid); e != 0 {
		return e
	}
	if r, e, s := unix.Getresuid(); uint32(r) != o.UID || uint32(e) != o.UID || uint32(s) != o.UID {
		return syscall.EPERM
	}
	if r, e, s := unix.Getresgid(); uint32(r) != o.GID || uint32(e) != o.GID || uint32(s) != o.GID {
		return syscall.EPERM
	}
	return 0
}

// isAllRoot reports whether all three of our uids are root's. Then setuid(2) changes all
// three, and the change is permanent.
func isAllRoot() bool {
	r, e, s := unix.Getresuid()
	return r == 0 && e == 0 && s == 0
}

// hasRights reports whether a process runs with the user's ids. It reads the process's
// status in /proc, which a zombie has as well.
func hasRights(pid int, o *proto.StartCmd) bool {
	status := readAll("/proc/" + itoa(pid) + "/status")
	return hasIDs(status, "\nUid:", o.UID) && hasIDs(status, "\nGid:", o.GID)
}

// hasIDs looks for a line with four numbers, real, effective, saved and of the file
// system, and compares each.
func hasIDs(status []byte, label string, id uint32) bool {
	for i := 0; i+len(label) < len(status); i++ {
		if string(status[i:i+len(label)]) != label {
			continue
		}
		ids := parseNumbers(procStatusLine(status[i+len(label):]))
		return len(ids) == 4 && ids[0] == int(id) && ids[1] == int(id) && ids[2] == int(id) && ids[3] == int(id)
	}
	return false
}

func procStatusLine(text []byte) []byte {
	for i, c := range text {
		if c == '\n' {
			return text[:i]
		}
	}
	return text
}

// ignoredSignals is SIG_IGN of signal.h.
const ignoredSignals = 1

// defaultSignals undoes what a parent ignored, nohup(1) for one: a task would inherit it
// through fork and exec.
func defaultSignals() {
	var action struct {
		handler, flags, restorer uintptr
		mask                     uint64
	}
	for signal := uintptr(1); signal <= 64; signal++ {
		old := action
		_, _, e := syscall.RawSyscall6(syscall.SYS_RT_SIGACTION, signal, 0, uintptr(unsafe.Pointer(&old)), 8, 0, 0)
		if e == 0 && old.handler == ignoredSignals {
			syscall.RawSyscall6(syscall.SYS_RT_SIGACTION, signal, uintptr(unsafe.Pointer(&action)), 0, 8, 0, 0)
		}
	}
}
