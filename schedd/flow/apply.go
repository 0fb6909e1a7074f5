package flow

import (
	"maps"
	"slices"

	"github.com/roost-batch/roost/schedd/flow/graph"
)

// Apply changes the flow by what has happened. What concerns an attempt that is over is
// no news, and changes nothing.
func (r *Run) Apply(e FlowEvent) {
	switch e := e.(type) {
	case PartBegun:
		r.applyBegun(e)
	case PartEnded:
		r.applyEnded(e)
	case PartStopped:
		if _, runs := r.active[e.Node]; runs {
			r.active[e.Node] = true
		}
	case TasksMoved:
		if r.states[e.Node] == JobRuns {
			r.setIdle(e.Node, e.Idle)
		}
	case ProvisionerReady:
		if r.phase == Provisioning {
			r.phase = Executing
		}
	case FlowHalted:
		r.halted = e.On
	case LimitsChanged:
		r.limits = e.Limits
		r.unblockAll()
	case FlowRemoved:
		r.applyRemoved()
	case FlowRetried:
		r.applyRetried()
	}
	r.proceed()
}

// The states in which each part of a node may begin, and in which it runs.
var (
	partReady = [...]NodeState{PreReady, JobReady, PostReady}
	partRuns  = [...]NodeState{PreRuns, JobRuns, PostRuns}
)

func (r *Run) applyBegun(e PartBegun) {
	if r.states[e.Node] != partReady[e.Part] || e.Attempt != int(r.attempts[e.Node]) {
		return
	}
	r.moveNode(e.Node, partRuns[e.Part])
	r.active[e.Node] = false
	if !r.isCounted(e.Node) {
		return
	}
	r.running[e.Part]++
	if e.Part == JobPart {
		r.setIdle(e.Node, r.definition.tasks(e.Node))
	}
}

// setIdle notes how many tasks of the job of a node wait.
func (r *Run) setIdle(id graph.NodeID, idle int) {
	if !r.isCounted(id) {
		return
	}
	r.idleTasks += idle - r.jobIdle[id]
	if r.jobIdle[id] = idle; idle == 0 {
		delete(r.jobIdle, id)
	}
}

func (r *Run) applyEnded(e PartEnded) {
	if e.Attempt != int(r.attempts[e.Node]) {
		return
	}
	n := r.definition.Graph.Node(e.Node)
	switch {
	case r.states[e.Node] == partRuns[e.Part]:
		delete(r.active, e.Node)
		if r.isCounted(e.Node) {
			r.running[e.Part]--
		}
		if e.Part == JobPart {
			r.setIdle(e.Node, 0)
		}
	case e.Part == JobPart && r.states[e.Node] == JobReady && n.Flags&graph.NoopFlag != 0:
	default:
		return
	}
	switch n.Kind {
	case graph.FinalNode:
		r.endFinalPart(e)
	case graph.ServiceNode, graph.ProvisionerNode:
		r.endBesidePart(e, n)
	default:
		r.endPart(e, n)
	}
}

// endPart decides how a node goes on whose part has ended.
func (r *Run) endPart(e PartEnded, n *graph.Node) {
	rules := r.definition.rules(n)
	if r.phase >= Stopping {
		r.endStopped(e, rules)
		return
	}
	if to, more := r.followingPart(e, rules); more {
		r.moveReady(e.Node, to)
		return
	}
	code := e.Code
	if e.Part == PrePart && rules.PreSkip.matches(code) {
		code = 0
	}
	r.endNode(e.Node, code, rules)
}

// followingPart returns the part of a node that follows the one that has ended. It is
// false if that one decides about the node.
func (r *Run) followingPart(e PartEnded, rules NodeRules) (to NodeState, more bool) {
	result := r.results[e.Node]
	switch e.Part {
	case PrePart:
		result.pre = e.Code
		to = JobReady
		if more = e.Code == 0; !more && r.definition.AlwaysRunPost && rules.HasPost && !rules.PreSkip.matches(e.Code) {
			result.job = PreFailed
			to, more = PostReady, true
		}
	case JobPart:
		result.job = e.Code
		to, more = PostReady, rules.HasPost
	}
	if rules.HasPost && more {
		r.results[e.Node] = result
	}
	return to, more
}

// endNode is for a node whose last part has ended with a code.
func (r *Run) endNode(id graph.NodeID, code int, rules NodeRules) {
	delete(r.results, id)
	aborts := rules.AbortOn.matches(code)
	switch {
	case code == 0:
		r.moveNode(id, Done)
		r.releaseChildren(id, true)
	case !aborts && r.left[id] > 0 && !rules.UnlessExit.matches(code):
		r.left[id]--
		r.attempts[id]++
		r.beginNode(id)
		return
	default:
		r.moveNode(id, Failed)
		r.releaseChildren(id, false)
		if r.status == StatusOK {
			r.status = StatusNodeFailed
		}
		if r.definition.StopsAtFailure {
			r.phase = Stopping
		}
	}
	if aborts {
		if r.returned = code; rules.AbortReturn.IsSet {
			r.returned = rules.AbortReturn.Code
		}
		r.stop(StatusAborted)
	}
}

