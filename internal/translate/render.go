package translate

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// groups are the settings in the order in which they are written, with an empty line between groups.
var groups = [][]string{
	{"count", "for_each", "indexes", "gang", "led", "apart", "together", "exclusive", "max_running"},
	{"executable", "arguments", "shell"},
	{"directory", "umask", "unix_group", "getenv", "environment"},
	{"stdin", "stdout", "stderr", "join_output", "empty_output", "remove_output", "transfer", "inputs", "outputs"},
	{"cpus", "memory", "disk", "gpus", "gpu_memory", "processes", "walltime", "app_class"},
	{"cpu_time", "process_cpu_time", "virtual_memory", "process_virtual_memory", "process_memory", "file_size", "nice"},
	{"requirements", "rank", "prefer", "spread", "limits"},
	{"queue", "band", "group", "priority", "reservation", "start_after", "hold", "depends_on", "retries", "rerunnable", "run_count", "notice", "lease", "labels", "mail_on", "mail_to"},
}

// quoted is a text as HCL writes it in quotes.
func quoted(s string) string { return text{{fixed: s}}.source() }

// escaped is what stands between the quotes.
func escaped(s string) string {
	var b strings.Builder
	for i := 0; i < len(s); {
		r, size := utf8.DecodeRuneInString(s[i:])
		switch {
		case r == '"' || r == '\\':
			b.WriteString("\\" + string(r))
		case r == '\n':
			b.WriteString(`\n`)
		case r == '\r':
			b.WriteString(`\r`)
		case r == '\t':
			b.WriteString(`\t`)
		case !unicode.IsPrint(r):
			if r > 0xffff {
				fmt.Fprintf(&b, `\U%08x`, r)
			} else {
				fmt.Fprintf(&b, `\u%04x`, r)
			}
		default:
			b.WriteString(s[i : i+size])
		}
		i += size
	}
	return literal(b.String())
}

// literal makes "${" and "%{" mean themselves. The escape "$${" is known to HCL, but "$$${" is none for "$${".
func literal(s string) string {
	if !strings.Contains(s, "${") && !strings.Contains(s, "%{") {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		c := s[i]
		if c != '$' && c != '%' {
			b.WriteByte(c)
			continue
		}
		end := i
		for end < len(s) && s[end] == c {
			end++
		}
		if end == len(s) || s[end] != '{' {
			b.WriteString(s[i:end])
			i = end - 1
			continue
		}
		for ; i < end-1; i++ {
			b.WriteString(`${"` + string(c) + `"}`)
		}
		b.WriteString(string(c) + string(c))
	}
	return b.String()
}

// list is a list of source texts.
func list(sources []string) string { return "[" + strings.Join(sources, ", ") + "]" }

// texts is a list of fixed texts as source.
func texts(values []string) string {
	out := make([]string, len(values))
	for i, v := range values {
		out[i] = quoted(v)
	}
	return list(out)
}

// block writes the job, or for a check one of a few tasks that is the same otherwise. where tells at which lines of the whole text, which has so many before it, each setting stands.
func (j *job) block(before int, small bool) (out string, where map[string][2]int) {
	w := &writer{line: before + 1, where: map[string][2]int{}}
	w.put("job " + quoted(j.name) + " {")
	for _, group := range groups {
		j.group(w, group, small)
	}
	if len(j.checkpoint) > 0 {
		w.gap()
		from := w.line
		w.put("  checkpoint {")
		w.aligned("    ", j.checkpoint)
		w.put("  }")
		w.where["checkpoint"] = [2]int{from, w.line - 1}
	}
	for _, o := range j.overrides {
		w.gap()
		from := w.line
		w.put("  override {")
		w.aligned("    ", o)
		w.put("  }")
		w.where["override"] = [2]int{from, w.line - 1}
	}
	if j.script != "" {
		w.gap()
		w.heredoc(j.script)
	}
	w.put("}")
	return w.b.String(), w.where
}

