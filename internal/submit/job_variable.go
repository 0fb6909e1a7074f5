package submit

import (
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/ext/typeexpr"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
)

// jobVariable is a variable that differs between the jobs of ParseOptions.Variables.
type jobVariable struct {
	values    []string // by job; nil: known when the job begins
	isText    bool
	block     *hclsyntax.Block
	converted map[string]cty.Value // values of variables that are no texts
}

// readJobVariable records that a declared variable differs between jobs.
func (p *fileParser) readJobVariable(b *hclsyntax.Block, name string) {
	t := p.options.Variables
	if t == nil {
		return
	}
	values, ok := t.Column(name)
	if !ok && !slices.Contains(t.Deferred, name) {
		return
	}
	if ok && !slices.ContainsFunc(values, func(v string) bool { return v != values[0] }) {
		return // it does not differ
	}
	if p.jobVariables == nil {
		p.jobVariables = map[string]*jobVariable{}
	}
	p.jobVariables[name] = &jobVariable{values: values, block: b, converted: map[string]cty.Value{},
		isText: p.isTextVariable(b) || values == nil}
}

// isTextVariable reports whether a variable is a text whatever its value.
func (p *fileParser) isTextVariable(b *hclsyntax.Block) bool {
	if a := b.Body.Attributes["type"]; a != nil {
		return strings.TrimSpace(p.sourceText(a.Expr.Range())) == "string"
	}
	return b.Body.Attributes["default"] == nil
}

// variableType is the type of a variable whose block is valid.
func (p *fileParser) variableType(b *hclsyntax.Block) cty.Type {
	if a := b.Body.Attributes["type"]; a != nil {
		if ty, diags := typeexpr.TypeConstraint(a.Expr); !diags.HasErrors() {
			return ty
		}
	}
	return cty.DynamicPseudoType
}

// isJobVariable reports whether a reference is to a variable that differs between jobs.
func (p *fileParser) isJobVariable(t hcl.Traversal) bool {
	if p.jobVariables == nil || t.RootName() != "var" {
		return false
	}
	name, ok := traversalStepName(t, 1)
	return !ok || p.jobVariables[name] != nil
}

// needsVariables reports whether a value that is the same for all jobs refers to a
// variable that differs between them. It reports each such variable.
func (p *fileParser) needsVariables(expr hclsyntax.Expression) bool {
	if p.jobVariables == nil {
		return false
	}
	for _, t := range p.freeReferences(expr) {
		if !p.isJobVariable(t) {
			continue
		}
		name, _ := traversalStepName(t, 1)
		if v := p.jobVariables[name]; v != nil && v.values == nil {
			p.report(deferredDiagnostic(t.SourceRange(), name))
			return true
		}
		d := newDiagnostic(t.SourceRange().Ptr(), "this is the same for all jobs", "It depends on a variable that "+
			"differs between them.")
		d.Extra.(*diagnosticExtra).needs = name
		p.report(d)
		return true
	}
	return false
}

// NeededVariables returns the names of ParseOptions.Variables that have to be the same
// for all jobs of one call. Other diagnostics may follow from that, and mean nothing.
func NeededVariables(diags hcl.Diagnostics) (names []string) {
	for _, d := range diags {
		if x, ok := d.Extra.(*diagnosticExtra); ok && x.needs != "" && !slices.Contains(names, x.needs) {
			names = append(names, x.needs)
		}
	}
	return names
}

// addVariables sets the variables of a job in the scope of its tasks.
func (p *fileParser) addVariables(ctx *hcl.EvalContext, job int) {
	if p.jobVariables == nil {
		return
	}
	all := make(map[string]cty.Value, len(p.declared))
	for name, v := range p.declared {
		all[name] = v
	}
	for name, v := range p.jobVariables {
		if v.values != nil {
			all[name] = p.variableValue(name, v, job)
		}
	}
	ctx.Variables["var"] = cty.ObjectVal(all)
}

// variableValue is the value of a variable for a job.
func (p *fileParser) variableValue(name string, v *jobVariable, job int) cty.Value {
	text := v.values[job]
	if v.isText {
		return cty.StringVal(text)
	}
	value, ok := v.converted[text]
	if !ok {
		value = p.parseVarFlag(v.block, name, text, p.variableType(v.block))
		v.converted[text] = value
	}
	return value
}

// variableReference handles a plain var.NAME that differs between jobs.
func (b taskSetReader) variableReference(e *hclsyntax.ScopeTraversalExpr, what string) (taskText, bool) {
	name, _ := traversalStepName(e.Traversal, 1)
	v := b.parser.jobVariables[name]
	source := b.parser.sourceText(e.Range())
	switch {
	case v == nil || len(e.Traversal) != 2 || !v.isText:
		column, ok := b.computeColumn(e, what)
		return taskText{[]textPiece{{column: column}}, e.Range()}, ok
	case v.values == nil:
		return taskText{[]textPiece{{column: name}}, e.Range()}, true
	}
	column, ok := b.columnByExpr[source]
	if !ok {
		values := v.values
		if n := b.tasks.perJob(); n > 1 {
			values = make([]string, 0, b.tasks.count)
			for _, text := range v.values {
				values = append(values, slices.Repeat([]string{text}, n)...)
			}
		}
		column = b.addColumn(name, source, values)
	}
	return taskText{[]textPiece{{column: column}}, e.Range()}, true
}

// deferredPiece returns the name of a piece of a text that is known when the job begins.
func (b taskSetReader) deferredPiece(t taskText) (name string, ok bool) {
	for _, p := range t.pieces {
		if p.column != "" && !containsName([]string{taskIndex, arrayIndex, jobSequence}, p.column) &&
			!slices.ContainsFunc(b.columns, func(c TaskColumn) bool { return c.Name == p.column }) {
			return p.column, true
		}
	}
	return "", false
}

// refuseDeferred reports a computation with what is known only when the job begins.
func (b taskSetReader) refuseDeferred(expr hclsyntax.Expression) bool {
	for _, t := range b.parser.freeReferences(expr) {
		name, _ := traversalStepName(t, 1)
		if v := b.parser.jobVariables[name]; t.RootName() == "var" && v != nil && v.values == nil {
			b.parser.report(deferredDiagnostic(t.SourceRange(), name))
			return true
		}
		if name, _ = traversalStepName(t, 2); t.RootName() == "each" && b.tasks.items != nil &&
			slices.Contains(b.tasks.items.Deferred, name) {
			b.parser.report(deferredDiagnostic(t.SourceRange(), name))
			return true
		}
	}
	return false
}

// deferredDiagnostic reports the use of a value that is known when the job begins.
func deferredDiagnostic(at hcl.Range, name string) *hcl.Diagnostic {
	return newDiagnostic(&at, name+" cannot be used here",
		"It is known when the job begins, and can be part of arguments, of the environment, and of names of files.")
}
