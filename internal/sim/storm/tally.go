package storm

import "github.com/roost-batch/roost/internal/sim/fault"

// Tally adds up how runs went.
type Tally struct {
	Seeds    int
	Broken   []uint64 // seeds that broke a promise, in the order in which they were added
	Events   uint64
	Tasks    int
	Injected [17]int // faults by kind
}

// Add takes in how the run of a seed went.
func (t *Tally) Add(seed uint64, o *Outcome) {
	t.Seeds++
	t.Events += o.Events
	t.Tasks += o.Tasks
	for k, n := range o.Injected {
		t.Injected[k] += n
	}
	if len(o.Breaches) > 0 {
		t.Broken = append(t.Broken, seed)
	}
}

// Faults is how many faults there were in all.
func (t *Tally) Faults() (n int) {
	for _, k := range fault.Kinds() {
		n += t.Injected[k]
	}
	return n
}
