package submit

import (
	"fmt"
	"slices"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/ext/typeexpr"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/convert"
)

type hclDiags = hcl.Diagnostics

// readVariables reads the variable blocks, and sets each variable from --var or its
// default.
func (p *fileParser) readVariables(blocks []*hclsyntax.Block) {
	values := map[string]cty.Value{}
	for _, b := range blocks {
		name, ok := p.blockLabel(b, "a variable", "variable \"steps\" {\n    default = 100\n  }")
		if !ok {
			continue
		}
		if _, twice := values[name]; twice {
			p.report(newDiagnostic(b.LabelRanges[0].Ptr(), fmt.Sprintf("the variable %q is declared twice", name),
				"Remove one of the two blocks, or give it another name."))
			continue
		}
		values[name] = p.readVariable(b, name)
		p.readJobVariable(b, name)
	}
	p.declared = values
	for _, name := range sortedKeys(p.options.Vars) {
		if _, ok := values[name]; !ok {
			p.report(newDiagnostic(nil, fmt.Sprintf("--var %s: the job file declares no such variable", name),
				fmt.Sprintf("Declare it: variable %q {}, and refer to it as var.%s.%s", name, name,
					didYouMean(name, sortedKeys(values)))))
		}
	}
	p.root.Variables["var"] = cty.ObjectVal(values)
}

func (p *fileParser) readVariable(b *hclsyntax.Block, name string) cty.Value {
	if !p.refuseUnknown(b, "a variable", []string{"type", "default", "description"}, nil) {
		return cty.DynamicVal
	}
	ty := cty.DynamicPseudoType
	if a := b.Body.Attributes["type"]; a != nil {
		t, diags := typeexpr.TypeConstraint(a.Expr)
		if diags.HasErrors() {
			p.report(newDiagnostic(a.Expr.Range().Ptr(), "this is not a type",
				"Types are string, number, bool, any, list(string), set(string), map(number), object({a = string}) "+
					"and the like, not in quotes."))
			return cty.DynamicVal
		}
		ty = t
	}
	text, given := p.options.Vars[name]
	if v := p.options.Variables; v != nil && !given {
		if values, ok := v.Column(name); ok {
			text, given = values[0], true
		} else if slices.Contains(v.Deferred, name) {
			given = true
		}
	}
	a := b.Body.Attributes["default"]
	switch {
	case given:
		return p.parseVarFlag(b, name, text, ty)
	case a == nil:
		p.report(newDiagnostic(b.LabelRanges[0].Ptr(), fmt.Sprintf("the variable %q has no value", name),
			fmt.Sprintf("Give it one on the command line, --var %s=VALUE, or a default = … in its block.", name)))
		return cty.DynamicVal
	}
	v, ok := p.constantExpr(a.Expr)
	if !ok {
		return cty.DynamicVal
	}
	got, err := convert.Convert(v, ty)
	if err != nil {
		p.report(newDiagnostic(a.Expr.Range().Ptr(),
			fmt.Sprintf("the default of %q is of another type than the variable", name),
			fmt.Sprintf("It is %s, and the block says type = %s.", describeValue(v), typeexpr.TypeString(ty))))
		return cty.DynamicVal
	}
	return got
}

// parseVarFlag converts the text of --var. A variable without a type gets the text
// itself, unless its default is a number or a boolean.
func (p *fileParser) parseVarFlag(b *hclsyntax.Block, name, text string, ty cty.Type) cty.Value {
	if len(text) > maxFileBytes || firstInvalidByte([]byte(text)) >= 0 {
		p.report(newDiagnostic(b.LabelRanges[0].Ptr(), fmt.Sprintf("--var %s: the value is not text of at most 1MiB",
			name), "Values are text in UTF-8. Hand a file in by its name, and read it with file(var."+name+")."))
		return cty.DynamicVal
	}
	if a := b.Body.Attributes["default"]; a != nil && ty == cty.DynamicPseudoType {
		if v, ok := p.constantExpr(a.Expr); ok && v.IsKnown() && !v.IsNull() {
			ty = v.Type()
		}
	}
	value := cty.StringVal(text)
	if ty != cty.DynamicPseudoType && !ty.IsPrimitiveType() { // a list or a map: written as in the file
		if checkDepth([]byte(text), name) != nil {
			p.report(p.reportVarFlag(b, name, text, ty))
			return cty.DynamicVal
		}
		expr, diags := hclsyntax.ParseExpression([]byte(text), name, hcl.InitialPos)
		if diags.HasErrors() {
			p.report(p.reportVarFlag(b, name, text, ty))
			return cty.DynamicVal
		}
		v, diags, err := p.meter.evaluate(expr, &hcl.EvalContext{})
		if err != nil || diags.HasErrors() {
			p.report(p.reportVarFlag(b, name, text, ty))
			return cty.DynamicVal
		}
		value = v
	}
	if ty == cty.Number && hasHugeExponent(text) {
		p.report(p.reportVarFlag(b, name, text, ty))
		return cty.DynamicVal
	}
	v, err := convert.Convert(value, ty)
	if err != nil {
		p.report(p.reportVarFlag(b, name, text, ty))
		return cty.DynamicVal
	}
	return v
}

