package classad

import (
	"errors"
	"strings"
)

// Format lays out an ad or an expression in new syntax for readers. Each attribute is on
// a line, with the equals signs aligned; longer text is broken, chains of && and || into
// one operand a line. The result ends with a line break, parses to the same ad or
// expression, and formatting it again changes nothing: only blanks and superfluous
// semicolons change. Comments are lost; commented reports whether there were any. The
// error is a *[SyntaxError].
func Format(src string) (text string, commented bool, err error) {
	isAd := true
	if _, err = Parse(src); err != nil {
		isAd = false
		if _, wrong := ParseExpr(src); wrong != nil {
			return "", false, furthestError(err, wrong)
		}
	}
	l := &tokenLayout{}
	l.read(&lexer{src: src})
	l.join()
	if n := len(l.toks); isAd {
		l.writeBracketLines(0, n, 0)
	} else {
		l.writeTokens(0, n, 0, 0, 0)
	}
	return string(append(l.out, '\n')), l.commented, nil
}

// FormatOld lays out ads in old syntax, one attribute a line, with the equals signs
// aligned. Ads are separated by one empty line. Comments, which begin with #, are lost.
// The error is a *[SyntaxError].
func FormatOld(src string) (text string, commented bool, err error) {
	if _, err := ParseOld(src); err != nil {
		return "", false, err
	}
	var b strings.Builder
	var ad [][2]string // names and expressions
	flush := func() {
		width := 0
		for _, at := range ad {
			width = max(width, alignedWidth(len(at[0])))
		}
		if len(ad) > 0 && b.Len() > 0 {
			b.WriteByte('\n')
		}
		for _, at := range ad {
			b.WriteString(at[0] + strings.Repeat(" ", max(width-len(at[0]), 0)) + " = " + at[1] + "\n")
		}
		ad = nil
	}
	for line := range strings.Lines(src) {
		switch line = strings.TrimSpace(line); {
		case line == "":
			flush()
		case line[0] == '#':
			commented = true
		default:
			l := &tokenLayout{}
			l.read(&lexer{src: line, oldSyntax: true})
			l.join()
			commented = commented || l.commented
			ad = append(ad, [2]string{l.toks[0].text, l.inline(2, len(l.toks))})
		}
	}
	flush()
	return b.String(), commented, nil
}

// furthestError returns the error at the higher offset: that of the grammar that the text
// was probably written in.
func furthestError(a, b error) error {
	var x, y *SyntaxError
	if errors.As(a, &x) && errors.As(b, &y) && y.Offset > x.Offset {
		return b
	}
	return a
}

const (
	layoutWidth  = 80 // columns of a line
	layoutStep   = 2  // of indentation
	layoutIndent = 40 // the most indentation, at any nesting
	layoutName   = 32 // the longest name that is aligned with others
)

// alignedWidth returns the width that a name of n characters needs in the column of
// names.
func alignedWidth(n int) int {
	if n > layoutName {
		return 0
	}
	return n
}

// writeTokens writes the tokens from i up to j, beginning at a column. Further lines get
// indent as indentation, and the last line leaves room for behind more characters.
func (l *tokenLayout) writeTokens(i, j, column, indent, behind int) {
	if column+l.width(i, j)+behind <= layoutWidth {
		l.put(l.inline(i, j))
		return
	}
	level, cuts := l.breakPlaces(i, j)
	if len(cuts) == 0 {
		l.writeGroups(i, j, column, indent)
		return
	}
	from := i
	for _, at := range append(cuts, j) {
		rest := behind
		if at < j {
			rest = 3
		}
		switch {
		case level == cutTernary && from > i:
			column = l.newLine(indent + layoutStep)
			l.put(l.toks[from].text + " ")
			l.writeTokens(from+1, at, column+2, indent+2*layoutStep, rest)
			from = at
		case level == cutTernary:
			l.writeTokens(from, at, column, l.operandIndent(from, at, indent), 0)
			from = at
		default:
			l.writeTokens(from, at, column, l.operandIndent(from, at, indent), rest)
			if from = at + 1; at < j {
				l.put(" " + l.toks[at].text)
				column = l.newLine(indent)
			}
		}
	}
}

