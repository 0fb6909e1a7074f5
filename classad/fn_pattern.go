package classad

import (
	"errors"
	"regexp"
	"regexp/syntax"
	"strings"
)

// patternBuiltin are the functions of regular expressions, which are RE2's.
func patternBuiltin(name string) builtin {
	switch name {
	case "regexp":
		return builtin{2, 3, fnRegexp}
	case "regexpmember":
		return builtin{2, 3, fnRegexpMember}
	case "regexps":
		return builtin{3, 4, func(c call) Value { return c.substitute(onlyMatch) }}
	case "replace":
		return builtin{3, 4, func(c call) Value { return c.substitute(firstInPlace) }}
	case "replaceall":
		return builtin{3, 4, func(c call) Value { return c.substitute(allInPlace) }}
	}
	return builtin{}
}

// pattern is a compiled regular expression and the number of its instructions. Matching takes at most one step for each instruction
// and byte.
type pattern struct {
	*regexp.Regexp
	instructions int
}

const (
	maxInstructions = 20_000
	maxMatches      = 200_000 // of one substitution
)

// cost is what it costs to match s.
func (p *pattern) cost(s string) int { return len(s) + len(s)*p.instructions/16 }

// pattern is a compiled regular expression with the options of argument i: i, m, s and x as in Perl, and f for a match of the whole
// text; g is for the substitutions.
func (c call) pattern(p string, i int) (*pattern, error) {
	opts := ""
	if i < len(c.args) {
		var ok bool
		if opts, ok = c.arg(i).Str(); !ok {
			return nil, errors.New("the options are not a string")
		}
	}
	return c.compile(p, opts)
}

// compile gives the expression that the parser has compiled, or compiles one, which costs much of what an evaluation may spend.
func (c call) compile(p, opts string) (*pattern, error) {
	if c.re != nil {
		return c.re, nil
	}
	if !c.ev.spend(4096 + 256*len(p)) {
		return nil, errors.New("the patterns are too long")
	}
	return compilePattern(p, opts)
}

func compilePattern(p, opts string) (*pattern, error) {
	flags := ""
	for _, o := range strings.ToLower(opts) {
		switch o {
		case 'i', 'm', 's':
			flags += string(o)
		case 'x':
			p = withoutBlanks(p)
		}
	}
	if strings.ContainsAny(opts, "fF") {
		p = `\A(?:` + p + `)\z`
	}
	if flags != "" {
		p = "(?" + flags + ")" + p
	}
	parsed, err := syntax.Parse(p, syntax.Perl)
	if err != nil {
		return nil, err
	}
	prog, err := syntax.Compile(parsed.Simplify())
	if err != nil {
		return nil, err
	}
	if len(prog.Inst) > maxInstructions {
		return nil, errors.New("the pattern repeats too much")
	}
	re, err := regexp.Compile(p)
	return &pattern{re, len(prog.Inst)}, err
}

// matches is whether s matches, within the bounds of the evaluation.
func (c call) matches(p *pattern, s string) bool {
	return c.ev.spend(p.cost(s)) && p.MatchString(s)
}

// compiled is the regular expression of a call whose pattern and options are literals, or nil.
func compiled(n *callNode) *pattern {
	options := 2
	switch lowerASCII(n.name) {
	case "regexp", "regexpmember":
	case "regexps", "replace", "replaceall", "stringlist_regexpmember":
		options = 3
	default:
		return nil
	}
	p, ok := literalString(n.args, 0)
	opts, given := literalString(n.args, options)
	if !ok || len(p) > 128 || !given && len(n.args) > options {
		return nil
	}
	if n.fn.least == 3 {
		opts = strings.Map(withoutFull, opts)
	}
	re, err := compilePattern(p, opts)
	if err != nil {
		return nil
	}
	return re
}

func literalString(args []Expr, i int) (string, bool) {
	if i >= len(args) {
		return "", false
	}
	v, _ := args[i].Literal()
	return v.Str()
}