func (p *fileParser) reportVarFlag(b *hclsyntax.Block, name, text string, ty cty.Type) *hcl.Diagnostic {
	return newDiagnostic(b.LabelRanges[0].Ptr(), fmt.Sprintf("--var %s: the value does not fit the variable", name),
		fmt.Sprintf("%q is not of type %s, which the variable has here. Lists and maps are written as in a job file: "+
			"--var '%s=[1, 2]'.", truncateText(text), typeexpr.TypeString(ty), name))
}

// evalLocals evaluates the locals blocks. Locals may refer to each other in any order,
// but not in a cycle.
func (p *fileParser) evalLocals(blocks []*hclsyntax.Block) {
	attrs := map[string]*hclsyntax.Attribute{}
	for _, b := range blocks {
		if !p.refuseLabels(b, "locals { … }") || !p.refuseUnknown(b, "locals", nil, nil) {
			continue
		}
		for _, name := range sortedKeys(b.Body.Attributes) {
			if old := attrs[name]; old != nil {
				p.report(newDiagnostic(b.Body.Attributes[name].NameRange.Ptr(), fmt.Sprintf("local.%s is set twice",
					name), fmt.Sprintf("It was set on line %d before.", old.NameRange.Start.Line)))
				continue
			}
			attrs[name] = b.Body.Attributes[name]
		}
	}
	values := map[string]cty.Value{}
	p.localNames = sortedKeys(attrs)
	names := slices.SortedFunc(slices.Values(p.localNames), func(a, b string) int {
		return attrs[a].NameRange.Start.Byte - attrs[b].NameRange.Start.Byte
	})
	state := map[string]int{} // 1 being evaluated, 2 done
	for _, name := range names {
		p.evalLocal(name, attrs, values, state, 0)
	}
	p.root.Variables["local"] = cty.ObjectVal(values)
}

func (p *fileParser) evalLocal(name string, attrs map[string]*hclsyntax.Attribute, values map[string]cty.Value,
	state map[string]int, depth int) {
	if state[name] == 2 {
		return
	}
	a := attrs[name]
	state[name] = 1
	values[name] = cty.DynamicVal
	uses := map[string]cty.Value{}
	for _, t := range p.freeReferences(a.Expr) {
		next, ok := traversalStepName(t, 1)
		if t.RootName() != "local" || !ok || attrs[next] == nil {
			continue
		}
		if state[next] == 1 || depth > 1000 {
			p.report(newDiagnostic(t.SourceRange().Ptr(), fmt.Sprintf("local.%s depends on itself", name),
				fmt.Sprintf("To know local.%s one has to know local.%s first, and the other way round.", name, next)))
			state[name] = 2
			return
		}
		p.evalLocal(next, attrs, values, state, depth+1)
		uses[next] = values[next]
	}
	if !p.checkNames(a.Expr, nil) {
		state[name] = 2
		return
	}
	// only the locals used: an object of all locals for each local would take quadratic
	// time
	ctx := p.root.NewChild()
	ctx.Variables = map[string]cty.Value{"local": cty.ObjectVal(uses)}
	if v, ok := p.evaluate(a.Expr, ctx); ok {
		values[name] = v
	}
	state[name] = 2
}

// traversalStepName returns the name at a position of a traversal: in var.x the name at 1
// is x.
func traversalStepName(t hcl.Traversal, i int) (string, bool) {
	if i >= len(t) {
		return "", false
	}
	switch s := t[i].(type) {
	case hcl.TraverseAttr:
		return s.Name, true
	case hcl.TraverseIndex:
		if s.Key.Type() == cty.String {
			return s.Key.AsString(), true
		}
	}
	return "", false
}

func sortedKeys[V any](m map[string]V) []string {
	names := make([]string, 0, len(m))
	for name := range m {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}
