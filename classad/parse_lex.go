package classad

import (
	"math"
	"strconv"
	"strings"
)

type tokenKind uint8

const (
	tokEOF    tokenKind = iota
	tokName             // field text
	tokQuoted           // 'text': always a name, never a keyword
	tokNumber           // field value
	tokString           // field value
	tokOp               // binary or unary operator; see lexToken.op
	tokPunct            // one of ( ) [ ] { } , ; = . ? : by text, and ?: as "?:"
)

type lexToken struct {
	kind  tokenKind
	op    exprOperator
	pos   int
	text  string
	value Value
}

// lexer splits a text into tokens. After the first error it returns only the end of the
// text.
type lexer struct {
	src       string
	pos       int
	oldSyntax bool // backslashes are literal except before a quote
	err       *SyntaxError
}

func (l *lexer) fail(pos int, msg string) lexToken {
	if l.err == nil {
		l.err = newSyntaxError(l.src, pos, msg)
	}
	l.pos = len(l.src)
	return lexToken{pos: len(l.src)}
}

func (l *lexer) next() lexToken {
	l.skipSpace()
	if l.pos >= len(l.src) {
		return lexToken{pos: len(l.src)}
	}
	start, c := l.pos, l.src[l.pos]
	switch {
	case isLetter(c):
		for l.pos < len(l.src) && (isLetter(l.src[l.pos]) || isDigit(l.src[l.pos])) {
			l.pos++
		}
		return lexToken{kind: tokName, pos: start, text: l.src[start:l.pos]}
	case isDigit(c), c == '.' && l.peek(1) != 0 && isDigit(l.peek(1)):
		return l.number()
	case c == '"':
		s, ok := l.quoted('"')
		if !ok {
			return lexToken{pos: len(l.src)}
		}
		return lexToken{kind: tokString, pos: start, value: StringValue(s)}
	case c == '\'':
		s, ok := l.quoted('\'')
		if !ok {
			return lexToken{pos: len(l.src)}
		}
		if s == "" {
			return l.fail(start, "a quoted name must not be empty")
		}
		return lexToken{kind: tokQuoted, pos: start, text: s}
	}
	return l.operator()
}

// skipSpace skips blanks and comments.
func (l *lexer) skipSpace() {
	for l.pos < len(l.src) {
		switch c := l.src[l.pos]; {
		case c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == '\v' || c == '\f':
			l.pos++
		case c == '/' && l.peek(1) == '/':
			end := strings.IndexByte(l.src[l.pos:], '\n')
			if end < 0 {
				end = len(l.src) - l.pos
			}
			l.pos += end
		case c == '/' && l.peek(1) == '*':
			end := strings.Index(l.src[l.pos+2:], "*/")
			if end < 0 {
				l.fail(l.pos, "the comment is not closed")
				return
			}
			l.pos += end + 4
		default:
			return
		}
	}
}

func (l *lexer) peek(n int) byte {
	if l.pos+n < len(l.src) {
		return l.src[l.pos+n]
	}
	return 0
}

func (l *lexer) digits() int {
	start := l.pos
	for l.pos < len(l.src) && isDigit(l.src[l.pos]) {
		l.pos++
	}
	return l.pos - start
}

// number reads a decimal integer or a real. HTCondor refuses hexadecimal, octal and "1.".
func (l *lexer) number() lexToken {
	start := l.pos
	whole := l.digits()
	real := false
	if l.peek(0) == '.' {
		l.pos++
		real = true
		if l.digits() == 0 {
			return l.fail(start, "a number needs a digit after its point")
		}
	}
	if c := l.peek(0); c == 'e' || c == 'E' {
		l.pos++
		if c := l.peek(0); c == '+' || c == '-' {
			l.pos++
		}
		real = true
		if l.digits() == 0 {
			return l.fail(start, "a number needs a digit in its exponent")
		}
	}
	text := l.src[start:l.pos]
	if l.pos < len(l.src) && isLetter(l.src[l.pos]) {
		return l.fail(start, "a number must not end in a letter")
	}
	if real {
		f, err := strconv.ParseFloat(text, 64)
		if err != nil && !math.IsInf(f, 0) {
			return l.fail(start, "this is not a number")
		}
		return lexToken{kind: tokNumber, pos: start, value: RealValue(f)}
	}
	if whole > 1 && text[0] == '0' {
		return l.fail(start, "an integer must not start with 0")
	}
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil || n > 1<<63 {
		return l.fail(start, "the integer does not fit in 64 bits")
	}
	// 9223372036854775808 is allowed only after a minus, which the parser checks.
	return lexToken{kind: tokNumber, pos: start, text: text, value: IntValue(int64(n))}
}

