package flow

import "github.com/roost-batch/roost/schedd/flow/graph"

// FlowEvent is something that has happened to a flow. What Next returns becomes one
// before it is done.
type FlowEvent interface{ isFlowEvent() }

// PartBegun is a part of a node that begins. Its key, by which nothing is done twice, is
// the number of the run, the node, its attempt and the part.
type PartBegun struct {
	Node    graph.NodeID
	Attempt int
	Part    NodePart
	Job     uint64 // that runs it, for the owner
}

// PartEnded is a part that has ended. The code is an exit code, the negative number of a
// signal, or one of SubmitFailed and JobRemoved.
type PartEnded struct {
	Node    graph.NodeID
	Attempt int
	Part    NodePart
	Code    int
	Reason  string // of a failure, for people
}

// PartStopped is a part of which the removal has begun. It ends later.
type PartStopped struct{ Node graph.NodeID }

// TasksMoved says how many tasks of the job of a node wait now.
type TasksMoved struct {
	Node graph.NodeID
	Idle int
}

// ProvisionerReady lets the nodes begin.
type ProvisionerReady struct{}

// FlowHalted stops the begin of parts but POST scripts, or lets them begin again.
type FlowHalted struct{ On bool }

// LimitsChanged changes the limits.
type LimitsChanged struct{ Limits Limits }

// FlowRemoved ends the flow: what runs of it is removed.
type FlowRemoved struct{}

// FlowRetried begins an ended flow again, without the nodes that are done.
type FlowRetried struct{}

func (PartBegun) isFlowEvent()        {}
func (PartEnded) isFlowEvent()        {}
func (PartStopped) isFlowEvent()      {}
func (TasksMoved) isFlowEvent()       {}
func (ProvisionerReady) isFlowEvent() {}
func (FlowHalted) isFlowEvent()       {}
func (LimitsChanged) isFlowEvent()    {}
func (FlowRemoved) isFlowEvent()      {}
func (FlowRetried) isFlowEvent()      {}
