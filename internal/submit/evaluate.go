package submit

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/roost-batch/roost/internal/lazyregexp"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"

	"github.com/roost-batch/roost"
)

// evaluate evaluates an expression whose names were checked. If it has no value the error
// is reported and ok is false.
func (p *fileParser) evaluate(expr hclsyntax.Expression, ctx *hcl.EvalContext) (v cty.Value, ok bool) {
	p.hasUnreadFile = false
	if ctx == p.root && p.needsVariables(expr) {
		return cty.DynamicVal, false
	}
	v, diags, err := p.meter.evaluate(expr, ctx)
	if err == (numberTooLarge{}) {
		p.report(newDiagnostic(expr.Range().Ptr(), "a number becomes too large here",
			"Something is divided by 0, or numbers grow beyond 1e308."))
		return cty.DynamicVal, false
	}
	if err != nil {
		p.reportOnce("steps", newDiagnostic(expr.Range().Ptr(), "this file takes too much work to evaluate",
			fmt.Sprintf("Its expressions make more than %d values, all together, and here they ran out. Make "+
				"the lists smaller, nest fewer for expressions, or use count and task.index.", maxSteps)))
		return cty.DynamicVal, false
	}
	for _, d := range diags {
		if d.Severity != hcl.DiagError {
			continue
		}
		rewordDiagnostic(d)
		d.Detail = functionErrorText(d.Detail)
		if p.hasUnreadFile {
			d.Summary, d.Extra = "a file cannot be read", &diagnosticExtra{kind: roost.NoInput}
		}
		p.report(d)
		return cty.DynamicVal, false
	}
	return v, v.IsWhollyKnown()
}

var callErrorPrefix = lazyregexp.New(`^(Invalid value for "[^"]*" parameter|Call to function "[^"]*" failed): `)

// functionErrorText returns the cause of a function's error; the caret shows the place.
func functionErrorText(detail string) string {
	rest := callErrorPrefix().ReplaceAllString(detail, "")
	return strings.ToUpper(rest[:min(1, len(rest))]) + rest[min(1, len(rest)):]
}

// constantExpr checks and evaluates an expression that may refer only to var and local.
func (p *fileParser) constantExpr(expr hclsyntax.Expression) (cty.Value, bool) {
	if !p.checkNames(expr, nil) {
		return cty.DynamicVal, false
	}
	return p.evaluate(expr, p.root)
}

// freeReferences returns the references of an expression that its own for clauses do not
// bind. The first answer is cached, because the step counter changes expressions before
// evaluating them.
func (p *fileParser) freeReferences(expr hclsyntax.Expression) []hcl.Traversal {
	if list, ok := p.freeRefs[expr]; ok {
		return list
	}
	list := hclsyntax.Variables(expr)
	p.freeRefs[expr] = list
	return list
}

// checkNames reports names in expr that are not defined there, and unknown functions.
// Beside var and local, the names in roots are allowed: "task", "each", "job" and
// "machine".
func (p *fileParser) checkNames(expr hclsyntax.Expression, roots []string) bool {
	if ok, done := p.checkedExprs[expr]; done {
		return ok
	}
	ok := p.checkCalls(expr)
	for _, t := range p.freeReferences(expr) {
		if d := p.checkName(t, roots); d != nil {
			p.report(d)
			ok = false
		}
	}
	p.checkedExprs[expr] = ok
	return ok
}

func (p *fileParser) checkName(t hcl.Traversal, roots []string) *hcl.Diagnostic {
	root := t.RootName()
	whole := t.SourceRange().Ptr()
	name, named := traversalStepName(t, 1)
	at := whole
	if len(t) > 1 {
		at = t[1].SourceRange().Ptr()
	}
	switch root {
	case "var":
		return p.checkMember(at, "variable", "Declare it: variable \"%s\" { default = … }.", name, named,
			sortedKeys(p.declared))
	case "local":
		return p.checkMember(at, "local", "Set it: locals { %s = … }.", name, named, p.localNames)
	}
	for _, r := range roots {
		if r != root {
			continue
		}
		switch {
		case root == "task" && name != "index" && name != "count" && name != "job":
			return newDiagnostic(at, "task has only index, count and job",
				"task.index is the number of the task, from 0, task.count is how many tasks the job has, and "+
					"task.job is the number of the job.")
		case root == "each" && name != "key" && name != "value":
			return newDiagnostic(at, "each has only key and value",
				"each.value is the element of for_each, or the index, that the task is for, and each.key its name "+
					"or number. A member of it is each.value.NAME.")
		case root == "alloc":
			return p.checkMember(at, "alloc",
				"An alloc set that was submitted before is named by its id: in = \"123\".", name, named,
				sortedKeys(p.allocs))
		case root == "node":
			return p.checkMember(at, "node", "A block node \"%s\" { … } defines one.", name, named, p.nodeNames)
		case root == "job":
			return p.checkMember(at, "job", "Jobs of other files are named by their id: depends_on = [\"123\"].", name,
				named, p.jobNames)
		}
		return nil
	}
	return p.explainRoot(t, whole, roots)
}

