package startd

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
	"github.com/roost-batch/roost/startd/starter/proto"
)

// attemptLimits are what the processes of an attempt may use beside walltime and memory;
// 0 is no bound. The kernel holds each process to what is each process's, and the startd
// looks at the rest: what they use together, and what one holds, for which the kernel has
// no limit (getrlimit(2), RLIMIT_RSS).
type attemptLimits struct {
	CPU            time.Duration `json:",omitempty"` // of all together; so Virtual
	Virtual        roost.Bytes   `json:",omitempty"` // that they address
	ProcessCPU     time.Duration `json:",omitempty"` // of each
	ProcessVirtual roost.Bytes   `json:",omitempty"`
	ProcessMemory  roost.Bytes   `json:",omitempty"`
	File           roost.Bytes   `json:",omitempty"` // that one writes
	Nice           int32         `json:",omitempty"`
}

func attemptLimitsOf(b *wire.Bounds) attemptLimits {
	return attemptLimits{
		CPU: time.Duration(b.GetCpuNs()), Virtual: roost.Bytes(b.GetVirtual()),
		ProcessCPU:     time.Duration(b.GetProcessCpuS()) * time.Second,
		ProcessVirtual: roost.Bytes(b.GetProcessVirtual()), ProcessMemory: roost.Bytes(b.GetProcessMemory()),
		File: roost.Bytes(b.GetFile()), Nice: b.GetNice(),
	}
}

// perProcess is what the kernel holds each process to.
func (b attemptLimits) perProcess() proto.ProcessLimits {
	return proto.ProcessLimits{CPU: int64(b.ProcessCPU / time.Second), AddressSpace: int64(b.ProcessVirtual),
		File: int64(b.File), Nice: b.Nice}
}

// needsWatching reports whether there is anything that the kernel does not see to.
func (b attemptLimits) needsWatching() bool { return b.CPU > 0 || b.Virtual > 0 || b.ProcessMemory > 0 }

// limitCheckInterval is how often attempts are held to what they may use: one that has
// all of n cores is found when it has had n times that too much.
const limitCheckInterval = 500 * time.Millisecond

// watchLimits ends attempts that are over a bound, until ctx ends, in one goroutine.
// Those that have none cost nothing.
func (m *claimHost) watchLimits(ctx context.Context) {
	tick := time.NewTicker(limitCheckInterval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		for _, t := range m.meters.limitedMeters() {
			t.checkLimits()
		}
	}
}

// limitedMeters are the meters of attempts that have to be looked at.
func (s *attemptMeters) limitedMeters() (all []*attemptMeter) {
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
func (m *attemptMeter) currentLimits() attemptLimits {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.bounds
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
		m.runnerQueue.Put(vacateCmd{id: m.id, cause: cause, reason: reason})
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

// startupPrograms are those of Roost's that a process of the task runs before it becomes
// the task's, or while it is brought back from an image. They address a gigabyte, of
// which they use next to nothing.
func (m *attemptMeter) startupPrograms() (own []os.FileInfo) {
	for _, path := range []string{"/proc/self/exe", fmt.Sprintf("/proc/%d/exe", m.starter)} {
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
	if m.group != nil {
		if dir := m.group.TaskDir(); dir != "" {
			return groupProcesses(dir)
		}
	}
	if m.starter <= 0 {
		return nil
	}
	all := children(m.starter)
	for i := 0; i < len(all) && len(all) < maxTree; i++ {
		all = append(all, children(all[i])...)
	}
	return all
}

// groupProcesses are the processes of a group; those in groups that they made below it
// are their own affair, as no rights are theirs to make any.
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

// exceededLimit says which of the kernel's bounds an attempt has died of, by the signal
// that its program got, or that its shell tells of (128 and the number).
func (b attemptLimits) exceededLimit(status *wire.ExitStatus) string {
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
