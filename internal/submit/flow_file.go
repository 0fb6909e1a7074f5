package submit

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"

	"github.com/roost-batch/roost"
)

// FlowText is the flow of an HCL file in the form of a DAG file.
type FlowText struct {
	Name     string
	Text     string      // DAG commands
	Lines    []hcl.Range // by line of Text, from 0: where it comes from
	Settings FlowSettings
}

// FlowSettings are settings of a flow that DAG files do not have. A nil field is not set.
type FlowSettings struct {
	Jobs, IdleTasks, Pre, Post *int
	DepthFirst, AlwaysRunPost  *bool
}

// maxFlowNodes bounds the nodes of one file.
const maxFlowNodes = 1_000_000

const flowHint = "A flow is written as\n\n  flow \"diamond\" {\n    node \"A\" { job = \"a.hcl\" }\n\n" +
	"    node \"B\" {\n      job   = \"b.hcl\"\n      after = [node.A]\n    }\n  }"

// ReadFlow reads a file with a flow block. Even with errors the text defines all nodes,
// as far as their names are known.
func ReadFlow(src []byte, opts ParseOptions) (*FlowText, hcl.Diagnostics) {
	opts.Defaults = opts.Defaults.WithDefaults()
	text := &FlowText{}
	if diags := checkSource(src, opts.Filename); diags != nil {
		return text, diags
	}
	p := newParser(src, opts)
	file, diags := hclsyntax.ParseConfig(src, opts.Filename, hcl.InitialPos)
	if diags.HasErrors() { // one syntax error causes others after it
		sortByPlace(diags)
		i := slices.IndexFunc(diags, func(d *hcl.Diagnostic) bool { return d.Severity == hcl.DiagError })
		p.diags = hclDiags{diags[i]}
		return text, p.finishDiagnostics()
	}
	p.root.Functions = p.functions()
	p.meter.functions = p.root.Functions
	f := &flowReader{parser: p, flow: text, nodes: map[string]*flowNode{}, jobs: map[string]*hclsyntax.Block{},
		written: map[string]bool{}, references: map[string]cty.Value{}, groups: map[string]int{}}
	f.readFile(file.Body.(*hclsyntax.Body))
	text.Text = f.text.String()
	return text, p.finishDiagnostics()
}

// flowReader translates a file with a flow into the commands of a DAG file.
type flowReader struct {
	parser *fileParser
	flow   *FlowText
	text   strings.Builder

	shared     []*hclsyntax.Block          // variables and locals, which inline jobs get
	jobs       map[string]*hclsyntax.Block // job blocks beside the flow
	written    map[string]bool             // descriptions of jobs in the text
	order      []*flowNode
	nodes      map[string]*flowNode // with splices
	references map[string]cty.Value // node.NAME
	nodeObject cty.Value            // of references
	defaults   []flowVariable       // of the defaults block
	groups     map[string]int       // by parents and kind of arc: in dependencies
	arcs       []flowArcs
	count      int // nodes
}

// readFile reads the blocks of the file.
func (f *flowReader) readFile(body *hclsyntax.Body) {
	p := f.parser
	for _, name := range sortedKeys(body.Attributes) {
		a := body.Attributes[name]
		p.report(newDiagnostic(a.NameRange.Ptr(), fmt.Sprintf("%q is outside of the flow", name),
			"Settings belong into a block. "+flowHint))
	}
	var flows, variables, locals []*hclsyntax.Block
	for _, b := range body.Blocks {
		switch b.Type {
		case "flow":
			flows = append(flows, b)
		case "variable":
			variables = append(variables, b)
		case "locals":
			locals = append(locals, b)
		case "job":
			f.addJob(b)
		default:
			p.report(newDiagnostic(b.TypeRange.Ptr(), fmt.Sprintf("there is no block %q here", b.Type),
				"Beside the flow there are blocks called job, variable and locals."+
					nearestHint(b.Type, []string{"flow", "job", "variable", "locals"})))
		}
	}
	f.shared = slices.Concat(locals, variables)
	p.jobNames = sortedKeys(f.jobs)
	p.readVariables(variables)
	p.evalLocals(locals)
	if len(flows) == 0 {
		p.report(newDiagnostic(rangeAt(p.source, p.options.Filename, 0, 0), "there is no flow in this file", flowHint))
		return
	}
	f.readFlow(flows[0])
	if len(flows) > 1 {
		p.report(newDiagnostic(flows[1].DefRange().Ptr(), "there are two flows in this file",
			fmt.Sprintf("The other one is on line %d. Write a file for each; a subflow block runs one within "+
				"another.", flows[0].TypeRange.Start.Line)))
	}
}

// addJob records a job that nodes name.
func (f *flowReader) addJob(b *hclsyntax.Block) {
	name, ok := f.parser.blockLabel(b, "a job", "job \"step\" {")
	if !ok {
		return
	}
	if old := f.jobs[name]; old != nil {
		f.parser.report(newDiagnostic(b.LabelRanges[0].Ptr(), fmt.Sprintf("there are two jobs called %q", name),
			fmt.Sprintf("The other one is on line %d. Give one of them another name.", old.TypeRange.Start.Line)))
		return
	}
	f.jobs[name] = b
}

var (
	flowSettingNames = []string{"max_jobs", "max_idle", "max_pre", "max_post", "depth_first", "always_run_post"}
	flowBlockNames   = []string{"node", "final", "provisioner", "service", "subflow", "splice", "defaults", "category"}
)

