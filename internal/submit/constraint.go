package submit

import (
	"errors"
	"fmt"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/roost-batch/roost/classad"
	"github.com/zclconf/go-cty/cty"
)

// readConstraint reads requirements or rank: a text that is a ClassAd expression, or an expression of HCL that is translated
// into one. The ad gets only what the user asked for; whether the resources fit is looked at elsewhere.
func (b *builder) readConstraint(name, attr string) {
	a, ok := b.attr(name, b.roots("machine")...)
	if !ok {
		return
	}
	values, ok := b.constraint(a.Expr, name)
	if !ok || len(values) == 0 {
		return
	}
	if err := b.ad.SetExpr(attr, values[0]); err != nil {
		b.fail(a.Expr.Range(), name+" cannot be translated", err.Error())
		return
	}
	if len(values) > 1 {
		b.override(attr, values)
	}
}

// constraint returns ClassAd text: one for all tasks, or one for each.
func (b *builder) constraint(expr hclsyntax.Expression, name string) ([]string, bool) {
	if !b.p.perTask(expr) {
		s, ok := b.condition(expr, b.p.root, name)
		return []string{s}, ok && s != ""
	}
	if b.tasks.broken {
		return nil, false
	}
	values, parsed := make([]string, b.tasks.count), map[string]bool{}
	for i := range values {
		s, ok := b.translate(expr, b.scope(i), name)
		if !ok {
			return nil, false
		}
		if !parsed[s] {
			if !b.validClassAd(s, expr, name) {
				return nil, false
			}
			parsed[s] = true
		}
		values[i] = s
	}
	return values, true
}

func (b *builder) condition(expr hclsyntax.Expression, scope *hcl.EvalContext, name string) (string, bool) {
	s, ok := b.translate(expr, scope, name)
	return s, ok && s != "" && b.validClassAd(s, expr, name)
}

// translate makes ClassAd text of an expression. One that does not speak of machines is evaluated: its text is ClassAd already.
func (b *builder) translate(expr hclsyntax.Expression, scope *hcl.EvalContext, name string) (string, bool) {
	if b.machineIn(expr) {
		t := translator{b: b, scope: scope}
		return t.expr(expr, 0), !t.failed
	}
	v, ok := b.p.eval(expr, scope)
	if !ok || v.IsNull() {
		return "", false
	}
	switch v.Type() {
	case cty.String, cty.Number, cty.Bool:
		return b.textOf(v, expr.Range(), name)
	}
	b.fail(expr.Range(), name+" has to be an expression", fmt.Sprintf("It is %s. Write a condition, machine.memory >= \"4GiB\" && machine.arch == \"x86_64\", or a ClassAd expression in quotes.", describe(v)))
	return "", false
}

func (b *builder) machineIn(expr hclsyntax.Expression) bool {
	for _, t := range b.p.free(expr) {
		if t.RootName() == "machine" {
			return true
		}
	}
	return false
}

// validClassAd parses the text, and shows where it is wrong: inside the quotes, when they hold the very text.
func (b *builder) validClassAd(s string, expr hclsyntax.Expression, name string) bool {
	_, err := classad.ParseExpr(s)
	if err == nil {
		return true
	}
	at, detail := expr.Range(), err.Error()
	var se *classad.SyntaxError
	if errors.As(err, &se) {
		detail = sentence(errors.New(se.Msg))
		if src := b.p.source(at); len(src) == len(s)+2 && src[1:len(src)-1] == s {
			at = *rangeAt(b.p.src, at.Filename, at.Start.Byte+1+min(se.Offset, len(s)), 1)
		} else {
			detail += fmt.Sprintf(", at character %d of line %d of the text", se.Column, se.Line)
		}
	}
	b.fail(at, name+" is not a ClassAd expression", detail+". A plain condition needs no quotes: machine.memory >= \"4GiB\".")
	return false
}
