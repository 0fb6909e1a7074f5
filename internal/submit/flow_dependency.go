package submit

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
)

const afterHint = "Write a list of nodes: after = [node.A, \"B\", { id = node.C, when = \"afterany\" }]."

// flowDependencies are the nodes for which a node waits.
type flowDependencies struct{ strong, weak []string }

// readDependencies reads after and after_any, and connect of splices.
func (r nodeReader) readDependencies() {
	var d flowDependencies
	at := r.block.DefRange()
	for _, name := range []string{"after", "after_any"} {
		a := r.body.Attributes[name]
		if a == nil {
			continue
		}
		at = a.SrcRange
		exprs := []hclsyntax.Expression{a.Expr}
		if tuple, ok := a.Expr.(*hclsyntax.TupleConsExpr); ok {
			exprs = tuple.Exprs
		}
		r.scope.Variables["node"] = r.flow.nodeObject
		for _, e := range exprs {
			if v, at, ok := r.valueOf(e, "node"); ok {
				r.addDependency(&d, v, at, name == "after_any")
			}
		}
		delete(r.scope.Variables, "node")
	}
	r.flow.addArcs(at, d.strong, r.word, false)
	r.flow.addArcs(at, d.weak, r.word, true)
	if v, at, ok := r.value("connect"); ok {
		names, ok := r.taskReader().listElements(v, at, "connect")
		for _, name := range names {
			if ok {
				r.flow.emit(at, "CONNECT", r.word, dagWord(name))
			}
		}
	}
}

// addDependency adds what an element of after is.
func (r nodeReader) addDependency(d *flowDependencies, v cty.Value, at hcl.Range, weak bool) {
	switch ty := v.Type(); {
	case v.IsNull():
	case ty == cty.String:
		r.addParent(d, v.AsString(), at, weak)
	case ty.IsObjectType():
		r.addConditionalParent(d, v.AsValueMap(), at, weak)
	case ty.IsListType() || ty.IsTupleType() || ty.IsSetType() || ty.IsMapType():
		for it := v.ElementIterator(); it.Next(); {
			_, x := it.Element()
			r.addDependency(d, x, at, weak)
		}
	default:
		r.reportProblem(at, "this is not a node that can be waited for",
			fmt.Sprintf("It is %s. %s", describeValue(v), afterHint))
	}
}

// addConditionalParent reads { id = …, when = … }, as depends_on of job files has it.
func (r nodeReader) addConditionalParent(d *flowDependencies, m map[string]cty.Value, at hcl.Range, weak bool) {
	for _, name := range sortedKeys(m) {
		if name != "id" && name != "when" {
			r.reportProblem(at, fmt.Sprintf("a dependency has no %q", name), "It has an id and a when. "+afterHint)
			return
		}
	}
	id, ok := m["id"]
	if !ok {
		r.reportProblem(at, "a dependency without an id", afterHint)
		return
	}
	if when, ok := m["when"]; ok && !when.IsNull() {
		switch {
		case when.Type() == cty.String && when.AsString() == "afterany":
			weak = true
		case when.Type() != cty.String || when.AsString() != "afterok":
			r.reportProblem(at, "when is not a way to wait for a node", fmt.Sprintf("It is %s, and can be afterok "+
				"(the node succeeded) or afterany (it has been executed, successfully or not).", describeValue(when)))
			return
		}
	}
	if id.Type().IsObjectType() {
		r.reportProblem(at, "id is not a node", afterHint)
		return
	}
	r.addDependency(d, id, at, weak)
}

// addParent adds a node by its name. That of a node with for_each means all its nodes.
func (r nodeReader) addParent(d *flowDependencies, name string, at hcl.Range, weak bool) {
	to := &d.strong
	if weak {
		to = &d.weak
	}
	add := func(name string) {
		if word := dagWord(name); !slices.Contains((*to)[max(0, len(*to)-100):], word) {
			*to = append(*to, word)
		}
	}
	n := r.flow.nodes[name]
	base, _, isMember := strings.Cut(name, "[")
	switch {
	case n != nil && n.repeated:
		for _, i := range n.instances {
			add(i.name)
		}
	case n != nil && (n.block.Type == "final" || n.block.Type == "service" || n.block.Type == "provisioner"):
		r.reportProblem(at, fmt.Sprintf("no node can wait for the %s node %q", n.block.Type, name),
			"Its place in the order is fixed. Remove it here, or make a node of it.")
	case n == r.node && n != nil:
		r.reportProblem(at, fmt.Sprintf("the node %q waits for itself", name), "It would never begin. Remove it.")
	case n != nil, strings.Contains(name, "+") && !strings.ContainsAny(name, " \t\n"):
		add(name)
	case isMember && r.flow.nodes[base] != nil && r.flow.nodes[base].members[name]:
		add(name)
	default:
		r.reportProblem(at, fmt.Sprintf("there is no node %q", truncateText(name)), "A block node \""+
			truncateText(name)+"\" { … } defines one. The nodes of a splice are called SPLICE+NODE."+
			didYouMean(name, sortedKeys(r.flow.nodes)))
	}
}

