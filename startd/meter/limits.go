package meter

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/wire"
	"github.com/roost-batch/roost/startd/slot"
	"github.com/roost-batch/roost/startd/starter/proto"
)

// Limits are what the processes of an attempt may use beside walltime and memory; 0 is
// no bound. The kernel holds each process to what is each process's, and the startd
// looks at the rest: what they use together, and what one holds, for which the kernel has
// no limit (getrlimit(2), RLIMIT_RSS).
type Limits struct {
	CPU            time.Duration `json:",omitempty"` // of all together; so Virtual
	Virtual        roost.Bytes   `json:",omitempty"` // that they address
	ProcessCPU     time.Duration `json:",omitempty"` // of each
	ProcessVirtual roost.Bytes   `json:",omitempty"`
	ProcessMemory  roost.Bytes   `json:",omitempty"`
	File           roost.Bytes   `json:",omitempty"` // that one writes
	Nice           int32         `json:",omitempty"`
}

// LimitsOf returns the limits that a program comes with.
func LimitsOf(b *wire.Bounds) Limits {
	return Limits{
		CPU: time.Duration(b.GetCpuNs()), Virtual: roost.Bytes(b.GetVirtual()),
		ProcessCPU:     time.Duration(b.GetProcessCpuS()) * time.Second,
		ProcessVirtual: roost.Bytes(b.GetProcessVirtual()), ProcessMemory: roost.Bytes(b.GetProcessMemory()),
		File: roost.Bytes(b.GetFile()), Nice: b.GetNice(),
	}
}

// PerProcess returns what the kernel holds each process to.
func (b Limits) PerProcess() proto.ProcessLimits {
	return proto.ProcessLimits{CPU: int64(b.ProcessCPU / time.Second), AddressSpace: int64(b.ProcessVirtual),
		File: int64(b.File), Nice: b.Nice}
}

// needsWatching reports whether there is anything that the kernel does not see to.
func (b Limits) needsWatching() bool { return b.CPU > 0 || b.Virtual > 0 || b.ProcessMemory > 0 }

// limitCheckInterval is how often attempts are held to what they may use. One that has
// all of n cores is found when it has had n times that too much.
const limitCheckInterval = 500 * time.Millisecond

// WatchLimits ends attempts that are over a bound, until ctx ends, in one goroutine.
// Those that have none cost nothing.
func (s *Meters) WatchLimits(ctx context.Context) {
	tick := time.NewTicker(limitCheckInterval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		for _, t := range s.limitedMeters() {
			t.checkLimits()
		}
	}
}

// limitedMeters are the meters of attempts that have to be looked at.
func (s *Meters) limitedMeters() (all []*attemptMeter) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, m := range s.all {
		if m.currentLimits().needsWatching() {
			all = append(all, m)
		}
	}
	return all
}

// currentLimits is what the attempt is held to.
func (m *attemptMeter) currentLimits() Limits {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.Limits
}

// checkLimits ends the attempt when it is over a bound.
func (m *attemptMeter) checkLimits() {
	cause, reason := m.exceededLimit()
	if reason == "" {
		return
	}
	m.mu.Lock()
	first := !m.limitExceeded
	m.limitExceeded = true
	m.mu.Unlock()
	if first {
		m.End(cause, reason)
	}
}

// exceededLimit says which bound the attempt is over, and by how much; nothing when it is
// over none.
func (m *attemptMeter) exceededLimit() (cause wire.Cause, reason string) {
	b := m.currentLimits()
	if b.CPU > 0 {
		m.sample()
		m.mu.Lock()
		used := time.Duration(m.last.UserCpu + m.last.SystemCpu)
		m.mu.Unlock()
		if used > b.CPU {
			return wire.Cause_CAUSE_CPU_TIME, fmt.Sprintf("CPU time of %v exceeded: its processes have used %v", b.CPU,
				used.Round(time.Millisecond))
		}
	}
	if b.Virtual == 0 && b.ProcessMemory == 0 {
		return 0, ""
	}
	total, own := roost.Bytes(0), m.startupPrograms()
	for _, pid := range m.processes() {
		if runsProgram(pid, own) {
			continue
		}
		total += virtualMemory(pid)
		if held := roost.Bytes(anonSharedRSS(pid)); b.ProcessMemory > 0 && held > b.ProcessMemory {
			return wire.Cause_CAUSE_MEMORY, fmt.Sprintf("memory of %v for each process exceeded: %s (%d) holds %v",
				b.ProcessMemory, processName(pid), pid, held)
		}
	}
	if b.Virtual > 0 && total > b.Virtual {
		return wire.Cause_CAUSE_VIRTUAL, fmt.Sprintf("virtual memory of %v exceeded: its processes address %v",
			b.Virtual, total)
	}
	return 0, ""
}

