package classad

import "strings"

// primary reads an operand without operators. It is a literal, a name, a call, a list, an
// ad, or an expression in parentheses.
func (p *parser) primary() exprNode {
	tok := p.tok
	switch tok.kind {
	case tokNumber:
		if tok.value.kind == Integer && tok.value.int() < 0 {
			return p.fail("the integer does not fit in 64 bits")
		}
		p.advance()
		return p.literal(tok.value)
	case tokString:
		return p.strings()
	case tokName:
		if isKeyword(tok.text) {
			if c := lower(tok.text[0]); c == 'i' {
				return p.fail("an operand is missing before " + tok.text)
			}
			p.advance()
			return p.literal(keywordValue(tok.text))
		}
		p.advance()
		if p.at("(") {
			return p.call(tok.text)
		}
		return &attrRef{tok.text, hashName(tok.text), scopeOf(tok.text)}
	case tokQuoted:
		p.advance()
		if p.at("(") {
			return p.call(tok.text)
		}
		return &attrRef{tok.text, hashName(tok.text), scopeOf(tok.text)}
	case tokEOF:
		return p.fail("expected an expression")
	}
	switch tok.text {
	case "(":
		p.advance()
		x := p.expression()
		p.expect(")")
		return &parenNode{x}
	case "{":
		return p.list()
	case "[":
		if !p.enter() {
			return &literalNode{}
		}
		defer p.leave()
		p.advance()
		return &adNode{ad: p.ad()}
	case ".":
		p.advance()
		name, ok := p.name()
		if !ok {
			return p.fail("expected a name after the dot")
		}
		return &rootRef{name, hashName(name)}
	}
	return p.fail("expected an expression, not " + tok.text)
}

// strings reads one string literal, or several adjacent ones, which form one string.
func (p *parser) strings() exprNode {
	first := p.tok.value
	p.advance()
	if p.tok.kind != tokString {
		return p.literal(first)
	}
	var b strings.Builder
	b.WriteString(first.str)
	for p.tok.kind == tokString {
		b.WriteString(p.tok.value.str)
		p.advance()
	}
	return p.literal(StringValue(b.String()))
}

// call reads the arguments of a function, from the parenthesis. As in old ClassAds, a
// semicolon is equivalent to a comma.
func (p *parser) call(name string) exprNode {
	p.advance()
	call := &callNode{name: name, fn: findBuiltin(name)}
	if p.punct(")") {
		return call
	}
	for {
		call.args = append(call.args, Expr{p.expression()})
		if !p.punct(",") && !p.punct(";") {
			break
		}
	}
	p.expect(")")
	if p.patterns < maxPatterns && p.lex.err == nil {
		if call.re = compiledLiteral(call); call.re != nil {
			p.patterns++
		}
	}
	return p.constantTime(call)
}

// constantTime returns the value of a call of absTime or relTime with one literal string.
// Like upstream's parser, it makes a literal of the call. A text that is no time is an
// error here, and not only in the evaluation.
func (p *parser) constantTime(c *callNode) exprNode {
	if len(c.args) != 1 {
		return c
	}
	l, ok := c.args[0].n.(*literalNode)
	if !ok || l.v.kind != String {
		return c
	}
	switch {
	case foldEqual(c.name, "abstime"):
		if seconds, off, ok := parseAbsTime(l.v.str, 0); ok {
			return p.literal(AbsTimeValue(seconds, off))
		}
		return p.fail("this is not an absolute time such as 2020-01-02T03:04:05+01:00")
	case foldEqual(c.name, "reltime"):
		if seconds, ok := parseRelTime(l.v.str); ok {
			return p.literal(RelTimeValue(seconds))
		}
		return p.fail("this is not a relative time such as 1+02:03:04")
	}
	return c
}

// list reads { a, b }.
func (p *parser) list() exprNode {
	p.advance()
	list := &listNode{}
	if p.punct("}") {
		return list
	}
	for {
		list.elems = append(list.elems, Expr{p.expression()})
		if !p.punct(",") {
			break
		}
	}
	p.expect("}")
	return list
}

// ad reads the attributes of an ad and its closing bracket. Of two attributes with one
// name the last wins.
func (p *parser) ad() *Ad {
	ad := &Ad{}
	for p.lex.err == nil {
		for p.punct(";") {
		}
		if p.punct("]") {
			return ad
		}
		name, ok := p.name()
		if !ok {
			p.fail("expected the name of an attribute or ]")
			break
		}
		p.expect("=")
		ad.Insert(name, Expr{p.expression()})
		if !p.at(";") && !p.at("]") {
			p.fail("expected ; or ] after an attribute")
		}
	}
	return ad
}
