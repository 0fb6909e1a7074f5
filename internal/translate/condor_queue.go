package translate

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/roost-batch/roost/internal/lazyregexp"
)

// condorJob is a queue command and the job that it becomes.
type condorJob struct {
	*condorSubmitFile
	line            int
	source          string
	job             *jobBlock
	current         submitSetting     // the command being carried over
	jobsPerItem     int               // jobs for each item
	itemVariables   map[string]string // by variable of the items in lower case: its expression
	itemExpr        string            // the expression of the items, or empty
	itemCount       int               // number of items; -1: unknown
	expansionBudget int               // bytes that macros may still expand to
	isSeveral       bool              // it may have more than one task
}

var queueForm = lazyregexp.New(
	`^(?:([0-9]+|\$\([^)]*\))\s*)?(?:([A-Za-z_][A-Za-z0-9_, \t]*?)??\s*\b(?i:(in|from|matching))\b\s*(.*))?$`,
)

// parseQueueCommand parses what follows the word queue.
func (q *condorJob) parseQueueCommand(rest string, lines []string) {
	q.itemVariables, q.itemCount, q.expansionBudget = map[string]string{}, 1, 1<<20
	q.current = submitSetting{line: q.line, source: q.source}
	m := queueForm().FindStringSubmatch(rest)
	if m == nil {
		q.noteLost(q.line, q.source,
			"This form of queue is not understood; it is taken for a single job. A job file has count and for_each.")
		return
	}
	if m[1] != "" {
		s, _ := q.expandMacros(m[1]).fixedText()
		n, err := strconv.ParseUint(strings.TrimSpace(s), 10, 24)
		if err != nil || n == 0 {
			q.noteLost(q.line, q.source, "It says no number of jobs; it is taken for a single job.")
			n = 1
		}
		q.jobsPerItem = int(n)
	}
	if m[3] == "" {
		return
	}
	names := strings.FieldsFunc(m[2], func(r rune) bool { return r == ',' || r == ' ' || r == '\t' })
	if len(names) == 0 {
		names = []string{"Item"}
	}
	q.setItems(strings.ToLower(m[3]), names, strings.TrimSpace(m[4]), lines)
}

var slicePattern = lazyregexp.New(`^\[[-0-9: ]*\]\s*`)

// setItems sets the items that tasks are made for.
func (q *condorJob) setItems(how string, names []string, rest string, lines []string) {
	if how == "matching" {
		if kind, after, ok := strings.Cut(rest+" ", " "); ok &&
			(strings.EqualFold(kind, "files") || strings.EqualFold(kind, "dirs") || strings.EqualFold(kind, "any")) {
			rest = strings.TrimSpace(after)
			if !strings.EqualFold(kind, "files") {
				q.noteCommandDifference("files(…) matches files and directories alike.")
			}
		}
	}
	if m := slicePattern().FindString(rest); m != "" {
		rest = rest[len(m):]
		q.noteCommandDifference("The slice is not carried over: there is a task for every item. slice(list, from, " +
			"to) makes one.")
	}
	var rows []string
	inline := strings.HasPrefix(rest, "(")
	if inline {
		inside, _, closed := strings.Cut(rest[1:], ")")
		if inside = strings.TrimSpace(inside); inside != "" {
			rows = append(rows, inside)
		}
		if !closed {
			for _, l := range lines {
				if l = strings.TrimSpace(l); l != "" && l[0] != '#' {
					rows = append(rows, l)
				}
			}
		}
	}
	switch {
	case how == "in":
		if !inline {
			rows = []string{rest}
		}
		q.setItemList(names, splitCommas(strings.Join(rows, ",")))
	case how == "from" && inline:
		q.setItemTable(names, rows)
	case how == "from" && strings.HasSuffix(rest, "|"):
		q.noteLost(q.line, q.source, "Commands are not run by a job file. Write what it prints to a file, and "+
			"read that: for_each = split(\"\\n\", trimspace(file(\"items.txt\"))).")
	case how == "from":
		q.setItemsFromFile(names, strings.Trim(rest, `"`))
	default:
		if inline {
			rest = strings.Join(rows, " ")
		}
		q.setItemsMatching(names[0], splitCommas(rest))
	}
}

func splitCommas(s string) []string {
	return strings.FieldsFunc(s, func(r rune) bool { return r == ',' || r == ' ' || r == '\t' })
}

// setItemList makes a task for each of some words.
func (q *condorJob) setItemList(names, values []string) {
	if len(values) == 0 {
		q.noteLost(q.line, q.source, "It has no items.")
		return
	}
	sources := make([]string, len(values))
	for i, v := range values {
		sources[i] = q.expandMacros(v).hclSource()
	}
	q.itemExpr, q.itemCount = listRows(sources), len(values)
	q.bindVariable(names[0], "each.value")
}

