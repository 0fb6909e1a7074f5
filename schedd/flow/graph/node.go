package graph

// NodeID is the number of a node. Numbers begin with 0, in the order of AddNode.
type NodeID uint32

// NodeKind says what a node is for.
type NodeKind uint8

// The kinds of nodes. Only the first three have arcs.
const (
	JobNode         NodeKind = iota // runs jobs
	SubflowNode                     // runs another flow
	JoinNode                        // runs nothing: it stands for arcs from many nodes to many
	FinalNode                       // runs when all else has ended
	ProvisionerNode                 // runs before all else
	ServiceNode                     // runs beside all else
)

// kindNames are the commands of DAG files that define nodes of each kind.
var kindNames = [...]string{"JOB", "SUBDAG", "join", "FINAL", "PROVISIONER", "SERVICE"}

// String is the command that defines nodes of the kind.
func (k NodeKind) String() string {
	if int(k) < len(kindNames) {
		return kindNames[k]
	}
	return "unknown kind"
}

// HasArcs reports whether nodes of this kind depend on others.
func (k NodeKind) HasArcs() bool { return k <= JoinNode }

// NodeFlags are properties of a node that are on or off.
type NodeFlags uint8

// The flags of a node.
const (
	DoneFlag NodeFlags = 1 << iota // it was done before the flow begins
	NoopFlag                       // its jobs are not run
)

// Node is one node. The numbers in it lead into tables of the flow's owner; 0 is none.
type Node struct {
	nameStart uint32 // in the slab of names
	nameSize  uint16
	Kind      NodeKind
	Flags     NodeFlags

	Description uint32 // what the node runs
	Settings    uint32 // its seldom used settings
	Vars        uint32 // its first variable

	firstArc uint32 // in the array of children
	arcs     uint32 // number of children
	Parents  uint32 // number of nodes that it waits for

	Line     uint32 // where it is defined
	File     uint16
	Priority int16
	Category uint16
	Retry    uint16 // how often it is tried again
	Depth    uint32 // arcs on the longest path from a node without parents; set by Finish
}

// Arc is the end of an arc at a child, and whether the arc is weak. A weak arc wants its
// parent executed, not successful. Of two arcs to a child the strong one is lower.
type Arc uint32

func newArc(child NodeID, weak bool) Arc {
	a := Arc(child) << 1
	if weak {
		a |= 1
	}
	return a
}

// Child is the node at which the arc ends.
func (a Arc) Child() NodeID { return NodeID(a >> 1) }

// IsWeak reports whether it is enough that the parent has been executed.
func (a Arc) IsWeak() bool { return a&1 == 1 }

// nodesOfPage is the number of nodes in a page. Pages are never copied, so a graph that
// grows needs no room for two copies of it.
const nodesOfPage = 1 << 10

type nodePage [nodesOfPage]Node

// MaxNodes bounds the number of nodes of a graph.
const MaxNodes = 1 << 26
