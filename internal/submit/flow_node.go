package submit

import (
	"fmt"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
)

// flowNode is a block of a flow that has a name others wait for: a node, or a splice.
type flowNode struct {
	block     *hclsyntax.Block
	name      string
	instances []nodeInstance
	repeated  bool            // by for_each
	members   map[string]bool // names of the instances, if it is repeated
}

// nodeInstance is one node of a block.
type nodeInstance struct {
	name       string
	key, value cty.Value // of for_each
}

// The settings of the blocks of a flow.
var (
	ruleSettings = []string{"retry", "unless_exit", "abort_on", "abort_return", "tolerance", "fail_fast", "priority",
		"category", "pre_skip"}
	partSettings    = []string{"pre", "post", "vars", "append_vars"}
	nodeJobSettings = []string{"job", "directory", "noop"}
	arcSettings     = []string{"after", "after_any", "done", "pin_in", "pin_out", "save_point"}

	nodeBlockSettings = map[string][]string{
		"node": slices.Concat(nodeJobSettings, arcSettings, ruleSettings, partSettings, []string{"for_each"}),
		"subflow": slices.Concat([]string{"file", "directory", "noop", "for_each"}, arcSettings, ruleSettings,
			partSettings),
		"final":       slices.Concat(nodeJobSettings, partSettings, []string{"pre_skip", "tolerance", "fail_fast"}),
		"provisioner": slices.Concat(nodeJobSettings, partSettings, ruleSettings),
		"service":     slices.Concat(nodeJobSettings, partSettings, ruleSettings, []string{"for_each"}),
		"splice":      {"file", "directory", "after", "after_any", "connect"},
	}
	nodeInnerBlocks = []string{"job", "pre", "post"}
	nodeCommands    = map[string]string{"node": "JOB", "final": "FINAL", "provisioner": "PROVISIONER",
		"service": "SERVICE", "subflow": "SUBDAG EXTERNAL", "splice": "SPLICE"}
)

// addNode records the names of the nodes of a block.
func (f *flowReader) addNode(b *hclsyntax.Block) {
	name, ok := f.label(b, "a "+b.Type, b.Type+" \"A\" { … }")
	if !ok {
		return
	}
	if old := f.nodes[name]; old != nil {
		f.parser.report(newDiagnostic(b.LabelRanges[0].Ptr(), fmt.Sprintf("there are two nodes called %q", name),
			fmt.Sprintf("The other one is on line %d. Give one of them another name.", old.block.TypeRange.Start.Line)))
		return
	}
	n := &flowNode{block: b, name: name}
	f.nodes[name], f.order = n, append(f.order, n)
	reference := cty.StringVal(name)
	if a := b.Body.Attributes["for_each"]; a != nil && containsName(nodeBlockSettings[b.Type], "for_each") {
		reference = f.repeatNode(n, a)
	} else {
		n.instances = []nodeInstance{{name: name}}
	}
	f.references[name] = reference
	if f.count += len(n.instances); f.count > maxFlowNodes {
		f.parser.reportOnce("nodes", newDiagnostic(b.DefRange().Ptr(), "there are too many nodes in this file",
			fmt.Sprintf("It can have %d. Let a node run a job of many tasks, or make several flows of it.",
				maxFlowNodes)))
		n.instances = nil
	}
}

// repeatNode makes a node for each element of for_each. It returns what node.NAME is.
func (f *flowReader) repeatNode(n *flowNode, a *hclsyntax.Attribute) cty.Value {
	n.repeated, n.members = true, map[string]bool{}
	b := newBuilder(f.parser, n.block, n.name)
	taskSetReader{b}.readForEach(a)
	if b.tasks.isInvalid {
		return cty.DynamicVal
	}
	names := make([]cty.Value, len(b.tasks.keys))
	members := map[string]cty.Value{}
	named := false
	for i, key := range b.tasks.keys {
		text := ""
		if named = key.Type() == cty.String; named {
			text = key.AsString()
		} else {
			text = numberText(key)
		}
		if strings.ContainsAny(text, " \t\r\n\v\f+\x00") {
			b.reportProblem(a.Expr.Range(), fmt.Sprintf("the key %q cannot be part of a node's name",
				truncateText(text)),
				fmt.Sprintf("The nodes are called %s[KEY], and a name has no blank and no +.", n.name))
			return cty.DynamicVal
		}
		one := nodeInstance{name: n.name + "[" + text + "]", key: key, value: b.tasks.values[i]}
		n.instances = append(n.instances, one)
		names[i] = cty.StringVal(one.name)
		members[text], n.members[one.name] = names[i], true
	}
	if named {
		return cty.MapVal(members)
	}
	return cty.ListVal(names)
}

// nodeReader reads the settings of one node.
type nodeReader struct {
	*jobBuilder
	flow     *flowReader
	node     *flowNode
	instance nodeInstance
	scope    *hcl.EvalContext
	word     string // the name in the DAG file
}

// readNode writes the commands for the nodes of a block.
func (f *flowReader) readNode(n *flowNode) {
	blocks := nodeInnerBlocks
	if n.block.Type == "subflow" {
		blocks = nodeInnerBlocks[1:]
	}
	if n.block.Type == "splice" {
		blocks = nil
	}
	noun := "a " + n.block.Type
	if slices.Contains([]string{"final", "provisioner", "service"}, n.block.Type) {
		noun += " node"
	}
	f.parser.refuseUnknown(n.block, noun, nodeBlockSettings[n.block.Type], blocks)
	good := true
	for _, i := range n.instances {
		r := nodeReader{jobBuilder: newBuilder(f.parser, n.block, n.name), flow: f, node: n, instance: i,
			scope: f.scopeOf(n, i), word: dagWord(i.name)}
		before := len(f.parser.diags)
		if r.readBody(good); len(f.parser.diags) > before && n.repeated {
			good = false // the others have the same mistake
		}
	}
}

