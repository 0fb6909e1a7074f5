package translate

import (
	"fmt"
	"strings"
)

// slurmPattern reads the names of files as sbatch writes them ("filename pattern" in sbatch(1)).
type slurmPattern struct {
	script  *slurmScript
	index   string // of an array, or empty
	remarks []string
	differs bool // between the tasks
}

func (p *slurmPattern) remark(why string) { p.remarks = append(p.remarks, why) }

// read turns a pattern into a text. A backslash in it turns patterns off.
func (p *slurmPattern) read(s string) text {
	var out text
	if strings.Contains(s, `\`) {
		return text{{fixed: strings.ReplaceAll(s, `\`, "")}}
	}
	for i := 0; i < len(s); i++ {
		if s[i] != '%' || i+1 == len(s) {
			out = out.add(s[i : i+1])
			continue
		}
		i++
		from := i
		for i+1 < len(s) && s[i] >= '0' && s[i] <= '9' {
			i++
		}
		out = p.one(out, s[from:i], s[i])
	}
	return p.complete(out)
}

// one appends what stands for one % with its width and letter.
func (p *slurmPattern) one(out text, width string, letter byte) text {
	switch letter {
	case '%':
		return out.add("%")
	case 'j', 'A', 'J':
		return jobNumber(out)
	case 'a':
		if p.index == "" {
			p.remark("%a means something in an array only.")
			return out
		}
		p.differs = true
		return append(out, padded(p.index, width))
	case 'x':
		return out.add(p.script.name)
	case 'n', 's', 't':
		if p.script.j.gang > 1 && letter != 's' {
			p.differs = true
			return append(out, padded("task.index", width))
		}
		return out.add("0")
	case 'u':
		p.remark("%u, the name of the user, is left out.")
	case 'N':
		p.remark("%N, the machine, is not known before the job runs, and left out.")
	case 'b':
		p.remark("%b is not known here, and left out.")
	default:
		return out.add("%" + width + string(letter))
	}
	return trimmed(out)
}

// padded is an expression, with zeros before a number where a width is given.
func padded(expr, width string) piece {
	if len(width) == 1 && width != "0" {
		return piece{expr: fmt.Sprintf(`format("%%0%sd", %s)`, width, expr)}
	}
	return piece{expr: expr}
}

// trimmed takes the separator away before what is left out.
func trimmed(out text) text {
	if n := len(out); n > 0 && out[n-1].expr == "" {
		s := out[n-1].fixed
		if len(s) > 1 && strings.IndexByte("-_.", s[len(s)-1]) >= 0 && s[len(s)-2] != '/' {
			out[n-1].fixed = s[:len(s)-1]
		}
	}
	return out
}

// complete makes sure that tasks that are several have files of their own, and that there is a name.
func (p *slurmPattern) complete(out text) text {
	j := p.script.j
	if s, fixed := out.fixed(); fixed && strings.HasSuffix(s, "/") || len(out) == 0 {
		out = out.add("output")
	}
	if s, fixed := out.fixed(); fixed && s == "/dev/null" {
		return out
	}
	if j.index != "" && !p.differs {
		p.remark("Each task of an array needs a file of its own: the index was added.")
		p.differs = true
		out = append(out.add("."), piece{expr: j.index})
	}
	if j.gang > 1 {
		if j.index != "" || !p.differs {
			p.remark("Each task of a gang needs a file of its own: its number was added.")
			out = append(out.add("."), piece{expr: "task.index"})
		}
	}
	return out
}
