package classad

import (
	"errors"
	"regexp"
	"regexp/syntax"
	"slices"
	"strings"
)

// patternBuiltin returns a function on regular expressions, which are RE2's.
func patternBuiltin(name string) builtinFunc {
	switch name {
	case "regexp":
		return builtinFunc{2, 3, fnRegexp}
	case "regexpmember":
		return builtinFunc{2, 3, fnRegexpMember}
	case "regexps":
		return builtinFunc{3, 4, func(c builtinCall) Value { return c.substitute(matchOnly) }}
	case "replace":
		return builtinFunc{3, 4, func(c builtinCall) Value { return c.substitute(replaceFirst) }}
	case "replaceall":
		return builtinFunc{3, 4, func(c builtinCall) Value { return c.substitute(replaceAll) }}
	}
	return builtinFunc{}
}

// regexPattern is a compiled regular expression and its number of instructions. Matching
// takes at most one step for each instruction and byte.
type regexPattern struct {
	*regexp.Regexp
	instructions   int
	scansWholeText bool // one match may read the whole text
	hasDollar      bool // contains a $ for the end of the text, which in Perl also means the end before a last newline
}

const (
	maxInstructions = 20_000
	maxMatches      = 200_000    // of one substitution
	maxGroups       = 1_000_000  // in all matches of one substitution
	maxCost         = 30_000_000 // of all matches of one substitution
)

// cost returns the cost of matching s.
func (p *regexPattern) cost(s string) int { return len(s) + len(s)*p.instructions/16 }

// compile returns the expression that the parser compiled, or compiles one. Compiling
// uses up much of what an evaluation may cost. The result is nil if that fails.
func (c builtinCall) compile(p, opts string) (re *regexPattern, bad Value) {
	if c.re != nil {
		return c.re, Value{}
	}
	if !c.evaluator.takeText(4096 + 256*len(p)) {
		return nil, ErrorValue()
	}
	return compilePattern(p, opts)
}

// patternFailure returns ERROR for a pattern that cannot be compiled.
func patternFailure(err error) Value {
	var wrong *syntax.Error
	switch {
	case !errors.As(err, &wrong):
		return Value{kind: Error, off: int32(badPattern), str: err.Error()}
	case wrong.Code == syntax.ErrInvalidEscape && len(wrong.Expr) > 1 &&
		(isDigit(wrong.Expr[1]) || wrong.Expr[1] == 'k' || wrong.Expr[1] == 'g'):
		return errorFor(backReference)
	case wrong.Code == syntax.ErrInvalidPerlOp, wrong.Code == syntax.ErrInvalidRepeatOp &&
		strings.HasSuffix(wrong.Expr, "+"):
		return errorFor(lookAround)
	case wrong.Code == syntax.ErrInvalidRepeatSize:
		return errorFor(patternTooBig)
	}
	return Value{kind: Error, off: int32(badPattern), str: string(wrong.Code) + ": " + wrong.Expr}
}

// compilePattern compiles an expression with Perl's options i, m, s and x. It ignores
// other options.
func compilePattern(p, opts string) (re *regexPattern, bad Value) {
	flags := ""
	for _, o := range "ims" {
		if strings.ContainsRune(opts, o) {
			flags += string(o)
		}
	}
	if strings.ContainsRune(opts, 'x') {
		p = withoutBlanks(p)
	}
	if flags != "" {
		p = "(?" + flags + ")" + p
	}
	parsed, err := syntax.Parse(p, syntax.Perl)
	if err != nil {
		return nil, patternFailure(err)
	}
	prog, err := syntax.Compile(parsed.Simplify())
	switch {
	case err != nil:
		return nil, patternFailure(err)
	case len(prog.Inst) > maxInstructions:
		return nil, errorFor(patternTooBig)
	}
	compiled, err := regexp.Compile(p)
	if err != nil {
		return nil, patternFailure(err)
	}
	return &regexPattern{compiled, len(prog.Inst), isRepeated(parsed), hasDollar(parsed)}, Value{}
}

// maxMatches returns the most matches that a substitution in s may make.
func (p *regexPattern) maxMatches(s string) int {
	most := min(maxMatches, maxGroups/(p.NumSubexp()+1))
	if p.scansWholeText {
		most = min(most, maxCost/max(p.cost(s), 1))
	}
	return max(most, 2)
}

func isRepeated(re *syntax.Regexp) bool {
	return re.Op == syntax.OpStar || re.Op == syntax.OpPlus || re.Op == syntax.OpRepeat && re.Max < 0 ||
		slices.ContainsFunc(re.Sub, isRepeated)
}

func hasDollar(re *syntax.Regexp) bool {
	return re.Op == syntax.OpEndText && re.Flags&syntax.WasDollar != 0 || slices.ContainsFunc(re.Sub, hasDollar)
}

// matches reports whether s matches, within the bounds of the evaluation.
func (c builtinCall) matches(p *regexPattern, s string) bool {
	return c.evaluator.takeText(p.cost(s)) &&
		(p.MatchString(s) || p.hasDollar && strings.HasSuffix(s, "\n") && p.MatchString(s[:len(s)-1]))
}

// matchesNonEmpty reports whether the pattern matches a non-empty part of s, within the
// bounds of the evaluation.
func (c builtinCall) matchesNonEmpty(p *regexPattern, s string) bool {
	if !c.evaluator.takeText(p.cost(s)) {
		return false
	}
	for _, m := range p.FindAllStringIndex(s, -1) {
		if m[0] < m[1] {
			return true
		}
	}
	return false
}

// compiledLiteral returns the regular expression of a call if pattern and options are
// literals, else nil.
func compiledLiteral(n *callNode) *regexPattern {
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
	if options == 3 && n.fn.minArgs == 2 { // stringList_regexpMember
		opts = lowerASCII(opts)
	}
	re, _ := compilePattern(p, opts)
	return re
}

func literalString(args []Expr, i int) (string, bool) {
	if i >= len(args) {
		return "", false
	}
	v, _ := args[i].Literal()
	return v.Str()
}

// withoutBlanks removes blanks and comments, except in brackets and after a backslash:
// that is option x.
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

func fnRegexp(c builtinCall) Value {
	args, odd := c.stringArgs()
	if odd.kind != String {
		return odd
	}
	re, bad := c.compile(args[0], args[2])
	if re == nil {
		return bad
	}
	return BoolValue(c.matches(re, args[1]))
}

// fnRegexpMember returns whether an element matches. If none does and one is UNDEFINED,
// the result is UNDEFINED.
func fnRegexpMember(c builtinCall) Value {
	p, list, opts := c.arg(0), c.arg(1), StringValue("")
	if len(c.args) > 2 {
		opts = c.arg(2)
	}
	switch {
	case p.kind == Error:
		return p
	case list.kind == Error:
		return list
	case opts.kind == Error:
		return opts
	case p.kind == Undefined || list.kind == Undefined || opts.kind == Undefined:
		return UndefinedValue()
	case p.kind != String:
		return argumentError(0, p)
	case list.kind != List:
		return argumentError(1, list)
	case opts.kind != String:
		return argumentError(2, opts)
	}
	var re *regexPattern
	result := BoolValue(false)
	c.elements(list, func(v Value) bool {
		switch v.kind {
		case Undefined:
			result = v
			return true
		case String:
		default:
			result = elementError(1, v)
			return false
		}
		if re == nil {
			var bad Value
			if re, bad = c.compile(p.str, opts.str); re == nil {
				result = bad
				return false
			}
		}
		if !c.matches(re, v.str) {
			return true
		}
		result = BoolValue(true)
		return false
	})
	return result
}
