package translate

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/roost-batch/roost/internal/lazyregexp"
)

// itemSource is what a queue command says about its items.
type itemSource struct {
	how    string // in, from or matching
	kind   string // of matching: files, dirs or any
	slice  string
	rest   string   // without those
	inline bool     // the items are in parentheses
	rows   []string // those in parentheses
}

var (
	slicePattern = lazyregexp.New(`^\[[ \t]*(-?[0-9]*)[ \t]*(?:(:)[ \t]*(-?[0-9]*)[ \t]*)?` +
		`(?::[ \t]*(-?[0-9]*)[ \t]*)?\][ \t]*`)
	matchingKind = lazyregexp.New(`^(?i:(files|dirs|any))\b[ \t]*`)
)

// parseItemSource takes apart what follows in, from or matching.
func parseItemSource(how, rest string, lines []string) itemSource {
	s := itemSource{how: how, kind: "files", rest: rest}
	for range 2 { // the slice is in front of the kind, or behind it
		if m := matchingKind().FindStringSubmatch(s.rest); m != nil && how == "matching" {
			s.kind, s.rest = strings.ToLower(m[1]), s.rest[len(m[0]):]
		}
		if m := slicePattern().FindString(s.rest); m != "" {
			s.slice, s.rest = m, s.rest[len(m):]
		}
	}
	if s.inline = strings.HasPrefix(s.rest, "("); !s.inline {
		return s
	}
	inside, closed := s.rest[1:], false
	if end := closingParen(s.rest, 0); end > 0 {
		inside, closed = s.rest[1:end], true
	}
	if inside = strings.TrimSpace(inside); inside != "" {
		s.rows = append(s.rows, inside)
	}
	if !closed {
		for _, l := range lines {
			if l = strings.TrimSpace(l); l != "" && l[0] != '#' {
				s.rows = append(s.rows, l)
			}
		}
	}
	return s
}

// setItems sets the items that tasks are made for.
func (q *condorJob) setItems(how string, names []string, rest string, lines []string) {
	s := parseItemSource(how, rest, lines)
	q.itemNames = names
	if how != "from" {
		q.itemNames = names[:1] // the others are empty
		for _, n := range names[1:] {
			q.itemVariables[strings.ToLower(n)] = ""
		}
	}
	switch {
	case how == "from" && !s.inline && strings.HasSuffix(s.rest, "|"):
		q.noteLost(q.line, q.source, "Commands are not run by a job file. Write what it prints to a file, and "+
			"read that: for_each = split(\"\\n\", trimspace(file(\"items.txt\"))).")
	case how == "from" && !s.inline:
		q.setItemsFromFile(s)
	case how == "matching":
		if s.inline {
			s.rest = strings.Join(s.rows, " ")
		}
		q.setItemsMatching(s)
	case how == "in":
		if !s.inline {
			s.rows = []string{s.rest}
		}
		s.rows = splitCommas(strings.Join(s.rows, ","))
		q.setItemRows(s, s.rows)
	default:
		q.setItemRows(s, s.rows)
	}
	if q.itemExpr == "" && !q.rows.isObject {
		q.itemNames = nil
	}
}

func splitCommas(s string) []string {
	return strings.FieldsFunc(s, func(r rune) bool { return r == ',' || r == ' ' || r == '\t' })
}

// setItemRows makes a task for each row. Of several variables the last one gets the rest
// of the row.
func (q *condorJob) setItemRows(s itemSource, rows []string) {
	cells := make([][]string, len(rows))
	for i, r := range rows {
		if strings.Contains(r, "$") && s.inline {
			r = q.expandForReader(q.current, r)
		}
		cells[i] = []string{r}
		if len(q.itemNames) > 1 {
			cells[i] = splitCells(r, len(q.itemNames))
		}
	}
	cells = q.sliceItems(s, cells)
	if len(cells) == 0 {
		q.noteMistake(q.line, q.source, "It has no items.")
		return
	}
	sources := make([]string, len(cells))
	for i, c := range cells {
		if len(q.itemNames) == 1 {
			sources[i] = quotedText(c[0])
			continue
		}
		parts := make([]string, len(q.itemNames))
		for k, n := range q.itemNames {
			parts[k] = mapKey(memberName(n)) + " = " + quotedText(cell(c, k))
		}
		sources[i] = "{ " + strings.Join(parts, ", ") + " }"
	}
	if !q.rows.isObject {
		q.itemExpr = listRows(sources)
	}
	q.bindItems(cells)
}

// bindItems sets the variables of items. cells has the values; nil: they are not known.
func (q *condorJob) bindItems(cells [][]string) {
	q.itemCount = len(cells)
	if cells == nil {
		q.itemCount = -1
	}
	for k, n := range q.itemNames {
		expr := memberPrefix + memberName(n)
		if len(q.itemNames) == 1 && (!q.rows.isObject || cells == nil) {
			expr = "each.value"
		}
		q.itemVariables[strings.ToLower(n)] = expr
		q.rows.taken[strings.ToLower(memberName(n))] = true
		if cells != nil {
			q.rows.values[expr] = func(row int) string { return cell(cells[row%q.rows.perNode/q.jobsPerItem], k) }
		}
	}
}

// memberName is the name of a variable as a member of an object.
func memberName(variable string) string { return strings.ReplaceAll(variable, ".", "_") }