// operandIndent returns the indentation for the further lines of an operand that begins a
// line. It is deeper if the operand is a chain.
func (l *tokenLayout) operandIndent(i, j, indent int) int {
	if _, cuts := l.breakPlaces(i, j); len(cuts) > 0 {
		return indent + layoutStep
	}
	return indent
}

// The operators at which a line is broken, from the loosest.
const (
	cutNone = iota
	cutAnd
	cutOr
	cutTernary
)

// breakPlaces returns the indexes of the loosest operators among the tokens from i up to
// j, outside of brackets.
func (l *tokenLayout) breakPlaces(i, j int) (level int, at []int) {
	for ; i < j; i++ {
		t := &l.toks[i]
		if t.otherBracket > i {
			i = t.otherBracket
			continue
		}
		here := cutNone
		switch {
		case t.role != roleBinary:
		case t.text == "?" || t.text == ":":
			here = cutTernary
		case t.text == "||":
			here = cutOr
		case t.text == "&&":
			here = cutAnd
		}
		if here > level {
			level, at = here, nil
		}
		if here == level && here != cutNone {
			at = append(at, i)
		}
	}
	return level, at
}

// writeGroups writes tokens without breaking lines between them. It breaks only inside
// brackets that are too long for the rest of the line.
func (l *tokenLayout) writeGroups(i, j, column, indent int) {
	for first := i; i < j; i++ {
		if i > first && needsBlank(&l.toks[i-1], &l.toks[i]) {
			l.put(" ")
			column++
		}
		t := &l.toks[i]
		if t.otherBracket <= i {
			l.put(t.text)
			column += len(t.text)
			continue
		}
		if n := l.width(i, t.otherBracket+1); t.otherBracket == i+1 || column+n <= layoutWidth {
			l.put(l.inline(i, t.otherBracket+1))
			column += n
		} else {
			column = l.writeBracketLines(i, t.otherBracket+1, indent)
		}
		i = t.otherBracket
	}
}

// writeBracketLines writes a bracket, its contents on lines of their own, and the closing
// bracket on another line. The result is the column after it.
func (l *tokenLayout) writeBracketLines(i, j, indent int) int {
	open, inner := &l.toks[i], indent+layoutStep
	l.put(open.text)
	switch {
	case j == i+2:
		l.put(l.toks[j-1].text)
		return min(indent, layoutIndent) + 2
	case open.text == "[" && open.role == roleOpenWide:
		l.attributes(i+1, j-1, inner)
	default:
		parts := l.splitAtSign(i+1, j-1, ",")
		for k, p := range parts {
			column := l.newLine(inner)
			l.writeTokens(p[0], p[1], column, inner, 1)
			if k < len(parts)-1 {
				l.put(",")
			}
		}
	}
	column := l.newLine(indent)
	l.put(l.toks[j-1].text)
	return column + 1
}

// splitAtSign returns the ranges of tokens from i up to j that a sign separates outside
// of brackets.
func (l *tokenLayout) splitAtSign(i, j int, sign string) (list [][2]int) {
	from := i
	for ; i < j; i++ {
		switch t := &l.toks[i]; {
		case t.otherBracket > i:
			i = t.otherBracket
		case t.kind == tokPunct && t.text == sign:
			list = append(list, [2]int{from, i})
			from = i + 1
		}
	}
	return append(list, [2]int{from, j})
}

// attributes writes the attributes of an ad, each on a line or more.
func (l *tokenLayout) attributes(i, j, indent int) {
	list, names := l.splitAtSign(i, j, ";"), 0
	for _, p := range list {
		names = max(names, alignedWidth(len(l.toks[p[0]].text)))
	}
	for _, p := range list {
		name := l.toks[p[0]].text
		column := l.newLine(indent)
		l.put(name + strings.Repeat(" ", max(names-len(name), 0)) + " =")
		column += max(names, len(name)) + len(" = ")
		from, to := p[0]+2, p[1]
		_, cuts := l.breakPlaces(from, to)
		if column+l.width(from, to)+1 <= layoutWidth || len(cuts) == 0 {
			l.put(" ")
			l.writeTokens(from, to, column, indent, 1)
		} else {
			column = l.newLine(indent + layoutStep)
			l.writeTokens(from, to, column, indent+layoutStep, 1)
		}
		l.put(";")
	}
}
