package translate

import (
	"fmt"
	"strings"
)

// exprMark encloses an expression in a text that is not yet split. No input contains a
// NUL.
const exprMark = "\x00"

// maxMacros bounds how deep macros refer to macros.
const maxMacros = 20

// expandMacros replaces the macros of a text. Those of the file become their text, and
// those that differ between tasks become expressions.
func (q *condorJob) expandMacros(s string) templateText {
	return q.assembleText(q.flatText(s, 0))
}

// flatText returns the text with each expression between two marks.
func (q *condorJob) flatText(s string, depth int) string {
	var b strings.Builder
	for s != "" {
		i := strings.IndexByte(s, '$')
		if i < 0 || q.expansionBudget <= 0 {
			b.WriteString(s)
			break
		}
		b.WriteString(s[:i])
		s = s[i:]
		open := strings.IndexByte(s, '(')
		end := closingParen(s, open)
		name := ""
		if open > 0 {
			name = s[1:open]
		}
		switch {
		case open < 0 || end < 0 || name != "" && name != "$" && !identifier().MatchString(name):
			b.WriteByte('$')
			s = s[1:]
			continue
		case name == "":
			b.WriteString(q.macroText(s[2:end], depth))
		case name == "$":
			q.noteCommandDifference("$$(…) is filled in by the machine that is found, which a job file cannot do: " +
				"it stays as it is.")
			b.WriteString(s[:end+1])
		case strings.EqualFold(name, "ENV"):
			b.WriteString(q.parseEnvironment(s[open+1 : end]))
		default:
			q.noteCommandDifference("$" + name +
				"(…) is not computed here: it stays as it is. Functions of job files are in roost-job(5).")
			b.WriteString(s[:end+1])
		}
		s = s[end+1:]
	}
	q.expansionBudget -= b.Len()
	return b.String()
}

// closingParen finds the parenthesis that closes the one at open.
func closingParen(s string, open int) int {
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

// macroText returns the replacement of $(name) or $(name:default).
func (q *condorJob) macroText(name string, depth int) string {
	name, fallback, _ := strings.Cut(name, ":")
	key := strings.ToLower(strings.TrimSpace(name))
	if expr, ok := q.itemVariables[key]; ok {
		return exprMark + expr + exprMark
	}
	if s, ok := q.set[key]; ok && depth < maxMacros {
		q.usedAsMacro[key] = true
		return q.flatText(s.value, depth+1)
	}
	switch key {
	case "process", "procid":
		return exprMark + q.job.index + exprMark
	case "row", "itemindex":
		if q.itemExpr == "" {
			return "0"
		}
		if q.jobsPerItem > 1 {
			return exprMark + fmt.Sprintf("floor(task.index / %d)", q.jobsPerItem) + exprMark
		}
		return exprMark + "task.index" + exprMark
	case "step":
		if q.itemExpr == "" {
			return exprMark + "task.index" + exprMark
		}
		return "0"
	case "cluster", "clusterid":
		return exprMark + "cluster" + exprMark
	case "dollar":
		return "$"
	case "item":
		return ""
	case "submit_file":
		return q.file
	}
	if fallback != "" && depth < maxMacros {
		return q.flatText(fallback, depth+1)
	}
	q.noteCommandDifference("Nothing sets $(" + shownLine(name) + "): it is empty.")
	return ""
}

func (q *condorJob) parseEnvironment(name string) string {
	if name == "HOME" {
		return "~"
	}
	q.noteCommandDifference("$ENV(" + shownLine(name) + ") is not known in a job file; variable \"" + shownLine(name) +
		"\" {} and --var hand a value in.")
	return ""
}

// assembleText converts a result of flatText.
func (q *condorJob) assembleText(s string) templateText {
	var out templateText
	for i, part := range strings.Split(s, exprMark) {
		switch {
		case i%2 == 0:
			out = out.appendFixed(part)
		case part == "cluster":
			out = appendJobNumber(out)
		default:
			out = append(out, templatePiece{expr: part})
		}
	}
	return out
}

// splitWords splits arguments or an environment. Within double quotes, words are
// separated by blanks, a word with blanks has single quotes, and a doubled quote stands
// for itself. Without them, words are separated by blanks, and \" is a double quote.
func (q *condorJob) splitWords(s string) (out []templateText) {
	s = strings.TrimSpace(q.flatText(s, 0))
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
				out = append(out, q.assembleText(word.String()))
				word.Reset()
			}
			open = false
		default:
			word.WriteByte(c)
			open = true
		}
	}
	if open {
		out = append(out, q.assembleText(word.String()))
	}
	return out
}

// sourceList returns the HCL sources of texts.
func sourceList(list []templateText) []string {
	out := make([]string, len(list))
	for i, t := range list {
		out[i] = t.hclSource()
	}
	return out
}
