package image

import (
	"slices"
	"strings"
)

// exportScript follows a script of the shell as far as it sets and exports variables.
// Nothing of it is run: what a value needs besides other variables is not read.
type exportScript struct {
	variables map[string]string
	exported  map[string]bool
	depth     int // of if, case, loops and functions, which are not followed
}

// run follows one line, and reports whether it could.
func (e *exportScript) run(line string) bool {
	text := strings.TrimSpace(line)
	if text == "" || strings.HasPrefix(text, "#") {
		return true
	}
	first, _, _ := strings.Cut(strings.TrimRight(text, ";"), " ")
	switch first {
	case "if", "case", "for", "while", "until", "{":
		if !closesItself(text) {
			e.depth++
		}
		return false
	case "fi", "esac", "done", "}":
		e.depth = max(e.depth-1, 0)
		return false
	}
	if strings.HasSuffix(text, "{") { // a function
		e.depth++
		return false
	}
	if e.depth > 0 {
		return false
	}
	commands, ok := e.words(text)
	for _, words := range commands {
		ok = ok && e.command(words)
	}
	return ok
}

// closesItself reports whether a compound command ends on its line.
func closesItself(text string) bool {
	for _, word := range []string{"fi", "esac", "done", "}"} {
		if strings.HasSuffix(strings.TrimRight(text, "; "), " "+word) {
			return true
		}
	}
	return false
}

// command follows a command: assignments, or an export.
func (e *exportScript) command(words []string) bool {
	export := len(words) > 0 && words[0] == "export"
	if export {
		words = words[1:]
	}
	for _, word := range words { // none of it holds unless all does
		name, _, assigned := strings.Cut(word, "=")
		if !validVariable(name) || !export && !assigned {
			return false
		}
	}
	for _, word := range words {
		name, value, assigned := strings.Cut(word, "=")
		if assigned {
			e.variables[name] = value
		}
		if export {
			e.exported[name] = true
		}
	}
	return len(words) > 0
}

func validVariable(name string) bool {
	for i, c := range []byte(name) {
		if !variableByte(c) || i == 0 && c >= '0' && c <= '9' {
			return false
		}
	}
	return name != ""
}

func variableByte(c byte) bool {
	return c == '_' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
}

// words splits a line into the words of its commands, with all quotes and variables
// replaced. It is false for a line with anything else in it.
func (e *exportScript) words(line string) (commands [][]string, ok bool) {
	var words []string
	for {
		line = strings.TrimLeft(line, " \t")
		switch {
		case line == "" || line[0] == '#':
			return append(commands, words), true
		case line[0] == ';':
			commands, words, line = append(commands, words), nil, strings.TrimLeft(line[1:], " \t")
			if line == "" {
				return commands, true
			}
		default:
			var word string
			if word, line, ok = e.word(line, " \t;"); !ok {
				return nil, false
			}
			words = append(words, word)
		}
	}
}

// word reads one word, which ends before any of the bytes of end.
func (e *exportScript) word(text, end string) (word, rest string, ok bool) {
	var b strings.Builder
	quoted := false // by "
	for len(text) > 0 {
		c := text[0]
		switch {
		case !quoted && strings.IndexByte(end, c) >= 0:
			return b.String(), text, true
		case c == '"':
			quoted, text = !quoted, text[1:]
		case c == '\'' && !quoted:
			inner, after, found := strings.Cut(text[1:], "'")
			if !found {
				return "", "", false
			}
			b.WriteString(inner)
			text = after
		case c == '\\':
			if len(text) < 2 {
				return "", "", false
			}
			if quoted && !strings.ContainsRune("\\\"$`", rune(text[1])) {
				b.WriteByte(c)
			}
			b.WriteByte(text[1])
			text = text[2:]
		case c == '$':
			value, after, found := e.expand(text[1:])
			if !found {
				return "", "", false
			}
			b.WriteString(value)
			text = after
		case c == '`' || !quoted && strings.IndexByte("&|<>()*?[", c) >= 0:
			return "", "", false
		default:
			b.WriteByte(c)
			text = text[1:]
		}
	}
	return b.String(), "", !quoted && !strings.Contains(end, "}")
}

// expand reads what follows a dollar sign: a variable that the script has set, or one
// with a default.
func (e *exportScript) expand(text string) (value, rest string, ok bool) {
	braces := strings.HasPrefix(text, "{")
	if braces {
		text = text[1:]
	}
	n := 0
	for n < len(text) && variableByte(text[n]) {
		n++
	}
	name, text := text[:n], text[n:]
	if !validVariable(name) {
		return "", "", false
	}
	value, ok = e.variables[name]
	ok = ok || !setLater(name) // the shell's value of what is not set
	if !braces {
		return value, text, ok
	}
	if text, found := strings.CutPrefix(text, ":-"); found {
		word, rest, valid := e.word(text, "}")
		if !valid || rest == "" {
			return "", "", false
		}
		if value == "" {
			value = word
		}
		return value, rest[1:], true
	}
	if !strings.HasPrefix(text, "}") {
		return "", "", false
	}
	return value, text[1:], ok
}

// setLater reports whether a variable has its value only where a program runs.
func setLater(name string) bool {
	for _, prefix := range []string{"SINGULARITY_", "APPTAINER_", "ROOST_"} {
		if strings.HasPrefix(name, prefix) {
			return true
		}
	}
	return slices.Contains([]string{"HOME", "USER", "LOGNAME", "PWD", "TMPDIR", "HOSTNAME", "SHELL"}, name)
}
