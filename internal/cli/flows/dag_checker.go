package flows

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/roost-batch/roost/internal/cli/frame"
	"github.com/roost-batch/roost/internal/document"
	"github.com/roost-batch/roost/internal/submit/dag"
	"github.com/roost-batch/roost/schedd/flow/graph"
)

// CheckerCommand returns condor_dag_checker of HTCondor.
func CheckerCommand() *frame.Command {
	return &frame.Command{
		Name: "condor_dag_checker", Group: frame.GroupCondor, Summary: "report all mistakes of DAG files",
		Synopsis: "[-JSON | -Statistics] [-Strict] [-UseDagDir] FILE…", RawArgs: true, Run: runChecker,
		Description: "Checks DAG files as the command of that name of HTCondor does, with its options and its exit " +
			"status: 1 for a mistake, 2 for a wrong command line. roost flow check says more.",
		Examples: []frame.Example{
			{Line: "condor_dag_checker diamond.dag", Description: "prints nothing if all is well"},
			{Line: "condor_dag_checker -stat diamond.dag", Description: "height, width, arcs and nodes by kind"},
		},
	}
}

// checkerOptions are the options of condor_dag_checker.
type checkerOptions struct {
	json, statistics, help, strict bool
	parse                          dag.ParseOptions
	files                          []string
}

// checkerWords are the options with the letters that are enough of each.
func checkerWords() []struct {
	word  string
	least int
	set   func(o *checkerOptions)
} {
	return []struct {
		word  string
		least int
		set   func(o *checkerOptions)
	}{
		{"help", 1, func(o *checkerOptions) { o.help = true }},
		{"usedagdir", 3, func(o *checkerOptions) { o.parse.UseDirectory = true }},
		{"allowillegalchars", 5, func(o *checkerOptions) { o.parse.AnyNodeName = true }},
		{"nojoinnodes", 6, func(o *checkerOptions) { o.parse.NoJoins = true }},
		{"joinnodes", 4, func(o *checkerOptions) { o.parse.NoJoins = false }},
		{"json", 4, func(o *checkerOptions) { o.json = true }},
		{"statistics", 4, func(o *checkerOptions) { o.statistics = true }},
		{"checkexternalfiles", 8, func(*checkerOptions) {}},
		{"checksubdags", 8, func(*checkerOptions) {}},
		{"checkjdl", 8, func(*checkerOptions) {}},
		{"checkscripts", 8, func(*checkerOptions) {}},
		{"strict", 6, func(o *checkerOptions) { o.strict = true }},
	}
}

// parseChecker reads the command line. Case does not matter, and options may be
// shortened.
func parseChecker(args []string) (o checkerOptions, err error) {
	for _, arg := range args {
		if !strings.HasPrefix(arg, "-") {
			o.files = append(o.files, arg)
			continue
		}
		word, known := strings.ToLower(strings.TrimLeft(arg, "-")), false
		for _, w := range checkerWords() {
			if len(word) >= w.least && strings.HasPrefix(w.word, word) {
				w.set(&o)
				known = true
				break
			}
		}
		if !known {
			return o, fmt.Errorf("unknown option %s", arg)
		}
	}
	switch {
	case o.help:
	case o.json && o.statistics:
		return o, fmt.Errorf("-JSON and -Statistics are two forms of the output: name one")
	case len(o.files) == 0:
		return o, fmt.Errorf("no DAG file is named")
	}
	o.parse.SkipFileTests = !o.strict
	return o, nil
}

// The exit status of condor_dag_checker.
const (
	checkerMistake = 1
	checkerUsage   = 2
)

func runChecker(c *frame.Invocation) error {
	o, err := parseChecker(c.Args)
	if err != nil {
		fmt.Fprintf(c.Stderr, "condor_dag_checker: %v\nsee: condor_dag_checker -help\n", err)
		return frame.ExitError(checkerUsage)
	}
	if o.help {
		c.PrintHelp(c.Stdout, c.Command)
		return nil
	}
	failed := false
	var documents []frame.JSONDocument
	for _, name := range o.files {
		flow, diags := dag.Parse(newUserFiles(c), []string{name}, o.parse)
		failed = failed || diags.HasErrors()
		switch {
		case o.json:
			documents = append(documents, checkerDocument(name, flow, diags))
		case o.statistics:
			printCheckerStatistics(c, name, flow)
		default:
			printCheckerIssues(c, name, diags)
		}
	}
	if o.json {
		enc := json.NewEncoder(c.Stdout)
		enc.SetEscapeHTML(false)
		enc.SetIndent("", "  ")
		if err := enc.Encode(documents); err != nil {
			return err
		}
	}
	if failed {
		return frame.ExitError(checkerMistake)
	}
	return nil
}