// quoted reads a string or a quoted name, from its opening quote. Most have no escapes
// and are shared with the source.
func (l *lexer) quoted(quote byte) (string, bool) {
	open := l.pos
	l.pos++
	start := l.pos
	for l.pos < len(l.src) {
		switch c := l.src[l.pos]; {
		case c == quote:
			l.pos++
			return l.src[start : l.pos-1], true
		case c == '\\':
			return l.escaped(open, quote, []byte(l.src[start:l.pos]))
		case c == 0:
			l.fail(l.pos, "a string must not hold a zero byte")
			return "", false
		}
		l.pos++
	}
	l.fail(open, "the quote is not closed")
	return "", false
}

// escaped reads the rest of a quoted text that has a backslash at the present position.
func (l *lexer) escaped(open int, quote byte, b []byte) (string, bool) {
	for l.pos < len(l.src) {
		c := l.src[l.pos]
		l.pos++
		switch {
		case c == quote:
			return string(b), true
		case c == 0:
			l.fail(l.pos-1, "a string must not hold a zero byte")
			return "", false
		case c != '\\':
			b = append(b, c)
		case l.oldSyntax:
			if l.peek(0) == quote && strings.TrimSpace(l.src[l.pos+1:]) != "" {
				c = quote
				l.pos++
			}
			b = append(b, c)
		default:
			var ok bool
			if b, ok = l.escape(b); !ok {
				return "", false
			}
		}
	}
	l.fail(open, "the quote is not closed")
	return "", false
}

// escape reads the characters after a backslash: one of C's letters, up to three octal
// digits, or the character itself.
func (l *lexer) escape(b []byte) ([]byte, bool) {
	if l.pos >= len(l.src) {
		return b, true
	}
	c := l.src[l.pos]
	if i := strings.IndexByte("abfnrtv", c); i >= 0 {
		l.pos++
		return append(b, "\a\b\f\n\r\t\v"[i]), true
	}
	if c == 0 {
		l.fail(l.pos, "a string must not hold a zero byte")
		return b, false
	}
	if c < '0' || c > '7' {
		l.pos++
		return append(b, c), true
	}
	n, most := 0, 3
	if c > '3' {
		most = 2
	}
	start := l.pos
	for range most {
		if d := l.peek(0); d < '0' || d > '7' {
			break
		}
		n = n*8 + int(l.src[l.pos]-'0')
		l.pos++
	}
	if n == 0 {
		l.fail(start-1, "a string must not hold a zero byte")
		return b, false
	}
	return append(b, byte(n)), true
}

// operator reads the longest sign at the present position.
func (l *lexer) operator() lexToken {
	start := l.pos
	if l.src[start] == '?' {
		l.pos++
		l.skipSpace()
		if l.peek(0) == ':' {
			l.pos++
			return lexToken{kind: tokPunct, pos: start, text: "?:"}
		}
		return lexToken{kind: tokPunct, pos: start, text: "?"}
	}
	for n := 3; n >= 1; n-- {
		if start+n > len(l.src) {
			continue
		}
		text := l.src[start : start+n]
		if op := operatorOf(text); op != opNone {
			l.pos += n
			return lexToken{kind: tokOp, op: op, pos: start, text: text}
		}
	}
	if strings.IndexByte("()[]{},;=.:", l.src[start]) >= 0 {
		l.pos++
		return lexToken{kind: tokPunct, pos: start, text: l.src[start:l.pos]}
	}
	return l.fail(start, "this character has no meaning here")
}

func isLetter(c byte) bool { return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || c == '_' }
func isDigit(c byte) bool  { return '0' <= c && c <= '9' }
