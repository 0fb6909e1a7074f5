// Package tasktrace writes down when a task passes each stage of its life, for make
// bench.
//
// The processes of a pool do so if the environment variable ROOST_TASK_TRACE names a
// file. All of them append to the same file, a line for each stage:
//
//	NANOSECONDS STAGE JOB INDEX ATTEMPT
//
// The time is one of CLOCK_MONOTONIC, which all processes of a machine share. Numbers
// that a process does not know yet are 0. Without the variable Mark costs a comparison.
// The package imports little, because the starter has to stay small.
package tasktrace

import (
	"strconv"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// FileVariable is the environment variable with the path of the file.
const FileVariable = "ROOST_TASK_TRACE"

// The stages that processes of a pool mark, in the usual order. A name of an event of
// the job log is a stage too: the event is on disk then.
const (
	Received  = "received"  // the schedd has a user's call
	Requested = "requested" // the negotiator has the request
	Planned   = "planned"   // the grant is committed
	Granted   = "granted"   // the schedd has the grant
	Created   = "created"   // the startd has written the claim down
	Spawned   = "spawned"   // the claim's starter runs
	Claimed   = "claimed"   // the schedd has the claim
	Activated = "activated" // the startd has the attempt
	Prepared  = "prepared"  // the startd has made what the attempt needs, and tells the starter
	Forking   = "forking"   // the starter is about to fork
	Forked    = "forked"    // the first process exists
	Boxed     = "boxed"     // its sandbox is complete, and the program begins
	Exited    = "exited"    // the first process has ended
	Reaped    = "reaped"    // the end is in the starter's journal
	Reported  = "reported"  // the startd tells the schedd of the end
	Returned  = "returned"  // the schedd knows the end
)

// Task names what a stage belongs to.
type Task struct {
	Job     uint64
	Index   uint32
	Attempt uint32
}

// openFile opens the file at the first mark. It returns a negative descriptor if none is
// wanted or the file cannot be opened.
var openFile = sync.OnceValue(func() int {
	path, ok := syscall.Getenv(FileVariable)
	if !ok || path == "" {
		return -1
	}
	fd, err := syscall.Open(path, syscall.O_WRONLY|syscall.O_APPEND|syscall.O_CREAT|syscall.O_CLOEXEC, 0o600)
	if err != nil {
		return -1
	}
	return fd
})

// IsEnabled reports whether stages are written down.
func IsEnabled() bool { return openFile() >= 0 }

// Mark writes down that a task passes a stage now.
func Mark(stage string, task Task) {
	if fd := openFile(); fd >= 0 {
		line := AppendLine(make([]byte, 0, 96), Now(), stage, task)
		syscall.Write(fd, line) // a lost line is a missing value in a measurement
	}
}

// attemptRef is an attempt in a message between daemons.
type attemptRef interface {
	GetJob() uint64
	GetIndex() uint32
	GetAttempt() uint32
}

// MarkAttempt is Mark for an attempt that a message names.
func MarkAttempt(stage string, a attemptRef) {
	if IsEnabled() {
		Mark(stage, Task{a.GetJob(), a.GetIndex(), a.GetAttempt()})
	}
}

// Now reads the clock of the trace, in nanoseconds.
func Now() int64 {
	var t unix.Timespec
	if unix.ClockGettime(unix.CLOCK_MONOTONIC, &t) != nil {
		return 0
	}
	return t.Nano()
}

// AppendLine appends a line of the file.
func AppendLine(line []byte, at int64, stage string, task Task) []byte {
	line = append(append(append(strconv.AppendInt(line, at, 10), ' '), stage...), ' ')
	line = append(strconv.AppendUint(line, task.Job, 10), ' ')
	line = append(strconv.AppendUint(line, uint64(task.Index), 10), ' ')
	return append(strconv.AppendUint(line, uint64(task.Attempt), 10), '\n')
}
