package meter

import (
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/boottime"
	"github.com/roost-batch/roost/internal/cgroup"
	"github.com/roost-batch/roost/internal/outputfile"
	"github.com/roost-batch/roost/internal/userfiles"
	"github.com/roost-batch/roost/internal/wire"
	"github.com/roost-batch/roost/startd/slot"
)

// Baseline is where a measurement counts from: a claim's group has served the attempts
// before, too. It lies on disk in the record of an attempt.
type Baseline struct {
	Began roost.BootTime
	Group cgroup.GroupUsage
}

// NewBaseline returns where the measurement of an attempt counts from that is about to
// start. The group may be nil: the claim has none. Before, if not nil, is that of the
// attempt before on the claim, with what its group had used when that had ended: nothing
// but the starter has used the group since, and nothing is read.
func NewBaseline(group *cgroup.ClaimGroup, before *Baseline) Baseline {
	o := Baseline{Began: boottime.Now()}
	switch {
	case before != nil:
		o.Group = before.Group
	case group != nil:
		o.Group, _ = group.Usage()
	}
	return o
}

// Attempt is what a meter must know of the attempt that it measures.
type Attempt struct {
	ID         roost.AttemptID
	Schedd     string
	Claim      slot.ClaimID
	Group      *cgroup.ClaimGroup // nil: the process tree is looked at
	Starter    int                // the process from which all of the task descend, in their group; 0: there is none
	Baseline   Baseline
	Limits     Limits
	Credential userfiles.UserCredential
	Scratch    string      // where it runs; empty: not in a directory of its own
	Temp       string      // its private /tmp, with the scratch directory in it; empty: it has none
	IO         string      // directory of its captured streams
	Disk       roost.Bytes // that it asked for; 0: none
	Band       roost.PriorityBand
	// how much captured output of a service stays here; zero: it ends at the limit
	Logs outputfile.Bounds

	// GPU returns how many GPUs it keeps busy, and bytes of their memory.
	GPU func() (busy float64, memory, peak roost.Bytes)
	// Steps returns the steps of the task that are new or other than when it was called
	// last, or all; nil: it can have none. mu guards the calls.
	Steps func(all bool) []*wire.StepRecord
	// End has the attempt ended that uses too much. It must not wait.
	End func(cause wire.Cause, reason string)
}

// attemptMeter measures one attempt, from its launch to its end. The goroutine that
// samples and the runner of the claim share it.
type attemptMeter struct {
	Attempt // does not change, but for its limits, which mu guards

	leader        int // session of its first process, once it is known; only who samples uses it
	mu            sync.Mutex
	last          *wire.TaskUsage
	sent          *wire.TaskUsage
	sentAt        time.Time // when that was sent
	rate          float64   // cores kept busy, between the last two samples
	dumpable      string    // "yes", or why not; empty: not known
	sentDumpable  string
	resendSteps   bool // the schedd may know none of them any more
	checkpoints   slot.CheckpointInfo
	diskExceeded  bool      // it was told to go because of its disk
	files         int64     // in its directories, as measured last
	measureAt     time.Time // when its directories are measured next; only who measures uses it
	limitExceeded bool      // or because of one of its bounds
	windows       usageWindows
	untrimmed     atomic.Bool           // its captured output cannot be trimmed
	times         [2]outputfile.TimeLog // of standard output and standard error; only WatchOutput uses them
	untimed       bool                  // they could not be stored; only WatchOutput uses it
}

// sample measures, and keeps what it found.
func (m *attemptMeter) sample() {
	now := m.newUsage()
	if m.Group == nil || !m.measureGroup(now) {
		treeUsage(m.Starter, now)
	}
	if m.leader == 0 {
		m.leader = m.session()
	}
	m.record(now)
	m.mu.Lock()
	defer m.mu.Unlock()
	m.windows.add(now, m.rate)
}

// sampleEnd measures an attempt of which no process is left, and returns what its group
// had used, nil without one. What the processes held is gone, and is not looked for.
func (m *attemptMeter) sampleEnd() *cgroup.GroupTotals {
	now := m.newUsage()
	var totals *cgroup.GroupTotals
	if m.Group != nil {
		if u, err := m.Group.Totals(); err == nil {
			m.setTotals(now, u)
			totals = &u
		}
	}
	m.record(now)
	return totals
}