func cell(row []string, k int) string {
	if k < len(row) {
		return row[k]
	}
	return ""
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

// sliceItems takes the items of a slice, which is that of Python: [from:to:step].
func (q *condorJob) sliceItems(s itemSource, cells [][]string) [][]string {
	m := slicePattern().FindStringSubmatch(s.slice)
	if m == nil {
		return cells
	}
	n := len(cells)
	bound := func(text string, otherwise int) int {
		i, err := strconv.Atoi(text)
		if err != nil {
			return otherwise
		}
		if i < 0 {
			i += n
		}
		return max(0, min(i, n))
	}
	low, high, step := bound(m[1], 0), bound(m[3], n), 1
	if m[2] == "" && m[1] != "" { // a single item
		high = low + 1
	}
	if m[4] != "" {
		if i, err := strconv.Atoi(m[4]); err == nil && i > 0 {
			step = i
		}
	}
	var some [][]string
	for i := low; i < min(high, n); i += step {
		some = append(some, cells[i])
		q.itemNumbers = append(q.itemNumbers, i)
	}
	return some
}

// listRows returns the source of a list, on several lines if it is long.
func listRows(sources []string) string {
	one := listSource(sources)
	if len(one) <= 100 {
		return one
	}
	return "[\n    " + strings.Join(sources, ",\n    ") + ",\n  ]"
}

// maxItemFile bounds the bytes of a file with items.
const maxItemFile = 64 << 20

// setItemsFromFile takes the items from the lines of a file. Where files cannot be read
// now, the job file reads it.
func (q *condorJob) setItemsFromFile(s itemSource) {
	file := strings.Trim(s.rest, `"`)
	if file == "" {
		q.noteMistake(q.line, q.source, "It names no file.")
		return
	}
	var cells [][]string
	if q.options.Files != nil {
		rows, err := q.readItems(file)
		if err != nil {
			q.noteMistake(q.line, q.source, fmt.Sprintf("%s cannot be read: %s.", shownLine(file), err))
			return
		}
		if q.setItemRows(s, rows); q.rows.isObject || len(rows) == 0 {
			return
		}
		q.rows.needsObject = q.itemNumbers != nil || len(q.itemNames) > 1
		cells = make([][]string, len(rows))
		for i, r := range rows {
			cells[i] = splitCells(r, len(q.itemNames))
		}
	} else if s.slice != "" {
		q.noteCommandDifference("The slice is not carried over: there is a task for every item. slice(list, from, " +
			"to) makes one.")
	}
	lines := `split("\n", trimspace(file(` + quotedText(file) + `)))`
	q.itemExpr = lines
	if len(q.itemNames) > 1 {
		members := make([]string, len(q.itemNames))
		for i, n := range q.itemNames {
			members[i] = memberName(n)
		}
		q.itemExpr = `[for line in ` + lines + ` : zipmap(` + textListSource(members) +
			`, regexall("[^, \t]+", line))]`
		q.noteCommandDifference("The lines of the file are split at commas and blanks; every line has to have as " +
			"many parts as there are variables.")
	}
	if cells == nil {
		q.bindItems(nil)
	}
}

// readItems reads the lines of a file, which may be empty. None is a comment.
func (q *condorJob) readItems(file string) (rows []string, err error) {
	src, err := q.options.Files.Read(q.absolutePath(file), maxItemFile)
	if err != nil {
		return nil, err
	}
	if bytes.IndexByte(src, 0) >= 0 || !utf8.Valid(src) {
		return nil, errors.New("it is not a text in UTF-8, or has a NUL")
	}
	for l := range strings.Lines(string(src)) {
		rows = append(rows, strings.TrimSpace(l))
	}
	return rows, nil
}

// setItemsMatching makes a task for each file that matches one of some patterns.
func (q *condorJob) setItemsMatching(s itemSource) {
	patterns := splitCommas(s.rest)
	if len(patterns) == 0 {
		q.noteMistake(q.line, q.source, "It has no pattern.")
		return
	}
	if q.options.Files != nil && (q.rows.isObject || s.slice != "" || s.kind != "files") {
		q.rows.needsObject = true
		if rows, ok := q.matchFiles(patterns, s.kind); ok {
			q.setItemRows(s, rows)
		}
		return
	}
	q.canReadItems = q.options.Files != nil
	if s.slice != "" {
		q.noteCommandDifference("The slice is not carried over: there is a task for every item. slice(list, from, " +
			"to) makes one.")
	}
	if s.kind != "files" {
		q.noteCommandDifference("files(…) matches files and directories alike.")
	}
	parts := make([]string, len(patterns))
	for i, p := range patterns {
		parts[i] = "files(" + quotedText(p) + ")"
	}
	q.itemExpr = parts[0]
	if len(parts) > 1 {
		q.itemExpr = "concat(" + strings.Join(parts, ", ") + ")"
	}
	q.bindItems(nil)
}

// matchFiles returns the names that match patterns, in the order of the patterns, each
// name once.
func (q *condorJob) matchFiles(patterns []string, kind string) (names []string, ok bool) {
	seen := map[string]bool{}
	for _, p := range patterns {
		full := q.absolutePath(p)
		found, err := q.options.Files.Glob(full)
		if err != nil {
			q.noteMistake(q.line, q.source, fmt.Sprintf("%s is no pattern: %s.", shownLine(p), err))
			return nil, false
		}
		for _, name := range found {
			info, err := q.options.Files.Stat(name)
			if seen[name] || err != nil || kind == "files" && info.IsDir() || kind == "dirs" && !info.IsDir() {
				continue
			}
			seen[name] = true
			if !strings.HasPrefix(p, "/") && !strings.HasPrefix(p, "~/") {
				name = strings.TrimPrefix(name, strings.TrimSuffix(q.absolutePath("."), "/")+"/")
			}
			if info.IsDir() {
				name += "/"
			}
			names = append(names, name)
		}
	}
	return names, true
}
