package dag

import "bytes"

// wordLexer cuts a line into words. Quotes of both kinds group, and within them a
// backslash takes the next character as it is.
type wordLexer struct {
	line       []byte
	pos        int
	start, end int // of the last word in the line
	buffer     []byte
	unclosed   bool // a word has a quote without an end; it is the last one of the line
	openAt     int  // where that word begins
}

func (l *wordLexer) reset(line []byte) {
	l.line, l.pos, l.start, l.end, l.unclosed = line, 0, 0, 0, false
}

func (l *wordLexer) skipBlanks() {
	for l.pos < len(l.line) && isBlank(l.line[l.pos]) {
		l.pos++
	}
}

// next returns the next word; false at the end of the line. What it returns is
// overwritten by the next call that meets a quote.
func (l *wordLexer) next() ([]byte, bool) {
	l.skipBlanks()
	l.start = l.pos
	for l.pos < len(l.line) {
		switch c := l.line[l.pos]; {
		case isBlank(c):
			l.end = l.pos
			return l.line[l.start:l.pos], true
		case c == '"' || c == '\'':
			return l.quoted(), true
		}
		l.pos++
	}
	l.end = l.pos
	return l.line[l.start:l.pos], l.pos > l.start
}

// quoted returns a word with quotes, of which the part before the first one was read.
func (l *wordLexer) quoted() []byte {
	l.buffer = append(l.buffer[:0], l.line[l.start:l.pos]...)
	var quote byte
	for ; l.pos < len(l.line); l.pos++ {
		c := l.line[l.pos]
		switch {
		case quote == 0 && isBlank(c):
			l.end = l.pos
			return l.buffer
		case quote == 0 && (c == '"' || c == '\''):
			quote = c
		case quote != 0 && c == quote:
			quote = 0
		case quote != 0 && c == '\\' && l.pos+1 < len(l.line):
			l.pos++
			l.buffer = append(l.buffer, l.line[l.pos])
		default:
			l.buffer = append(l.buffer, c)
		}
	}
	if l.end = l.pos; quote != 0 {
		l.unclosed, l.openAt = true, l.start
	}
	return l.buffer
}

// rest returns what is left of the line, without the blanks around it.
func (l *wordLexer) rest() []byte {
	l.skipBlanks()
	text := bytes.TrimRight(l.line[l.pos:], " \t\r\v\f")
	l.start, l.end = l.pos, l.pos+len(text)
	l.pos = len(l.line)
	return text
}

// key returns the text before the next equals sign or blank, as it is written.
func (l *wordLexer) key() []byte {
	l.skipBlanks()
	l.start = l.pos
	for l.pos < len(l.line) && l.line[l.pos] != '=' && !isBlank(l.line[l.pos]) {
		l.pos++
	}
	l.end = l.pos
	return l.line[l.start:l.end]
}

// equals reports whether an equals sign comes next, and passes it.
func (l *wordLexer) equals() bool {
	l.skipBlanks()
	if l.pos == len(l.line) || l.line[l.pos] != '=' {
		return false
	}
	l.pos++
	return true
}
