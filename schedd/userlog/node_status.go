package userlog

import (
	"bufio"
	"fmt"
	"io"
	"time"

	"github.com/roost-batch/roost/classad"
	"github.com/roost-batch/roost/schedd/flow"
	"github.com/roost-batch/roost/schedd/flow/graph"
	"github.com/roost-batch/roost/schedd/flow/plan"
	"github.com/roost-batch/roost/schedd/queue"
)

// nodeStatus is the state of a node as DAGMan numbers it.
type nodeStatus int

// The states of nodes in a node status file (HTCondor's manual, Current Node Status
// File).
const (
	notReady nodeStatus = iota
	nodeReady
	preRuns
	submitted
	postRuns
	nodeDone
	nodeError
	nodeFutile
)

var statusNames = [...]string{"STATUS_NOT_READY", "STATUS_READY", "STATUS_PRERUN", "STATUS_SUBMITTED",
	"STATUS_POSTRUN", "STATUS_DONE", "STATUS_ERROR", "STATUS_FUTILE"}

var statusOfState = map[flow.NodeState]nodeStatus{flow.Waiting: notReady, flow.PreReady: nodeReady,
	flow.PreRuns: preRuns, flow.JobReady: nodeReady, flow.JobRuns: submitted, flow.PostReady: postRuns,
	flow.PostRuns: postRuns, flow.Done: nodeDone, flow.Failed: nodeError, flow.Futile: nodeFutile}

// writeStatus writes a node status file: an ad of the flow, one of each node, and one at
// the end.
func writeStatus(to io.Writer, c *queue.FlowCapture) error {
	w := bufio.NewWriter(to)
	w.WriteString("[\n  Type = \"DagStatus\";\n  DagFiles = {")
	for i, name := range c.Plan.Files {
		if i > 0 {
			w.WriteByte(',')
		}
		w.WriteString("\n    " + quoteAd(name))
	}
	w.WriteString("\n  };\n")
	writeTime(w, "Timestamp", c.Time)
	status, note := flowStatus(c)
	fmt.Fprintf(w, "  DagStatus = %d; /* %s */\n", status, quoteAd(statusNames[status]+" ("+note+")"))
	var counts [len(statusNames)]int
	total := 0
	for id, n := range c.Plan.Graph.Nodes() {
		if n.Kind != graph.JoinNode {
			counts[statusOfState[c.States[id]]]++
			total++
		}
	}
	held, idle := 0, 0
	for _, t := range c.Tasks {
		held += t.Held
		idle += t.Idle + t.Held
	}
	for _, line := range []struct {
		name string
		n    int
	}{{"NodesTotal", total}, {"NodesDone", counts[nodeDone]}, {"NodesPre", counts[preRuns]},
		{"NodesQueued", counts[submitted]}, {"NodesPost", counts[postRuns]}, {"NodesReady", counts[nodeReady]},
		{"NodesUnready", counts[notReady]}, {"NodesFutile", counts[nodeFutile]}, {"NodesFailed", counts[nodeError]},
		{"JobProcsHeld", held}} {
		fmt.Fprintf(w, "  %s = %d;\n", line.name, line.n)
	}
	fmt.Fprintf(w, "  JobProcsIdle = %d; /* includes held */\n]\n", idle)
	for id, n := range c.Plan.Graph.Nodes() {
		if n.Kind != graph.JoinNode {
			writeNode(w, c, id, n)
		}
	}
	w.WriteString("[\n  Type = \"StatusEnd\";\n")
	writeTime(w, "EndTime", c.Time)
	if c.Phase == flow.Ended {
		w.WriteString("  NextUpdate = 0; /* \"none\" */\n")
	} else {
		writeTime(w, "NextUpdate", c.Time.Add(time.Duration(c.Plan.Reports.Status.MinInterval)*time.Second))
	}
	w.WriteString("]\n")
	return w.Flush()
}

// quoteAd is a text as ads write it.
func quoteAd(text string) string { return classad.StringValue(text).Expr().String() }

func writeTime(w *bufio.Writer, name string, t time.Time) {
	fmt.Fprintf(w, "  %s = %d; /* %s */\n", name, t.Unix(), quoteAd(t.Local().Format(time.ANSIC)))
}

