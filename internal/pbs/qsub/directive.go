package qsub

import "strings"

// maxPrefix is OpenPBS's bound on the prefix of directives.
const maxPrefix = 32

// directivePrefix returns the prefix of directives: -C, otherwise PBS_DPREFIX, otherwise
// "#PBS". An empty one means no directives.
func directivePrefix(line []OptionValue, environ []string) string {
	prefix := "#PBS"
	if p, ok := LookUpVariable(environ, "PBS_DPREFIX"); ok {
		prefix = p
	}
	for _, o := range line {
		if o.Letter == 'C' {
			prefix = o.Value
		}
	}
	return prefix[:min(len(prefix), maxPrefix)]
}

// findDirectives returns the directives of a script. They are the lines that begin with
// the prefix, before the first line that a shell would execute. A directive that ends in
// a backslash continues in the next line; in the stored script they are joined.
func findDirectives(text, prefix string) (script string, directives []string, err error) {
	if strings.Contains(text, "\r\n") {
		return "", nil, refusalf("script contains cr, lf", exitScript)
	}
	if strings.IndexByte(text, 0) >= 0 {
		return "", nil, refusalf("file must be an ascii script", exitScript)
	}
	if prefix == "" {
		return text, nil, nil
	}
	var out strings.Builder
	rest := text
	for rest != "" {
		line, after, more := strings.Cut(rest, "\n")
		trimmed := strings.TrimLeft(line, " \t")
		if strings.HasPrefix(trimmed, prefix) {
			for strings.HasSuffix(line, "\\") && more {
				var next string
				next, after, more = strings.Cut(after, "\n")
				line = strings.TrimSuffix(line, "\\") + strings.TrimLeft(next, " \t")
			}
			d := strings.TrimLeft(line, " \t")[len(prefix):]
			directives = append(directives, strings.TrimSpace(d))
		} else if trimmed != "" && trimmed[0] != '#' && trimmed[0] != ':' {
			break
		}
		out.WriteString(line)
		if more {
			out.WriteByte('\n')
		}
		rest = after
	}
	out.WriteString(rest)
	return out.String(), directives, nil
}
