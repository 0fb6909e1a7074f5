package classad

import (
	"math"
	"slices"
	"strconv"
	"time"
)

// printStyle selects how expressions are written: new syntax or the line syntax of old
// ClassAds.
type printStyle struct {
	lines  bool
	pretty bool // every attribute and element is on a line of its own, as unparse() writes
	indent int  // of a pretty style: indentation of the present ad or list
	exact  bool // reals get as many digits as they need; else 16, as HTCondor shows results
}

// maxPrintedBytes bounds a printed text: a small value can contain one large string many
// times. Nothing longer than MaxBytes can be read.
const (
	maxPrintedBytes = 2 * MaxBytes
	ellipsis        = "…"
)

// expr appends n, as it was written: parentheses are nodes of their own.
func (s printStyle) expr(b []byte, n exprNode) []byte {
	switch n := n.(type) {
	case nil:
		return append(b, "undefined"...)
	case *literalNode:
		return s.value(b, n.v)
	case *boundValue:
		return s.value(b, n.v)
	case *attrRef:
		return s.name(b, n.name)
	case *rootRef:
		return s.name(append(b, '.'), n.name)
	case *selectionNode:
		if l, ok := n.x.(*literalNode); ok && (l.v.kind == Integer || l.v.kind == Real) {
			// without parentheses the dot would belong to the number
			return s.member(append(s.value(append(b, '('), l.v), ')'), n.name)
		}
		return s.member(s.operand(b, n.x, levelAtom), n.name)
	case *subscriptNode:
		return append(s.expr(append(s.operand(b, n.x, levelAtom), '['), n.i), ']')
	case *unaryNode:
		return s.unary(b, n)
	case *binaryNode:
		return s.binary(b, n)
	case *elvisNode:
		b = append(s.operand(b, n.x, levelAtom), " ?: "...)
		return s.operand(b, n.y, levelPostfix)
	case *ternaryNode:
		b = append(s.operand(b, n.cond, 1), " ? "...)
		b = append(s.expr(b, n.x), " : "...)
		return s.expr(b, n.y)
	case *parenNode:
		return append(s.expr(append(b, '('), n.x), ')')
	case *callNode:
		return append(s.list(append(s.name(b, n.name), '('), n.args), ')')
	case *listNode:
		return s.listBraces(b, n.elems)
	case *adNode:
		return s.printedAd(b, n.ad, n.text)
	}
	panic("classad: a node of an unknown kind")
}

// unary appends a sign and its operand. A blank separates a minus from a number that
// would become part of it.
func (s printStyle) unary(b []byte, n *unaryNode) []byte {
	b = append(append(b, ' '), operators[n.op].text...)
	start := len(b)
	b = s.operand(b, n.x, levelUnary)
	if n.op == opSubtract && s.exact && isDigit(b[start]) {
		b = slices.Insert(b, start, ' ')
	}
	return b
}

func (s printStyle) binary(b []byte, n *binaryNode) []byte {
	op := &operators[n.op]
	b = append(s.operand(b, n.x, op.level), ' ')
	if s.lines {
		b = append(b, op.old...)
	} else {
		b = append(b, op.text...)
	}
	return s.operand(append(b, ' '), n.y, op.level+1)
}

// operand appends n, in parentheses if it binds looser than level. Parsed expressions
// have their parentheses as nodes; built ones may lack them.
func (s printStyle) operand(b []byte, n exprNode, level int8) []byte {
	if precedence(n) >= level {
		return s.expr(b, n)
	}
	return append(s.expr(append(b, '('), n), ')')
}

func precedence(n exprNode) int8 {
	switch n := n.(type) {
	case *ternaryNode:
		return levelTernary
	case *binaryNode:
		return operators[n.op].level
	case *unaryNode:
		return levelUnary
	case *elvisNode:
		return levelPostfix
	}
	return levelAtom
}

func (s printStyle) list(b []byte, elems []Expr) []byte {
	for i, e := range elems {
		if len(b) > maxPrintedBytes {
			return append(b, ellipsis...)
		}
		if i > 0 {
			b = append(b, ',')
		}
		b = s.expr(b, e.n)
	}
	return b
}

// listBraces appends a list.
func (s printStyle) listBraces(b []byte, elems []Expr) []byte {
	if !s.pretty {
		return append(s.list(append(b, "{ "...), elems), " }"...)
	}
	in := s
	in.indent += 2 * listIndent
	b = append(newLine(b, s.indent+listIndent), '{')
	for i, e := range elems {
		if len(b) > maxPrintedBytes {
			return append(b, ellipsis...)
		}
		if i > 0 {
			b = append(b, ',')
		}
		b = in.expr(newLine(b, in.indent), e.n)
	}
	return append(newLine(b, s.indent+listIndent), '}')
}

// Upstream's PrettyPrint indents by these: once for the brackets and once more for their
// contents.
const (
	adIndent   = 4
	listIndent = 3
)

func newLine(b []byte, indent int) []byte {
	b = append(b, '\n')
	if len(b) > maxText { // the evaluation that needs so much text gives up
		return b
	}
	for range indent {
		b = append(b, ' ')
	}
	return b
}

