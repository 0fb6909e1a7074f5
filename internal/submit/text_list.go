package submit

import (
	"fmt"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
)

// textListSetting reads a setting that is a list of texts.
func (b taskSetReader) textListSetting(name string) ([]taskText, bool) {
	a, ok := b.attribute(name, b.taskRoots("port")...)
	if !ok {
		return nil, false
	}
	return b.readTextList(a.Expr, name)
}

// readTextList reads an expression that gives a list of texts.
func (b taskSetReader) readTextList(expr hclsyntax.Expression, what string) ([]taskText, bool) {
	switch e := expr.(type) {
	case *hclsyntax.ParenthesesExpr:
		return b.readTextList(e.Expression, what)
	case *hclsyntax.TupleConsExpr:
		list, all := make([]taskText, 0, len(e.Exprs)), true
		for _, x := range e.Exprs {
			t, ok := b.readText(x, "an element of "+what)
			list, all = append(list, t), all && ok
		}
		return list, all
	case *hclsyntax.FunctionCallExpr:
		if e.Name == "concat" && !e.ExpandFinal && b.parser.isPerTask(e) {
			list, all := []taskText(nil), true
			for _, x := range e.Args {
				part, ok := b.readTextList(x, what)
				list, all = append(list, part...), all && ok
			}
			return list, all
		}
	}
	if !b.parser.isPerTask(expr) {
		v, ok := b.parser.evaluate(expr, b.parser.root)
		if !ok || v.IsNull() {
			return nil, false
		}
		strs, ok := b.listElements(v, expr.Range(), what)
		list := make([]taskText, len(strs))
		for i, s := range strs {
			list[i] = fixedText(s, expr.Range())
		}
		return list, ok
	}
	return b.computeList(expr, what)
}

// computeList evaluates a list for every task; each place of it becomes a column.
func (b taskSetReader) computeList(expr hclsyntax.Expression, what string) ([]taskText, bool) {
	var columns [][]string
	ok := b.forEachTask(expr, func(i int, v cty.Value) bool {
		list, ok := b.listElements(v, expr.Range(), what)
		if !ok {
			return false
		}
		if i == 0 {
			columns = make([][]string, len(list))
		}
		if len(list) != len(columns) {
			b.reportProblem(expr.Range(), what+" has to have the same length for all tasks",
				fmt.Sprintf("It has %d elements for task 0 and %d for task %d. Make one job for each length.",
					len(columns), len(list), i))
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
	out := make([]taskText, len(columns))
	for k, values := range columns {
		out[k] = taskText{[]textPiece{{column: b.addColumn("computed", "", values)}}, expr.Range()}
	}
	return out, true
}

func (b taskSetReader) listElements(v cty.Value, at hcl.Range, what string) ([]string, bool) {
	ty := v.Type()
	if v.IsNull() || !(ty.IsListType() || ty.IsTupleType() || ty.IsSetType()) {
		hint := "Write a list in brackets: " + what + " = [\"a\", \"b\"]."
		if ty == cty.String && !v.IsNull() {
			hint = fmt.Sprintf("Write a list in brackets: %s = [%s].", what, quoteWords(truncateText(v.AsString())))
		}
		b.reportProblem(at, what+" has to be a list", fmt.Sprintf("It is %s. %s", describeValue(v), hint))
		return nil, false
	}
	out := make([]string, 0, v.LengthInt())
	for it := v.ElementIterator(); it.Next(); {
		_, e := it.Element()
		s, ok := b.valueText(e, at, "an element of "+what)
		if !ok {
			return nil, false
		}
		out = append(out, s)
	}
	return out, true
}
