package fuzz

import (
	"fmt"
	"slices"
	"time"

	"github.com/roost-batch/roost/internal/sim/audit"
	"github.com/roost-batch/roost/internal/sim/faults"
)

// flowStream seeds a separate stream for flows.
const flowStream = 0x666c6f77

// flowNumber is the number of a case's flow.
const flowNumber = 4000

// Bounds on flows.
const (
	maxFlowNodes = 9
	maxFlowTask  = 15 * time.Second
)

// drawFlow draws a flow, which every third case has.
func (c *PoolCase) drawFlow(r *faults.SeededRand) {
	if !r.OneIn(3) {
		return
	}
	j := c.drawJob(r.Split(), flowNumber)
	j.At, j.Tasks, j.Code, j.Tries = r.Duration(c.FaultsEnd/3), 1, 0, 0
	j.Length = r.SkewedDuration(minTask, maxFlowTask)
	j.Flow = &audit.FlowTerms{}
	if r.OneIn(3) {
		j.Flow.MaxJobs = r.Between(1, 3)
	}
	for i := range r.Between(2, maxFlowNodes) {
		n := audit.FlowNode{IsWeak: r.OneIn(4), Retries: r.Intn(3), IsNoop: r.OneIn(6)}
		for parent := range i {
			if r.OneIn(3) {
				n.Parents = append(n.Parents, parent)
			}
		}
		if r.OneIn(3) && !n.IsNoop {
			n.Failures = r.Between(1, 3)
		}
		j.Flow.Nodes = append(j.Flow.Nodes, n)
	}
	if r.OneIn(3) {
		j.Flow.Nodes = append(j.Flow.Nodes, audit.FlowNode{IsFinal: true})
	}
	if !r.OneIn(3) {
		j.Actions = nil
	}
	c.Jobs = append(c.Jobs, j)
}

// flowText describes a flow as a part of what its user submits.
func flowText(f *audit.FlowTerms) string {
	text := fmt.Sprintf("; as each of the nodes of a flow (at most %d jobs)", f.MaxJobs)
	for i, n := range f.Nodes {
		text += fmt.Sprintf(" n%d", i)
		if len(n.Parents) > 0 {
			text += fmt.Sprintf(" after %v", n.Parents)
			if n.IsWeak {
				text += " weakly"
			}
		}
		if n.Failures > 0 {
			text += fmt.Sprintf(" fails %d times of %d", n.Failures, n.Retries+1)
		}
		if n.IsNoop {
			text += " NOOP"
		}
		if n.IsFinal {
			text += " FINAL"
		}
		text += ";"
	}
	return text
}

// dropDamagedFlow drops the flow of a case in which a bit of a log on disk changes. What
// a flow does after a repair has lost events of it is not modelled.
func (c *PoolCase) dropDamagedFlow() {
	if slices.ContainsFunc(c.Faults, func(f faults.Fault) bool { return f.Kind == faults.BitFlip }) {
		c.Jobs = slices.DeleteFunc(c.Jobs, func(j CaseJob) bool { return j.Flow != nil })
	}
}