func (s printStyle) prettyAd(b []byte, ad *Ad) []byte {
	in := s
	in.indent += 2 * adIndent
	b = append(newLine(b, s.indent+adIndent), '[')
	for i := range ad.labels {
		if len(b) > maxPrintedBytes {
			return append(b, ellipsis...)
		}
		if i > 0 {
			b = append(b, "; "...)
		}
		b = append(s.name(newLine(b, in.indent), ad.labels[i].name), " = "...)
		b = in.expr(b, ad.exprs[i].n)
	}
	return append(newLine(b, s.indent+adIndent), ']')
}

// printedAd appends an ad of which the text may be known.
func (s printStyle) printedAd(b []byte, ad *Ad, text string) []byte {
	if text != "" && s == (printStyle{exact: true}) {
		return append(b, text...)
	}
	return s.ad(b, ad)
}

func (s printStyle) ad(b []byte, ad *Ad) []byte {
	if s.pretty {
		return s.prettyAd(b, ad)
	}
	b = append(b, "[ "...)
	for i := range ad.labels {
		if len(b) > maxPrintedBytes {
			return append(b, ellipsis...)
		}
		if i > 0 {
			b = append(b, "; "...)
		}
		b = append(s.name(b, ad.labels[i].name), " = "...)
		b = s.expr(b, ad.exprs[i].n)
	}
	return append(b, " ]"...)
}

// name appends an attribute's name, in quotes where a parser would not read it as a name.
// The name parent is quoted, too, as in upstream.
func (s printStyle) name(b []byte, name string) []byte {
	if isPlainName(name) && scopeOf(name) != scopeParent {
		return append(b, name...)
	}
	return s.quotedName(b, name)
}

func (s printStyle) quotedName(b []byte, name string) []byte {
	if s.lines {
		return quoteOld(b, name, '\'')
	}
	return quote(b, name, '\'')
}

// member appends a dot and a name.
func (s printStyle) member(b []byte, name string) []byte {
	b = append(b, '.')
	if isPlainName(name) {
		return append(b, name...)
	}
	return s.quotedName(b, name)
}

// isPlainName reports whether a name needs no quotes.
func isPlainName(name string) bool {
	plain := name != "" && isLetter(name[0]) && !isKeyword(name)
	for i := 1; i < len(name) && plain; i++ {
		plain = isLetter(name[i]) || isDigit(name[i])
	}
	return plain
}

// value appends a value as an expression that evaluates to it.
func (s printStyle) value(b []byte, v Value) []byte {
	switch v.kind {
	case Boolean:
		return strconv.AppendBool(b, v.num != 0)
	case Integer:
		return strconv.AppendInt(b, v.int(), 10)
	case Real:
		return s.real(b, v.real())
	case String:
		if s.lines {
			return oldString(b, v.str)
		}
		return quote(b, v.str, '"')
	case AbsTime:
		if y := time.Unix(v.int()+int64(v.off), 0).UTC().Year(); s.exact && (y < 1000 || y > 9999 || v.off%60 != 0) {
			// The quoted text has only four digits for the year and minutes for the zone.
			b = strconv.AppendInt(append(b, "absTime("...), v.int(), 10)
			return append(strconv.AppendInt(append(b, ','), int64(v.off), 10), ')')
		}
		return append(appendAbsTime(append(b, `absTime("`...), v.int(), int(v.off)), `")`...)
	case RelTime:
		if f := v.real(); math.IsNaN(f) || math.IsInf(f, 0) {
			return append(s.real(append(b, "relTime("...), f), ')') // an ERROR: such a relative time does not exist
		}
		return append(appendRelTime(append(b, `relTime("`...), v.real(), s.exact), `")`...)
	case List:
		return s.listBraces(b, v.comp.elems)
	case AdValue:
		return s.printedAd(b, v.comp.ad, v.comp.text)
	}
	return append(b, v.kind.String()...)
}

// real appends a real as HTCondor writes it: 1.500000000000000E+00. Exact style adds a
// digit where the value needs one; old syntax is as short as possible.
func (s printStyle) real(b []byte, f float64) []byte {
	switch {
	case math.IsNaN(f):
		return append(b, `real("NaN")`...)
	case math.IsInf(f, 1):
		return append(b, `real("INF")`...)
	case math.IsInf(f, -1):
		return append(b, `real("-INF")`...)
	case f == 0 && math.Signbit(f):
		return append(b, "-0.0"...)
	case f == 0:
		return append(b, "0.0"...)
	case s.lines:
		return shortReal(b, f)
	}
	start := len(b)
	b = strconv.AppendFloat(b, f, 'E', 15, 64)
	if !s.exact {
		return b
	}
	if back, _ := strconv.ParseFloat(string(b[start:]), 64); back != f {
		b = strconv.AppendFloat(b[:start], f, 'E', 16, 64)
	}
	return b
}

// shortReal appends the shortest text from which the same real is read.
func shortReal(b []byte, f float64) []byte {
	start := len(b)
	if a := math.Abs(f); a >= 1e-5 && a < 1e17 {
		b = strconv.AppendFloat(b, f, 'f', -1, 64)
	} else {
		b = strconv.AppendFloat(b, f, 'E', -1, 64)
	}
	for _, c := range b[start:] {
		if c == '.' || c == 'E' {
			return b
		}
	}
	return append(b, ".0"...)
}
