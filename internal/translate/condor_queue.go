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
	itemNames       []string          // the variables of the items; nil: there are no items
	itemExpr        string            // the expression of the items, or empty
	itemCount       int               // number of items; -1: unknown
	itemNumbers     []int             // by item: its number before the slice; nil: the same
	canReadItems    bool              // the items are known if they become a table
	rows            *itemRows
	expansionBudget int  // bytes that macros may still expand to
	isSeveral       bool // it may have more than one task
	isReader        bool // it only expands macros of lines that are not part of a job
	random          uint64
}

// parseQueueCommand parses what follows the word queue.
func (q *condorJob) parseQueueCommand(rest string, lines []string) {
	q.itemVariables, q.itemCount = map[string]string{}, 1
	count, names, how, items := splitQueueCommand(rest)
	if count != "" {
		v, err := evaluateText(count)
		n, ok := int64(0), false
		if err == nil {
			n, ok = v.Int()
		}
		if !ok || n < 1 || n > 1<<24 {
			q.noteMistake(q.line, q.source, "This form of queue is not understood, or says no number of jobs; it is "+
				"taken for a single job. A job file has count and for_each.")
			n = 1
		}
		q.jobsPerItem = int(n)
	}
	if how == "" {
		return
	}
	if len(names) == 0 {
		names = []string{"Item"}
	}
	q.setItems(how, names, items, lines)
}

// splitQueueCommand takes a queue command apart.
func splitQueueCommand(rest string) (count string, names []string, how, items string) {
	words := rest
	for from := 0; ; {
		m := itemWord().FindStringSubmatchIndex(words[from:])
		if m == nil {
			return strings.TrimSpace(rest), nil, "", ""
		}
		before := strings.TrimSpace(words[:from+m[2]])
		count, vars := cutCount(before)
		if variableList().MatchString(vars) {
			names = strings.FieldsFunc(vars, func(r rune) bool { return r == ',' || r == ' ' || r == '\t' })
			return count, names, strings.ToLower(words[from+m[2] : from+m[3]]), strings.TrimSpace(words[from+m[3]:])
		}
		from += m[3]
	}
}

var (
	itemWord     = lazyregexp.New(`(?i)(?:^|[ \t)])(in|from|matching)(?:$|[ \t(\["])`)
	variableList = lazyregexp.New(`^(?:[A-Za-z_][A-Za-z0-9_.]*(?:[ \t,]+|$))*$`)
)

// cutCount cuts the number of jobs from the front of a queue command.
func cutCount(s string) (count, rest string) {
	end := 0
	for end < len(s) && strings.IndexByte("0123456789+-*/%() \t", s[end]) >= 0 {
		end++
	}
	return strings.TrimSpace(s[:end]), s[end:]
}

// setTasks sets count or for_each.
func (q *condorJob) setTasks() {
	q.isSeveral = q.jobsPerItem > 1 || q.itemCount != 1
	q.rows.count = -1
	if q.itemCount >= 0 {
		q.rows.perNode = q.itemCount * q.jobsPerItem
		q.rows.count = q.rows.perNode
		if q.rows.nodes != nil {
			q.rows.count *= q.rows.nodes.Rows
		}
	}
	switch {
	case q.rows.isTable(): // finishItems does it
		q.isSeveral = q.isSeveral || len(q.itemNames) > 0
	case q.itemExpr != "" && q.jobsPerItem > 1:
		q.job.setSource("for_each", fmt.Sprintf("matrix({ item = %s, step = range(%d) })", q.itemExpr, q.jobsPerItem))
		for name, expr := range q.itemVariables {
			moved := strings.Replace(expr, "each.value", "each.value.item", 1)
			q.itemVariables[name] = moved
			q.rows.values[moved] = q.rows.values[expr]
		}
		q.isSeveral = true
	case q.itemExpr != "":
		q.job.setSource("for_each", q.itemExpr)
		q.isSeveral = true
	case q.jobsPerItem > 1:
		q.job.setInt("count", q.jobsPerItem)
		q.job.small = map[string]string{"count": "2"}
	}
	q.job.index = "task.index"
	offset := 0
	switch {
	case q.tasksBefore > 0:
		offset = q.tasksBefore
		q.job.index = fmt.Sprintf("task.index + %d", offset)
	case q.tasksBefore < 0:
		q.noteDifference(q.line, q.source,
			"$(Process) counts on over all queue commands of a submit description; here it counts from 0 in each job.")
	}
	q.rows.values[q.job.index] = func(row int) string { return strconv.Itoa(row%q.rows.perNode + offset) }
	if q.itemCount < 0 {
		q.tasksBefore = -1
	} else if q.tasksBefore >= 0 {
		q.tasksBefore += q.itemCount * q.jobsPerItem
	}
}
