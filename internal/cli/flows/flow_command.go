package flows

import (
	"fmt"
	"io"
	"slices"
	"strings"

	ucli "github.com/urfave/cli/v2"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/cli/frame"
	"github.com/roost-batch/roost/internal/document"
	"github.com/roost-batch/roost/internal/submit"
	"github.com/roost-batch/roost/internal/submit/dag"
	"github.com/roost-batch/roost/schedd/flow/graph"
)

// FlowCommand returns roost flow: check DAG files and draw them.
func FlowCommand() *frame.Command {
	return &frame.Command{
		Name: "flow", Group: frame.GroupRun, Summary: "run DAG files, whose jobs run in an order",
		Synopsis: "[submit FILE… | status [FLOW…] | halt FLOW… | resume FLOW… | throttle FLOW… | ready FLOW… | " +
			"rescue FLOW | check FILE… | dot FILE…]", MaxOperands: -1, Branches: flowBranches,
		Run: func(c *frame.Invocation) error { return c.RunSubcommand(flowBranches()) },
		Description: "A flow is a set of nodes that run jobs, and an order in which they run. It is described in " +
			"HCL, the language of job files, or in DAG files, the language of HTCondor's DAGMan. submit puts a " +
			"flow into the queue, where it is a job: " +
			"roost rm, hold, release, retry, wait and show are for flows, too. status shows how flows go, by " +
			"default all of yours. A halted flow begins no PRE script and submits no job until it is resumed. " +
			"throttle changes the limits of a flow that runs, and ready has the nodes begin that wait for the " +
			"PROVISIONER node. rescue prints which nodes are done, in the form of DAGMan. check reads each " +
			"file with the splices and includes in " +
			"it, and reports all mistakes, each with its line, its cause and its remedy. dot draws a flow in the " +
			"language of Graphviz. Several files of dot are one flow, in which the nodes are called 0.NAME, 1.NAME " +
			"and so on.",
		Examples: []frame.Example{
			{Line: "roost flow submit diamond.dag", Description: "run a flow; prints its id"},
			{Line: "roost flow submit sweep.hcl", Description: "the same for a flow in HCL"},
			{Line: "roost flow status --state failed 12", Description: "which nodes have failed, and why"},
			{Line: "roost flow throttle --max-jobs 100 12", Description: "no more than 100 jobs in " +
				"the queue at a time"},
			{Line: "roost flow check diamond.dag", Description: "its size, or what is wrong with it"},
			{Line: "roost flow dot diamond.dag | dot -Tsvg > diamond.svg", Description: "a picture of it"},
		},
		Flags: slices.Concat([]ucli.Flag{frame.JSONFlag(),
			&ucli.BoolFlag{Name: "no-files", Usage: "check: do not look for the files of jobs, some of which may be " +
				"written later"},
			&ucli.BoolFlag{Name: "use-dag-dir", Usage: "names of files are relative to the directory of the DAG file"}},
			submitFlags(), throttleFlags(), statusFlags()),
	}
}

func flowBranches() []frame.Subcommand {
	const flows = "the id of a flow"
	limits := []string{"max-jobs", "max-idle", "max-pre", "max-post"}
	return []frame.Subcommand{
		{Name: "rescue", Summary: "print a rescue file of a flow", MinOperands: 1, MaxOperands: 1,
			OperandNames: flows, Run: printRescue},
		{Name: "submit", Summary: "run the flow of DAG files", Flags: append([]string{"json", "use-dag-dir",
			"depth-first", "always-run-post", "rescue", "load-save", "name", "key", "cell", "hold", "wait",
			"sub-flow", "write-rescue"}, limits...),
			MinOperands: 1, MaxOperands: -1, OperandNames: "a DAG file", Run: submitFlow},
		{Name: "status", Summary: "show how flows go", Flags: []string{"json", "nodes", "state", "node"},
			MaxOperands: -1, OperandNames: flows, Run: showFlows},
		{Name: "halt", Summary: "begin no more nodes of flows", Flags: []string{"json"}, MinOperands: 1,
			MaxOperands: -1, OperandNames: flows, Run: orderFlow("halt", "halted")},
		{Name: "resume", Summary: "let halted flows go on", Flags: []string{"json"}, MinOperands: 1,
			MaxOperands: -1, OperandNames: flows, Run: orderFlow("resume", "goes on")},
		{Name: "throttle", Summary: "change the limits of flows", Flags: append([]string{"json", "max-category"},
			limits...), MinOperands: 1, MaxOperands: -1, OperandNames: flows, Run: throttleFlow},
		{Name: "ready", Summary: "let the nodes begin that wait for the PROVISIONER node", Flags: []string{"json"},
			MinOperands: 1, MaxOperands: -1, OperandNames: flows, Run: orderFlow("ready", "is ready")},
		{Name: "check", Summary: "report all mistakes of DAG files", Flags: []string{"json", "no-files", "use-dag-dir"},
			MinOperands: 1, MaxOperands: -1, OperandNames: "a DAG file", Run: checkFlows},
		{Name: "dot", Summary: "draw a flow in the language of Graphviz", Flags: []string{"use-dag-dir"},
			MinOperands: 1, MaxOperands: -1, OperandNames: "a DAG file", Run: drawFlow},
	}
}

