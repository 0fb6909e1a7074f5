package translate

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// queued is one queue command, and the job that it becomes.
type queued struct {
	*submitFile
	line    int
	source  string
	j       *job
	at      setting           // what is being carried over
	n       int               // jobs for each item
	vars    map[string]string // the variables of the items, in small letters, and the expressions that they are
	each    string            // the expression of the items, or empty
	known   int               // how many items there are; -1 if that is not known
	fuel    int               // bytes that macros may still become
	several bool              // it may be more than one task
}

var queueForm = regexp.MustCompile(`^(?:([0-9]+|\$\([^)]*\))\s*)?(?:([A-Za-z_][A-Za-z0-9_, \t]*?)??\s*\b(?i:(in|from|matching))\b\s*(.*))?$`)

// parse reads what stands behind the word queue.
func (q *queued) parse(rest string, lines []string) {
	q.vars, q.known, q.fuel = map[string]string{}, 1, 1<<20
	q.at = setting{line: q.line, source: q.source}
	m := queueForm.FindStringSubmatch(rest)
	if m == nil {
		q.lost(q.line, q.source, "This form of queue is not understood; it is taken for a single job. A job file has count and for_each.")
		return
	}
	if m[1] != "" {
		s, _ := q.expand(m[1]).fixed()
		n, err := strconv.ParseUint(strings.TrimSpace(s), 10, 24)
		if err != nil || n == 0 {
			q.lost(q.line, q.source, "It says no number of jobs; it is taken for a single job.")
			n = 1
		}
		q.n = int(n)
	}
	if m[3] == "" {
		return
	}
	names := strings.FieldsFunc(m[2], func(r rune) bool { return r == ',' || r == ' ' || r == '\t' })
	if len(names) == 0 {
		names = []string{"Item"}
	}
	q.items(strings.ToLower(m[3]), names, strings.TrimSpace(m[4]), lines)
}

var slicing = regexp.MustCompile(`^\[[-0-9: ]*\]\s*`)

// items says what the tasks are for.
func (q *queued) items(how string, names []string, rest string, lines []string) {
	if how == "matching" {
		if kind, after, ok := strings.Cut(rest+" ", " "); ok && (strings.EqualFold(kind, "files") || strings.EqualFold(kind, "dirs") || strings.EqualFold(kind, "any")) {
			rest = strings.TrimSpace(after)
			if !strings.EqualFold(kind, "files") {
				q.remark("files(…) matches files and directories alike.")
			}
		}
	}
	if m := slicing.FindString(rest); m != "" {
		rest = rest[len(m):]
		q.remark("The slice is not carried over: there is a task for every item. slice(list, from, to) makes one.")
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
		q.list(names, commas(strings.Join(rows, ",")))
	case how == "from" && inline:
		q.table(names, rows)
	case how == "from" && strings.HasSuffix(rest, "|"):
		q.lost(q.line, q.source, "Commands are not run by a job file. Write what it prints to a file, and read that: for_each = split(\"\\n\", trimspace(file(\"items.txt\"))).")
	case how == "from":
		q.fromFile(names, strings.Trim(rest, `"`))
	default:
		if inline {
			rest = strings.Join(rows, " ")
		}
		q.matching(names[0], commas(rest))
	}
}

func commas(s string) []string {
	return strings.FieldsFunc(s, func(r rune) bool { return r == ',' || r == ' ' || r == '\t' })
}

// list makes a task for each of some words.
func (q *queued) list(names, values []string) {
	if len(values) == 0 {
		q.lost(q.line, q.source, "It has no items.")
		return
	}
	sources := make([]string, len(values))
	for i, v := range values {
		sources[i] = q.expand(v).source()
	}
	q.each, q.known = rowsOf(sources), len(values)
	q.bind(names[0], "each.value")
}

