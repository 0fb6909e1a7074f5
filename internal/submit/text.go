package submit

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
)

// text is a text that may differ between tasks: pieces that are fixed, and pieces that stand for a column.
type text struct {
	pieces []piece
	at     hcl.Range
}

type piece struct {
	fixed  string
	column string // name of the column, or "TaskIndex", "ArrayIndex" or "JobSeq"; empty for a fixed piece
}

func fixedText(s string, at hcl.Range) text { return text{[]piece{{fixed: s}}, at} }

// fixed returns the text itself when it is the same for all tasks.
func (t text) fixed() (string, bool) {
	var s strings.Builder
	for _, piece := range t.pieces {
		if piece.column != "" {
			return "", false
		}
		s.WriteString(piece.fixed)
	}
	return s.String(), true
}

// ad is the text as a job ad holds it: columns as "$(Name)", and each dollar sign of the user doubled.
func (t text) ad() string {
	var s strings.Builder
	for _, piece := range t.pieces {
		if piece.column != "" {
			s.WriteString("$(" + piece.column + ")")
		} else {
			s.WriteString(Literal(piece.fixed))
		}
	}
	return s.String()
}

// Literal doubles the dollar signs of a text that is to stand in an ad as it is.
func Literal(s string) string { return strings.ReplaceAll(s, "$", "$$") }

// alike reports whether all tasks have the same text, although the job's number may stand in it.
func (t text) alike() bool {
	return !slices.ContainsFunc(t.pieces, func(p piece) bool { return p.column != "" && p.column != jobSeq })
}

// numbered reports whether the job's number stands in it, which it gets when it is submitted.
func (t text) numbered() bool {
	return slices.ContainsFunc(t.pieces, func(p piece) bool { return p.column == jobSeq })
}

// textOfTask is what a text without the job's number is for one task.
func (b *builder) textOfTask(t text, i int) string {
	var s strings.Builder
	for _, piece := range t.pieces {
		switch piece.column {
		case "":
			s.WriteString(piece.fixed)
		case taskIndex:
			s.WriteString(strconv.Itoa(i))
		case arrayIndex:
			s.WriteString(strconv.Itoa(b.tasks.marked.At(i)))
		default: // few columns: a search is as fast as a map
			c := slices.IndexFunc(b.columns, func(c Column) bool { return c.Name == piece.column })
			s.WriteString(b.columns[c].Values[i])
		}
	}
	return s.String()
}

// with returns t with fixed text around it.
func (t text) with(before, after string) text {
	pieces := append([]piece{{fixed: before}}, t.pieces...)
	return text{append(pieces, piece{fixed: after}), t.at}
}

// What the schedd puts into texts beside columns.
const (
	taskIndex  = "TaskIndex"
	arrayIndex = "ArrayIndex"
	jobSeq     = "JobSeq"
)

// text reads an expression that gives a text, taking it apart rather than evaluating it for each task where it can. what
// names the place in messages: "an argument".
func (b *builder) text(expr hclsyntax.Expression, what string) (text, bool) {
	if !b.p.perTask(expr) {
		v, ok := b.p.eval(expr, b.p.root)
		if !ok {
			return text{}, false
		}
		s, ok := b.textOf(v, expr.Range(), what)
		return fixedText(s, expr.Range()), ok
	}
	if b.tasks.broken {
		return text{}, false
	}
	switch e := expr.(type) {
	case *hclsyntax.TemplateExpr:
		out := text{at: e.Range()}
		for _, part := range e.Parts {
			t, ok := b.text(part, "a piece of text")
			if !ok {
				return text{}, false
			}
			out.pieces = append(out.pieces, t.pieces...)
		}
		return out, true
	case *hclsyntax.TemplateWrapExpr:
		return b.text(e.Wrapped, what)
	case *hclsyntax.ParenthesesExpr:
		return b.text(e.Expression, what)
	case *hclsyntax.ScopeTraversalExpr:
		return b.reference(e, what)
	}
	name, ok := b.compute(expr, what)
	return text{[]piece{{column: name}}, expr.Range()}, ok
}

