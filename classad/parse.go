package classad

import "strconv"

// Bounds on what is parsed.
const (
	MaxBytes = 16 << 20 // of one text
	MaxDepth = 1000     // of brackets, signs and conditions inside each other
	maxChain = 5000     // of operators in a row, which nest to the left

	maxPatterns = 32 // regular expressions compiled while parsing; further ones are compiled when they are used
)

// ParseExpr reads one expression in new syntax. The error is a *[SyntaxError].
func ParseExpr(src string) (Expr, error) {
	p := newParser(src, false)
	n := p.expression()
	return Expr{n}, p.finish()
}

// Parse reads an ad in new syntax: [ a = 1; b = "x" ]. The error is a *[SyntaxError]. The
// ad shares memory with src.
func Parse(src string) (*Ad, error) {
	p := newParser(src, false)
	if !p.punct("[") {
		p.fail("an ad starts with [")
	}
	ad := p.ad()
	if err := p.finish(); err != nil {
		return nil, err
	}
	return ad, nil
}

type parser struct {
	lex      lexer
	tok      lexToken
	depth    int
	patterns int // number of regular expressions compiled so far
	// block from which literals are allocated, so that an ad of 100 attributes needs few
	// allocations
	literals []literalNode
}

func newParser(src string, lines bool) *parser {
	p := &parser{}
	p.start(src, lines)
	return p
}

// start begins another text.
func (p *parser) start(src string, lines bool) {
	p.lex = lexer{src: src, oldSyntax: lines}
	if len(src) > MaxBytes {
		p.lex.fail(MaxBytes, "the text is longer than "+strconv.Itoa(MaxBytes)+" bytes")
	}
	p.advance()
}

func (p *parser) advance() { p.tok = p.lex.next() }

// fail records an error at the present token. After it the parser sees only the end of
// the text.
func (p *parser) fail(msg string) exprNode {
	if p.tok.kind == tokEOF && p.lex.err == nil {
		msg += ", but the text ends here"
	}
	p.tok = p.lex.fail(p.tok.pos, msg)
	return &literalNode{}
}

func (p *parser) finish() error {
	if p.lex.err == nil && p.tok.kind != tokEOF {
		p.fail("here is more than one expression")
	}
	if p.lex.err != nil {
		return p.lex.err
	}
	return nil
}

// at reports whether the present token is a sign; punct also skips it.
func (p *parser) at(text string) bool { return p.tok.kind == tokPunct && p.tok.text == text }

func (p *parser) punct(text string) bool {
	if !p.at(text) {
		return false
	}
	p.advance()
	return true
}

func (p *parser) expect(text string) {
	if !p.punct(text) {
		p.fail("expected " + text)
	}
}

func (p *parser) literal(v Value) *literalNode {
	if len(p.literals) == 0 {
		p.literals = make([]literalNode, 16)
	}
	l := &p.literals[0]
	p.literals = p.literals[1:]
	l.v = v
	return l
}

// enter increases the nesting depth by one, and leave decreases it.
func (p *parser) enter() bool {
	if p.depth++; p.depth > MaxDepth {
		p.fail("the expression is nested deeper than " + strconv.Itoa(MaxDepth) + " levels")
		return false
	}
	return true
}

func (p *parser) leave() { p.depth-- }

// expression reads a ternary or an expression that binds tighter.
func (p *parser) expression() exprNode {
	if !p.enter() {
		return &literalNode{}
	}
	defer p.leave()
	cond := p.binary(1)
	if !p.punct("?") {
		return cond
	}
	x := p.expression()
	p.expect(":")
	return &ternaryNode{cond, x, p.expression()}
}

// binary reads operators of at least a level, by precedence climbing.
func (p *parser) binary(level int8) exprNode {
	x := p.unary()
	for chain := 0; ; chain++ {
		op := p.infix()
		if op == opNone || operators[op].level < level {
			return x
		}
		if chain >= maxChain {
			return p.fail("more than " + strconv.Itoa(maxChain) +
				" operators follow one another; group them with parentheses")
		}
		p.advance()
		x = &binaryNode{op, x, p.binary(operators[op].level + 1)}
	}
}

// infix returns the binary operator at the present token, or opNone.
func (p *parser) infix() exprOperator {
	switch p.tok.kind {
	case tokOp:
		if p.tok.op < opNot {
			return p.tok.op
		}
	case tokName:
		if foldEqual(p.tok.text, "is") {
			return opIs
		}
		if foldEqual(p.tok.text, "isnt") {
			return opIsnt
		}
	}
	return opNone
}

func (p *parser) unary() exprNode {
	if p.tok.kind != tokOp {
		return p.postfix(p.primary())
	}
	op, next := p.tok.op, p.tok.pos+1
	switch op {
	case opNot, opComplement, opAdd, opSubtract:
	default:
		return p.fail("an operand is missing before " + p.tok.text)
	}
	if !p.enter() {
		return &literalNode{}
	}
	defer p.leave()
	p.advance()
	if op == opSubtract && p.tok.kind == tokNumber && p.tok.pos == next {
		v := p.tok.value
		p.advance()
		if v.kind == Integer {
			v = IntValue(-v.int())
		} else {
			v = RealValue(-v.real())
		}
		return p.postfix(p.literal(v))
	}
	return &unaryNode{op, p.unary()}
}

// postfix reads the subscripts, selections and elvis operators after x.
func (p *parser) postfix(x exprNode) exprNode {
	for chain := 0; p.tok.kind == tokPunct; chain++ {
		if chain >= maxChain {
			return p.fail("too many selections follow one another")
		}
		switch p.tok.text {
		case "[":
			p.advance()
			x = &subscriptNode{x, p.expression()}
			p.expect("]")
		case ".":
			p.advance()
			name, ok := p.name()
			if !ok {
				return p.fail("expected a name after the dot")
			}
			sel := &selectionNode{x: x, name: name, hash: hashName(name)}
			if ref, ok := x.(*attrRef); ok {
				sel.scope = ref.scope
			}
			x = sel
		case "?:":
			if !p.enter() {
				return &literalNode{}
			}
			p.advance()
			x = &elvisNode{x, p.unary()}
			p.leave()
		default:
			return x
		}
	}
	return x
}

// name reads an attribute's name.
func (p *parser) name() (string, bool) {
	if p.tok.kind != tokName && p.tok.kind != tokQuoted {
		return "", false
	}
	if p.tok.kind == tokName && isKeyword(p.tok.text) {
		return "", false
	}
	name := p.tok.text
	p.advance()
	return name, true
}

func isKeyword(name string) bool {
	switch len(name) {
	case 2:
		return foldEqual(name, "is")
	case 4:
		return foldEqual(name, "true") || foldEqual(name, "isnt")
	case 5:
		return foldEqual(name, "false") || foldEqual(name, "error")
	case 9:
		return foldEqual(name, "undefined")
	}
	return false
}

func keywordValue(name string) Value {
	switch lower(name[0]) {
	case 't':
		return BoolValue(true)
	case 'f':
		return BoolValue(false)
	case 'e':
		return ErrorValue()
	}
	return UndefinedValue()
}