// readFlow reads the flow block: first the names of all nodes, then the rest.
func (f *flowReader) readFlow(b *hclsyntax.Block) {
	if name, ok := f.parser.blockLabel(b, "a flow", "flow \"diamond\" {"); ok {
		f.flow.Name = name
	}
	f.parser.refuseUnknown(b, "a flow", flowSettingNames, flowBlockNames)
	f.readFlowSettings(b)
	var rules []*hclsyntax.Block
	for _, inner := range b.Body.Blocks {
		switch {
		case inner.Type == "defaults":
			rules = append(rules, inner)
		case inner.Type == "category":
			f.readCategory(inner)
		case slices.Contains(flowBlockNames, inner.Type):
			f.addNode(inner)
		}
	}
	f.parser.nodeNames, f.nodeObject = sortedKeys(f.references), cty.ObjectVal(f.references)
	for i, d := range rules {
		if i > 0 {
			f.parser.report(newDiagnostic(d.TypeRange.Ptr(), "there are two blocks of defaults",
				fmt.Sprintf("The other one is on line %d. Make one of them.", rules[0].TypeRange.Start.Line)))
			continue
		}
		f.readDefaults(d)
	}
	for _, n := range f.order {
		f.readNode(n)
	}
	f.writeArcs()
}

func (f *flowReader) readFlowSettings(b *hclsyntax.Block) {
	builder := newBuilder(f.parser, b, "flow")
	s := &f.flow.Settings
	for _, one := range []struct {
		name string
		to   **int
	}{{"max_jobs", &s.Jobs}, {"max_idle", &s.IdleTasks}, {"max_pre", &s.Pre}, {"max_post", &s.Post}} {
		if n, ok := builder.constantInt(one.name, 0, roost.MaxTasks, "0 is any number."); ok {
			count := int(n)
			*one.to = &count
		}
	}
	for _, one := range []struct {
		name string
		to   **bool
	}{{"depth_first", &s.DepthFirst}, {"always_run_post", &s.AlwaysRunPost}} {
		if yes, ok := builder.constantBool(one.name); ok {
			*one.to = &yes
		}
	}
}

// readCategory reads category "NAME" { max_jobs = N }.
func (f *flowReader) readCategory(b *hclsyntax.Block) {
	name, ok := f.label(b, "a category", "category \"big\" { max_jobs = 3 }")
	if !ok || !f.parser.refuseUnknown(b, "a category", []string{"max_jobs"}, nil) {
		return
	}
	if b.Body.Attributes["max_jobs"] == nil {
		f.parser.report(newDiagnostic(b.TypeRange.Ptr(), fmt.Sprintf("the category %q has no max_jobs", name),
			"It limits how many nodes of the category have jobs at a time: category \"big\" { max_jobs = 3 }."))
		return
	}
	builder := newBuilder(f.parser, b, name)
	if n, ok := builder.constantInt("max_jobs", 0, roost.MaxTasks, "0: no node of it begins."); ok {
		f.emit(b.DefRange(), "MAXJOBS", dagWord(name), fmt.Sprint(n))
	}
}

// label returns the only label of a block.
func (f *flowReader) label(b *hclsyntax.Block, noun, example string) (string, bool) {
	if len(b.Labels) != 1 || strings.TrimSpace(b.Labels[0]) == "" || strings.ContainsAny(b.Labels[0], "\n\r\x00") {
		f.parser.report(newDiagnostic(b.TypeRange.Ptr(), noun+" has one name",
			"Write it in quotes behind the word: "+example+"."))
		return "", false
	}
	return b.Labels[0], true
}

// emit writes a command of the DAG file, which comes from a place of the source.
func (f *flowReader) emit(at hcl.Range, words ...string) {
	f.text.WriteString(strings.Join(words, " "))
	f.text.WriteByte('\n')
	f.flow.Lines = append(f.flow.Lines, at)
}

// emitText writes lines of the source, which begin at a line of it.
func (f *flowReader) emitText(text string, line int) {
	for l := range strings.Lines(text) {
		start := hcl.Pos{Line: line, Column: 1}
		end := hcl.Pos{Line: line, Column: 1 + len(l), Byte: len(l)}
		f.emit(hcl.Range{Filename: f.parser.options.Filename, Start: start, End: end}, strings.TrimRight(l, "\r\n"))
		line++
	}
}

// dagWord is a text as one word of a DAG file.
func dagWord(s string) string {
	if s != "" && !strings.ContainsAny(s, " \t\v\f\"'\\") {
		return s
	}
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(s) + `"`
}

// flowArcs are the nodes that wait for the same others.
type flowArcs struct {
	at       hcl.Range
	parents  []string
	children []string
	weak     bool
}

// addArcs has a node wait for others.
func (f *flowReader) addArcs(at hcl.Range, parents []string, child string, weak bool) {
	if len(parents) == 0 {
		return
	}
	key := fmt.Sprint(weak, " ", strings.Join(parents, " "))
	i, ok := f.groups[key]
	if !ok {
		i = len(f.arcs)
		f.groups[key] = i
		f.arcs = append(f.arcs, flowArcs{at: at, parents: parents, weak: weak})
	}
	f.arcs[i].children = append(f.arcs[i].children, child)
}

// writeArcs writes the dependencies. Nodes that wait for the same others are one command.
func (f *flowReader) writeArcs() {
	slices.SortStableFunc(f.arcs, func(a, b flowArcs) int { return cmp.Compare(a.at.Start.Byte, b.at.Start.Byte) })
	for _, a := range f.arcs {
		words := []string{"PARENT"}
		if a.weak {
			words = []string{"WEAK", "PARENT"}
		}
		f.emit(a.at, slices.Concat(words, a.parents, []string{"CHILD"}, a.children)...)
	}
}
