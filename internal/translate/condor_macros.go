package translate

import (
	"strconv"
	"strings"
)

// exprMark encloses an expression in a text that is not yet split. No input contains a
// NUL.
const exprMark = "\x00"

// maxMacros bounds how deep macros refer to macros.
const maxMacros = 20

// maxExpansion bounds the bytes that the macros of one queue command expand to.
const maxExpansion = 1 << 20

// expandMacros replaces the macros of a text. Those of the file become their text, and
// those that differ between tasks become expressions.
func (q *condorJob) expandMacros(s string) templateText {
	return q.assembleText(q.flatText(s, 0))
}

// expandForReader replaces the macros of a line that is not part of a job.
func (f *condorSubmitFile) expandForReader(at submitSetting, s string) string {
	if !strings.Contains(s, "$") {
		return s
	}
	q := &condorJob{condorSubmitFile: f, line: at.line, source: at.source, current: at, job: newJob(), isReader: true,
		expansionBudget: maxExpansion, rows: newItemRows(false), random: f.options.Seed}
	t := q.expandMacros(s)
	out, ok := t.fixedText()
	if !ok && !f.needNodes(t) {
		f.addNote(at.note(Mistake, "What is known only when a node begins cannot be used here."))
	}
	return out
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
			b.WriteString(q.environmentText(s[open+1:end], depth))
		default:
			b.WriteString(q.callText(name, s[:end+1], s[open+1:end], depth))
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
	if depth >= maxMacros {
		q.noteCommandMistake(q.current, "Macros refer to each other in a circle here.")
		return ""
	}
	name, fallback, hasFallback := strings.Cut(name, ":")
	if strings.Contains(name, "$") { // as in $(size_$(kind))
		name = q.flatText(name, depth+1)
	}
	text, ok := q.namedText(strings.ToLower(strings.TrimSpace(name)), depth)
	switch {
	case text == "" && hasFallback:
		return q.flatText(fallback, depth+1)
	case !ok:
		q.noteCommandDifference("Nothing sets $(" + shownLine(name) + "): it is empty.")
	}
	return text
}

// namedText returns the expanded value of a macro.
func (q *condorJob) namedText(key string, depth int) (text string, ok bool) {
	if expr, ok := q.itemVariables[key]; ok {
		if expr == "" {
			return "", true
		}
		return q.rows.mark(expr), true
	}
	if s, ok := q.set[key]; ok {
		q.usedAsMacro[key] = true
		return q.flatText(s.value, depth+1), true
	}
	if !q.isReader {
		if text, ok = q.jobText(key); ok {
			return text, true
		}
	}
	switch key {
	case "dollar":
		return "$", true
	case "item":
		return "", true
	case "submit_file":
		return q.file, true
	case "islinux":
		return "1", true
	case "iswindows":
		return "0", true
	case "opsys":
		return "LINUX", true
	case "arch":
		return "X86_64", true
	}
	if now := q.options.Now; !now.IsZero() {
		switch key {
		case "year":
			return now.Format("2006"), true
		case "month":
			return now.Format("01"), true
		case "day":
			return now.Format("02"), true
		case "submit_time":
			return strconv.FormatInt(now.Unix(), 10), true
		}
	}
	return "", false
}

// jobText returns the macros that HTCondor sets for each job.
func (q *condorJob) jobText(key string) (text string, ok bool) {
	switch key {
	case "process", "procid":
		return q.rows.mark(q.job.index), true
	case "row", "itemindex":
		return q.itemIndexText(), true
	case "step":
		return q.stepText(), true
	case "cluster", "clusterid":
		return exprMark + "cluster" + exprMark, true
	case "node": // of the parallel universe
		return "", true
	}
	return "", false
}

// environmentText returns the replacement of $ENV(name) or $ENV(name:default).
func (q *condorJob) environmentText(name string, depth int) string {
	name, fallback, hasFallback := strings.Cut(name, ":")
	name = strings.TrimSpace(q.flatText(name, depth+1))
	for _, v := range q.options.Environ {
		if text, ok := strings.CutPrefix(v, name+"="); ok {
			return text
		}
	}
	switch {
	case hasFallback:
		return q.flatText(fallback, depth+1)
	case q.options.Environ != nil:
		q.noteCommandDifference("The environment has no " + shownLine(name) + ": $ENV gives the word UNDEFINED.")
		return "UNDEFINED"
	case name == "HOME":
		return "~"
	}
	q.noteCommandDifference("$ENV(" + shownLine(name) + ") is not known in a job file; variable \"" + shownLine(name) +
		"\" {} and --var hand a value in.")
	return ""
}

// callText returns the replacement of $NAME(arguments).
func (q *condorJob) callText(name, source, inside string, depth int) string {
	fn, letters, ok := functionNamed(name)
	if !ok {
		q.noteCommandDifference("$" + name +
			"(…) is not computed here: it stays as it is. Functions of job files are in roost-job(5).")
		return source
	}
	if depth >= maxMacros {
		q.noteCommandMistake(q.current, "Macros refer to each other in a circle here.")
		return ""
	}
	parts := splitArguments(inside)
	for i, part := range parts {
		text := strings.TrimSpace(q.flatText(part, depth+1))
		if i < fn.named || i == 1 && strings.EqualFold(name, "CHOICE") {
			if value, ok := q.namedText(strings.ToLower(text), depth+1); ok && text != "" {
				text = value
			}
		}
		parts[i] = text
	}
	call := macroCall{letters: letters, random: q.randomBelow}
	text, err := q.deriveText(strings.ToLower(name), parts, fn.differs, func(values []string) (string, error) {
		call.arguments = values
		return fn.apply(&call)
	})
	switch {
	case err == errNotComputed:
		q.noteCommandDifference("$" + name +
			"(…) is not computed here: it stays as it is. Functions of job files are in roost-job(5).")
		return source
	case err != nil:
		q.noteCommandMistake(q.current, "$"+name+"(…): "+err.Error()+".")
		return ""
	}
	return text
}

// splitArguments splits at commas outside parentheses.
func splitArguments(s string) (parts []string) {
	depth, start := 0, 0
	for i := range len(s) {
		switch s[i] {
		case '(':
			depth++
		case ')':
			depth--
		case ',':
			if depth == 0 {
				parts, start = append(parts, s[start:i]), i+1
			}
		}
	}
	return append(parts, s[start:])
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
			q.rows.used[part] = true
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
