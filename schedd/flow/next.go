package flow

import "github.com/roost-batch/roost/schedd/flow/graph"

// Next returns what the flow does next; nil if it waits. Its owner applies the event and
// records it, and then does what it says: a part that has begun is run, one that is
// stopped is removed. The job of a NOOP node is not run, so its end comes at once. Asking
// again before that returns the same.
func (r *Run) Next() FlowEvent {
	if id, ok := r.nextStop(); ok {
		return PartStopped{id}
	}
	if r.phase == Executing {
		if id, ok := r.first(&r.postQueue, PostReady); ok && isBelow(r.running[PostPart], r.limits.Post) {
			return r.begun(id, PostPart)
		}
	}
	if e := r.nextBeside(); e != nil {
		return e
	}
	if r.halted || r.phase != Executing {
		return nil
	}
	if id, ok := r.first(&r.preQueue, PreReady); ok && isBelow(r.running[PrePart], r.limits.Pre) {
		return r.begun(id, PrePart)
	}
	if isBelow(r.running[JobPart], r.limits.Jobs) && isBelow(r.idleTasks, r.limits.IdleTasks) {
		if id, ok := r.firstJob(); ok {
			return r.begun(id, JobPart)
		}
	}
	return nil
}

// isBelow reports whether one more is within a limit; 0 is none.
func isBelow(n, limit int) bool { return limit == 0 || n < limit }

// begun returns the event for a part that begins.
func (r *Run) begun(id graph.NodeID, p NodePart) FlowEvent {
	if p == JobPart && r.definition.Graph.Node(id).Flags&graph.NoopFlag != 0 {
		return PartEnded{Node: id, Attempt: int(r.attempts[id]), Part: JobPart}
	}
	return PartBegun{Node: id, Attempt: int(r.attempts[id]), Part: p}
}

// nextStop returns a node of which what runs is to be removed.
func (r *Run) nextStop() (id graph.NodeID, ok bool) {
	for len(r.stops) > 0 {
		id = r.stops[0]
		if stopping, runs := r.active[id]; runs && !stopping {
			return id, true
		}
		r.stops = r.stops[1:]
	}
	return 0, false
}

// nextBeside returns what a node does next that is beside the graph. There are few.
func (r *Run) nextBeside() FlowEvent {
	for _, id := range r.beside {
		s := r.states[id]
		if !s.isReady() || r.halted && s != PostReady {
			continue
		}
		allowed := false
		switch r.definition.Graph.Node(id).Kind {
		case graph.FinalNode:
			allowed = r.phase == Finishing
		case graph.ProvisionerNode:
			allowed = r.phase <= Executing
		case graph.ServiceNode:
			allowed = r.phase <= Executing
		}
		if allowed {
			for part, ready := range partReady {
				if ready == s {
					return r.begun(id, NodePart(part))
				}
			}
		}
	}
	return nil
}

// Result returns the codes of the PRE script and the job of a node. They are known from
// its PRE script on until its POST script has ended.
func (r *Run) Result(id graph.NodeID) (pre, job int) { return r.results[id].pre, r.results[id].job }

// DoneNodes returns the nodes that are done, in the order of the graph, without those
// beside it.
func (r *Run) DoneNodes() (list []graph.NodeID) {
	for id := range r.definition.Graph.Nodes() {
		if r.states[id] == Done && r.isCounted(id) {
			list = append(list, id)
		}
	}
	return list
}

// RescueNodes returns the nodes that a rescue file calls done. Beside those that are done
// these are failed ones for which no other node has to wait: all arcs from them are weak.
func (r *Run) RescueNodes() (list []graph.NodeID) {
	for id := range r.definition.Graph.Nodes() {
		if !r.isCounted(id) {
			continue
		}
		if s := r.states[id]; s == Done || s == Failed && r.hasOnlyWeakArcs(id) {
			list = append(list, id)
		}
	}
	return list
}

func (r *Run) hasOnlyWeakArcs(id graph.NodeID) bool {
	children := r.definition.Graph.Children(id)
	for _, a := range children {
		if !a.IsWeak() {
			return false
		}
	}
	return len(children) > 0
}
