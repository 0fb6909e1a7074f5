package translate

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/roost-batch/roost/internal/submit/jobspec"
)

// itemRows are the jobs of a queue command, and what differs between them.
type itemRows struct {
	count       int // number of jobs, of all nodes; -1: known when the job file is read
	nodes       *jobspec.ItemTable
	perNode     int // jobs of a node
	isObject    bool
	needsObject bool                          // some values are computed by the translation
	values      map[string]func(r int) string // by expression: the value for a row
	used        map[string]bool               // expressions that a text contains
	derived     jobspec.ItemTable             // computed values, by name
	taken       map[string]bool               // names in lower case
}

func newItemRows(isObject bool) *itemRows {
	return &itemRows{count: 1, isObject: isObject, values: map[string]func(int) string{}, used: map[string]bool{},
		taken: map[string]bool{}}
}

// addNodes adds what differs between the nodes of a flow.
func (r *itemRows) addNodes(nodes *jobspec.ItemTable) {
	r.perNode = 1
	if nodes == nil {
		return
	}
	r.nodes = nodes
	for i, name := range nodes.Names {
		values := nodes.Columns[i]
		r.taken[strings.ToLower(name)] = true
		r.values[memberPrefix+name] = func(row int) string { return values[row/r.perNode] }
	}
	for _, name := range nodes.Deferred {
		r.taken[strings.ToLower(name)] = true
	}
}

// isTable reports whether the items become a table of their own.
func (r *itemRows) isTable() bool { return r.isObject && r.count >= 0 }

// mark is an expression in a flat text.
func (r *itemRows) mark(expr string) string {
	if _, err := strconv.Atoi(expr); err == nil {
		return expr
	}
	return exprMark + expr + exprMark
}

// member returns the expression of a new member of the items, named like want.
func (r *itemRows) member(want string) string {
	name := want
	for n := 2; r.taken[strings.ToLower(name)]; n++ {
		name = want + strconv.Itoa(n)
	}
	r.taken[strings.ToLower(name)] = true
	return memberPrefix + name
}

const memberPrefix = "each.value."

// maxTextRows bounds the items that a job file spells out.
const maxTextRows = 10_000

// errNotComputed is the error of a text that depends on what is not known yet.
var errNotComputed = errors.New("it is not known before the job is submitted")

// deriveText computes a text from flat texts. If they differ between the jobs, it is
// computed for each job, and becomes a member of the items. With differs each job has a
// value of its own in any case.
func (q *condorJob) deriveText(name string, parts []string, differs bool,
	f func(values []string) (string, error)) (string, error) {
	texts, isFixed := make([]templateText, len(parts)), true
	values := make([]string, len(parts))
	for i, p := range parts {
		var ok bool
		texts[i] = q.assembleText(p)
		if values[i], ok = texts[i].fixedText(); !ok {
			isFixed = false
		}
	}
	if isFixed && (!differs || q.rows.count == 1) {
		return f(values)
	}
	if q.rows.count < 0 && q.canReadItems {
		q.rows.needsObject = true
		return "", nil // the items are read, and the job is made again
	}
	if q.rows.count < 0 || q.isReader || !q.options.SeparateItems && q.rows.count > maxTextRows {
		return "", errNotComputed
	}
	all := make([]string, q.rows.count)
	isSame := true
	for row := range all {
		for i, t := range texts {
			var ok bool
			if values[i], ok = q.rows.text(t, row); !ok {
				return "", errNotComputed
			}
		}
		s, err := f(values)
		if err != nil {
			if label := q.rows.label(row); label != "" {
				err = fmt.Errorf("%s: %w", label, err)
			}
			return "", err
		}
		all[row] = s
		isSame = isSame && s == all[0]
	}
	if isSame {
		return all[0], nil
	}
	q.rows.needsObject = true
	expr := q.rows.member(name)
	q.rows.derived.Add(strings.TrimPrefix(expr, memberPrefix), all)
	q.rows.values[expr] = func(row int) string { return all[row] }
	return q.rows.mark(expr), nil
}

// label returns words about a row for messages; empty if there is one.
func (r *itemRows) label(row int) string {
	text := ""
	if r.perNode > 1 {
		text = fmt.Sprintf("job %d", row%r.perNode)
	}
	if r.nodes == nil || r.nodes.Label == nil {
		return text
	}
	return strings.TrimPrefix(text+" of ", " of ") + r.nodes.Label(row/r.perNode)
}

