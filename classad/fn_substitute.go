package classad

import "strings"

// placement is what a substitution returns.
type placement uint8

const (
	onlyMatch    placement = iota // the substitute alone
	firstInPlace                  // the text with its first match replaced
	allInPlace                    // the text with every match replaced
)

// substitute replaces matches by a text in which \0 to \9 stand for groups; with option g every match, with option f in place.
func (c call) substitute(where placement) Value {
	args, odd := c.texts()
	if odd.kind != String {
		return odd
	}
	s, sub, opts := args[1], args[2], args[3]
	re, bad := c.compile(args[0], opts)
	if re == nil {
		return bad
	}
	if !c.ev.spend(re.cost(s)) {
		return ErrorValue()
	}
	if where == onlyMatch && strings.Contains(opts, "f") {
		where = firstInPlace
	}
	most := 1
	if where == allInPlace || strings.Contains(opts, "g") {
		most = re.most(s)
	}
	var b strings.Builder
	last := 0
	matches := re.FindAllStringSubmatchIndex(s, most)
	if len(matches) == most && most > 1 {
		return failure(tooManyMatches)
	}
	if re.reaches {
		c.ev.steps -= len(matches) * re.cost(s) >> 4
	}
	for _, m := range matches {
		if where != onlyMatch {
			b.WriteString(s[last:m[0]])
		}
		last = m[1]
		size := b.Len()
		if !expand(&b, sub, s, m) {
			return failure(noGroup)
		}
		if !c.ev.spend(16 + b.Len() - size) {
			return ErrorValue()
		}
	}
	if where != onlyMatch {
		b.WriteString(s[last:])
	}
	return c.text(b.String())
}

// expand writes a substitute; ok is false where it names a group that the pattern does not have, or one behind the last that matched.
func expand(b *strings.Builder, sub, s string, m []int) (ok bool) {
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
			return true // the caller sees that it is too much
		}
	}
	return true
}
