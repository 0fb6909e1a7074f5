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

// limitKinds are the numbers of the kernel's limits of a process (getrlimit(2)):
// RLIMIT_CPU is the first, RLIMIT_RTTIME the last.
const limitKinds = 16

// enforceLimits holds restored processes to what their claim and this machine have,
// whatever the image says, before they run: the limits that only root may raise, and
// their place among the processes that want time. An honest image may say more, too: it
// may be of a machine that has more.
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

// lowerLimit brings one limit of a process down to the lower of ours and the claim's.
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

// raiseNice has a thread come no sooner than its claim, and no sooner than we do.
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

// threadNice is the nice value of a thread. The call itself counts downwards from 20
// (getpriority(2)).
func threadNice(tid int) (int, error) {
	n, err := unix.Getpriority(unix.PRIO_PROCESS, tid)
	return 20 - n, err
}

// unsetLoginUID is the login of a process that none began.
const unsetLoginUID = 1<<32 - 1

// mayUseLoginUID reports whether a process may have a login's number, by which the
// kernel's audit tells who did something: ours, or none.
func mayUseLoginUID(uid uint32) bool {
	text, _ := os.ReadFile("/proc/self/loginuid")
	own, err := strconv.ParseUint(strings.TrimSpace(string(text)), 10, 32)
	return uid == unsetLoginUID || err == nil && uid == uint32(own)
}

// hasPacketMark reports whether a socket, wherever in its entry that is said, marks its
// packets for the rules of the machine's network: no task may do that.
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