// group writes settings that belong together; single lines that follow each other are aligned at their =.
func (j *job) group(w *writer, names []string, small bool) {
	var chain []entry
	first := true
	open := func() {
		if first {
			w.gap()
			first = false
		}
	}
	flush := func() {
		if len(chain) > 0 {
			open()
			w.aligned("  ", chain)
			chain = nil
		}
	}
	for _, name := range names {
		if v, ok := j.settings[name]; ok {
			if s := j.small[name]; small && s != "" {
				v = s
			}
			if strings.Contains(v, "\n") {
				flush()
				open()
				w.aligned("  ", []entry{{name, v}})
				continue
			}
			chain = append(chain, entry{name, v})
		}
		if m := j.maps[name]; len(m) > 0 {
			flush()
			open()
			from := w.line
			w.put("  " + name + " = {")
			w.aligned("    ", m)
			w.put("  }")
			w.where[name] = [2]int{from, w.line - 1}
		}
	}
	flush()
}

// writer counts the lines that it writes.
type writer struct {
	b     strings.Builder
	line  int // the number of the next one
	where map[string][2]int
}

func (w *writer) put(line string) {
	w.b.WriteString(line + "\n")
	w.line += 1 + strings.Count(line, "\n")
}

// gap is an empty line, but not at the beginning of the block.
func (w *writer) gap() {
	if !strings.HasSuffix(w.b.String(), "{\n") {
		w.put("")
	}
}

func (w *writer) aligned(indent string, chain []entry) {
	width := 0
	for _, e := range chain {
		width = max(width, utf8.RuneCountInString(key(e.name)))
	}
	for _, e := range chain {
		name := key(e.name)
		from := w.line
		w.put(indent + name + strings.Repeat(" ", width-utf8.RuneCountInString(name)) + " = " + e.value)
		if indent == "  " {
			w.where[e.name] = [2]int{from, w.line - 1}
		}
	}
}

// key is a name as it stands before an =.
func key(name string) string {
	if identifier.MatchString(name) {
		return name
	}
	return quoted(name)
}

// heredoc writes the script, indented where that changes nothing: HCL takes as many blanks from all lines as the one with the
// fewest has, and counts characters as they are seen, of which a blank with an accent behind it is one.
func (w *writer) heredoc(script string) {
	lines := strings.Split(strings.TrimSuffix(script, "\n"), "\n")
	mark, indent, least := "END", "    ", false
	for taken := true; taken; {
		taken = false
		for _, l := range lines {
			if strings.TrimSpace(l) == mark {
				mark, taken = mark+"_", true
				break
			}
		}
	}
	for _, l := range lines {
		if l != "" && l[0] >= utf8.RuneSelf {
			indent = ""
			break
		}
		least = least || strings.TrimSpace(l) != "" && !unicode.IsSpace(rune(l[0]))
	}
	opener := "<<-" + mark
	if !least || indent == "" {
		opener, indent = "<<"+mark, ""
	}
	from := w.line
	w.put("  script = " + opener)
	for _, l := range lines {
		if strings.TrimSpace(l) == "" {
			w.put(l)
			continue
		}
		w.put(indent + literal(l))
	}
	w.put("  " + mark)
	w.where["script"] = [2]int{from, w.line - 1}
}

// comment writes words as comment lines.
func (w *writer) comment(indent, words string) {
	const width = 110
	line := ""
	for _, word := range strings.Fields(plainText(words)) {
		if line != "" && utf8.RuneCountInString(indent+line+word)+3 > width {
			w.put("# " + indent + line)
			line = ""
		}
		if line != "" {
			line += " "
		}
		line += word
	}
	if line != "" {
		w.put("# " + indent + line)
	}
}

// plainText is what of a text may stand in a comment.
func plainText(s string) string {
	return strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return ' '
		}
		return r
	}, s)
}

// shown is a line of the original in a comment.
func shown(source string) string {
	source = strings.TrimSpace(plainText(source))
	if r := []rune(source); len(r) > 160 {
		return string(r[:160]) + "…"
	}
	return source
}
