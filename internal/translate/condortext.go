package translate

import (
	"fmt"
	"strings"
)

// mark stands for an expression in a text that is still to be taken apart: no text that is read holds a NUL.
const mark = "\x00"

// maxMacros bounds how deep macros refer to macros.
const maxMacros = 20

// expand replaces macros: those of the file by their text, and what differs between tasks by expressions.
func (q *queued) expand(s string) text {
	return q.assemble(q.flat(s, 0))
}

// flat is the text with each expression between two marks.
func (q *queued) flat(s string, depth int) string {
	var b strings.Builder
	for s != "" {
		i := strings.IndexByte(s, '$')
		if i < 0 || q.fuel <= 0 {
			b.WriteString(s)
			break
		}
		b.WriteString(s[:i])
		s = s[i:]
		open := strings.IndexByte(s, '(')
		end := closing(s, open)
		name := ""
		if open > 0 {
			name = s[1:open]
		}
		switch {
		case open < 0 || end < 0 || name != "" && name != "$" && !identifier.MatchString(name):
			b.WriteByte('$')
			s = s[1:]
			continue
		case name == "":
			b.WriteString(q.macro(s[2:end], depth))
		case name == "$":
			q.remark("$$(…) is filled in by the machine that is found, which a job file cannot do: it stays as it is.")
			b.WriteString(s[:end+1])
		case strings.EqualFold(name, "ENV"):
			b.WriteString(q.environment(s[open+1 : end]))
		default:
			q.remark("$" + name + "(…) is not computed here: it stays as it is. Functions of job files are in roost-job(5).")
			b.WriteString(s[:end+1])
		}
		s = s[end+1:]
	}
	q.fuel -= b.Len()
	return b.String()
}

// closing finds the parenthesis that closes the one at open.
func closing(s string, open int) int {
	depth := 0
	for i := open; i >= 0 && i < len(s); i++ {
		switch s[i] {
		case '(':
			depth++
		case ')':
			if depth--; depth == 0 {
				return i
			}
		}
	}
	return -1
}

// macro is what stands for $(name) or $(name:default).
func (q *queued) macro(name string, depth int) string {
	name, fallback, _ := strings.Cut(name, ":")
	key := strings.ToLower(strings.TrimSpace(name))
	if expr, ok := q.vars[key]; ok {
		return mark + expr + mark
	}
	if s, ok := q.set[key]; ok && depth < maxMacros {
		q.used[key] = true
		return q.flat(s.value, depth+1)
	}
	switch key {
	case "process", "procid":
		return mark + q.j.index + mark
	case "row", "itemindex":
		if q.each == "" {
			return "0"
		}
		if q.n > 1 {
			return mark + fmt.Sprintf("floor(task.index / %d)", q.n) + mark
		}
		return mark + "task.index" + mark
	case "step":
		if q.each == "" {
			return mark + "task.index" + mark
		}
		return "0"
	case "cluster", "clusterid":
		return mark + "cluster" + mark
	case "dollar":
		return "$"
	case "item":
		return ""
	case "submit_file":
		return q.file
	}
	if fallback != "" && depth < maxMacros {
		return q.flat(fallback, depth+1)
	}
	q.remark("Nothing sets $(" + shown(name) + "): it is empty.")
	return ""
}

func (q *queued) environment(name string) string {
	if name == "HOME" {
		return "~"
	}
	q.remark("$ENV(" + shown(name) + ") is not known in a job file; variable \"" + shown(name) + "\" {} and --var hand a value in.")
	return ""
}

// assemble makes a text of what flat returns.
func (q *queued) assemble(s string) text {
	var out text
	for i, part := range strings.Split(s, mark) {
		switch {
		case i%2 == 0:
			out = out.add(part)
		case part == "cluster":
			out = jobNumber(out)
		default:
			out = append(out, piece{expr: part})
		}
	}
	return out
}

// words reads arguments or an environment: in double quotes separated by blanks, with single quotes around what holds some, and each quote
// twice for itself; else separated by blanks, with \" for a double quote.
func (q *queued) words(s string) (out []text) {
	s = strings.TrimSpace(q.flat(s, 0))
	quoted := len(s) > 1 && s[0] == '"' && s[len(s)-1] == '"'
	if quoted {
		s = strings.ReplaceAll(s[1:len(s)-1], `""`, `"`)
	} else {
		s = strings.ReplaceAll(s, `\"`, `"`)
	}
	var word strings.Builder
	open, inside := false, false
	for i := 0; i < len(s); i++ {
		c := s[i]
		switch {
		case c == 0:
			end := i + 1 + strings.IndexByte(s[i+1:], 0)
			word.WriteString(s[i : end+1])
			open, i = true, end
		case quoted && c == '\'' && inside && i+1 < len(s) && s[i+1] == '\'':
			word.WriteByte(c)
			i++
		case quoted && c == '\'':
			inside, open = !inside, true
		case (c == ' ' || c == '\t') && !inside:
			if open {
				out = append(out, q.assemble(word.String()))
				word.Reset()
			}
			open = false
		default:
			word.WriteByte(c)
			open = true
		}
	}
	if open {
		out = append(out, q.assemble(word.String()))
	}
	return out
}

// sourcesOf are texts as source.
func sourcesOf(list []text) []string {
	out := make([]string, len(list))
	for i, t := range list {
		out[i] = t.source()
	}
	return out
}