func (m *attemptMeter) newUsage() *wire.TaskUsage {
	return &wire.TaskUsage{Time: time.Now().UnixNano(), Wall: int64(boottime.Now() - m.Baseline.Began)}
}

// record keeps a sample, with what the samples before have found.
func (m *attemptMeter) record(now *wire.TaskUsage) {
	now.Session = int64(m.leader)
	busy, memory, peak := m.GPU()
	now.Gpu, now.GpuMemory, now.PeakGpuMemory = busy, int64(memory), int64(peak)
	m.mu.Lock()
	defer m.mu.Unlock()
	if old := m.last; old != nil {
		now.Disk = old.Disk
		// Without a group, what has ended and was not waited for is missing. What was
		// used stays used.
		now.UserCpu, now.SystemCpu = max(now.UserCpu, old.UserCpu), max(now.SystemCpu, old.SystemCpu)
		now.ReadBytes, now.WriteBytes = max(now.ReadBytes, old.ReadBytes), max(now.WriteBytes, old.WriteBytes)
		now.PeakMemory, now.PeakGpuMemory = old.PeakMemory, max(now.PeakGpuMemory, old.PeakGpuMemory)
		if wall := now.Wall - old.Wall; wall > 0 {
			m.rate = float64(now.UserCpu+now.SystemCpu-old.UserCpu-old.SystemCpu) / float64(wall)
		}
	}
	now.PeakMemory = max(now.PeakMemory, now.Memory)
	m.last = now
}

// measureGroup reads the figures of the claim's group, less those of the attempts before.
// So its starter counts for next to nothing: it had its memory before.
func (m *attemptMeter) measureGroup(now *wire.TaskUsage) bool {
	u, err := m.Group.Usage()
	if err != nil {
		return false
	}
	m.setTotals(now, u.GroupTotals)
	now.Memory, now.Cache = max(int64(u.Memory-m.Baseline.Group.Memory), 0), int64(u.Cache)
	now.Processes, now.Frozen = uint32(u.Processes), u.Frozen
	return true
}

// setTotals sets what the attempt has used of what its group has.
func (m *attemptMeter) setTotals(now *wire.TaskUsage, u cgroup.GroupTotals) {
	from := m.Baseline.Group
	now.UserCpu, now.SystemCpu = int64(max(u.UserCPU-from.UserCPU, 0)), int64(max(u.SystemCPU-from.SystemCPU, 0))
	now.ReadBytes, now.WriteBytes = max(int64(u.Read-from.Read), 0), max(int64(u.Written-from.Written), 0)
}

// unsentUsage is what has changed since it was sent last; nil when nothing has. Time
// alone is no news. Between two reports nothing but steps is.
func (m *attemptMeter) unsentUsage(now time.Time, isReport bool) *wire.AttemptUsage {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.last == nil {
		return nil
	}
	var steps []*wire.StepRecord
	if m.Steps != nil {
		steps = m.Steps(m.resendSteps)
		m.resendSteps = false
	}
	if !isReport && len(steps) == 0 {
		return nil
	}
	windows := m.windows.unsent(m.last.GetWall())
	if len(windows) == 0 && len(steps) == 0 && sameUsage(m.last, m.sent) && m.dumpable == m.sentDumpable {
		return nil
	}
	m.sent, m.sentAt, m.sentDumpable = m.last, now, m.dumpable
	return &wire.AttemptUsage{Attempt: wire.FromAttempt(m.ID), Usage: m.last, Dumpable: m.dumpable, Windows: windows,
		Steps: steps}
}

func sameUsage(a, b *wire.TaskUsage) bool {
	if b == nil {
		return false
	}
	c := proto.CloneOf(b)
	c.Time, c.Wall = a.Time, a.Wall
	return proto.Equal(a, c)
}

func (m *attemptMeter) lastSentAt() time.Time {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.sentAt
}
