package starter

import (
	"runtime"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/roost-batch/roost/startd/starter/proto"
)

// prepareAs prepares the files on a separate thread with the user's ids. The thread can
// never get root's ids back and ends with its goroutine, which never unlocks it. The ids
// are set with raw system calls, which affect one thread only; those of package syscall
// affect all.
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

// prepareLike prepares the files with the user's effective ids and then resets them. It
// is for a new process that runs nothing else and so needs no separate thread. The real
// and saved ids remain root's, so that no process of the user can signal or trace this
// one meanwhile.
func prepareLike(o *proto.StartCmd, files *[3]int) (program string, why startError) {
	if err := setEffectiveIDs(o.UID, o.GID, o.Groups); err != 0 {
		return "", startError{proto.Credentials, err, ""}
	}
	program, why = prepareFiles(o, files)
	if err := setEffectiveIDs(0, 0, nil); err != 0 {
		return "", startError{proto.Credentials, err, ""}
	}
	return program, why
}

// setEffectiveIDs sets the calling thread's effective ids and groups, and verifies them.
// It sets the groups while the thread still has root's rights.
func setEffectiveIDs(uid, gid uint32, groups []uint32) syscall.Errno {
	const keep = ^uintptr(0)
	if uid == 0 {
		if _, _, e := syscall.RawSyscall(syscall.SYS_SETRESUID, keep, 0, keep); e != 0 {
			return e
		}
	}
	list := unsafe.Pointer(unsafe.SliceData(append([]uint32{}, groups...)))
	if _, _, e := syscall.RawSyscall(syscall.SYS_SETGROUPS, uintptr(len(groups)), uintptr(list), 0); e != 0 {
		return e
	}
	if _, _, e := syscall.RawSyscall(syscall.SYS_SETRESGID, keep, uintptr(gid), keep); e != 0 {
		return e
	}
	if uid != 0 {
		if _, _, e := syscall.RawSyscall(syscall.SYS_SETRESUID, keep, uintptr(uid), keep); e != 0 {
			return e
		}
	}
	if _, e, _ := unix.Getresuid(); uint32(e) != uid {
		return syscall.EPERM
	}
	if _, e, _ := unix.Getresgid(); uint32(e) != gid {
		return syscall.EPERM
	}
	return 0
}

// setCredentials sets all ids and the groups of the calling thread to the user's, and
// verifies them.
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

// isAllRoot reports whether our three uids are all root. Then setuid(2) changes all
// three, and the change is permanent.
func isAllRoot() bool {
	r, e, s := unix.Getresuid()
	return r == 0 && e == 0 && s == 0
}

// hasRights reports whether a process runs with the user's ids, from its status in /proc.
// Zombies have a status as well.
func hasRights(pid int, o *proto.StartCmd) bool {
	status := readAll("/proc/" + itoa(pid) + "/status")
	return hasIDs(status, "\nUid:", o.UID) && hasIDs(status, "\nGid:", o.GID)
}

// hasIDs finds the line with the real, effective, saved and file system ids, and compares
// each.
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

// defaultSignals resets signals that a parent ignored, for example nohup(1). A task would
// inherit them through fork and exec.
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