// table makes a task for each row of a table; the last variable has the rest of the line.
func (q *queued) table(names, rows []string) {
	if len(names) == 1 {
		q.list2(names, rows)
		return
	}
	var sources []string
	for _, r := range rows {
		fields := cells(r, len(names))
		parts := make([]string, len(names))
		for i, n := range names {
			v := ""
			if i < len(fields) {
				v = fields[i]
			}
			parts[i] = key(n) + " = " + q.expand(v).source()
		}
		sources = append(sources, "{ "+strings.Join(parts, ", ")+" }")
	}
	if len(sources) == 0 {
		q.lost(q.line, q.source, "It has no items.")
		return
	}
	q.each, q.known = rowsOf(sources), len(sources)
	for _, n := range names {
		q.bind(n, "each.value."+n)
	}
}

// list2 makes a task for each line.
func (q *queued) list2(names, rows []string) {
	if len(rows) == 0 {
		q.lost(q.line, q.source, "It has no items.")
		return
	}
	sources := make([]string, len(rows))
	for i, v := range rows {
		sources[i] = q.expand(v).source()
	}
	q.each, q.known = rowsOf(sources), len(rows)
	q.bind(names[0], "each.value")
}

// cells splits a row at commas, or else at blanks, into at most n parts.
func cells(row string, n int) []string {
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

// rowsOf is a list, on several lines where it is long.
func rowsOf(sources []string) string {
	one := list(sources)
	if len(one) <= 100 {
		return one
	}
	return "[\n    " + strings.Join(sources, ",\n    ") + ",\n  ]"
}

// fromFile reads the items from a file when the job is submitted.
func (q *queued) fromFile(names []string, file string) {
	if file == "" {
		q.lost(q.line, q.source, "It names no file.")
		return
	}
	lines := `split("\n", trimspace(file(` + q.expand(file).source() + `)))`
	q.known = -1
	if len(names) == 1 {
		q.each = lines
		q.bind(names[0], "each.value")
		return
	}
	q.each = `[for line in ` + lines + ` : zipmap(` + texts(names) + `, regexall("[^, \t]+", line))]`
	for _, n := range names {
		q.bind(n, "each.value."+n)
	}
	q.remark("The lines of the file are split at commas and blanks; every line has to have as many parts as there are variables.")
}

func (q *queued) matching(name string, patterns []string) {
	if len(patterns) == 0 {
		q.lost(q.line, q.source, "It has no pattern.")
		return
	}
	parts := make([]string, len(patterns))
	for i, p := range patterns {
		parts[i] = "files(" + q.expand(p).source() + ")"
	}
	q.each, q.known = parts[0], -1
	if len(parts) > 1 {
		q.each = "concat(" + strings.Join(parts, ", ") + ")"
	}
	q.bind(name, "each.value")
}

func (q *queued) bind(name, expr string) { q.vars[strings.ToLower(name)] = expr }

// tasks sets count or for_each.
func (q *queued) tasks() {
	q.several = q.n > 1 || q.known != 1
	switch {
	case q.each != "" && q.n > 1:
		q.j.set("for_each", fmt.Sprintf("matrix({ item = %s, step = range(%d) })", q.each, q.n))
		for name, expr := range q.vars {
			q.vars[name] = strings.Replace(expr, "each.value", "each.value.item", 1)
		}
		q.vars["step"] = "each.value.step"
		q.several = true
	case q.each != "":
		q.j.set("for_each", q.each)
		q.several = true
	case q.n > 1:
		q.j.setInt("count", q.n)
		q.j.small = map[string]string{"count": "2"}
	}
	q.j.index = "task.index"
	switch {
	case q.before > 0:
		q.j.index = fmt.Sprintf("task.index + %d", q.before)
	case q.before < 0:
		q.differs(q.line, q.source, "$(Process) counts on over all queue commands of a submit description; here it counts from 0 in each job.")
	}
	if q.known < 0 {
		q.before = -1
	} else if q.before >= 0 {
		q.before += q.known * q.n
	}
}
