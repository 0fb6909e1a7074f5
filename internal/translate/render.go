package translate

import (
	"cmp"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// settingGroups are the settings in the order in which they are written, with an empty
// line between groups.
var settingGroups = [][]string{
	{"count", "for_each", "indexes", "gang", "led", "apart", "together", "exclusive", "max_running"},
	{"in", "place", "users"},
	{"image", "image_workdir", "image_entrypoint", "image_writable", "mounts"},
	{"executable", "command", "script", "arguments", "shell", "mpi", "start_timeout"},
	{"directory", "umask", "unix_group", "getenv", "environment"},
	{"stdin", "stdout", "stderr", "user_log", "join_output", "empty_output", "remove_output", "transfer", "inputs",
		"outputs"},
	{"cpus", "memory", "disk", "gpus", "gpu_memory", "disk_io", "network", "processes", "walltime",
		"app_class", "cores", "threads_per_core", "numa", "cpu_slack", "memory_slack"},
	{"cpu_time", "process_cpu_time", "virtual_memory", "process_virtual_memory", "process_memory", "file_size", "nice"},
	{"requirements", "rank", "prefer", "spread", "packages", "limits"},
	{"queue", "band", "group", "priority", "reservation", "start_after", "hold", "depends_on", "retries",
		"success_exit_code", "rerunnable",
		"run_count", "notice", "lease", "labels", "mail_on", "mail_to", "cell_queue", "flock"},
	{"periodic_hold", "periodic_hold_reason", "periodic_release", "periodic_remove", "periodic_remove_reason",
		"periodic_vacate", "on_exit_hold", "on_exit_hold_reason", "on_exit_remove"},
}

// quotedText returns a text in HCL's quotes.
func quotedText(s string) string { return templateText{{fixed: s}}.hclSource() }

// escapedText returns a text escaped for HCL's quotes.
func escapedText(s string) string {
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
	return escapeTemplate(b.String())
}

// escapeTemplate escapes "${" and "%{". HCL has the escape "$${", but "$$${" does not
// mean "$${".
func escapeTemplate(s string) string {
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

// listSource returns the source of a list.
func listSource(sources []string) string { return "[" + strings.Join(sources, ", ") + "]" }

// textListSource returns the source of a list of fixed texts.
func textListSource(values []string) string {
	out := make([]string, len(values))
	for i, v := range values {
		out[i] = quotedText(v)
	}
	return listSource(out)
}

// writeBlock writes the job. For verify it can write one of a few tasks that is otherwise
// the same. where has the lines of each setting in the whole text, with before lines
// ahead of the block.
func (j *jobBlock) writeBlock(before int, small bool) (out string, where map[string][2]int) {
	w := &lineWriter{line: before + 1, settingLines: map[string][2]int{}}
	w.writeLine(cmp.Or(j.kind, "job") + " " + quotedText(j.name) + " {")
	for _, group := range settingGroups {
		j.writeGroup(w, group, small)
	}
	if len(j.checkpoint) > 0 {
		w.writeGap()
		from := w.line
		w.writeLine("  checkpoint {")
		w.writeAligned("    ", j.checkpoint)
		w.writeLine("  }")
		w.settingLines["checkpoint"] = [2]int{from, w.line - 1}
	}
	for _, o := range j.overrides {
		w.writeGap()
		from := w.line
		w.writeLine("  override {")
		w.writeAligned("    ", o)
		w.writeLine("  }")
		w.settingLines["override"] = [2]int{from, w.line - 1}
	}
	for _, b := range j.blocks {
		w.writeGap()
		w.writeInner("  ", b)
	}
	if j.script != "" {
		w.writeGap()
		w.writeHeredoc(j.script)
	}
	w.writeLine("}")
	return w.buffer.String(), w.settingLines
}

// writeInner writes a block within another.
func (w *lineWriter) writeInner(indent string, b innerBlock) {
	if len(b.entries)+len(b.blocks) == 0 {
		w.writeLine(indent + b.kind + " {}")
		return
	}
	w.writeLine(indent + b.kind + " {")
	w.writeAligned(indent+"  ", b.entries)
	for _, inner := range b.blocks {
		w.writeInner(indent+"  ", inner)
	}
	w.writeLine(indent + "}")
}

// writeGroup writes settings that belong together. Consecutive single lines are aligned
// at their =.
func (j *jobBlock) writeGroup(w *lineWriter, names []string, small bool) {
	var chain []blockEntry
	first := true
	open := func() {
		if first {
			w.writeGap()
			first = false
		}
	}
	flush := func() {
		if len(chain) > 0 {
			open()
			w.writeAligned("  ", chain)
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
				w.writeAligned("  ", []blockEntry{{name, v}})
				continue
			}
			chain = append(chain, blockEntry{name, v})
		}
		if m := j.maps[name]; len(m) > 0 {
			flush()
			open()
			from := w.line
			w.writeLine("  " + name + " = {")
			w.writeAligned("    ", m)
			w.writeLine("  }")
			w.settingLines[name] = [2]int{from, w.line - 1}
		}
	}
	flush()
}

// lineWriter counts the lines that it writes.
type lineWriter struct {
	buffer       strings.Builder
	line         int // number of the next line
	settingLines map[string][2]int
}

func (w *lineWriter) writeLine(line string) {
	w.buffer.WriteString(line + "\n")
	w.line += 1 + strings.Count(line, "\n")
}

// writeGap writes an empty line, except at the beginning of the block.
func (w *lineWriter) writeGap() {
	if !strings.HasSuffix(w.buffer.String(), "{\n") {
		w.writeLine("")
	}
}

func (w *lineWriter) writeAligned(indent string, chain []blockEntry) {
	width := 0
	for _, e := range chain {
		width = max(width, utf8.RuneCountInString(mapKey(e.name)))
	}
	for _, e := range chain {
		name := mapKey(e.name)
		from := w.line
		w.writeLine(indent + name + strings.Repeat(" ", width-utf8.RuneCountInString(name)) + " = " + e.value)
		if indent == "  " {
			w.settingLines[e.name] = [2]int{from, w.line - 1}
		}
	}
}

// mapKey returns a name as it is written before an =.
func mapKey(name string) string {
	if identifier().MatchString(name) {
		return name
	}
	return quotedText(name)
}

// writeHeredoc writes the script, indented if that changes nothing. HCL removes the
// smallest common indentation of all lines. It counts visible characters, and a blank
// with a combining accent is one.
func (w *lineWriter) writeHeredoc(script string) {
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
	w.writeLine("  script = " + opener)
	for _, l := range lines {
		if strings.TrimSpace(l) == "" {
			w.writeLine(l)
			continue
		}
		w.writeLine(indent + escapeTemplate(l))
	}
	w.writeLine("  " + mark)
	w.settingLines["script"] = [2]int{from, w.line - 1}
}

// writeComment writes a text as comment lines.
func (w *lineWriter) writeComment(indent, words string) {
	const width = 110
	line := ""
	for _, word := range strings.Fields(commentText(words)) {
		if line != "" && utf8.RuneCountInString(indent+line+word)+3 > width {
			w.writeLine("# " + indent + line)
			line = ""
		}
		if line != "" {
			line += " "
		}
		line += word
	}
	if line != "" {
		w.writeLine("# " + indent + line)
	}
}

// commentText returns a text without characters that a comment may not contain.
func commentText(s string) string {
	return strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return ' '
		}
		return r
	}, s)
}

// shownLine returns a line of the original for a comment.
func shownLine(source string) string {
	source = strings.TrimSpace(commentText(source))
	if r := []rune(source); len(r) > 160 {
		return string(r[:160]) + "…"
	}
	return source
}
