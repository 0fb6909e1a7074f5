package submit

import (
	"fmt"
	"math/big"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/submit/jobspec"
)

// taskSet says how many tasks a job has, and what each is for.
type taskSet struct {
	count   int // of all jobs
	jobs    int // jobs with this ad; 0: one
	array   bool
	keys    []cty.Value // keys of for_each; nil without
	values  []cty.Value
	items   *jobspec.ItemTable  // what each.value has; nil: values has it
	indexes *roost.ArrayIndexes // indexes of the tasks; nil: counted from 0
	// the number could not be determined, which was reported: nothing more is reported
	// about single tasks
	isInvalid bool
}

const (
	countHint = "Give the number of tasks, as in count = 16, or for_each = range(16), or leave it out for a " +
		"single task."
	indexesHint = "Write whole numbers that are not negative, from low to high: indexes = \"1-10\", \"0-99:10\" " +
		"or \"1,5,7-9\"."
)

// readTasks reads count, for_each or indexes.
func (b taskSetReader) readTasks() {
	b.tasks = taskSet{count: 1}
	count, each, marks := b.body.Attributes["count"], b.body.Attributes["for_each"], b.body.Attributes["indexes"]
	items := b.parser.options.Items[b.name]
	defer b.repeatForVariables()
	switch {
	case items != nil && (count != nil || each != nil || marks != nil):
		b.reportProblem(b.block.DefRange(), "the tasks of this job come from the command line",
			"Remove count, for_each and indexes from the job.")
		b.tasks.isInvalid = true
	case items != nil:
		b.tasks = taskSet{count: items.Rows, jobs: items.Jobs, array: items.Rows > max(1, items.Jobs), items: items}
	case marks != nil && (count != nil || each != nil):
		b.reportProblem(marks.NameRange, "indexes says how many tasks there are",
			"Remove count and for_each: there is a task for each index, which is each.value in it.")
		b.tasks.isInvalid = true
	case marks != nil:
		b.readIndexes(marks)
	case count != nil && each != nil:
		later := count
		if each.SrcRange.Start.Byte > count.SrcRange.Start.Byte {
			later = each
		}
		b.reportProblem(later.NameRange, "count and for_each cannot both be set",
			"for_each makes a task for each of its elements, count makes so many tasks that know only task.index. "+
				"Remove one of the two; for every element "+
				"times a number write for_each = matrix({value = […], n = range(3)}).")
		b.tasks.isInvalid = true
	case count != nil:
		b.readCount(count)
	case each != nil:
		b.readForEach(each)
	}
}

func (b taskSetReader) readCount(a *hclsyntax.Attribute) {
	b.tasks.array, b.tasks.isInvalid = true, true
	v, ok := b.parser.constantExpr(a.Expr)
	if !ok {
		return
	}
	if v.IsNull() {
		b.tasks = taskSet{count: 1}
		return
	}
	n, ok := b.checkNumber(v, a.Expr, "count", countHint)
	if !ok {
		return
	}
	at := a.Expr.Range()
	switch {
	case !n.IsInt():
		b.reportProblem(at, "count is not a whole number",
			fmt.Sprintf("It is %s. Use ceil(…) or floor(…) to round it.", numberText(v)))
	case n.Sign() < 0:
		b.reportProblem(at, "count is negative", fmt.Sprintf("It is %s. %s", numberText(v), countHint))
	case n.Sign() == 0:
		b.reportProblem(at, "count is 0", "A job has at least one task. "+countHint)
	case n.Cmp(big.NewFloat(roost.MaxTasks)) > 0:
		b.reportProblem(at, "count is more than a job can have",
			fmt.Sprintf("It is %s, and a job has at most %d tasks. Let each task do more of the work.",
				truncateText(numberText(v)), roost.MaxTasks))
	default:
		c, _ := n.Int64()
		b.tasks.count, b.tasks.isInvalid = int(c), false
	}
}

func (b taskSetReader) readForEach(a *hclsyntax.Attribute) {
	b.tasks.array, b.tasks.isInvalid = true, true
	v, ok := b.parser.constantExpr(a.Expr)
	if !ok {
		return
	}
	at := a.Expr.Range()
	switch ty := v.Type(); {
	case v.IsNull() || ty.IsPrimitiveType() || !v.CanIterateElements():
		b.reportProblem(at, "for_each is not a list or a map",
			fmt.Sprintf("It is %s. Write a list of values, a map, range(N), files(\"*.csv\") or matrix({a = […], b "+
				"= […]}).", describeValue(v)))
	case v.LengthInt() == 0:
		b.reportProblem(at, "for_each is empty",
			"A job has at least one task. If the list comes from files(\"…\"), no file matches the pattern.")
	case v.LengthInt() > roost.MaxTasks:
		b.reportProblem(at, "for_each has more elements than a job can have tasks",
			fmt.Sprintf("It has %d, and a job has at most %d tasks.", v.LengthInt(), roost.MaxTasks))
	default:
		named := ty.IsMapType() || ty.IsObjectType()
		for it := v.ElementIterator(); it.Next(); {
			key, value := it.Element()
			if !named {
				key = cty.NumberIntVal(int64(len(b.tasks.keys)))
			}
			b.tasks.keys, b.tasks.values = append(b.tasks.keys, key), append(b.tasks.values, value)
		}
		b.tasks.count, b.tasks.isInvalid = len(b.tasks.values), false
	}
}

