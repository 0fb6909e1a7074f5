package criu

import (
	"fmt"
	"os"
	"strconv"
	"strings"

	skopts "github.com/checkpoint-restore/go-criu/v7/crit/images/sk-opts"
	"golang.org/x/sys/unix"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// limitKinds is the number of the kernel's limits of a process (getrlimit(2)), from
// RLIMIT_CPU to RLIMIT_RTTIME.
const limitKinds = 16

// enforceLimits limits restored processes to what their claim and this machine allow,
// before they run. It lowers limits that only root may raise, and the scheduling
// priority. Even an honest image may exceed them, if it comes from a machine with higher
// limits.
func (r *restoreAgent) enforceLimits(pids []int) error {
	for _, pid := range pids[min(1, len(pids)):] { // the first is root's own
		if hasEnded(pid) {
			continue
		}
		for kind := range limitKinds {
			if err := r.lowerLimit(pid, kind); err != nil {
				return err
			}
		}
		for _, tid := range threadIDs(pid) {
			if err := r.raiseNice(tid); err != nil {
				return err
			}
		}
	}
	return nil
}

// lowerLimit lowers one limit of a process to this process's and to the claim's.
func (r *restoreAgent) lowerLimit(pid, kind int) error {
	var most, has unix.Rlimit
	err := unix.Prlimit(0, kind, nil, &most)
	if err == nil {
		err = unix.Prlimit(pid, kind, nil, &has)
	}
	if err != nil {
		return fmt.Errorf("limit %d of process %d: %w", kind, pid, err)
	}
	if n, ok := r.spec.Limits[kind]; ok {
		most.Max = min(most.Max, n)
	}
	if has.Max <= most.Max {
		return nil
	}
	has.Max, has.Cur = most.Max, min(has.Cur, most.Max)
	if err := unix.Prlimit(pid, kind, &has, nil); err != nil {
		return fmt.Errorf("limit %d of process %d: %w", kind, pid, err)
	}
	return nil
}

// raiseNice raises the nice value of a thread to at least the claim's and this process's.
func (r *restoreAgent) raiseNice(tid int) error {
	own, err := threadNice(0)
	if err != nil {
		return err
	}
	has, err := threadNice(tid)
	if err != nil {
		return err
	}
	if least := max(own, r.spec.Nice); has < least {
		return unix.Setpriority(unix.PRIO_PROCESS, tid, least)
	}
	return nil
}

// threadNice returns the nice value of a thread. The system call returns 20 minus the
// value (getpriority(2)).
func threadNice(tid int) (int, error) {
	n, err := unix.Getpriority(unix.PRIO_PROCESS, tid)
	return 20 - n, err
}

// unsetLoginUID is the login uid of a process that belongs to no login.
const unsetLoginUID = 1<<32 - 1

// mayUseLoginUID reports whether a process may have a login uid, by which the kernel's
// audit identifies users. Allowed are this process's own, and none.
func mayUseLoginUID(uid uint32) bool {
	text, _ := os.ReadFile("/proc/self/loginuid")
	own, err := strconv.ParseUint(strings.TrimSpace(string(text)), 10, 32)
	return uid == unsetLoginUID || err == nil && uid == uint32(own)
}

// hasPacketMark reports whether a socket marks its packets for the machine's network
// rules, in any field of its entry. No task may do that.
func hasPacketMark(m protoreflect.Message) (found bool) {
	if o, ok := m.Interface().(*skopts.SkOptsEntry); ok {
		return o.GetSoMark() != 0
	}
	m.Range(func(f protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		if f.Message() != nil && !f.IsList() && !f.IsMap() {
			found = found || hasPacketMark(v.Message())
		}
		return !found
	})
	return found
}
