package fuzz

import "github.com/roost-batch/roost/internal/sim/faults"

// RunStats adds up the outcomes of runs.
type RunStats struct {
	Seeds     int
	Violating []uint64 // seeds with a violation, in the order in which they were added
	Events    uint64
	Tasks     int
	Injected  [17]int // faults by kind
}

// Add adds the outcome of a seed.
func (t *RunStats) Add(seed uint64, o *RunOutcome) {
	t.Seeds++
	t.Events += o.Events
	t.Tasks += o.Tasks
	for k, n := range o.Injected {
		t.Injected[k] += n
	}
	if len(o.Violations) > 0 {
		t.Violating = append(t.Violating, seed)
	}
}

// FaultCount returns the number of faults in all runs.
func (t *RunStats) FaultCount() (n int) {
	for _, k := range faults.AllKinds() {
		n += t.Injected[k]
	}
	return n
}