// text returns a text for one row. ok is false if it is not known.
func (r *itemRows) text(t templateText, row int) (s string, ok bool) {
	if len(t) == 1 && t[0].expr == "" {
		return t[0].fixed, true
	}
	for _, p := range t {
		if p.expr == "" {
			s += p.fixed
			continue
		}
		value := r.values[p.expr]
		if value == nil {
			return "", false
		}
		s += value(row)
	}
	return s, true
}

// stepText is $(Step): the number of a job among those of its item.
func (q *condorJob) stepText() string {
	if q.jobsPerItem == 1 {
		return "0"
	}
	expr := "task.index"
	switch {
	case q.itemExpr == "" && len(q.itemNames) == 0:
	case q.rows.isTable():
		expr = memberPrefix + "step"
		q.rows.taken["step"] = true
	default:
		expr = "each.value.step"
	}
	q.rows.values[expr] = func(row int) string { return strconv.Itoa(row % q.rows.perNode % q.jobsPerItem) }
	return q.rows.mark(expr)
}

// itemIndexText is $(ItemIndex): the number of the item, also of those that a slice
// leaves out.
func (q *condorJob) itemIndexText() string {
	if len(q.itemNames) == 0 {
		return "0"
	}
	expr := "task.index"
	switch {
	case q.rows.isTable():
		expr = memberPrefix + "item_index"
		q.rows.taken["item_index"] = true
	case q.itemNumbers != nil: // a slice: only objects can say it
		q.rows.needsObject = true
	case q.jobsPerItem > 1:
		expr = fmt.Sprintf("floor(task.index / %d)", q.jobsPerItem)
	}
	q.rows.values[expr] = func(row int) string {
		n := row % q.rows.perNode / q.jobsPerItem
		if n < len(q.itemNumbers) {
			n = q.itemNumbers[n]
		}
		return strconv.Itoa(n)
	}
	return q.rows.mark(expr)
}

// finishItems sets the items of a job whose items are objects.
func (q *condorJob) finishItems() {
	if !q.rows.isTable() {
		return
	}
	table := &jobspec.ItemTable{Rows: q.rows.count}
	if q.rows.nodes != nil {
		table.Jobs, table.Deferred, table.Label = q.rows.nodes.Rows, q.rows.nodes.Deferred, q.rows.nodes.Label
		q.job.items = table
	}
	for expr := range q.rows.used {
		name, isMember := strings.CutPrefix(expr, memberPrefix)
		if !isMember {
			continue
		}
		values, ok := q.rows.derived.Column(name)
		if !ok && q.rows.nodes != nil && q.rows.perNode == 1 {
			values, ok = q.rows.nodes.Column(name)
		}
		if !ok && q.rows.values[expr] == nil {
			continue // known when the node begins
		}
		if !ok {
			values = make([]string, table.Rows)
			for row := range values {
				values[row] = q.rows.values[expr](row)
			}
		}
		table.Add(name, values)
	}
	switch {
	case q.rows.nodes != nil:
	case len(table.Names) == 0 && q.rows.count > 1:
		q.job.setInt("count", q.rows.count)
		q.job.small = map[string]string{"count": "2"}
	case len(table.Names) == 0:
	case q.options.SeparateItems:
		q.job.items = table
	case table.Rows > maxTextRows:
		q.noteLost(q.line, q.source, fmt.Sprintf("A job file with %d items is too long; roost submits at most %d that "+
			"it spells out.", table.Rows, maxTextRows))
	default:
		q.job.setSource("for_each", objectRows(table))
	}
}

// objectRows is the source of a list with an object for each row.
func objectRows(table *jobspec.ItemTable) string {
	order := make([]int, len(table.Names))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int { return strings.Compare(table.Names[a], table.Names[b]) })
	sources := make([]string, table.Rows)
	for row := range sources {
		parts := make([]string, len(order))
		for i, c := range order {
			parts[i] = mapKey(table.Names[c]) + " = " + quotedText(table.Columns[c][row])
		}
		sources[row] = "{ " + strings.Join(parts, ", ") + " }"
	}
	return listRows(sources)
}
