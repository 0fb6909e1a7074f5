package submit

import (
	"errors"
	"fmt"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"

	"github.com/roost-batch/roost/classad"
)

const constraintHint = "A plain condition needs no quotes: machine.memory >= \"4GiB\"."

// readConstraint reads requirements or rank. The value is a text that is a ClassAd
// expression, or an HCL expression that is translated into one. The ad gets only what the
// user asked for; the negotiator checks resources separately.
func (b constraintReader) readConstraint(name, attr string) {
	a, ok := b.attribute(name, b.taskReader().taskRoots("machine")...)
	if !ok {
		return
	}
	values, ok := b.constraintText(a.Expr, name)
	if !ok || len(values) == 0 {
		return
	}
	if err := b.ad.SetExpr(attr, values[0]); err != nil {
		b.reportProblem(a.Expr.Range(), name+" cannot be translated", err.Error())
		return
	}
	if len(values) > 1 {
		b.taskReader().overrideColumn(attr, values)
	}
}

// constraintText returns ClassAd text: one for all tasks, or one for each.
func (b constraintReader) constraintText(expr hclsyntax.Expression, name string) ([]string, bool) {
	if !b.parser.isPerTask(expr) {
		s, ok := b.condition(expr, b.parser.root, name)
		return []string{s}, ok && s != ""
	}
	if b.tasks.isInvalid {
		return nil, false
	}
	values, parsed := make([]string, b.tasks.count), map[string]bool{}
	for i := range values {
		s, ok := b.translateExpression(expr, b.taskReader().taskScope(i), name)
		if !ok {
			return nil, false
		}
		if !parsed[s] {
			if !b.checkClassAd(s, expr, name, constraintHint) {
				return nil, false
			}
			parsed[s] = true
		}
		values[i] = s
	}
	return values, true
}

func (b constraintReader) condition(expr hclsyntax.Expression, scope *hcl.EvalContext, name string) (string, bool) {
	s, ok := b.translateExpression(expr, scope, name)
	return s, ok && s != "" && b.checkClassAd(s, expr, name, constraintHint)
}

// translateExpression returns the ClassAd text of an expression. One that does not refer
// to machines is evaluated, because its value is ClassAd text.
func (b constraintReader) translateExpression(expr hclsyntax.Expression, scope *hcl.EvalContext,
	name string) (string, bool) {
	if b.usesMachine(expr) {
		t := conditionTranslator{builder: b.jobBuilder, scope: scope}
		return t.translateExpr(expr, 0), !t.hasFailed
	}
	v, ok := b.parser.evaluate(expr, scope)
	if !ok || v.IsNull() {
		return "", false
	}
	switch v.Type() {
	case cty.String, cty.Number, cty.Bool:
		return b.taskReader().valueText(v, expr.Range(), name)
	}
	b.reportProblem(expr.Range(), name+" has to be an expression",
		fmt.Sprintf("It is %s. Write a condition, machine.memory >= \"4GiB\" && machine.arch == \"x86_64\", or "+
			"a ClassAd expression in quotes.", describeValue(v)))
	return "", false
}

func (b constraintReader) usesMachine(expr hclsyntax.Expression) bool {
	for _, t := range b.parser.freeReferences(expr) {
		if t.RootName() == "machine" {
			return true
		}
	}
	return false
}

// checkClassAd parses the text and reports a mistake at its place: inside the quotes, if
// they contain exactly that text.
func (b constraintReader) checkClassAd(s string, expr hclsyntax.Expression, name, hint string) bool {
	_, err := classad.ParseExpr(s)
	if err == nil {
		return true
	}
	at, detail := expr.Range(), err.Error()
	var se *classad.SyntaxError
	if errors.As(err, &se) {
		detail = capitalized(errors.New(se.Msg))
		if src := b.parser.sourceText(at); len(src) == len(s)+2 && src[1:len(src)-1] == s {
			at = *rangeAt(b.parser.source, at.Filename, at.Start.Byte+1+min(se.Offset, len(s)), 1)
		} else {
			detail += fmt.Sprintf(", at character %d of line %d of the text", se.Column, se.Line)
		}
	}
	b.reportProblem(at, name+" is not a ClassAd expression", detail+". "+hint)
	return false
}