const scriptHint = "Write it as pre = \"./prepare.sh $NODE\" or pre = [\"./prepare.sh\", \"$NODE\"], or as a block " +
	"pre { command = … }."

// readScripts reads the scripts before and behind the job.
func (r nodeReader) readScripts() {
	for _, kind := range []string{"pre", "post"} {
		a := r.body.Attributes[kind]
		if a != nil {
			if text, ok := r.commandText(a.Expr, kind); ok {
				r.flow.emit(a.SrcRange, "SCRIPT", strings.ToUpper(kind), r.word, text)
			}
		}
		for _, b := range r.body.Blocks {
			if b.Type != kind {
				continue
			}
			if a != nil {
				r.reportProblem(b.DefRange(), "the node has two "+kind+" scripts", "Let one script call the other.")
				continue
			}
			r.readScript(kind, b)
		}
	}
}

// readScript reads a pre or post block.
func (r nodeReader) readScript(kind string, b *hclsyntax.Block) {
	if !r.parser.refuseUnknown(b, "a script", []string{"command", "defer_exit", "defer_after", "debug", "debug_output"},
		nil) {
		return
	}
	inner := r
	inner.jobBuilder = newBuilder(r.parser, b, r.name)
	words := []string{"SCRIPT"}
	status, hasStatus := inner.integer("defer_exit", math.MinInt32, math.MaxInt32, "Write the exit code after which "+
		"the script runs again.")
	after, hasAfter := inner.duration("defer_after")
	if hasStatus != hasAfter {
		r.reportProblem(b.DefRange(), "defer_exit and defer_after belong together", "A script that ends with the code "+
			"defer_exit runs again after defer_after: defer_exit = 4, defer_after = \"30s\".")
	} else if hasStatus {
		words = append(words, "DEFER", status, strconv.Itoa(int(math.Ceil(after.Seconds()))))
	}
	if file, ok := inner.text("debug"); ok {
		output, hasOutput := inner.text("debug_output")
		if !hasOutput {
			output = "all"
		}
		if !slices.Contains([]string{"all", "stdout", "stderr"}, output) {
			r.reportProblem(b.Body.Attributes["debug_output"].Expr.Range(), "there is no such output",
				"debug_output is \"stdout\", \"stderr\" or \"all\".")
			return
		}
		words = append(words, "DEBUG", dagWord(file), strings.ToUpper(output))
	}
	a := b.Body.Attributes["command"]
	if a == nil {
		r.reportProblem(b.DefRange(), "the script has no command", scriptHint)
		return
	}
	if text, ok := inner.commandText(a.Expr, "command"); ok {
		r.flow.emit(b.DefRange(), append(words, strings.ToUpper(kind), r.word, text)...)
	}
}

func (r nodeReader) duration(name string) (time.Duration, bool) {
	v, at, ok := r.value(name)
	if !ok {
		return 0, false
	}
	d, err := readDuration(name, v)
	if err != nil {
		r.reportProblem(at, name+" is not a length of time", fmt.Sprintf("It is %s. Write it with a unit, as in "+
			"\"30s\".", describeValue(v)))
	}
	return d, err == nil
}

// commandText returns a script with its arguments, which a text or a list gives.
func (r nodeReader) commandText(e hclsyntax.Expression, name string) (string, bool) {
	v, at, ok := r.valueOf(e)
	if !ok {
		return "", false
	}
	if ty := v.Type(); !ty.IsPrimitiveType() && (ty.IsListType() || ty.IsTupleType()) {
		words := make([]string, 0, v.LengthInt())
		for it := v.ElementIterator(); it.Next(); {
			_, x := it.Element()
			word, ok := r.lineText(x, at, name)
			if !ok {
				return "", false
			}
			if word == "" || strings.ContainsAny(word, " \t\v\f") {
				r.reportProblem(at, fmt.Sprintf("%q cannot be a word of a script's command", truncateText(word)),
					"The words are separated by blanks, and none can have one or be empty. Put the command into a "+
						"script file.")
				return "", false
			}
			words = append(words, word)
		}
		return strings.Join(words, " "), r.hasCommand(len(words) > 0, at)
	}
	text, ok := r.lineText(v, at, name)
	return strings.TrimSpace(text), ok && r.hasCommand(strings.TrimSpace(text) != "", at)
}

func (r nodeReader) hasCommand(has bool, at hcl.Range) bool {
	if !has {
		r.reportProblem(at, "the command is empty", scriptHint)
	}
	return has
}
