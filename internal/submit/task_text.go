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

// taskText is a text that may differ between tasks. It has fixed pieces and pieces that
// stand for a column.
type taskText struct {
	pieces      []textPiece
	sourceRange hcl.Range
}

type textPiece struct {
	fixed  string
	column string // name of the column, or "TaskIndex", "ArrayIndex" or "JobSeq"; empty for a fixed piece
}

func fixedText(s string, at hcl.Range) taskText { return taskText{[]textPiece{{fixed: s}}, at} }

// fixedText returns the text itself if it is equal for all tasks.
func (t taskText) fixedText() (string, bool) {
	var s strings.Builder
	for _, piece := range t.pieces {
		if piece.column != "" {
			return "", false
		}
		s.WriteString(piece.fixed)
	}
	return s.String(), true
}

// adText returns the text in the form of a job ad. Columns become "$(Name)", and each
// dollar sign of the user is doubled.
func (t taskText) adText() string {
	var s strings.Builder
	for _, piece := range t.pieces {
		if piece.column != "" {
			s.WriteString("$(" + piece.column + ")")
		} else {
			s.WriteString(EscapeLiteral(piece.fixed))
		}
	}
	return s.String()
}

// isSameForAll reports whether all tasks have the same text, apart from the job's number.
func (t taskText) isSameForAll() bool {
	return !slices.ContainsFunc(t.pieces, func(p textPiece) bool { return p.column != "" && p.column != jobSequence })
}

// hasJobNumber reports whether the text contains the job's number, which is assigned at
// submission.
func (t taskText) hasJobNumber() bool {
	return slices.ContainsFunc(t.pieces, func(p textPiece) bool { return p.column == jobSequence })
}

// taskValue returns the value of a text for one task. The text must not contain the job's
// number.
func (b taskSetReader) taskValue(t taskText, i int) string {
	var s strings.Builder
	for _, piece := range t.pieces {
		switch piece.column {
		case "":
			s.WriteString(piece.fixed)
		case taskIndex:
			s.WriteString(strconv.Itoa(i % b.tasks.perJob()))
		case arrayIndex:
			s.WriteString(strconv.Itoa(b.tasks.indexes.IndexOf(i % b.tasks.perJob())))
		default: // few columns: a search is as fast as a map
			c := slices.IndexFunc(b.columns, func(c TaskColumn) bool { return c.Name == piece.column })
			if c < 0 { // known when the job begins
				s.WriteString("$(" + piece.column + ")")
				continue
			}
			s.WriteString(b.columns[c].Values[i])
		}
	}
	return s.String()
}

// withAffixes returns t with fixed text around it.
func (t taskText) withAffixes(before, after string) taskText {
	pieces := append([]textPiece{{fixed: before}}, t.pieces...)
	return taskText{append(pieces, textPiece{fixed: after}), t.sourceRange}
}

// The references beside columns that the schedd replaces.
const (
	taskIndex   = "TaskIndex"
	arrayIndex  = "ArrayIndex"
	jobSequence = "JobSeq"
)

// readText reads an expression that gives a text. Where possible it splits the expression
// instead of evaluating it for each task. what names the place in messages: "an
// argument".
func (b taskSetReader) readText(expr hclsyntax.Expression, what string) (taskText, bool) {
	if !b.parser.isPerTask(expr) {
		v, ok := b.parser.evaluate(expr, b.parser.root)
		if !ok {
			return taskText{}, false
		}
		s, ok := b.valueText(v, expr.Range(), what)
		return fixedText(s, expr.Range()), ok
	}
	if b.tasks.isInvalid {
		return taskText{}, false
	}
	switch e := expr.(type) {
	case *hclsyntax.TemplateExpr:
		out := taskText{sourceRange: e.Range()}
		for _, part := range e.Parts {
			t, ok := b.readText(part, "a piece of text")
			if !ok {
				return taskText{}, false
			}
			out.pieces = append(out.pieces, t.pieces...)
		}
		return out, true
	case *hclsyntax.TemplateWrapExpr:
		return b.readText(e.Wrapped, what)
	case *hclsyntax.ParenthesesExpr:
		return b.readText(e.Expression, what)
	case *hclsyntax.ScopeTraversalExpr:
		return b.columnReference(e, what)
	}
	name, ok := b.computeColumn(expr, what)
	return taskText{[]textPiece{{column: name}}, expr.Range()}, ok
}

