package meter

import (
	"cmp"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/classad"
	"github.com/roost-batch/roost/internal/cgroup"
	"github.com/roost-batch/roost/internal/userfiles"
	"github.com/roost-batch/roost/internal/wire"
	"github.com/roost-batch/roost/startd/slot"
)

// Options are what the meters of a machine work with.
type Options struct {
	Log    *slog.Logger
	Dir    string               // of the startd, on whose file system attempts write
	Disks  DiskLimits           // for tasks that ask for nothing
	Agents *userfiles.AgentPool // by which directories are measured
}

// Meters are those of all attempts that run on a machine. Several goroutines may use
// them.
type Meters struct {
	opt    Options
	window time.Duration // length of the windows of usage
	mu     sync.Mutex
	all    map[slot.ClaimID]*attemptMeter
}

// New returns meters of no attempt.
func New(opt Options) *Meters {
	return &Meters{opt: opt, window: windowLength(), all: make(map[slot.ClaimID]*attemptMeter)}
}

// Start begins to measure an attempt. It is called before the starter is told to run the
// attempt, and after a restart of the startd for one that runs.
func (s *Meters) Start(a Attempt) {
	s.add(&attemptMeter{Attempt: a, measureAt: time.Now().Add(diskCheckInterval),
		windows: usageWindows{length: s.window}})
}

func (s *Meters) add(m *attemptMeter) {
	s.mu.Lock()
	s.all[m.Claim] = m
	s.mu.Unlock()
}

// Finish ends the measurement of an attempt of which no process is left. It puts what the
// attempt has used into the news of its end, and says so if that is what has ended it. It
// returns where the next attempt on the claim counts from, nil if that is not known, and
// the last windows of its usage.
func (s *Meters) Finish(claim slot.ClaimID, id roost.AttemptID, status *wire.ExitStatus) (next *Baseline,
	windows []*wire.UsageWindow) {
	m := s.remove(claim, id)
	if m == nil {
		return nil, nil
	}
	if totals := m.sampleEnd(); totals != nil {
		next = &Baseline{Group: cgroup.GroupUsage{GroupTotals: *totals, Memory: m.Baseline.Group.Memory}}
	}
	u := m.last
	if status.Wall > 0 {
		u.Wall = status.Wall
	}
	// The starter has the times of all that it waited for, also where nothing else is
	// counted.
	u.UserCpu, u.SystemCpu = max(u.UserCpu, status.UserCpu), max(u.SystemCpu, status.SystemCpu)
	if u.PeakMemory == 0 {
		u.PeakMemory = status.MaxRss // it has ended before it was seen
	}
	m.attributeFailure(status)
	m.mu.Lock()
	windows = m.windows.finish(u)
	if m.Steps != nil {
		status.Steps = m.Steps(true)
	}
	m.mu.Unlock()
	u.Memory, u.Processes, u.Frozen, u.Gpu, u.GpuMemory = 0, 0, false, 0, 0
	status.Usage = u
	return next, windows
}

// remove ends the measurement of an attempt; nil when it was not measured.
func (s *Meters) remove(claim slot.ClaimID, id roost.AttemptID) *attemptMeter {
	s.mu.Lock()
	defer s.mu.Unlock()
	m := s.all[claim]
	if m == nil || m.ID != id {
		return nil
	}
	delete(s.all, claim)
	return m
}

// find returns the meter of an attempt; nil when it is not measured.
func (s *Meters) find(claim slot.ClaimID, id roost.AttemptID) *attemptMeter {
	s.mu.Lock()
	defer s.mu.Unlock()
	if m := s.all[claim]; m != nil && m.ID == id {
		return m
	}
	return nil
}

// LastUsage measures an attempt and returns what it has used; nil when it has no meter.
func (s *Meters) LastUsage(claim slot.ClaimID, id roost.AttemptID) *wire.TaskUsage {
	m := s.find(claim, id)
	if m == nil {
		return nil
	}
	m.sample()
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.last
}

// SetDumpable notes whether an image of an attempt can be taken, for the next report.
func (s *Meters) SetDumpable(claim slot.ClaimID, id roost.AttemptID, text string) {
	if m := s.find(claim, id); m != nil {
		m.mu.Lock()
		m.dumpable = text
		m.mu.Unlock()
	}
}

// SetCheckpointInfo notes whether the attempt can be saved when it has to leave, and when
// it last was.
func (s *Meters) SetCheckpointInfo(claim slot.ClaimID, id roost.AttemptID, saves slot.CheckpointInfo) {
	if m := s.find(claim, id); m != nil {
		m.mu.Lock()
		m.checkpoints = saves
		m.mu.Unlock()
	}
}

// CheckpointInfo returns what SetCheckpointInfo noted of the attempt on a claim.
func (s *Meters) CheckpointInfo(claim *slot.Claim) slot.CheckpointInfo {
	m := s.find(claim.ID, claim.Attempt)
	if m == nil {
		return slot.CheckpointInfo{}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.checkpoints
}

// sortedMeters is all meters, those first that were heard of longest ago.
func (s *Meters) sortedMeters() []*attemptMeter {
	s.mu.Lock()
	all := slices.Collect(maps.Values(s.all))
	s.mu.Unlock()
	slices.SortFunc(all, func(a, b *attemptMeter) int {
		return cmp.Or(a.lastSentAt().Compare(b.lastSentAt()), cmp.Compare(a.Claim, b.Claim))
	})
	return all
}

// totals is what all tasks together use now: cores, and bytes of memory.
func (s *Meters) totals() (cores float64, memory int64) {
	for _, m := range s.sortedMeters() {
		m.mu.Lock()
		cores += m.rate
		memory += m.last.GetMemory()
		m.mu.Unlock()
	}
	return cores, memory
}

// CurrentUse returns the cores and bytes of memory that an attempt uses, as measured
// last. False: it is not measured.
func (s *Meters) CurrentUse(claim slot.ClaimID, id roost.AttemptID) (cores float64, memory roost.Bytes, ok bool) {
	m := s.find(claim, id)
	if m == nil {
		return 0, 0, false
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.rate, roost.Bytes(m.last.GetMemory()), true
}

// Describe writes into the machine's ad what its tasks use.
func (s *Meters) Describe(ad *classad.Ad) {
	cores, memory := s.totals()
	ad.SetReal(roost.AttrTasksCpu, float64(int64(cores*100+0.5))/100)
	ad.SetInt(roost.AttrTasksMemory, memory/int64(roost.MiB))
}
