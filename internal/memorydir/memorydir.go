// Package memorydir moves the temporary directories of tests into memory. A test that
// opens many files of a daemon waits most of its time for a disk to confirm them. No test
// turns a machine off, so a file in memory is as durable as they need: it outlives a
// process that is killed.
package memorydir

import (
	"os"
	"syscall"
)

const (
	memory = "/dev/shm"
	tmpfs  = 0x01021994 // the type of its file system, of linux/magic.h
	room   = 2 << 30    // bytes that are free at least
)

// Use has t.TempDir make directories in memory from now on. A TestMain calls it before
// any test. It does nothing on a machine without a file system in memory, or with too
// little space there. Nor does it where TMPDIR is set: somebody wants the tests to use
// that directory.
func Use() {
	var fs syscall.Statfs_t
	if os.Getenv("TMPDIR") != "" || syscall.Statfs(memory, &fs) != nil || fs.Type != tmpfs ||
		int64(fs.Bavail)*fs.Bsize < room {
		return
	}
	if probe, err := os.MkdirTemp(memory, "roost-probe-"); err == nil {
		os.Remove(probe)
		os.Setenv("TMPDIR", memory)
	}
}

// Used reports whether Use has moved the temporary directories. Every user can enter the
// directory that they are in then.
func Used() bool { return os.Getenv("TMPDIR") == memory }