// flowStatus is how a flow goes, with a note.
func flowStatus(c *queue.FlowCapture) (s nodeStatus, note string) {
	switch c.Status {
	case flow.StatusAborted:
		note = "aborted"
	case flow.StatusRemoved:
		note = "removed"
	}
	switch {
	case c.Phase != flow.Ended:
		if note == "" && c.Held {
			note = "held"
		}
		return submitted, note
	case c.Status == flow.StatusOK:
		return nodeDone, "success"
	case note == "":
		note = "failed"
	}
	return nodeError, note
}

func writeNode(w *bufio.Writer, c *queue.FlowCapture, id graph.NodeID, n *graph.Node) {
	status, tasks := statusOfState[c.States[id]], c.Tasks[id]
	details := ""
	switch status {
	case submitted:
		if details = "not_idle"; tasks.Idle+tasks.Held > 0 {
			details = "idle"
		}
	case nodeError:
		details = c.Reasons[id]
	case nodeFutile:
		details = "Had an ancestor node fail"
	case nodeDone:
		if n.Flags&graph.DoneFlag != 0 {
			details = "User defined as DONE"
		}
	}
	fmt.Fprintf(w, "[\n  Type = \"NodeStatus\";\n  Node = %s;\n  NodeStatus = %d; /* \"%s\" */\n"+
		"  StatusDetails = %s;\n  RetryCount = %d;\n  JobProcsQueued = %d;\n  JobProcsHeld = %d;\n]\n",
		quoteAd(c.Plan.Graph.Name(id)), status, statusNames[status], quoteAd(oneLine(details)), c.Attempts[id],
		tasks.Queued, tasks.Held)
}

// pictureStyles are how nodes of each state are drawn, and the word behind their names.
var pictureStyles = [...]struct{ word, style string }{
	notReady: {"I", "shape=ellipse"}, nodeReady: {"I", "shape=ellipse"},
	preRuns:   {"Pre", "shape=ellipse style=dotted"},
	submitted: {"R", "shape=ellipse peripheries=2"},
	postRuns:  {"Post", "shape=ellipse style=dotted"},
	nodeDone:  {"Done", "shape=ellipse style=bold"},
	nodeError: {"E", "shape=box"}, nodeFutile: {"I", "shape=ellipse"},
}

// writePicture draws a flow in the language of Graphviz. Join nodes are points, and weak
// arcs are dashed.
func writePicture(to io.Writer, c *queue.FlowCapture, d *plan.DotFile) error {
	w := bufio.NewWriter(to)
	fmt.Fprintf(w, "digraph DAG {\n    label=\"DAGMan Job status at %s\";\n\n", c.Time.Local().Format(time.ANSIC))
	if d.Source != "" {
		fmt.Fprintf(w, "// Beginning of commands included from %s.\n%s\n// End of commands included from %s.\n\n",
			oneLine(d.Source), d.Commands, oneLine(d.Source))
	}
	for id, n := range c.Plan.Graph.Nodes() {
		if n.Kind == graph.JoinNode {
			fmt.Fprintf(w, "    %s [shape=point];\n", pictureName(c, id))
			continue
		}
		s := pictureStyles[statusOfState[c.States[id]]]
		if !d.IsUpdated { // it shows the flow as it was submitted
			if s = pictureStyles[nodeReady]; n.Flags&graph.DoneFlag != 0 {
				s = pictureStyles[nodeDone]
			}
		}
		fmt.Fprintf(w, "    %s [%s label=%s];\n", pictureName(c, id), s.style,
			quoteAd(oneLine(c.Plan.Graph.Name(id))+" ("+s.word+")"))
	}
	w.WriteByte('\n')
	for id := range c.Plan.Graph.Nodes() {
		for _, a := range c.Plan.Graph.Children(id) {
			fmt.Fprintf(w, "    %s -> %s", pictureName(c, id), pictureName(c, a.Child()))
			if a.IsWeak() {
				w.WriteString(" [style=dashed]")
			}
			w.WriteString(";\n")
		}
	}
	w.WriteString("}\n")
	return w.Flush()
}

// pictureName is the name of a node in a picture. Join nodes have names that no node can
// have.
func pictureName(c *queue.FlowCapture, id graph.NodeID) string {
	if c.Plan.Graph.Node(id).Kind == graph.JoinNode {
		return fmt.Sprintf("\" %d\"", id)
	}
	return quoteAd(oneLine(c.Plan.Graph.Name(id)))
}
