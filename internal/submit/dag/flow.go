package dag

import "github.com/roost-batch/roost/schedd/flow/graph"

// Flow is what some DAG files describe. Numbers of nodes lead into its tables, where 0 is
// none.
type Flow struct {
	Graph *graph.Graph
	Files []string         // the files that were read, by Node.File
	Texts *graph.TextTable // names of files, directories, commands and variables

	Inline     []InlineDescription // submit descriptions in DAG files, see Description
	Settings   []NodeSettings      // by Node.Settings
	Scripts    []NodeScript        // by NodeSettings.Scripts
	Vars       []NodeVariable      // by Node.Vars
	Categories []NodeCategory      // by Node.Category

	Cycle       []graph.NodeID // nodes that wait for each other; nil if there are none
	Splices     int
	Final       graph.NodeID // valid if HasFinal is set
	Provisioner graph.NodeID // valid if HasProvisioner is set

	HasFinal, HasProvisioner bool

	DotFiles     []DotFile
	StatusFile   StatusFile
	JobstateLog  string
	ConfigFile   string
	Environment  []EnvironmentCommand
	Attributes   []string // NAME = VALUE, of the flow's own ad
	nextVariable []uint32 // by variable: the next one of its node
	sharedRecord []bool   // by settings: several nodes have them
}

// InlineDescription is a submit description that is written in a DAG file.
type InlineDescription struct {
	Name string // of SUBMIT-DESCRIPTION; empty for that of one node
	Text string
	File uint16
	Line uint32 // of the first line of Text
}

// inlineBit is set in descriptions that are a number of Flow.Inline.
const inlineBit = 1 << 31

// Description returns what a node runs: its inline description, or the name of a file.
// For a node that runs another flow it is a DAG file.
func (f *Flow) Description(n *graph.Node) (file string, inline *InlineDescription) {
	if n.Description&inlineBit != 0 {
		return "", &f.Inline[n.Description&^inlineBit]
	}
	return f.Texts.Text(graph.TextID(n.Description)), nil
}

// ScriptKind says when a script runs.
type ScriptKind uint8

// The kinds of scripts.
const (
	PreScript ScriptKind = iota
	PostScript
	HoldScript
)

// scriptKinds are the words of the kinds.
var scriptKinds = [...]string{"PRE", "POST", "HOLD"}

// String is the word of the kind.
func (k ScriptKind) String() string { return scriptKinds[k] }

// NodeSettings are settings that few nodes have, or that many nodes share.
type NodeSettings struct {
	Directory graph.TextID // where the node's jobs and scripts run
	SavePoint graph.TextID // the file that is written when the node starts first
	Scripts   [3]uint32    // by ScriptKind, in Flow.Scripts

	PreSkip     OptionalCode // of the PRE script: the node is done without its jobs
	UnlessExit  OptionalCode // of the node: it is not tried again
	AbortOn     OptionalCode // of the node: the flow ends
	AbortReturn OptionalCode // what the flow ends with after AbortOn

	Tolerance        uint32 // jobs of the node that may fail
	ToleranceIsShare bool   // Tolerance is in percent
	FailsFast        bool   // with too many failed jobs the others are removed
	HasTolerance     bool
}

// OptionalCode is an exit code, or none.
type OptionalCode struct {
	Code  int32
	IsSet bool
}

func codeOf(n int) OptionalCode { return OptionalCode{int32(n), true} }

// ScriptOutput says which output of a script a file gets.
type ScriptOutput uint8

// The outputs of a script.
const (
	NoOutput ScriptOutput = iota
	StandardOutput
	StandardError
	AllOutput
)

// NodeScript is a script that runs at the submit node.
type NodeScript struct {
	Command      graph.TextID // executable and arguments, as they are written
	DeferSeconds uint32       // after which it runs again if it ended with DeferStatus
	DeferStatus  OptionalCode
	DebugFile    graph.TextID
	DebugOutput  ScriptOutput
}

// NodeVariable is a variable of a node's submit description.
type NodeVariable struct {
	Name, Value graph.TextID
	Placement   VariablePlacement
}

// VariablePlacement says where a variable is set in the submit description.
type VariablePlacement uint8

// The placements of variables.
const (
	DefaultPlacement VariablePlacement = iota // before the description, unless DAGMan's configuration differs
	Prepended                                 // before it, so the description can use the variable
	Appended                                  // after it, so the variable counts
)

// Variables returns the variables of a node in the order in which they were set first.
func (f *Flow) Variables(n *graph.Node) (list []NodeVariable) {
	for v := n.Vars; v != 0; v = f.nextVariable[v] {
		list = append(list, f.Vars[v])
	}
	return list
}

// NodeCategory is a set of nodes of which only some run at a time.
type NodeCategory struct {
	Name    string
	MaxJobs int // -1: any number
	Nodes   int
	line    place // of MAXJOBS; of CATEGORY where there is none
}

// DotFile is a file with a picture of the flow.
type DotFile struct {
	Name, Header         string
	IsUpdated, Overwrite bool
}

// StatusFile is a file with the state of all nodes.
type StatusFile struct {
	Name        string
	MinInterval int // seconds between two versions
	IsAlways    bool
}

// EnvironmentCommand changes the environment of the flow.
type EnvironmentCommand struct {
	Text  string // NAME=VALUE;… with IsSet, otherwise names of the submitter's variables
	IsSet bool
}
