package classad

import "strings"

// tokenLayout is a text as tokens. The space between two tokens depends only on these
// two, so the text on one line is computed once, and with it the width of each part.
type tokenLayout struct {
	toks      []layoutToken
	line      string // all tokens on one line
	out       []byte
	commented bool
}

type layoutToken struct {
	text         string
	kind         tokenKind
	role         tokenRole
	otherBracket int // of a bracket: the index of its partner
	start, end   int // offsets in line
}

// tokenRole is the role of a token in the rules for blanks.
type tokenRole uint8

const (
	roleOperand tokenRole = iota // a name or a literal
	roleBinary                   // an operator between operands, also is and isnt
	rolePrefix                   // an operator before its operand, or a leading dot
	roleSelect                   // a dot between operands
	roleComma                    // , and ;
	roleOpen                     // ( and the [ of a subscript
	roleClose
	roleOpenWide // { and the [ of an ad
	roleCloseWide
)

// read takes the tokens of a text that is known to be valid.
func (l *tokenLayout) read(lex *lexer) {
	var open []int
	for {
		before := lex.pos
		tok := lex.next()
		if tok.kind == tokEOF {
			l.commented = l.commented || strings.Contains(lex.src[before:], "/")
			break
		}
		l.commented = l.commented || strings.Contains(lex.src[before:tok.pos], "/")
		t := layoutToken{text: lex.src[tok.pos:lex.pos], kind: tok.kind, otherBracket: -1}
		if tok.kind == tokPunct { // the token of a question mark includes the blanks and comments after it
			l.commented = l.commented || strings.Contains(t.text, "/")
			t.text = tok.text
		}
		t.role = l.role(t)
		if t.text == ";" && (len(l.toks) == 0 || l.last() == ";" || l.last() == "[") {
			continue
		}
		if t.text == "]" && l.last() == ";" {
			l.toks = l.toks[:len(l.toks)-1]
		}
		switch t.role {
		case roleOpen, roleOpenWide:
			open = append(open, len(l.toks))
		case roleClose:
			t.otherBracket = open[len(open)-1]
			open = open[:len(open)-1]
			l.toks[t.otherBracket].otherBracket = len(l.toks)
			if l.toks[t.otherBracket].role == roleOpenWide {
				t.role = roleCloseWide
			}
		}
		l.toks = append(l.toks, t)
	}
}

// last returns the previous token if it is a sign.
func (l *tokenLayout) last() string {
	if t := l.toks[len(l.toks)-1]; t.kind == tokPunct {
		return t.text
	}
	return ""
}

// role returns the role of t after the tokens so far.
func (l *tokenLayout) role(t layoutToken) tokenRole {
	behind := len(l.toks) > 0
	if behind {
		switch last := l.toks[len(l.toks)-1]; last.role {
		case roleOperand, roleClose, roleCloseWide:
		default:
			behind = false
		}
	}
	switch t.kind {
	case tokName:
		if behind && (foldEqual(t.text, "is") || foldEqual(t.text, "isnt")) {
			return roleBinary
		}
	case tokOp:
		if behind {
			return roleBinary
		}
		return rolePrefix
	case tokPunct:
		switch t.text {
		case "(":
			return roleOpen
		case "[":
			if behind {
				return roleOpen
			}
			return roleOpenWide
		case "{":
			return roleOpenWide
		case ")", "]", "}":
			return roleClose
		case ",", ";":
			return roleComma
		case ".":
			if behind {
				return roleSelect
			}
			return rolePrefix
		}
		return roleBinary
	}
	return roleOperand
}

// join writes all tokens on one line.
func (l *tokenLayout) join() {
	var b strings.Builder
	for i := range l.toks {
		if i > 0 && needsBlank(&l.toks[i-1], &l.toks[i]) {
			b.WriteByte(' ')
		}
		l.toks[i].start = b.Len()
		b.WriteString(l.toks[i].text)
		l.toks[i].end = b.Len()
	}
	l.line = b.String()
}

// needsBlank reports whether a blank belongs between two tokens.
func needsBlank(a, b *layoutToken) bool {
	switch {
	case a.role == rolePrefix || a.role == roleOpen || a.role == roleSelect || b.role == roleClose ||
		b.role == roleComma:
		return false
	case b.role == roleCloseWide:
		return a.role != roleOpenWide
	case b.role == roleSelect:
		return a.kind == tokNumber // without a blank the dot would belong to the number
	case b.role == roleOpen:
		return a.role != roleOperand && a.role != roleClose && a.role != roleCloseWide
	}
	return true
}

// inline returns the tokens from i up to j on one line, and width the length of that
// text.
func (l *tokenLayout) inline(i, j int) string { return l.line[l.toks[i].start:l.toks[j-1].end] }
func (l *tokenLayout) width(i, j int) int     { return l.toks[j-1].end - l.toks[i].start }

func (l *tokenLayout) put(text string) { l.out = append(l.out, text...) }

// newLine begins a line and returns its column.
func (l *tokenLayout) newLine(indent int) int {
	indent = min(indent, layoutIndent)
	l.out = append(l.out, '\n')
	for range indent {
		l.out = append(l.out, ' ')
	}
	return indent
}