// readIndexes reads the indexes of an array, as qsub -J and -t have them. They are stored
// in their written form, so their number does not matter.
func (b taskSetReader) readIndexes(a *hclsyntax.Attribute) {
	b.tasks.array, b.tasks.isInvalid = true, true
	v, ok := b.parser.constantExpr(a.Expr)
	if !ok {
		return
	}
	at := a.Expr.Range()
	if v.IsNull() || v.Type() != cty.String {
		b.reportProblem(at, "indexes has to be a text", fmt.Sprintf("It is %s. %s", describeValue(v), indexesHint))
		return
	}
	x, err := roost.ParseArrayIndexes(v.AsString())
	if err != nil {
		b.reportProblem(at, "these are no indexes", fmt.Sprintf("It is %s. %s", describeValue(v), indexesHint))
		return
	}
	b.tasks.count, b.tasks.indexes, b.tasks.isInvalid = x.Len(), &x, false
	b.ad.SetString(roost.AttrArrayIndex, x.String())
}

// perJob returns the number of tasks of one job.
func (s *taskSet) perJob() int { return s.count / max(1, s.jobs) }

// label returns words about a row for messages.
func (b taskSetReader) label(row int) string {
	text := fmt.Sprintf("task %d", row%b.tasks.perJob())
	t := b.tasks.items
	if t == nil {
		t = b.parser.options.Variables
	}
	switch {
	case t == nil || t.Label == nil:
		return text
	case b.tasks.perJob() == 1:
		return t.Label(row)
	}
	return text + " of " + t.Label(row/b.tasks.perJob())
}

// repeatForVariables makes the tasks those of a job for each row of Variables.
func (b taskSetReader) repeatForVariables() {
	if v := b.parser.options.Variables; v != nil && !b.tasks.isInvalid && b.tasks.jobs == 0 {
		b.tasks.jobs = v.Rows
		b.tasks.count *= v.Rows
	}
}

// taskRoots returns the names that may differ between the tasks of this job.
func (b taskSetReader) taskRoots(more ...string) []string {
	if b.body.Attributes["for_each"] != nil || b.body.Attributes["indexes"] != nil || b.tasks.items != nil {
		return append(more, "task", "each")
	}
	return append(more, "task")
}

// taskScope returns the scope of the expressions of one task.
func (b taskSetReader) taskScope(i int) *hcl.EvalContext {
	ctx := b.parser.root.NewChild()
	ctx.Variables = map[string]cty.Value{
		"task": cty.ObjectVal(map[string]cty.Value{"index": cty.NumberIntVal(int64(i % b.tasks.perJob())),
			"count": cty.NumberIntVal(int64(b.tasks.perJob()))}),
	}
	b.parser.addVariables(ctx, i/b.tasks.perJob())
	within := i % b.tasks.perJob()
	if b.tasks.values != nil {
		ctx.Variables["each"] = cty.ObjectVal(map[string]cty.Value{"key": b.tasks.keys[within],
			"value": b.tasks.values[within]})
	}
	if t := b.tasks.items; t != nil {
		row := make(map[string]cty.Value, len(t.Names))
		for c, name := range t.Names {
			row[name] = cty.StringVal(t.Columns[c][i])
		}
		ctx.Variables["each"] = cty.ObjectVal(map[string]cty.Value{"key": cty.NumberIntVal(int64(i)),
			"value": cty.ObjectVal(row)})
	}
	if x := b.tasks.indexes; x != nil {
		n := cty.NumberIntVal(int64(x.IndexOf(within)))
		ctx.Variables["each"] = cty.ObjectVal(map[string]cty.Value{"key": n, "value": n})
	}
	return ctx
}

// forEachTask evaluates an expression for every task in order. It stops when use returns
// false or there is no value.
func (b taskSetReader) forEachTask(expr hclsyntax.Expression, use func(i int, v cty.Value) bool) bool {
	if b.tasks.isInvalid || b.refuseComputedJobNumber(expr) || b.refuseComputedPort(expr) ||
		b.refuseDeferred(expr) {
		return false
	}
	if values, ok := b.itemColumn(expr); ok {
		for i, text := range values {
			if !use(i, cty.StringVal(text)) {
				return false
			}
		}
		return true
	}
	for i := range b.tasks.count {
		before := len(b.parser.diags)
		b.parser.meter.steps -= 8 // the scope
		v, ok := b.parser.evaluate(expr, b.taskScope(i))
		if !ok {
			if len(b.parser.diags) > before && b.tasks.count > 1 {
				b.parser.diags[before].Detail += fmt.Sprintf(" This is so for %s.", b.label(i))
			}
			return false
		}
		if !use(i, v) {
			return false
		}
	}
	return true
}

// itemColumn returns the values of an expression that is a member of the items.
func (b taskSetReader) itemColumn(expr hclsyntax.Expression) ([]string, bool) {
	if b.tasks.items == nil {
		return nil, false
	}
	if t, ok := expr.(*hclsyntax.TemplateWrapExpr); ok {
		expr = t.Wrapped
	}
	e, ok := expr.(*hclsyntax.ScopeTraversalExpr)
	if !ok || len(e.Traversal) != 3 || e.Traversal.RootName() != "each" {
		return nil, false
	}
	if first, _ := traversalStepName(e.Traversal, 1); first != "value" {
		return nil, false
	}
	name, _ := traversalStepName(e.Traversal, 2)
	return b.tasks.items.Column(name)
}

// refuseComputedJobNumber reports task.job in a computation: a job has no number before
// it is submitted.
func (b taskSetReader) refuseComputedJobNumber(expr hclsyntax.Expression) bool {
	for _, t := range b.parser.freeReferences(expr) {
		if first, _ := traversalStepName(t, 1); t.RootName() == "task" && first == "job" {
			b.reportProblem(t.SourceRange(), "task.job cannot be computed with",
				"The job gets its number when it is submitted. It can be part of a text: stdout "+
					"= \"train.o${task.job}\".")
			return true
		}
	}
	return false
}
