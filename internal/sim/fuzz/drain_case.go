package fuzz

import (
	"fmt"
	"slices"
	"time"

	"github.com/roost-batch/roost/internal/sim/faults"
	"github.com/roost-batch/roost/internal/sim/pool"
)

// CaseDrain is that an administrator drains a machine for a while.
type CaseDrain struct {
	At       time.Duration
	Machine  int // number of the machine
	Span     time.Duration
	Deadline time.Duration // this long after At all tasks end there; 0: none
}

// drainStream seeds a separate stream for drains.
const drainStream = 0x647261696e

// maxDrains is the maximum of drains in a case.
const maxDrains = 3

// drawDrains draws what administrators drain, in every third case. At the end of the
// faults nothing is drained.
func (c *PoolCase) drawDrains(r *faults.SeededRand) {
	if !r.OneIn(3) {
		return
	}
	for range r.Between(1, maxDrains) {
		d := CaseDrain{At: r.Duration(c.FaultsEnd * 3 / 4), Machine: c.Machines[r.Intn(len(c.Machines))].Number}
		d.Span = r.SkewedDuration(time.Second, c.FaultsEnd-d.At-time.Second)
		if r.OneIn(3) {
			d.Deadline = r.SkewedDuration(time.Second, d.Span+time.Second)
		}
		c.Drains = append(c.Drains, d)
	}
}

// poolDrains returns the drains of the machines that there are, in the form of package
// pool.
func (c *PoolCase) poolDrains() (all []pool.MachineDrain) {
	for _, d := range c.Drains {
		if slices.ContainsFunc(c.Machines, func(m CaseMachine) bool { return m.Number == d.Machine }) {
			all = append(all, pool.MachineDrain{At: d.At, Machine: machineName(d.Machine), Span: d.Span,
				Deadline: d.Deadline})
		}
	}
	return all
}

// text describes the drain.
func (d CaseDrain) text() string {
	text := fmt.Sprintf("an administrator drains %s for %v", machineName(d.Machine), d.Span)
	if d.Deadline > 0 {
		text += fmt.Sprintf(", with a deadline after %v", d.Deadline)
	}
	return text
}