func printCheckerIssues(c *frame.Invocation, name string, diags *dag.Diagnostics) {
	if !diags.HasErrors() {
		return
	}
	fmt.Fprintf(c.Stdout, "Detected %s in %s:\n", document.Plural(diags.Errors, "issue"), document.PrintableText(name))
	for _, d := range diags.List {
		if d.IsWarning {
			continue
		}
		command := ""
		if d.Command != "" {
			command = "in " + d.Command + ": "
		}
		fmt.Fprintln(c.Stdout, document.PrintableText(fmt.Sprintf("  * %s:%d %s%s. %s", d.File, d.Line, command,
			d.Summary, d.Detail)))
	}
	fmt.Fprintln(c.Stdout)
}

// checkerAttribute is an attribute of the statistics under HTCondor's name.
type checkerAttribute struct {
	name  string
	value any
}

// checkerStatistics are the attributes of a flow. Those that are 0 are left out.
func checkerStatistics(flow *dag.Flow) (list []checkerAttribute) {
	s := flow.Graph.Statistics()
	for _, a := range []struct {
		name  string
		value int
	}{
		{"TotalNodes", s.Nodes}, {"NumNodes", s.ByKind[graph.JobNode]},
		{"NumServiceNodes", s.ByKind[graph.ServiceNode]},
		{"NumJoinNodes", s.ByKind[graph.JoinNode]}, {"NumSubDAGs", s.ByKind[graph.SubflowNode]}, {"NumArcs", s.Arcs},
		{"NumSplices", flow.Splices},
	} {
		if a.value > 0 || a.name == "TotalNodes" {
			list = append(list, checkerAttribute{a.name, a.value})
		}
	}
	if flow.HasFinal {
		list = append(list, checkerAttribute{"FinalNode", flow.Graph.Name(flow.Final)})
	}
	if flow.HasProvisioner {
		list = append(list, checkerAttribute{"ProvisionerNode", flow.Graph.Name(flow.Provisioner)})
	}
	switch {
	case flow.Cycle != nil:
		var names []string
		for _, id := range append(flow.Cycle, flow.Cycle[0]) {
			if name := flow.Graph.Name(id); name != "" {
				names = append(names, name)
			}
		}
		list = append(list, checkerAttribute{"IsCyclic", true},
			checkerAttribute{"DetectedCycle", strings.Join(names, " -> ")})
	case s.Height > 0:
		list = append(list, checkerAttribute{"GraphHeight", s.Height}, checkerAttribute{"GraphWidth", s.Width},
			checkerAttribute{"WidthByDepth", s.WidthByDepth})
	}
	return list
}

func printCheckerStatistics(c *frame.Invocation, name string, flow *dag.Flow) {
	fmt.Fprintf(c.Stdout, "=== %s statistics ===\n", document.PrintableText(name))
	for _, a := range checkerStatistics(flow) {
		text := fmt.Sprint(a.value)
		switch v := a.value.(type) {
		case string:
			text = strconv.Quote(v)
		case []int:
			text = "{" + strings.ReplaceAll(strings.Trim(text, "[]"), " ", ",") + "}"
		}
		fmt.Fprintf(c.Stdout, "%s = %s\n", a.name, text)
	}
	fmt.Fprintln(c.Stdout)
}

// checkerDocument is the result for one file under HTCondor's names.
func checkerDocument(name string, flow *dag.Flow, diags *dag.Diagnostics) frame.JSONDocument {
	doc := frame.JSONDocument{"DagFile": name}
	for _, a := range checkerStatistics(flow) {
		doc[a.name] = a.value
	}
	if !diags.HasErrors() {
		return doc
	}
	var list []frame.JSONDocument
	for _, d := range diags.List {
		if d.IsWarning {
			continue
		}
		one := frame.JSONDocument{"Reason": d.Summary + ". " + d.Detail, "SourceFile": d.File, "SourceLine": d.Line}
		if d.Command != "" {
			one["DagCommand"] = d.Command
		}
		if d.Command == "REJECT" {
			doc["Rejected"] = true
		}
		list = append(list, one)
	}
	doc["NumErrors"], doc["Errors"] = diags.Errors, list
	return doc
}