// checkFlows checks each file as a flow of its own.
func checkFlows(c *frame.Invocation, args []string) error {
	var documents []frame.JSONDocument
	kind := roost.ErrorKind(0)
	for _, name := range args {
		flow, diags := dag.Parse(newUserFiles(c), []string{name}, dag.ParseOptions{UseDirectory: c.Flag("use-dag-dir"),
			SkipFileTests: c.Flag("no-files")})
		if k := errorKind(diags); k != 0 && kind != roost.Invalid {
			kind = k
		}
		if c.WantsJSON() {
			documents = append(documents, flowDocument(name, flow, diags))
			continue
		}
		printDiagnostics(c, diags)
		if !diags.HasErrors() {
			fmt.Fprintf(c.Stdout, "%s: %s\n", document.PrintableText(name), flowSummary(flow))
		}
	}
	if c.WantsJSON() {
		if err := frame.PrintJSON(c.Stdout, frame.JSONDocument{"flows": documents}); err != nil {
			return err
		}
	}
	if kind != 0 {
		return frame.ExitError(kind.ExitCode())
	}
	return nil
}

// drawFlow draws the flow of all files.
func drawFlow(c *frame.Invocation, args []string) error {
	flow, diags := dag.Parse(newUserFiles(c), args, dag.ParseOptions{UseDirectory: c.Flag("use-dag-dir"),
		SkipFileTests: true})
	if diags.HasErrors() {
		printDiagnostics(c, diags)
		return frame.ExitError(errorKind(diags).ExitCode())
	}
	if err := dag.WriteDOT(c.Stdout, flow, strings.Join(args, " ")); err != nil {
		return frame.KindErrorf(roost.NoOutput, "%v", err)
	}
	return nil
}

// errorKind is the kind of error of diagnostics, and 0 if there is no error. It is
// NoInput if all errors are about missing files.
func errorKind(diags *dag.Diagnostics) roost.ErrorKind {
	switch {
	case !diags.HasErrors():
		return 0
	case diags.Missing == diags.Errors:
		return roost.NoInput
	}
	return roost.Invalid
}

// printDiagnostics prints diagnostics for people, with an empty line behind each.
func printDiagnostics(c *frame.Invocation, diags *dag.Diagnostics) {
	width := c.ErrScreen.Width
	if width == 0 {
		width = 100
	}
	for _, d := range diags.List {
		io.WriteString(c.Stderr, submit.FormatLine(submit.LineDiagnostic{IsWarning: d.IsWarning, File: d.File,
			Line: d.Line, Column: d.Column, Width: d.Width, Source: d.Source, Summary: d.Summary, Detail: d.Detail},
			width, c.ErrScreen.Colour)+"\n")
	}
	if len(diags.List) == dag.MaxDiagnostics {
		fmt.Fprintf(c.Stderr, "There are %s; no more than %d messages are shown.\n",
			document.Plural(diags.Errors, "error"), dag.MaxDiagnostics)
	}
}

// flowSummary is the size of a flow for people.
func flowSummary(flow *dag.Flow) string {
	s := flow.Graph.Statistics()
	parts := []string{document.Plural(s.Nodes-s.ByKind[graph.JoinNode], "node"), document.Plural(s.Arcs, "arc")}
	for _, k := range []struct {
		kind graph.NodeKind
		name string
	}{{graph.SubflowNode, "sub-DAG"}, {graph.ServiceNode, "service node"}, {graph.JoinNode, "join node"}} {
		if n := s.ByKind[k.kind]; n > 0 {
			parts = append(parts, document.Plural(n, k.name))
		}
	}
	if flow.Splices > 0 {
		parts = append(parts, document.Plural(flow.Splices, "splice"))
	}
	return strings.Join(parts, ", ") + fmt.Sprintf("; height %d, width %d", s.Height, s.Width)
}

// flowDocument is what is known of a flow for programs.
func flowDocument(name string, flow *dag.Flow, diags *dag.Diagnostics) frame.JSONDocument {
	list := []frame.JSONDocument{}
	for _, d := range diags.List {
		severity := "error"
		if d.IsWarning {
			severity = "warning"
		}
		list = append(list, frame.JSONDocument{"severity": severity, "file": d.File, "line": d.Line,
			"column": d.Column, "command": d.Command, "summary": d.Summary, "detail": d.Detail,
			"missing_file": d.IsMissing})
	}
	doc := frame.JSONDocument{"file": name, "errors": diags.Errors, "diagnostics": list}
	if diags.HasErrors() {
		return doc
	}
	s := flow.Graph.Statistics()
	for key, value := range map[string]any{
		"nodes": s.Nodes - s.ByKind[graph.JoinNode], "sub_dags": s.ByKind[graph.SubflowNode],
		"service_nodes": s.ByKind[graph.ServiceNode], "join_nodes": s.ByKind[graph.JoinNode], "arcs": s.Arcs,
		"weak_arcs": s.WeakArcs, "splices": flow.Splices, "files": flow.Files, "height": s.Height, "width": s.Width,
		"width_by_depth": s.WidthByDepth,
	} {
		doc[key] = value
	}
	if flow.HasFinal {
		doc["final_node"] = flow.Graph.Name(flow.Final)
	}
	if flow.HasProvisioner {
		doc["provisioner_node"] = flow.Graph.Name(flow.Provisioner)
	}
	return doc
}