// endStopped ends a node of a flow that is aborted or removed. Only what was complete
// counts as done.
func (r *Run) endStopped(e PartEnded, rules NodeRules) {
	delete(r.results, e.Node)
	last := e.Part == PostPart || e.Part == JobPart && !rules.HasPost
	if e.Code == 0 && last {
		r.moveNode(e.Node, Done)
		r.releaseChildren(e.Node, true)
		return
	}
	r.moveNode(e.Node, Failed)
}

// endFinalPart is for a part of the FINAL node, which decides how the flow went.
func (r *Run) endFinalPart(e PartEnded) {
	rules := r.definition.rules(r.definition.Graph.Node(e.Node))
	if r.finalAgain {
		r.finalAgain, r.stops = false, nil
		r.attempts[e.Node]++
		r.beginNode(e.Node)
		return
	}
	if to, more := r.followingPart(e, rules); more {
		r.moveReady(e.Node, to)
		return
	}
	delete(r.results, e.Node)
	switch {
	case e.Code != 0 && !(e.Part == PrePart && rules.PreSkip.matches(e.Code)):
		r.moveNode(e.Node, Failed)
		if r.status == StatusOK {
			r.status = StatusNodeFailed
		}
	default:
		r.moveNode(e.Node, Done)
		if r.status == StatusNodeFailed || r.status == StatusError {
			r.status = StatusOK
		}
	}
	r.clean()
}

// endBesidePart is for a part of a node that runs beside the others. A flow is nothing
// without its PROVISIONER node.
func (r *Run) endBesidePart(e PartEnded, n *graph.Node) {
	rules := r.definition.rules(n)
	if to, more := r.followingPart(e, rules); more && r.phase < Cleaning {
		r.moveReady(e.Node, to)
		return
	}
	delete(r.results, e.Node)
	if r.moveNode(e.Node, Done); n.Kind == graph.ProvisionerNode && r.phase <= Executing {
		r.stop(StatusError)
	}
}

// applyRemoved removes the flow. A FINAL node that runs already begins again.
func (r *Run) applyRemoved() {
	switch {
	case r.phase <= Executing:
		r.stop(StatusRemoved)
	case r.phase == Stopping:
		r.status = StatusRemoved
	case r.phase == Finishing && r.status != StatusRemoved:
		r.status = StatusRemoved
		if _, runs := r.active[r.definition.Final]; runs {
			r.finalAgain = true
			r.stops = append(r.stops, r.definition.Final)
		}
	}
}

// stop has what runs of the graph removed.
func (r *Run) stop(why FlowStatus) {
	r.phase, r.status = Stopping, why
	for _, id := range slices.Sorted(maps.Keys(r.active)) {
		if r.isCounted(id) {
			r.stops = append(r.stops, id)
		}
	}
}

// clean has the nodes removed that run beside the others.
func (r *Run) clean() {
	r.phase = Cleaning
	r.stops = slices.Sorted(maps.Keys(r.active))
}

// proceed goes on to the next phase when nothing is left of the present one.
func (r *Run) proceed() {
	runs := 0
	for _, n := range r.running {
		runs += n
	}
	ready := r.counts[PreReady] + r.counts[JobReady] + r.counts[PostReady]
	if r.phase == Executing && runs+ready+r.counts[Waiting] == 0 || r.phase == Stopping && runs == 0 {
		r.stops = nil
		if r.phase = Finishing; r.definition.HasFinal {
			r.beginNode(r.definition.Final)
		} else {
			r.clean()
		}
	}
	if r.phase == Cleaning && len(r.active) == 0 {
		r.phase = Ended
	}
}

// applyRetried begins an ended flow again. Done nodes stay done.
func (r *Run) applyRetried() {
	if r.phase != Ended {
		return
	}
	for id, n := range r.definition.Graph.Nodes() {
		switch s := r.states[id]; {
		case !n.Kind.HasArcs(), n.Kind == graph.JoinNode && s != Done:
			r.states[id] = Waiting
		case s != Done && s != Waiting:
			r.moveNode(id, Waiting)
		}
		r.attempts[id] = 0
	}
	r.preQueue, r.jobQueue, r.postQueue, r.stops = nil, nil, nil, nil
	clear(r.aside)
	clear(r.results)
	r.finalAgain = false
	r.begin()
}
