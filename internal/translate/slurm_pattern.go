package translate

import (
	"fmt"
	"strings"
)

// slurmPattern translates file names with sbatch's patterns ("filename pattern" in
// sbatch(1)).
type slurmPattern struct {
	script  *slurmScript
	index   string // of an array, or empty
	remarks []string
	differs bool // differs between the tasks
}

func (p *slurmPattern) noteDifference(why string) { p.remarks = append(p.remarks, why) }

// parsePattern turns a pattern into a text. A backslash in it disables patterns.
func (p *slurmPattern) parsePattern(s string) templateText {
	var out templateText
	if strings.Contains(s, `\`) {
		return templateText{{fixed: strings.ReplaceAll(s, `\`, "")}}
	}
	for i := 0; i < len(s); i++ {
		if s[i] != '%' || i+1 == len(s) {
			out = out.appendFixed(s[i : i+1])
			continue
		}
		i++
		from := i
		for i+1 < len(s) && s[i] >= '0' && s[i] <= '9' {
			i++
		}
		out = p.appendField(out, s[from:i], s[i])
	}
	return p.addIndex(out)
}

// appendField appends the replacement of one % with its width and letter.
func (p *slurmPattern) appendField(out templateText, width string, letter byte) templateText {
	switch letter {
	case '%':
		return out.appendFixed("%")
	case 'j', 'A', 'J':
		return appendJobNumber(out)
	case 'a':
		if p.index == "" {
			p.noteDifference("%a means something in an array only.")
			return out
		}
		p.differs = true
		return append(out, paddedExpr(p.index, width))
	case 'x':
		return out.appendFixed(p.script.name)
	case 'n', 's', 't':
		if p.script.job.gang > 1 && letter != 's' {
			p.differs = true
			return append(out, paddedExpr("task.index", width))
		}
		return out.appendFixed("0")
	case 'u':
		p.noteDifference("%u, the name of the user, is left out.")
	case 'N':
		p.noteDifference("%N, the machine, is not known before the job runs, and left out.")
	case 'b':
		p.noteDifference("%b is not known here, and left out.")
	default:
		return out.appendFixed("%" + width + string(letter))
	}
	return trimSeparator(out)
}

// paddedExpr returns an expression, padded with zeros if a width is given.
func paddedExpr(expr, width string) templatePiece {
	if len(width) == 1 && width != "0" {
		return templatePiece{expr: fmt.Sprintf(`format("%%0%sd", %s)`, width, expr)}
	}
	return templatePiece{expr: expr}
}

// trimSeparator removes the separator before an omitted part.
func trimSeparator(out templateText) templateText {
	if n := len(out); n > 0 && out[n-1].expr == "" {
		s := out[n-1].fixed
		if len(s) > 1 && strings.IndexByte("-_.", s[len(s)-1]) >= 0 && s[len(s)-2] != '/' {
			out[n-1].fixed = s[:len(s)-1]
		}
	}
	return out
}

// addIndex ensures that each of several tasks has a file of its own, and that there is a
// name.
func (p *slurmPattern) addIndex(out templateText) templateText {
	j := p.script.job
	if s, fixed := out.fixedText(); fixed && strings.HasSuffix(s, "/") || len(out) == 0 {
		out = out.appendFixed("output")
	}
	if s, fixed := out.fixedText(); fixed && s == "/dev/null" {
		return out
	}
	if j.index != "" && !p.differs {
		p.noteDifference("Each task of an array needs a file of its own: the index was added.")
		p.differs = true
		out = append(out.appendFixed("."), templatePiece{expr: j.index})
	}
	if j.gang > 1 {
		if j.index != "" || !p.differs {
			p.noteDifference("Each task of a gang needs a file of its own: its number was added.")
			out = append(out.appendFixed("."), templatePiece{expr: "task.index"})
		}
	}
	return out
}