// withoutBlanks removes blanks and comments, except in brackets and behind a backslash: what option x means.
func withoutBlanks(p string) string {
	var b strings.Builder
	inClass := false
	for i := 0; i < len(p); i++ {
		switch ch := p[i]; {
		case ch == '\\' && i+1 < len(p):
			b.WriteString(p[i : i+2])
			i++
			continue
		case ch == '[':
			inClass = true
		case ch == ']':
			inClass = false
		case inClass:
		case ch == ' ' || ch >= '\t' && ch <= '\r':
			continue
		case ch == '#':
			for i < len(p) && p[i] != '\n' {
				i++
			}
			continue
		}
		b.WriteByte(p[i])
	}
	return b.String()
}

func fnRegexp(c call) Value {
	if odd := c.firstOdd(); odd.kind != String {
		return odd
	}
	p, s := c.arg(0), c.arg(1)
	re, err := c.pattern(p.str, 2)
	if err != nil {
		return ErrorValue()
	}
	return BoolValue(c.matches(re, s.str))
}

func fnRegexpMember(c call) Value {
	p, list := c.arg(0), c.arg(1)
	switch {
	case p.kind == Undefined || list.kind == Undefined:
		return UndefinedValue()
	case p.kind != String || list.kind != List:
		return ErrorValue()
	}
	re, err := c.pattern(p.str, 2)
	if err != nil {
		return ErrorValue()
	}
	result := BoolValue(false)
	c.elements(list, func(v Value) bool {
		switch {
		case v.kind != String:
			result = ErrorValue()
		case c.matches(re, v.str):
			result = BoolValue(true)
		default:
			return true
		}
		return false
	})
	return result
}

// placement is what a substitution returns.
type placement uint8

const (
	onlyMatch    placement = iota // the substitute alone
	firstInPlace                  // the text with its first match replaced
	allInPlace                    // the text with every match replaced
)

// withoutFull drops option f, which means something else in a substitution.
func withoutFull(o rune) rune {
	if o == 'f' || o == 'F' {
		return -1
	}
	return o
}

// substitute replaces matches by a text in which \0 to \9 stand for groups; with option g every match, with option f in place.
func (c call) substitute(where placement) Value {
	if odd := c.firstOdd(); odd.kind != String {
		return odd
	}
	p, s, sub := c.arg(0), c.arg(1), c.arg(2)
	opts, _ := c.separators(3, "")
	re, err := c.compile(p.str, strings.Map(withoutFull, opts))
	if err != nil || !c.ev.spend(re.cost(s.str)) {
		return ErrorValue()
	}
	if where == onlyMatch && strings.ContainsAny(opts, "fF") {
		where = firstInPlace
	}
	most := 1
	if where == allInPlace || strings.ContainsAny(opts, "gG") {
		most = maxMatches
	}
	var b strings.Builder
	last := 0
	matches := re.FindAllStringSubmatchIndex(s.str, most)
	if len(matches) == maxMatches {
		return ErrorValue()
	}
	for _, m := range matches {
		if where != onlyMatch {
			b.WriteString(s.str[last:m[0]])
		}
		if last = m[1]; !expand(&b, sub.str, s.str, m) || !c.ev.spend(len(sub.str)+m[1]-m[0]) || b.Len() > maxText {
			return ErrorValue()
		}
	}
	if where != onlyMatch {
		b.WriteString(s.str[last:])
	}
	return c.text(b.String())
}

// expand writes a substitute; ok is false where it names a group that the pattern does not have.
func expand(b *strings.Builder, sub, s string, m []int) (ok bool) {
	for i := 0; i < len(sub); i++ {
		if sub[i] != '\\' || i+1 >= len(sub) || !isDigit(sub[i+1]) {
			b.WriteByte(sub[i])
			continue
		}
		i++
		g := 2 * int(sub[i]-'0')
		if g >= len(m) {
			return false
		}
		if m[g] >= 0 {
			b.WriteString(s[m[g]:m[g+1]])
		}
		if b.Len() > maxText {
			return false
		}
	}
	return true
}