// startupPrograms are Roost's own, which a process runs before it becomes the task's.
// Tasks that are restored from an image run them, too. They address a gigabyte, and use
// next to nothing of it.
func (m *attemptMeter) startupPrograms() (own []os.FileInfo) {
	for _, path := range []string{"/proc/self/exe", fmt.Sprintf("/proc/%d/exe", m.Starter)} {
		if info, err := os.Stat(path); err == nil {
			own = append(own, info)
		}
	}
	return own
}

// runsProgram reports whether a process runs one of some programs.
func runsProgram(pid int, programs []os.FileInfo) bool {
	its, err := os.Stat(fmt.Sprintf("/proc/%d/exe", pid))
	return err == nil && slices.ContainsFunc(programs, func(p os.FileInfo) bool { return os.SameFile(its, p) })
}

// processes are those of the attempt: in its group, or below its starter.
func (m *attemptMeter) processes() []int {
	if m.Group != nil {
		if dir := m.Group.TaskDir(); dir != "" {
			return groupProcesses(dir)
		}
	}
	if m.Starter <= 0 {
		return nil
	}
	all := taskProcesses(m.Starter)
	for i := 0; i < len(all) && len(all) < maxTree; i++ {
		all = append(all, children(all[i])...)
	}
	return all
}

// groupProcesses are the processes of a group. A task has no right to make groups below
// its own.
func groupProcesses(dir string) (all []int) {
	text, _ := os.ReadFile(dir + "/cgroup.procs")
	for word := range strings.FieldsSeq(string(text)) {
		if pid, err := strconv.Atoi(word); err == nil {
			all = append(all, pid)
		}
	}
	return all
}

// virtualMemory is how much memory a process addresses: the first field of statm, in
// pages (proc(5)).
func virtualMemory(pid int) roost.Bytes {
	pages, _, _ := strings.Cut(readProcFile(pid, "statm"), " ")
	n, _ := strconv.ParseInt(pages, 10, 64)
	return roost.Bytes(n * int64(os.Getpagesize()))
}

func processName(pid int) string { return strings.TrimSpace(readProcFile(pid, "comm")) }

// exceededLimit says which of the kernel's limits an attempt has died of. It goes by the
// signal that its program got, or that its shell reports (128 and the number).
func (b Limits) exceededLimit(status *wire.ExitStatus) string {
	if status.GetCause() != wire.Cause_CAUSE_EXITED {
		return ""
	}
	signal := unix.Signal(status.GetSignal())
	if code := status.GetCode(); signal == 0 && code > 128 {
		signal = unix.Signal(code - 128)
	}
	switch {
	case signal == unix.SIGXCPU && b.ProcessCPU > 0:
		return fmt.Sprintf("CPU time of %v for each process exceeded", b.ProcessCPU)
	case signal == unix.SIGXFSZ && b.File > 0:
		return fmt.Sprintf("size of %v for each file exceeded", b.File)
	}
	return ""
}

// SetCPULimit holds an attempt to so much CPU time from now on; 0: to none.
func (s *Meters) SetCPULimit(claim slot.ClaimID, id roost.AttemptID, cpu time.Duration) {
	if m := s.find(claim, id); m != nil {
		m.mu.Lock()
		defer m.mu.Unlock()
		m.Limits.CPU = cpu
	}
}
