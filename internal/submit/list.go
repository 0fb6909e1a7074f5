package submit

import (
	"fmt"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
)

// textsOf reads a setting that is a list of texts.
func (b *builder) textsOf(name string) ([]text, bool) {
	a, ok := b.attr(name, b.roots()...)
	if !ok {
		return nil, false
	}
	return b.texts(a.Expr, name)
}

// texts reads an expression that gives a list of texts.
func (b *builder) texts(expr hclsyntax.Expression, what string) ([]text, bool) {
	switch e := expr.(type) {
	case *hclsyntax.ParenthesesExpr:
		return b.texts(e.Expression, what)
	case *hclsyntax.TupleConsExpr:
		list, all := make([]text, 0, len(e.Exprs)), true
		for _, x := range e.Exprs {
			t, ok := b.text(x, "an element of "+what)
			list, all = append(list, t), all && ok
		}
		return list, all
	case *hclsyntax.FunctionCallExpr:
		if e.Name == "concat" && !e.ExpandFinal && b.p.perTask(e) {
			list, all := []text(nil), true
			for _, x := range e.Args {
				part, ok := b.texts(x, what)
				list, all = append(list, part...), all && ok
			}
			return list, all
		}
	}
	if !b.p.perTask(expr) {
		v, ok := b.p.eval(expr, b.p.root)
		if !ok || v.IsNull() {
			return nil, false
		}
		strs, ok := b.listOf(v, expr.Range(), what)
		list := make([]text, len(strs))
		for i, s := range strs {
			list[i] = fixedText(s, expr.Range())
		}
		return list, ok
	}
	return b.computeList(expr, what)
}

// computeList evaluates a list for every task; each place of it becomes a column.
func (b *builder) computeList(expr hclsyntax.Expression, what string) ([]text, bool) {
	var columns [][]string
	ok := b.forEachTask(expr, func(i int, v cty.Value) bool {
		list, ok := b.listOf(v, expr.Range(), what)
		if !ok {
			return false
		}
		if i == 0 {
			columns = make([][]string, len(list))
		}
		if len(list) != len(columns) {
			b.fail(expr.Range(), what+" has to have the same length for all tasks", fmt.Sprintf("It has %d elements for task 0 and %d for task %d. Make one job for each length.", len(columns), len(list), i))
			return false
		}
		for k, s := range list {
			columns[k] = append(columns[k], s)
		}
		return true
	})
	if !ok {
		return nil, false
	}
	out := make([]text, len(columns))
	for k, values := range columns {
		out[k] = text{[]piece{{column: b.addColumn("computed", "", values)}}, expr.Range()}
	}
	return out, true
}

func (b *builder) listOf(v cty.Value, at hcl.Range, what string) ([]string, bool) {
	ty := v.Type()
	if v.IsNull() || !(ty.IsListType() || ty.IsTupleType() || ty.IsSetType()) {
		cure := "Write a list in brackets: " + what + " = [\"a\", \"b\"]."
		if ty == cty.String && !v.IsNull() {
			cure = fmt.Sprintf("Write a list in brackets: %s = [%s].", what, quoteWords(shorten(v.AsString())))
		}
		b.fail(at, what+" has to be a list", fmt.Sprintf("It is %s. %s", describe(v), cure))
		return nil, false
	}
	out := make([]string, 0, v.LengthInt())
	for it := v.ElementIterator(); it.Next(); {
		_, e := it.Element()
		s, ok := b.textOf(e, at, "an element of "+what)
		if !ok {
			return nil, false
		}
		out = append(out, s)
	}
	return out, true
}