// columnReference handles a plain task.index, task.job, each.key or each.value.…, which
// needs no computation.
func (b taskSetReader) columnReference(e *hclsyntax.ScopeTraversalExpr, what string) (taskText, bool) {
	first, _ := traversalStepName(e.Traversal, 1)
	switch e.Traversal.RootName() {
	case "port":
		return b.portReference(e)
	case "var":
		return b.variableReference(e, what)
	}
	if e.Traversal.RootName() == "task" {
		switch first {
		case "count":
			return fixedText(strconv.Itoa(b.tasks.perJob()), e.Range()), true
		case "job":
			return taskText{[]textPiece{{column: jobSequence}}, e.Range()}, true
		}
		return taskText{[]textPiece{{column: taskIndex}}, e.Range()}, true
	}
	if x := b.tasks.indexes; x != nil && len(e.Traversal) == 2 {
		name := arrayIndex
		if x.IsPlain() {
			name = taskIndex
		}
		return taskText{[]textPiece{{column: name}}, e.Range()}, true
	} else if x != nil {
		b.reportProblem(e.Range(), "an index has no members", "each.value is a number here.")
		return taskText{}, false
	}
	if b.tasks.items != nil {
		return b.itemReference(e, first)
	}
	source, rest := b.tasks.values, hcl.Traversal(nil)
	if first == "key" {
		source = b.tasks.keys
	}
	if len(e.Traversal) > 2 {
		rest = e.Traversal[2:]
	}
	if name, ok := b.columnByExpr[b.parser.sourceText(e.Range())]; ok {
		return taskText{[]textPiece{{column: name}}, e.Range()}, true
	}
	values := make([]string, len(source))
	for i, v := range source {
		if rest != nil {
			var diags hcl.Diagnostics
			if v, diags = rest.TraverseRel(v); diags.HasErrors() {
				b.reportProblem(e.Range(), "not every element of for_each has this",
					fmt.Sprintf("Element %d is %s. %s", i, describeValue(source[i]), diags[0].Detail))
				return taskText{}, false
			}
		}
		s, ok := b.valueText(v, e.Range(), what)
		if !ok {
			return taskText{}, false
		}
		values[i] = s
	}
	if b.tasks.jobs > 1 {
		values = slices.Repeat(values, b.tasks.jobs)
	}
	name := b.addColumn(columnNameOf(e.Traversal), b.parser.sourceText(e.Range()), values)
	return taskText{[]textPiece{{column: name}}, e.Range()}, true
}

// itemReference handles each.value.NAME and each.key of a job whose items its caller
// gives. The column of the items is used as it is.
func (b taskSetReader) itemReference(e *hclsyntax.ScopeTraversalExpr, first string) (taskText, bool) {
	if first == "key" {
		return taskText{[]textPiece{{column: taskIndex}}, e.Range()}, true
	}
	name, _ := traversalStepName(e.Traversal, 2)
	if slices.Contains(b.tasks.items.Deferred, name) {
		return taskText{[]textPiece{{column: name}}, e.Range()}, true
	}
	values, ok := b.tasks.items.Column(name)
	if !ok || len(e.Traversal) != 3 {
		b.reportProblem(e.Range(), "the items do not have this", "There are: "+
			strings.Join(b.tasks.items.Names, ", ")+".")
		return taskText{}, false
	}
	source := b.parser.sourceText(e.Range())
	column, ok := b.columnByExpr[source]
	if !ok {
		column = b.addColumn(name, source, values)
	}
	return taskText{[]textPiece{{column: column}}, e.Range()}, true
}

// columnNameOf returns a good column name for a traversal.
func columnNameOf(t hcl.Traversal) string {
	for i := len(t) - 1; i > 0; i-- {
		if name, ok := traversalStepName(t, i); ok {
			return name
		}
	}
	return "value"
}

// computeColumn evaluates an expression for every task into a column.
func (b taskSetReader) computeColumn(expr hclsyntax.Expression, what string) (column string, ok bool) {
	if name, ok := b.columnByExpr[b.parser.sourceText(expr.Range())]; ok {
		return name, true
	}
	values := make([]string, 0, b.tasks.count)
	ok = b.forEachTask(expr, func(_ int, v cty.Value) bool {
		s, ok := b.valueText(v, expr.Range(), what)
		values = append(values, s)
		return ok
	})
	if !ok {
		return "", false
	}
	return b.addColumn("computed", b.parser.sourceText(expr.Range()), values), true
}

// valueText converts a number, a boolean or a text to a text.
func (b taskSetReader) valueText(v cty.Value, at hcl.Range, what string) (string, bool) {
	switch {
	case v.IsNull():
		b.reportProblem(at, what+" is null", "A text is wanted. Give it a value; \"\" is the empty text.")
	case v.Type() == cty.String:
		s := v.AsString()
		if strings.ContainsRune(s, 0) {
			b.reportProblem(at, what+" holds a NUL",
				"The system ends a text at the character \\u0000, so it cannot be part of one.")
			return "", false
		}
		return s, true
	case v.Type() == cty.Number:
		return numberText(v), true
	case v.Type() == cty.Bool:
		return strconv.FormatBool(v.True()), true
	default:
		hint := "Use join(\" \", …) to make one text of a list, or jsonencode(…)."
		b.reportProblem(at, what+" has to be a text", fmt.Sprintf("It is %s. %s", describeValue(v), hint))
	}
	return "", false
}
