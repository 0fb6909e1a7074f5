package pool

import (
	"math"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/wire"
	"github.com/roost-batch/roost/startd/slot"
)

// LoadModel is how the tasks of a service use memory, by which the number of tasks
// follows its load. Naively a task would say so itself; here as in a pool its machine
// measures it, and may be wrong.
type LoadModel struct {
	Every  time.Duration // between two reports of a machine
	Target float64       // the part of its memory that a task is to use
	Silent int           // one of so many reports does not come; 0: all come
	Wrong  int           // one of so many reports is of any number; 0: none is
	Until  time.Duration // from then on each task uses the target, and its machine says so
}

// scheduleLoad plans the next report of what a running program uses.
func (s *starterProcess) scheduleLoad() {
	if model := s.runner.machine.pool.cfg.Jobs[s.job].Load; model != nil && !s.initial {
		s.scheduleDue(model.Every, dueLoad)
	}
}

// loadMeasured reports to the startd what a task uses of its memory.
type loadMeasured struct {
	claim   slot.ClaimID
	attempt roost.AttemptID
	memory  int64
}

// measureLoad has the startd measure what a program uses, if it is there.
func (s *starterProcess) measureLoad() {
	m := s.runner.machine
	use, ok := m.pool.drawLoad(m.pool.cfg.Jobs[s.job].Load, s.runner.limit.Memory)
	if ok {
		m.scheduleEvent(m.pool.loop.Now(), evReport, uint64(s.runner.id), &loadMeasured{s.runner.id, s.attempt, use})
	}
	s.scheduleLoad()
}

// reportLoad tells the schedd what an attempt uses.
func (m *machineNode) reportLoad(x *loadMeasured) {
	h := m.claimRunners[x.claim]
	c, ok := m.core.Claim(x.claim)
	if !ok || h == nil || !c.Running || h.starter.attempt != x.attempt || h.starter.phase != phaseRunning {
		return
	}
	m.sendToSchedd(c.Schedd, &wire.FromStartd{Of: &wire.FromStartd_Usage{Usage: &wire.UsageReport{
		Attempts: []*wire.AttemptUsage{{Attempt: reference(x.attempt), Usage: &wire.TaskUsage{
			Time: m.wallTime().UnixNano(), Wall: int64(m.bootTime() - h.starter.began), Memory: x.memory}}},
	}}})
}

// drawLoad draws what a machine says that a task uses of its memory. It is false when it
// says nothing.
func (p *Pool) drawLoad(model *LoadModel, memory roost.Bytes) (use int64, ok bool) {
	target := model.Target * float64(memory)
	if p.loop.Now() >= model.Until {
		return int64(target), true
	}
	oneIn := func(n int) bool { return n > 0 && p.rand.Uint64()%uint64(n) == 0 }
	switch {
	case oneIn(model.Silent):
		return 0, false
	case oneIn(model.Wrong):
		return [...]int64{math.MinInt64, -1, 0, 1, math.MaxInt64}[p.rand.Uint64()%5], true
	}
	return int64(target * float64(p.rand.Between(0, 3*time.Second)) / float64(time.Second)), true
}