// scopeOf returns the scope of the expressions of a node.
func (f *flowReader) scopeOf(n *flowNode, i nodeInstance) *hcl.EvalContext {
	ctx := f.parser.root.NewChild()
	ctx.Variables = map[string]cty.Value{}
	if n.repeated {
		ctx.Variables["each"] = cty.ObjectVal(map[string]cty.Value{"key": i.key, "value": i.value})
	}
	return ctx
}

// readBody writes the commands for one node. Without isGood it is only defined.
func (r nodeReader) readBody(isGood bool) {
	command := nodeCommands[r.block.Type]
	define := func(options ...string) {
		at := r.block.TypeRange
		if len(r.block.LabelRanges) > 0 {
			at = hcl.RangeBetween(at, r.block.LabelRanges[0])
		}
		r.flow.emit(at, slices.Concat([]string{command, r.word}, options)...)
	}
	if !isGood {
		if r.block.Type != "splice" {
			define("none", "NOOP")
		}
		return
	}
	what, ok := r.readDescription()
	if !ok {
		if r.block.Type != "splice" {
			define("none", "NOOP")
		}
		return
	}
	options := []string{what}
	if text, ok := r.text("directory"); ok {
		options = append(options, "DIR", dagWord(text))
	}
	if yes, ok := r.boolean("noop"); ok && yes {
		options = append(options, "NOOP")
	}
	if yes, ok := r.boolean("done"); ok && yes {
		options = append(options, "DONE")
	}
	define(options...)
	r.readDependencies()
	r.readRules()
	r.readVariables()
	r.readScripts()
}

// readDescription returns the word for what the node runs.
func (r nodeReader) readDescription() (string, bool) {
	if r.block.Type == "subflow" || r.block.Type == "splice" {
		text, ok := r.text("file")
		if !ok && r.body.Attributes["file"] == nil {
			r.reportProblem(r.block.DefRange(), "the "+r.block.Type+" has no file",
				"Name a file with a flow: file = \"inner.hcl\". DAG files of HTCondor are read, too.")
		}
		return dagWord(text), ok
	}
	a := r.body.Attributes["job"]
	var inline *hclsyntax.Block
	for _, b := range r.body.Blocks {
		if b.Type != "job" {
			continue
		}
		if inline != nil || a != nil {
			r.reportProblem(b.DefRange(), "the node has two jobs", "A node runs one job, which may have many tasks. "+
				"Make a node for each.")
			return "", false
		}
		inline = b
	}
	switch {
	case inline != nil:
		return r.flow.writeJob(inline, r.node.name, r.variableNames()), true
	case a != nil:
		return r.readJob(a)
	}
	if yes, ok := r.boolean("noop"); ok && yes {
		return "none", true
	}
	r.reportProblem(r.block.DefRange(), "the "+r.block.Type+" has no job",
		"Name a file, job = \"step.hcl\", or a job of this file, job = job.step, or write a block job { … } into it.")
	return "", false
}

// readJob reads job = "FILE" or job = job.NAME.
func (r nodeReader) readJob(a *hclsyntax.Attribute) (string, bool) {
	if t, diags := hcl.AbsTraversalForExpr(a.Expr); !diags.HasErrors() && t.RootName() == "job" {
		name, _ := traversalStepName(t, 1)
		b := r.flow.jobs[name]
		if b == nil || len(t) != 2 {
			r.reportProblem(a.Expr.Range(), fmt.Sprintf("there is no job %q", name),
				"A block job \"NAME\" { … } beside the flow defines one."+didYouMean(name, r.parser.jobNames))
			return "", false
		}
		return r.flow.writeJob(b, name, r.variableNames()), true
	}
	text, ok := r.text("job")
	return dagWord(text), ok
}

// writeJob writes a job block as a description of its own, and returns its name. The
// variables of nodes are variables of the job, even without blocks that declare them.
func (f *flowReader) writeJob(b *hclsyntax.Block, name string, variables []string) string {
	word := dagWord(fmt.Sprintf("job %d %s", b.TypeRange.Start.Byte, strings.Join(variables, " ")))
	if f.written[word] {
		return word
	}
	f.written[word] = true
	p := f.parser
	end := "JOB"
	for strings.Contains(string(p.source), "@"+end) {
		end += "_"
	}
	if !jobName.matches(name) {
		name = "node"
	}
	f.emit(b.DefRange(), "SUBMIT-DESCRIPTION", word, "@="+end)
	body := string(p.source[b.OpenBraceRange.Start.Byte:b.CloseBraceRange.End.Byte])
	f.emitText(fmt.Sprintf("job %q %s", name, body), b.OpenBraceRange.Start.Line)
	declared := map[string]bool{}
	for _, s := range f.shared {
		f.emitText(string(p.source[s.TypeRange.Start.Byte:s.CloseBraceRange.End.Byte]), s.TypeRange.Start.Line)
		if s.Type == "variable" && len(s.Labels) > 0 {
			declared[s.Labels[0]] = true
		}
	}
	for _, v := range slices.Concat(variables, []string{"JOB", "RETRY", "DAGManJobId", "DAG_STATUS", "FAILED_COUNT",
		"DAG_PARENT_NAMES"}) {
		if !declared[v] {
			declared[v] = true
			f.emit(b.DefRange(), fmt.Sprintf("variable %q { type = string }", v))
		}
	}
	f.emit(b.DefRange(), "@"+end)
	return word
}
