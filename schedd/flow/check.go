package flow

import (
	"fmt"

	"github.com/roost-batch/roost/schedd/flow/graph"
)

// Check returns the first invariant that does not hold. It looks at all nodes and arcs,
// so it is for tests.
func (r *Run) Check() error {
	if err := r.checkCounts(); err != nil {
		return err
	}
	waits := make([]uint32, len(r.states))
	for id := range r.definition.Graph.Nodes() {
		for _, a := range r.definition.Graph.Children(id) {
			child := a.Child()
			executed := r.states[id] == Done || r.states[id] == Failed && a.IsWeak() && r.phase < Stopping
			if !executed {
				waits[child]++
			}
			isOld := a.IsWeak() && r.number > 1 // the parent has failed before, and is tried again
			if s := r.states[child]; s != Waiting && s != Futile && !executed && !isOld && r.phase < Stopping &&
				r.definition.Graph.Node(child).Flags&graph.DoneFlag == 0 {
				return fmt.Errorf("node %s is %v, and its parent %s is %v", r.definition.Graph.Name(child), s,
					r.definition.Graph.Name(id), r.states[id])
			}
		}
	}
	for id, n := range r.definition.Graph.Nodes() {
		if r.phase < Stopping && n.Kind.HasArcs() && r.states[id] == Waiting &&
			(waits[id] != r.waits[id] || waits[id] == 0) {
			return fmt.Errorf("node %s waits for %d parents, and says %d", r.definition.Graph.Name(id), waits[id],
				r.waits[id])
		}
		if _, runs := r.active[id]; runs != r.states[id].IsActive() {
			return fmt.Errorf("node %s is %v, and counts as active: %v", r.definition.Graph.Name(id), r.states[id],
				runs)
		}
	}
	return nil
}

// checkCounts compares the counters with a recount.
func (r *Run) checkCounts() error {
	counts, running, jobs := [stateCount]int{}, [PostPart + 1]int{}, map[uint16]int{}
	for id, n := range r.definition.Graph.Nodes() {
		if !r.isCounted(id) {
			continue
		}
		counts[r.states[id]]++
		for part, s := range partRuns {
			if r.states[id] == s {
				running[part]++
			}
		}
		if r.states[id] == JobRuns {
			jobs[n.Category]++
		}
	}
	idle := 0
	for id, n := range r.jobIdle {
		if idle += n; r.states[id] != JobRuns {
			return fmt.Errorf("node %s has %d idle tasks, and is %v", r.definition.Graph.Name(id), n, r.states[id])
		}
	}
	for category, n := range r.categoryJobs {
		if jobs[category] != n {
			return fmt.Errorf("category %d has %d jobs, and counts %d", category, jobs[category], n)
		}
	}
	switch {
	case counts != r.counts:
		return fmt.Errorf("the nodes are %v, and count as %v", counts, r.counts)
	case running != r.running:
		return fmt.Errorf("%v parts run, and %v are counted", running, r.running)
	case idle != r.idleTasks:
		return fmt.Errorf("%d tasks are idle, and %d are counted", idle, r.idleTasks)
	}
	return nil
}