// reference is a plain task.index, task.job, each.key or each.value.…: a column that nothing has to be computed for.
func (b *builder) reference(e *hclsyntax.ScopeTraversalExpr, what string) (text, bool) {
	first, _ := stepName(e.Traversal, 1)
	if e.Traversal.RootName() == "task" {
		switch first {
		case "count":
			return fixedText(strconv.Itoa(b.tasks.count), e.Range()), true
		case "job":
			return text{[]piece{{column: jobSeq}}, e.Range()}, true
		}
		return text{[]piece{{column: taskIndex}}, e.Range()}, true
	}
	if x := b.tasks.marked; x != nil && len(e.Traversal) == 2 {
		name := arrayIndex
		if x.Plain() {
			name = taskIndex
		}
		return text{[]piece{{column: name}}, e.Range()}, true
	} else if x != nil {
		b.fail(e.Range(), "an index has no members", "each.value is a number here.")
		return text{}, false
	}
	source, rest := b.tasks.values, hcl.Traversal(nil)
	if first == "key" {
		source = b.tasks.keys
	}
	if len(e.Traversal) > 2 {
		rest = e.Traversal[2:]
	}
	if name, ok := b.columnOf[b.p.source(e.Range())]; ok {
		return text{[]piece{{column: name}}, e.Range()}, true
	}
	values := make([]string, len(source))
	for i, v := range source {
		if rest != nil {
			var diags hcl.Diagnostics
			if v, diags = rest.TraverseRel(v); diags.HasErrors() {
				b.fail(e.Range(), "not every element of for_each has this", fmt.Sprintf("Element %d is %s. %s", i, describe(source[i]), diags[0].Detail))
				return text{}, false
			}
		}
		s, ok := b.textOf(v, e.Range(), what)
		if !ok {
			return text{}, false
		}
		values[i] = s
	}
	name := b.addColumn(lastName(e.Traversal), b.p.source(e.Range()), values)
	return text{[]piece{{column: name}}, e.Range()}, true
}

// lastName is what a traversal's column is best called.
func lastName(t hcl.Traversal) string {
	for i := len(t) - 1; i > 0; i-- {
		if name, ok := stepName(t, i); ok {
			return name
		}
	}
	return "value"
}

// compute evaluates an expression for every task into a column.
func (b *builder) compute(expr hclsyntax.Expression, what string) (column string, ok bool) {
	if name, ok := b.columnOf[b.p.source(expr.Range())]; ok {
		return name, true
	}
	values := make([]string, 0, b.tasks.count)
	ok = b.forEachTask(expr, func(_ int, v cty.Value) bool {
		s, ok := b.textOf(v, expr.Range(), what)
		values = append(values, s)
		return ok
	})
	if !ok {
		return "", false
	}
	return b.addColumn("computed", b.p.source(expr.Range()), values), true
}

// textOf turns a number, a truth or a text into a text.
func (b *builder) textOf(v cty.Value, at hcl.Range, what string) (string, bool) {
	switch {
	case v.IsNull():
		b.fail(at, what+" is null", "A text is wanted. Give it a value; \"\" is the empty text.")
	case v.Type() == cty.String:
		s := v.AsString()
		if strings.ContainsRune(s, 0) {
			b.fail(at, what+" holds a NUL", "The system ends a text at the character \\u0000, so it cannot be part of one.")
			return "", false
		}
		return s, true
	case v.Type() == cty.Number:
		return numberText(v), true
	case v.Type() == cty.Bool:
		return strconv.FormatBool(v.True()), true
	default:
		cure := "Use join(\" \", …) to make one text of a list, or jsonencode(…)."
		b.fail(at, what+" has to be a text", fmt.Sprintf("It is %s. %s", describe(v), cure))
	}
	return "", false
}
