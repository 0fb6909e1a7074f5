package plan

import (
	"github.com/roost-batch/roost/schedd/flow"
	"github.com/roost-batch/roost/schedd/flow/graph"
)

// Plan is a flow. Numbers of its nodes lead into its tables, in which 0 is none.
type Plan struct {
	Graph      *graph.Graph
	Texts      *graph.TextTable
	Templates  []JobTemplate  // by Node.Description
	Values     []graph.TextID // of columns; those of a node begin at Node.Vars
	Settings   []NodeSettings // by Node.Settings
	Scripts    []NodeScript   // by NodeSettings.Scripts
	Categories []Category     // by Node.Category

	Final, Provisioner       graph.NodeID // valid if the field below says so
	HasFinal, HasProvisioner bool

	Limits        flow.Limits // without categories
	DepthFirst    bool        // of the nodes with one priority the deepest begins first
	AlwaysRunPost bool        // the POST script runs also if the PRE script has failed
	// once a node has failed no other begins, and what runs ends by itself
	StopsAtFailure bool

	Directory   string   // absolute; scripts run there unless their node says otherwise
	Environment []string // of scripts, as NAME=VALUE
	Files       []string // the DAG files, by Node.File; the first one is that of the flow
	// a flow that ends otherwise than it should writes which nodes are done into this
	// file with .rescueNNN behind its name; empty: it does not
	RescueBase string
	Reports    Reports

	parents *parentIndex
}

// Reports are the files that a flow writes while it runs. Their names are absolute; one
// without a name is not written.
type Reports struct {
	JobstateLog   string
	FirstSequence int // of an attempt in JobstateLog, less one
	Status        StatusFile
	Dots          []DotFile
}

// IsEmpty reports whether no file shows the states of the nodes.
func (r *Reports) IsEmpty() bool { return r.Status.Name == "" && len(r.Dots) == 0 }

// StatusFile has the state of each node.
type StatusFile struct {
	Name        string
	MinInterval int  // seconds between two versions
	IsAlways    bool // a version is written after that time also where nothing has changed
}

// DotFile is a picture of the flow in the language of Graphviz.
type DotFile struct {
	Name      string
	Source    string // the file with Commands; empty: there is none
	Commands  string // of Graphviz, which are put behind the label
	IsUpdated bool   // a new version is written when a node changes
	Numbered  bool   // each version is a file of its own, with a number behind its name
}

// JobTemplate is what the jobs of some nodes have in common.
type JobTemplate struct {
	Ad      string // the job's ad, with references to columns
	Count   int    // number of tasks
	Columns []string
	// columns that the queue fills when a node begins: names of NodeColumns
	NodeColumns []string
	Source      string // where it is from, for messages: the name of a file
}

// The columns that are known when a node begins. They have the names of DAGMan's macros.
const (
	ColumnNode     = "JOB"              // the name of the node
	ColumnRetry    = "RETRY"            // how often it was tried again
	ColumnMost     = "MAX_RETRIES"      // how often it may be
	ColumnFlow     = "DAGManJobId"      // the number of the flow
	ColumnStatus   = "DAG_STATUS"       // how the flow goes
	ColumnFailures = "FAILED_COUNT"     // nodes that have failed
	ColumnParents  = "DAG_PARENT_NAMES" // the parents, with commas between them
)

// NodeColumns lists those columns.
func NodeColumns() []string {
	return []string{ColumnNode, ColumnRetry, ColumnMost, ColumnFlow, ColumnStatus, ColumnFailures, ColumnParents}
}

// NodeSettings are settings that few nodes have, or that many nodes share.
type NodeSettings struct {
	Directory graph.TextID // where the scripts of the node run; relative to Plan.Directory
	SavePoint graph.TextID // the file that is written when the node begins first
	Pre, Post uint32       // in Plan.Scripts
	Hold      uint32       // likewise; runs when a job of the node is held
	Rules     flow.NodeRules

	Tolerance        int  // tasks of the node's job that may fail
	ToleranceIsShare bool // Tolerance is in percent
	FailsFast        bool // with too many failed tasks the others are removed
}

// Tolerated returns how many tasks of a job may fail without the node failing.
func (s *NodeSettings) Tolerated(tasks int) int {
	if s.ToleranceIsShare {
		return tasks * s.Tolerance / 100
	}
	return s.Tolerance
}

// NodeScript is a script that runs at the submit node.
type NodeScript struct {
	Command      graph.TextID  // the program and its arguments, as they are written
	Defer        flow.ExitRule // it runs again after this code
	DeferSeconds int           // so much later
	DebugFile    graph.TextID  // gets its output; empty: no file does
	DebugOutput  uint8         // which: DebugStdout, DebugStderr, or both
}

// Bits of NodeScript.DebugOutput.
const (
	DebugStdout = 1 << iota
	DebugStderr
)

// Category is a set of nodes of which only some have jobs in the queue at a time.
type Category struct {
	Name    string
	MaxJobs int // -1: any number
}

// Definition returns what package flow needs of the plan. It shares the graph.
func (p *Plan) Definition() *flow.Definition {
	d := &flow.Definition{
		Graph: p.Graph, Rules: make([]flow.NodeRules, len(p.Settings)), Categories: make([]int, len(p.Categories)),
		Final: p.Final, HasFinal: p.HasFinal, Provisioner: p.Provisioner, HasProvisioner: p.HasProvisioner,
		DepthFirst: p.DepthFirst, AlwaysRunPost: p.AlwaysRunPost,
		StopsAtFailure: p.StopsAtFailure,
		Tasks:          func(id graph.NodeID) int { return p.Template(id).Count },
	}
	for i := range p.Settings {
		d.Rules[i] = p.Settings[i].Rules
	}
	for i, c := range p.Categories {
		d.Categories[i] = c.MaxJobs
	}
	return d
}

// Template returns the template of a node's job. One that runs nothing has the zero
// template.
func (p *Plan) Template(id graph.NodeID) *JobTemplate {
	return &p.Templates[p.Graph.Node(id).Description]
}

// SettingsOf returns the settings of a node.
func (p *Plan) SettingsOf(id graph.NodeID) *NodeSettings {
	return &p.Settings[p.Graph.Node(id).Settings]
}

// TaskColumn holds one value for each task of a job.
type TaskColumn struct {
	Name   string
	Values []string
}

// ColumnsOf returns the columns of a node's job, without those that the queue fills.
func (p *Plan) ColumnsOf(id graph.NodeID) []TaskColumn {
	t := p.Template(id)
	if len(t.Columns) == 0 {
		return nil
	}
	columns := make([]TaskColumn, len(t.Columns))
	at := p.Graph.Node(id).Vars
	for i, name := range t.Columns {
		columns[i] = TaskColumn{Name: name, Values: make([]string, t.Count)}
		for task := range t.Count {
			columns[i].Values[task] = p.Texts.Text(p.Values[at])
			at++
		}
	}
	return columns
}
