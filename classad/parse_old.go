package classad

import "strings"

// ParseOld reads an ad in old syntax: one attribute a line, such as A = 1. In its strings
// a backslash is literal except before a quote. Empty lines and lines that start with #
// are skipped. The error is a *[SyntaxError].
func ParseOld(src string) (*Ad, error) {
	if len(src) > MaxBytes {
		return nil, newParser(src, true).lex.err
	}
	ad := New()
	p := &parser{}
	for start := 0; start < len(src); {
		end := len(src)
		if i := strings.IndexByte(src[start:], '\n'); i >= 0 {
			end = start + i
		}
		line := strings.TrimSpace(src[start:end])
		if line != "" && line[0] != '#' {
			if err := p.line(line, ad); err != nil {
				at := start + strings.Index(src[start:], line) + err.Offset
				return nil, newSyntaxError(src, at, err.Msg)
			}
		}
		start = end + 1
	}
	return ad, nil
}

// line reads one line of old syntax into an ad.
func (p *parser) line(line string, ad *Ad) *SyntaxError {
	p.start(line, true)
	name, ok := p.name()
	if !ok {
		p.fail("expected the name of an attribute")
	}
	p.expect("=")
	n := p.expression()
	p.finish()
	if p.lex.err == nil {
		ad.Insert(name, Expr{n})
	}
	return p.lex.err
}

// String returns the ad in new syntax, on one line. Text longer than twice MaxBytes,
// which could not be parsed, is cut and ends in an ellipsis.
func (a *Ad) String() string { return string(printStyle{exact: true}.ad(nil, a)) }

// Old returns the ad in old syntax, one attribute a line. Reals are as short as possible.
// [ParseOld] reads the same ad from it, except for what the syntax cannot represent: A
// line break in a string or a name becomes a blank. A string that ends in a backslash is
// written as a substr() with the same value, unless it is a whole attribute. A name that
// ends in a backslash is not read back. To store an ad, use String.
func (a *Ad) Old() string {
	var b []byte
	s := printStyle{lines: true, exact: true}
	for i := range a.labels {
		b = append(s.name(b, a.labels[i].name), " = "...)
		if l, ok := a.exprs[i].n.(*literalNode); ok && l.v.kind == String {
			b = quoteOld(b, l.v.str, '"')
		} else {
			b = s.expr(b, a.exprs[i].n)
		}
		b = append(b, '\n')
	}
	return string(b)
}
