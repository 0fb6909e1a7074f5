package translate

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/roost-batch/roost/internal/submit"
	"github.com/roost-batch/roost/internal/submit/jobspec"
)

// verify writes the job file and parses it. What the parser refuses becomes a note,
// repeatedly until nothing is refused. So values are validated in one place only, where
// they are used.
func (t *fileTranslation) verify() (TranslatedFile, error) {
	jobs, environ := t.jobs, t.testEnvironment()
	for range 40 * len(jobs) {
		out, where := t.writeFile(true)
		_, diags := submit.ParseFile([]byte(out), submit.ParseOptions{Filename: "job.hcl", Dir: "/", Home: "/",
			User: "user", Environ: environ, Now: time.Unix(0, 0).UTC(), Items: t.firstItems(),
			Variables: t.nodeVariables(2)})
		if !diags.HasErrors() {
			out, where = t.writeFile(false)
			return t.newResult(out, where), nil
		}
		removed := false
		for _, d := range diags {
			if d.Subject != nil {
				removed = t.withdrawSetting(where, d.Subject.Start.Line, d.Summary+". "+d.Detail) || removed
			}
		}
		if !removed {
			return TranslatedFile{}, fmt.Errorf("the translation cannot be read: %s",
				strings.ReplaceAll(diags.Error(), "\n", " "))
		}
	}
	return TranslatedFile{}, nothingError("none of it means anything in a job file")
}

// withdrawSetting removes the setting at a line, and records it.
func (t *fileTranslation) withdrawSetting(where []map[string][2]int, line int, why string) bool {
	for i, lines := range where {
		for _, name := range settingNames() {
			at, ok := lines[name]
			if !ok || line < at[0] || line > at[1] || name == "script" {
				continue
			}
			j := t.jobs[i]
			value := j.settings[name]
			if value == "" && len(j.maps[name]) == 0 && len(j.checkpoint) == 0 && len(j.overrides) == 0 {
				return false
			}
			delete(j.settings, name)
			delete(j.maps, name)
			switch name {
			case "checkpoint":
				j.checkpoint = nil
			case "override":
				j.overrides = nil
			case "image", "executable":
				if j.settings["executable"] == "" && j.settings["image"] == "" && value != `"/bin/true"` {
					j.settings["executable"] = `"/bin/true"`
				}
			}
			n := j.origins[name]
			if n.Line == 0 {
				n.Source = strings.TrimSpace(name + " = " + value)
			}
			n.Reason, n.Kind = "A job file does not take this: "+why, Mistake
			t.addNote(n)
			return true
		}
	}
	return false
}

func settingNames() []string {
	names := []string{"checkpoint", "override"}
	for _, g := range settingGroups {
		names = append(names, g...)
	}
	return names
}

func (t *fileTranslation) newResult(out string, where []map[string][2]int) TranslatedFile {
	r := TranslatedFile{Text: out, From: t.from, Jobs: len(t.jobs), CarriedOver: t.carried, Notes: t.notes}
	for _, n := range t.notes {
		if n.Kind == Different {
			r.Different++
		} else {
			r.Lost++
		}
	}
	for i, j := range t.jobs {
		for name, lines := range where[i] {
			if o := j.origins[name]; o.Line > 0 {
				r.origins = append(r.origins, lineOrigin{lines[0], lines[1], o})
			}
		}
		if j.items != nil {
			if r.Items == nil {
				r.Items = map[string]*jobspec.ItemTable{}
			}
			r.Items[j.name] = j.items
		}
	}
	return r
}

// nodeVariables are the variables of a script of another system, with the first rows.
func (t *fileTranslation) nodeVariables(rows int) *jobspec.ItemTable {
	if t.options.Nodes == nil || t.from == Condor {
		return nil
	}
	return t.options.Nodes.Slice(0, min(rows, t.options.Nodes.Rows))
}