func (p *fileParser) checkMember(at *hcl.Range, noun, hint, name string, named bool, names []string) *hcl.Diagnostic {
	if !named {
		return nil // the whole object, or a computed index
	}
	for _, n := range names {
		if n == name {
			return nil
		}
	}
	if strings.Contains(hint, "%s") {
		hint = fmt.Sprintf(hint, name)
	}
	return newDiagnostic(at, fmt.Sprintf("there is no %s %q", noun, name),
		"The file declares no "+noun+" of that name. "+hint+didYouMean(name, names))
}

// explainRoot returns the diagnostic of a name that is not defined in its place.
func (p *fileParser) explainRoot(t hcl.Traversal, at *hcl.Range, roots []string) *hcl.Diagnostic {
	root := t.RootName()
	first := t[0].SourceRange().Ptr()
	switch {
	case root == "count" && len(t) > 1:
		return newDiagnostic(at, "there is no \"count.index\" here", "The number of a task, from 0, is task.index.")
	case root == "each" && containsName(roots, "task"):
		return newDiagnostic(at, "each is not known in this job",
			"each.key and each.value are there in a job with for_each or indexes. The number of a task, from 0, is "+
				"task.index.")
	case root == "task" || root == "each":
		return newDiagnostic(at, fmt.Sprintf("%s is not known here", root),
			"What is set here is the same for all tasks of a job, and cannot depend on one of them.")
	case root == "port":
		return newDiagnostic(at, "port is not known here",
			"Ports of the job can be used in arguments, command and environment. A script reads them from its "+
				"environment: $ROOST_PORT_HTTP.")
	case root == "machine":
		return newDiagnostic(at, "machine is not known here",
			"The attributes of machines can only be used in requirements, rank and prefer.")
	case root == "alloc":
		return explainAlloc(at)
	case root == "job":
		return newDiagnostic(at, "job is not known here", "Other jobs of the file can only be named in depends_on.")
	case root == "env" || root == "ENV":
		return newDiagnostic(at, "the environment is not known here",
			"Hand a value in with --var, or take variables along to the task: getenv = [\"NAME\"].")
	case len(t) == 1 && containsName(sortedKeys(p.declared), root):
		return newDiagnostic(first, fmt.Sprintf("nothing is called %q", root),
			fmt.Sprintf("A variable is referred to as var.%s.", root))
	case len(t) == 1 && containsName(p.localNames, root):
		return newDiagnostic(first, fmt.Sprintf("nothing is called %q", root),
			fmt.Sprintf("A local is referred to as local.%s.", root))
	}
	known := append([]string{"var", "local"}, roots...)
	hint := fmt.Sprintf("If it is meant as text, it has to be in quotes: %q.", root)
	if near := nearestName(root, known); near != "" && len(t) > 1 {
		hint = fmt.Sprintf("Did you mean \"%s\"?", near)
	}
	return newDiagnostic(first, fmt.Sprintf("nothing is called %q", root), hint)
}

func containsName(list []string, name string) bool {
	for _, s := range list {
		if s == name {
			return true
		}
	}
	return false
}

// isPerTask reports whether an expression may differ between tasks or their machines.
func (p *fileParser) isPerTask(expr hclsyntax.Expression) bool {
	for _, t := range p.freeReferences(expr) {
		if r := t.RootName(); r == "task" || r == "each" || r == "port" || p.isJobVariable(t) {
			return true
		}
	}
	return false
}

// describeValue describes a value for messages.
func describeValue(v cty.Value) string {
	ty := v.Type()
	switch {
	case v.IsNull():
		return "null"
	case !v.IsKnown():
		return "unknown"
	case ty == cty.String:
		return "the text " + strconv.Quote(truncateText(v.AsString()))
	case ty == cty.Number:
		return "the number " + truncateText(numberText(v))
	case ty == cty.Bool:
		return strconv.FormatBool(v.True())
	case ty.IsListType() || ty.IsTupleType() || ty.IsSetType():
		return fmt.Sprintf("a list of %d", v.LengthInt())
	case ty.IsMapType() || ty.IsObjectType():
		return "a map"
	}
	return "a " + ty.FriendlyName()
}

// truncateText cuts a text for a message.
func truncateText(s string) string {
	if r := []rune(s); len(r) > 60 {
		return string(r[:60]) + "…"
	}
	return s
}

// numberText writes a number without an exponent.
func numberText(v cty.Value) string {
	f := v.AsBigFloat()
	if f.IsInt() && f.MantExp(nil) < 200 {
		return f.Text('f', 0)
	}
	if f.MantExp(nil) > 200 || f.MantExp(nil) < -200 {
		return f.Text('g', 17)
	}
	if g, _ := f.Float64(); g != 0 {
		return strconv.FormatFloat(g, 'f', -1, 64)
	}
	return f.Text('f', -1)
}
