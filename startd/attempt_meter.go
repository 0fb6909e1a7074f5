package startd

import (
	"cmp"
	"maps"
	"slices"
	"sync"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/boottime"
	"github.com/roost-batch/roost/internal/cgroup"
	"github.com/roost-batch/roost/internal/sendqueue"
	"github.com/roost-batch/roost/internal/userfiles"
	"github.com/roost-batch/roost/internal/wire"
	"github.com/roost-batch/roost/startd/slot"
)

// usageBaseline is where a measurement counts from: a claim's group has served the
// attempts before, too.
type usageBaseline struct {
	Began slot.BootTime
	Group cgroup.GroupUsage
}

// attemptMeter measures one attempt, from its launch to its end. The goroutine that
// samples and the hand of the claim share it.
type attemptMeter struct {
	id          roost.AttemptID
	schedd      string
	claim       slot.ClaimID
	group       *cgroup.ClaimGroup // nil: the process tree is looked at
	starter     int                // the process that all of the task's descend from, and that is in their group
	origin      usageBaseline
	gpu         func(slot.ClaimID) (busy float64, memory, peak int64)
	runnerQueue *sendqueue.Queue[any] // of the hand
	cred        userfiles.UserCredential
	scratch     string      // where it runs; empty: not in a directory of its own
	temp        string      // its private /tmp, with the scratch directory in it; empty: it has none
	io          string      // what it wrote to captured streams
	disk        roost.Bytes // that it asked for; 0: none

	leader        int // session of its first process, once it is known; only who samples uses it
	mu            sync.Mutex
	bounds        attemptLimits
	last          *wire.TaskUsage
	sent          *wire.TaskUsage
	sentAt        time.Time // when that was sent
	rate          float64   // cores kept busy, between the last two samples
	dumpable      string    // "yes", or why not; empty: not known
	sentDumpable  string
	checkpoints   slot.CheckpointInfo
	diskExceeded  bool      // it was told to go because of its disk
	measureAt     time.Time // when its directories are measured next; only who measures uses it
	limitExceeded bool      // or because of one of its bounds
}

// sample measures, and keeps what it found.
func (m *attemptMeter) sample() {
	now := &wire.TaskUsage{Time: time.Now().UnixNano(), Wall: int64(boottime.Now() - m.origin.Began)}
	if m.group == nil || !m.measureGroup(now) {
		treeUsage(m.starter, now)
	}
	if m.leader == 0 {
		m.leader = m.session()
	}
	now.Session = int64(m.leader)
	now.Gpu, now.GpuMemory, now.PeakGpuMemory = m.gpu(m.claim)
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
	u, err := m.group.Usage()
	if err != nil {
		return false
	}
	from := m.origin.Group
	now.UserCpu, now.SystemCpu = int64(max(u.UserCPU-from.UserCPU, 0)), int64(max(u.SystemCPU-from.SystemCPU, 0))
	now.Memory, now.Cache = max(int64(u.Memory-from.Memory), 0), int64(u.Cache)
	now.ReadBytes, now.WriteBytes = max(int64(u.Read-from.Read), 0), max(int64(u.Written-from.Written), 0)
	now.Processes, now.Frozen = uint32(u.Processes), u.Frozen
	return true
}

// unsentUsage is what has changed since it was sent last; nil when nothing has. Time
// alone is no news.
func (m *attemptMeter) unsentUsage(now time.Time) *wire.AttemptUsage {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.last == nil || sameUsage(m.last, m.sent) && m.dumpable == m.sentDumpable {
		return nil
	}
	m.sent, m.sentAt, m.sentDumpable = m.last, now, m.dumpable
	return &wire.AttemptUsage{Attempt: wire.FromAttempt(m.id), Usage: m.last, Dumpable: m.dumpable}
}

func sameUsage(a, b *wire.TaskUsage) bool {
	if b == nil {
		return false
	}
	c := proto.CloneOf(b)
	c.Time, c.Wall = a.Time, a.Wall
	return proto.Equal(a, c)
}

// attemptMeters are those of all attempts that run.
type attemptMeters struct {
	mu  sync.Mutex
	all map[slot.ClaimID]*attemptMeter
}

func newAttemptMeters() *attemptMeters {
	return &attemptMeters{all: make(map[slot.ClaimID]*attemptMeter)}
}

func (s *attemptMeters) add(m *attemptMeter) {
	s.mu.Lock()
	s.all[m.claim] = m
	s.mu.Unlock()
}

// remove ends the measurement of an attempt; nil when it was not measured.
func (s *attemptMeters) remove(claim slot.ClaimID, id roost.AttemptID) *attemptMeter {
	s.mu.Lock()
	defer s.mu.Unlock()
	m := s.all[claim]
	if m == nil || m.id != id {
		return nil
	}
	delete(s.all, claim)
	return m
}

// find returns the meter of an attempt; nil when it is not measured.
func (s *attemptMeters) find(claim slot.ClaimID, id roost.AttemptID) *attemptMeter {
	s.mu.Lock()
	defer s.mu.Unlock()
	if m := s.all[claim]; m != nil && m.id == id {
		return m
	}
	return nil
}

// lastUsage is the last that was measured of an attempt; nil when nothing was.
func (s *attemptMeters) lastUsage(claim slot.ClaimID, id roost.AttemptID) *wire.TaskUsage {
	m := s.find(claim, id)
	if m == nil {
		return nil
	}
	m.sample()
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.last
}

// setDumpable notes whether an image of an attempt can be taken, for the next report.
func (s *attemptMeters) setDumpable(claim slot.ClaimID, id roost.AttemptID, text string) {
	if m := s.find(claim, id); m != nil {
		m.mu.Lock()
		m.dumpable = text
		m.mu.Unlock()
	}
}

// setCheckpointInfo notes whether the attempt can be saved when it has to leave, and when
// it last was.
func (s *attemptMeters) setCheckpointInfo(claim slot.ClaimID, id roost.AttemptID, saves slot.CheckpointInfo) {
	if m := s.find(claim, id); m != nil {
		m.mu.Lock()
		m.checkpoints = saves
		m.mu.Unlock()
	}
}

// checkpointInfo is what setCheckpointInfo noted of the attempt on a claim.
func (s *attemptMeters) checkpointInfo(claim *slot.Claim) slot.CheckpointInfo {
	m := s.find(claim.ID, claim.Attempt)
	if m == nil {
		return slot.CheckpointInfo{}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.checkpoints
}

// sortedMeters is all meters, those first that were heard of longest ago.
func (s *attemptMeters) sortedMeters() []*attemptMeter {
	s.mu.Lock()
	all := slices.Collect(maps.Values(s.all))
	s.mu.Unlock()
	slices.SortFunc(all, func(a, b *attemptMeter) int {
		return cmp.Or(a.lastSentAt().Compare(b.lastSentAt()), cmp.Compare(a.claim, b.claim))
	})
	return all
}

func (m *attemptMeter) lastSentAt() time.Time {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.sentAt
}

// totals is what all tasks together use now: cores, and bytes of memory.
func (s *attemptMeters) totals() (cores float64, memory int64) {
	for _, m := range s.sortedMeters() {
		m.mu.Lock()
		cores += m.rate
		memory += m.last.GetMemory()
		m.mu.Unlock()
	}
	return cores, memory
}
