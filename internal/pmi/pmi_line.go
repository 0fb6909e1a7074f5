package pmi

import "strings"

// The bounds that a rank reads by get_maxes, in bytes with the final zero byte of C.
const (
	MaxKVSName = 64
	MaxKey     = 64
	MaxValue   = 1024
)

// maxLine bounds a line in bytes: the longest is a put with all its names.
const maxLine = MaxKVSName + MaxKey + MaxValue + 128

// pmiLine is one line of a rank.
type pmiLine struct {
	command string
	text    string // what follows, as NAME=value words
}

// parseLine splits the command off a line. Its words may come in any order.
func parseLine(line string) (l pmiLine, ok bool) {
	l.text = line
	if l.command, ok = l.word("cmd"); !ok {
		l.command, ok = l.word("mcmd")
	}
	return l, ok
}

// word returns the value of a word of the line.
func (l pmiLine) word(name string) (string, bool) {
	for rest := l.text; rest != ""; {
		var word string
		word, rest, _ = strings.Cut(rest, " ")
		if key, value, ok := strings.Cut(word, "="); ok && key == name {
			return value, true
		}
	}
	return "", false
}

// value returns the value of a put. It may have spaces: it ends with the line, unless
// another word of a put that has not come before it follows.
func (l pmiLine) value() (string, bool) {
	before, value, ok := strings.Cut(" "+l.text, " value=")
	if !ok {
		return "", false
	}
	for _, name := range [...]string{" cmd=", " kvsname=", " key="} {
		if !strings.Contains(before, name) {
			value, _, _ = strings.Cut(value, name)
		}
	}
	return value, true
}