// setItemTable makes a task for each row of a table. The last variable gets the rest of
// the line.
func (q *condorJob) setItemTable(names, rows []string) {
	if len(names) == 1 {
		q.list2(names, rows)
		return
	}
	var sources []string
	for _, r := range rows {
		fields := splitCells(r, len(names))
		parts := make([]string, len(names))
		for i, n := range names {
			v := ""
			if i < len(fields) {
				v = fields[i]
			}
			parts[i] = mapKey(n) + " = " + q.expandMacros(v).hclSource()
		}
		sources = append(sources, "{ "+strings.Join(parts, ", ")+" }")
	}
	if len(sources) == 0 {
		q.noteLost(q.line, q.source, "It has no items.")
		return
	}
	q.itemExpr, q.itemCount = listRows(sources), len(sources)
	for _, n := range names {
		q.bindVariable(n, "each.value."+n)
	}
}

// list2 makes a task for each line.
func (q *condorJob) list2(names, rows []string) {
	if len(rows) == 0 {
		q.noteLost(q.line, q.source, "It has no items.")
		return
	}
	sources := make([]string, len(rows))
	for i, v := range rows {
		sources[i] = q.expandMacros(v).hclSource()
	}
	q.itemExpr, q.itemCount = listRows(sources), len(rows)
	q.bindVariable(names[0], "each.value")
}

// splitCells splits a row at commas, or otherwise at blanks, into at most n parts.
func splitCells(row string, n int) []string {
	var out []string
	for len(out) < n-1 {
		i := strings.IndexAny(row, ", \t")
		if i < 0 {
			break
		}
		out = append(out, row[:i])
		row = strings.TrimLeft(row[i:], " \t")
		row = strings.TrimLeft(strings.TrimPrefix(row, ","), " \t")
	}
	return append(out, strings.TrimSpace(row))
}

// listRows returns the source of a list, on several lines if it is long.
func listRows(sources []string) string {
	one := listSource(sources)
	if len(one) <= 100 {
		return one
	}
	return "[\n    " + strings.Join(sources, ",\n    ") + ",\n  ]"
}

// setItemsFromFile reads the items from a file when the job is submitted.
func (q *condorJob) setItemsFromFile(names []string, file string) {
	if file == "" {
		q.noteLost(q.line, q.source, "It names no file.")
		return
	}
	lines := `split("\n", trimspace(file(` + q.expandMacros(file).hclSource() + `)))`
	q.itemCount = -1
	if len(names) == 1 {
		q.itemExpr = lines
		q.bindVariable(names[0], "each.value")
		return
	}
	q.itemExpr = `[for line in ` + lines + ` : zipmap(` + textListSource(names) + `, regexall("[^, \t]+", line))]`
	for _, n := range names {
		q.bindVariable(n, "each.value."+n)
	}
	q.noteCommandDifference("The lines of the file are split at commas and blanks; every line has to have as many " +
		"parts as there are variables.")
}

func (q *condorJob) setItemsMatching(name string, patterns []string) {
	if len(patterns) == 0 {
		q.noteLost(q.line, q.source, "It has no pattern.")
		return
	}
	parts := make([]string, len(patterns))
	for i, p := range patterns {
		parts[i] = "files(" + q.expandMacros(p).hclSource() + ")"
	}
	q.itemExpr, q.itemCount = parts[0], -1
	if len(parts) > 1 {
		q.itemExpr = "concat(" + strings.Join(parts, ", ") + ")"
	}
	q.bindVariable(name, "each.value")
}

func (q *condorJob) bindVariable(name, expr string) { q.itemVariables[strings.ToLower(name)] = expr }

// setTasks sets count or for_each.
func (q *condorJob) setTasks() {
	q.isSeveral = q.jobsPerItem > 1 || q.itemCount != 1
	switch {
	case q.itemExpr != "" && q.jobsPerItem > 1:
		q.job.setSource("for_each", fmt.Sprintf("matrix({ item = %s, step = range(%d) })", q.itemExpr, q.jobsPerItem))
		for name, expr := range q.itemVariables {
			q.itemVariables[name] = strings.Replace(expr, "each.value", "each.value.item", 1)
		}
		q.itemVariables["step"] = "each.value.step"
		q.isSeveral = true
	case q.itemExpr != "":
		q.job.setSource("for_each", q.itemExpr)
		q.isSeveral = true
	case q.jobsPerItem > 1:
		q.job.setInt("count", q.jobsPerItem)
		q.job.small = map[string]string{"count": "2"}
	}
	q.job.index = "task.index"
	switch {
	case q.tasksBefore > 0:
		q.job.index = fmt.Sprintf("task.index + %d", q.tasksBefore)
	case q.tasksBefore < 0:
		q.noteDifference(q.line, q.source,
			"$(Process) counts on over all queue commands of a submit description; here it counts from 0 in each job.")
	}
	if q.itemCount < 0 {
		q.tasksBefore = -1
	} else if q.tasksBefore >= 0 {
		q.tasksBefore += q.itemCount * q.jobsPerItem
	}
}