// firstItems are the first rows of the items of all jobs, which are enough for verify.
func (t *fileTranslation) firstItems() map[string]*jobspec.ItemTable {
	var all map[string]*jobspec.ItemTable
	for _, j := range t.jobs {
		if j.items == nil {
			continue
		}
		if all == nil {
			all = map[string]*jobspec.ItemTable{}
		}
		jobs := j.items.Jobs
		size := j.items.Rows / max(1, jobs)
		all[j.name] = j.items.Slice(0, min(2, j.items.Rows))
		if jobs > 0 {
			all[j.name] = j.items.Slice(0, size)
			all[j.name].Jobs = 1
		}
	}
	return all
}

// writeFile writes the whole file, and returns where the settings of each job are in it.
// With small, the jobs have a few tasks, for verify.
func (t *fileTranslation) writeFile(small bool) (string, []map[string][2]int) {
	w := &lineWriter{line: 1}
	what := "a script"
	if t.from == Condor {
		what = "a submit description"
	}
	if t.file != "" && t.file != "-" {
		what = shownLine(t.file)
	}
	w.writeComment("", "Made of "+what+", which was written for "+t.from.displayName()+
		", by roost translate; see roost-job(5) and roost-coming-from(7).")
	t.writeNotes(w, true, "Not carried over:")
	t.writeNotes(w, false, "Different here:")
	t.writeVariables(w)
	if v := t.nodeVariables(0); v != nil {
		w.writeLine("")
		for _, name := range v.Names {
			w.writeLine("variable " + quotedText(name) + " {}")
		}
	}
	where := make([]map[string][2]int, len(t.jobs))
	for i, j := range t.jobs {
		w.writeLine("")
		out, lines := j.writeBlock(w.line-1, small)
		w.buffer.WriteString(out)
		w.line += strings.Count(out, "\n")
		where[i] = lines
	}
	return w.buffer.String(), where
}

// writeNotes writes the notes of one kind, each line once. The order is that of the
// lines, with those about the whole file last.
func (t *fileTranslation) writeNotes(w *lineWriter, lost bool, title string) {
	var some []Note
	for _, n := range t.notes {
		if (n.Kind != Different) == lost {
			some = append(some, n)
		}
	}
	if len(some) == 0 {
		return
	}
	slices.SortStableFunc(some, func(a, b Note) int {
		if (a.Line == 0) != (b.Line == 0) {
			return b.Line - a.Line
		}
		return cmp.Or(strings.Compare(a.File, b.File), a.Line-b.Line)
	})
	w.writeLine("#")
	w.writeLine("# " + title)
	before := ""
	for _, n := range some {
		head := shownLine(n.Source)
		if n.Line > 0 {
			head = fmt.Sprintf("line %d: %s", n.Line, head)
			if n.File != "" {
				head = shownLine(n.File) + ", " + head
			}
		}
		if head != "" && head != before {
			w.writeLine("#   " + head)
		}
		before = head
		w.writeComment("      ", n.Reason)
	}
}

func (t *fileTranslation) writeVariables(w *lineWriter) {
	var all []foreignVariable
	width := 0
	for _, j := range t.jobs {
		for _, v := range j.variables {
			all = append(all, v)
			width = max(width, len(v.name))
		}
	}
	if len(all) == 0 {
		return
	}
	w.writeLine("#")
	w.writeLine("# Variables of " + t.from.displayName() + " that it reads, and what they are here:")
	for _, v := range all {
		w.writeLine(fmt.Sprintf("#   %-*s  %s", width, v.name, v.meaning))
	}
}

// testEnvironment sets every variable that getenv names, because the submitter's
// environment is not known.
func (t *fileTranslation) testEnvironment() []string {
	var out []string
	for _, j := range t.jobs {
		for _, name := range strings.FieldsFunc(j.settings["getenv"], func(r rune) bool {
			return strings.ContainsRune(`[]", `, r)
		}) {
			out = append(out, name+"=x")
		}
	}
	return out
}
