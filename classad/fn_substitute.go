package classad

import "strings"

// substitutionMode selects the result of a substitution.
type substitutionMode uint8

const (
	matchOnly    substitutionMode = iota // only the substitute
	replaceFirst                         // the text with its first match replaced
	replaceAll                           // the text with every match replaced
)

// substitute replaces matches by a text in which \0 to \9 stand for groups. Option g
// replaces every match, option f returns the whole text.
func (c builtinCall) substitute(where substitutionMode) Value {
	args, odd := c.stringArgs()
	if odd.kind != String {
		return odd
	}
	s, sub, opts := args[1], args[2], args[3]
	re, bad := c.compile(args[0], opts)
	if re == nil {
		return bad
	}
	if !c.evaluator.takeText(re.cost(s)) {
		return ErrorValue()
	}
	if where == matchOnly && strings.Contains(opts, "f") {
		where = replaceFirst
	}
	most := 1
	if where == replaceAll || strings.Contains(opts, "g") {
		most = re.maxMatches(s)
	}
	var b strings.Builder
	last := 0
	matches := re.FindAllStringSubmatchIndex(s, most)
	if len(matches) == most && most > 1 {
		return errorFor(tooManyMatches)
	}
	if re.scansWholeText {
		c.evaluator.stepsLeft -= len(matches) * re.cost(s) >> 4
	}
	for _, m := range matches {
		if where != matchOnly {
			b.WriteString(s[last:m[0]])
		}
		last = m[1]
		size := b.Len()
		if !expandSubstitute(&b, sub, s, m) {
			return errorFor(unmatchedGroup)
		}
		if !c.evaluator.takeText(16 + b.Len() - size) {
			return ErrorValue()
		}
	}
	if where != matchOnly {
		b.WriteString(s[last:])
	}
	return c.text(b.String())
}

// expandSubstitute writes a substitute with its groups filled in. ok is false if it names
// a group that the pattern does not have, or one after the last that matched.
func expandSubstitute(b *strings.Builder, sub, s string, m []int) (ok bool) {
	for len(m) > 2 && m[len(m)-1] < 0 {
		m = m[:len(m)-2]
	}
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
		if b.Len() > 2*maxText {
			return true // the caller notices that the text is too long
		}
	}
	return true
}
