package translate

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/classad"
	"github.com/roost-batch/roost/internal/submit/jobspec"
)

// QueuedJob is a job as its schedd has it.
type QueuedJob struct {
	Ad      *classad.Ad
	Count   int
	Columns []jobspec.TaskColumn
	Array   bool
	Depends []string // what is left of its dependencies, as "afterok:12.host"
}

// JobFile is the job file of a queued job.
type JobFile struct {
	Text  string
	Notes []string // what the job has and the file has not
}

// Bounds of a job file that is written of a queued job.
const (
	maxFileRows  = 50_000
	maxOverrides = 500
)

// WriteJob writes a job file that makes the same job again. What a job file cannot say
// becomes a note. Variables of the environment whose names are those of secrets are left
// out, and so are values of secrets, which no ad has.
func WriteJob(q QueuedJob) (JobFile, error) {
	w := &adWriter{ad: q.Ad, count: max(1, q.Count), job: newJob(), values: map[string][]string{},
		isWritten: map[string]bool{}}
	w.given, _ = q.Ad.Strings(roost.AttrQueueDefaults)
	for _, c := range q.Columns {
		w.values[c.Name] = c.Values
	}
	if err := w.refuseUnwritable(); err != nil {
		return JobFile{}, err
	}
	w.writeHead(q)
	w.writeProgram()
	w.writeFiles()
	w.writeResources()
	w.writeSettings()
	w.writeConditions()
	w.writeBlocks()
	w.writeOverrides()
	w.writeDependencies(q.Depends)
	if w.isIncomplete {
		return JobFile{}, fmt.Errorf("%w: the tasks have values of their own that are too long for a form: submit the "+
			"job file again", roost.Exhausted)
	}
	head := w.writeRows()
	w.noteRest()
	body, _ := w.job.writeBlock(0, false)
	file := JobFile{Notes: w.notes}
	file.Text = head + body
	return file, nil
}

// adWriter makes a job block of an ad.
type adWriter struct {
	ad        *classad.Ad
	count     int
	job       *jobBlock
	values    map[string][]string // of columns, by name
	used      []string            // columns that texts refer to
	isIndexed bool                // the tasks have indexes of the user, so there is no for_each
	isService bool                // or an alloc set: its defaults are those of the queue
	isWritten map[string]bool     // attributes that the block has, by name
	given     []string            // attributes that the job has of its queue
	notes     []string
	// texts refer to columns that the schedd has not sent
	isIncomplete bool
}

func (w *adWriter) note(format string, args ...any) {
	if text := fmt.Sprintf(format, args...); !slices.Contains(w.notes, text) {
		w.notes = append(w.notes, text)
	}
}

// has reports whether the ad has an attribute that is to be written, and marks it.
func (w *adWriter) has(attr string) bool {
	w.isWritten[attr] = true
	_, ok := w.ad.Lookup(attr)
	return ok && !slices.Contains(w.given, attr)
}

func (w *adWriter) text(attr string) (string, bool) {
	s, ok := w.ad.Str(attr)
	return s, w.has(attr) && ok
}

func (w *adWriter) list(attr string) ([]string, bool) {
	list, ok := w.ad.Strings(attr)
	return list, w.has(attr) && ok
}

func (w *adWriter) number(attr string) (int64, bool) {
	n, ok := w.ad.Int(attr)
	return n, w.has(attr) && ok
}

func (w *adWriter) truth(attr string) (value, ok bool) {
	value, ok = w.ad.Bool(attr)
	return value, w.has(attr) && ok
}

// refuseUnwritable returns why no job file can make a job.
func (w *adWriter) refuseUnwritable() error {
	switch {
	case w.hasAny(roost.AttrScriptFile):
		return fmt.Errorf("%w: the script of this job is a file at its schedd, and is not in its definition: submit "+
			"the script again", roost.Conflict)
	case w.hasAny(roost.AttrIsFlow):
		return fmt.Errorf("%w: this is a flow, and its file has many jobs: submit the file again", roost.Conflict)
	case w.hasAny(roost.AttrInteractive):
		return fmt.Errorf("%w: this job runs on its submitter's terminal", roost.Conflict)
	case w.count > maxFileRows && len(w.values) > 0:
		return fmt.Errorf("%w: %d tasks have values of their own, and a form can have %d: submit the job file again",
			roost.Exhausted, w.count, maxFileRows)
	}
	return nil
}

func (w *adWriter) hasAny(attr string) bool {
	_, ok := w.ad.Lookup(attr)
	return ok
}

// writeHead writes the name and the tasks of the job.
func (w *adWriter) writeHead(q QueuedJob) {
	name := w.fixed(w.stringOf(roost.AttrJobName))
	if w.job.name = newJobName(name); w.job.name != name {
		w.note("The name %q is none for a job file, and has become %q.", name, w.job.name)
	}
	isAlloc, _ := w.truth(roost.AttrAlloc)
	if isAlloc {
		w.job.kind = "alloc"
	}
	w.isService = isAlloc || w.hasAny(roost.AttrService)
	indexes, isIndexed := w.text(roost.AttrArrayIndex)
	w.isIndexed = isIndexed
	size, _ := w.number(roost.AttrGangSize)
	led, _ := w.truth(roost.AttrMPIGang)
	if size > 1 {
		w.job.setSource("gang", strconv.FormatInt(size, 10))
		if size == int64(w.count) {
			w.job.setSource("gang", "true")
		}
	}
	if led {
		w.job.setSource("led", "true")
	}
	switch {
	case isIndexed:
		w.job.setText("indexes", indexes)
	case w.count > 1 || q.Array || isAlloc:
		w.job.setInt("count", w.count)
	}
}

func (w *adWriter) stringOf(attr string) string {
	s, _ := w.text(attr)
	return s
}

// template takes the text of an attribute apart: $(Name) stands for something, and $$ is
// a dollar sign.
func (w *adWriter) template(s string) (t templateText) {
	for s != "" {
		i := strings.IndexByte(s, '$')
		if i < 0 || i+1 == len(s) {
			return t.appendFixed(s)
		}
		t = t.appendFixed(s[:i])
		end := strings.IndexByte(s[i:], ')')
		switch {
		case s[i+1] == '$':
			t, s = t.appendFixed("$"), s[i+2:]
		case s[i+1] == '(' && end > 0:
			t, s = w.appendReference(t, s[i+2:i+end]), s[i+end+1:]
		default:
			t, s = t.appendFixed("$"), s[i+1:]
		}
	}
	return t
}

// appendReference appends what $(name) stands for.
func (w *adWriter) appendReference(t templateText, name string) templateText {
	values, isColumn := w.values[name]
	switch {
	case isColumn && isUniform(values):
		return t.appendFixed(values[0])
	case isColumn:
		if !slices.Contains(w.used, name) {
			w.used = append(w.used, name)
		}
		return append(t, templatePiece{expr: columnMark + name})
	case name == "TaskIndex":
		return append(t, templatePiece{expr: "task.index"})
	case name == "ArrayIndex":
		return append(t, templatePiece{expr: "each.value"})
	case name == "JobSeq":
		return append(t, templatePiece{expr: "task.job"})
	case strings.HasPrefix(name, "port."):
		return append(t, templatePiece{expr: name})
	}
	if !slices.Contains(machineWords, name) {
		w.isIncomplete = true
	}
	w.note("A job file has nothing for $(%s), which was left out.", name)
	return t
}

// machineWords are what an ad can have beside columns and a job file cannot.
var machineWords = []string{"JobId", "JobHost", "NodeName", "ArrayDigit", "Attempt"}

func isUniform(values []string) bool {
	return len(values) == 0 || !slices.ContainsFunc(values, func(v string) bool { return v != values[0] })
}

// columnMark begins an expression that stands for a column until it is known how the rows
// are written.
const columnMark = "\x00column "

// source returns the source of the text of an attribute.
func (w *adWriter) source(s string) string {
	t := w.template(s)
	if len(t) == 0 {
		return `""`
	}
	return t.hclSource()
}

// fixed returns a text that is equal for all tasks without its escapes.
func (w *adWriter) fixed(s string) string {
	text, _ := w.template(s).fixedText()
	return text
}

// writeDependencies writes what the job still waits for.
func (w *adWriter) writeDependencies(left []string) {
	w.isWritten[roost.AttrDependsOn] = true
	if len(left) > 0 {
		w.job.setSource("depends_on", textListSource(left))
	}
}

// writeRows writes what differs between the tasks, and returns what is ahead of the
// block. It puts the references to the rows into the block.
func (w *adWriter) writeRows() (head string) {
	if len(w.used) == 0 {
		return ""
	}
	prefix, each := "each.value.", "for_each"
	if w.isIndexed {
		prefix, each = "local.rows[task.index].", ""
	}
	one := len(w.used) == 1 && !w.isIndexed
	lines := make([]string, w.count)
	for i := range lines {
		if one {
			lines[i] = quotedText(w.values[w.used[0]][i])
			continue
		}
		fields := make([]string, len(w.used))
		for c, name := range w.used {
			fields[c] = mapKey(name) + " = " + quotedText(w.values[name][i])
		}
		lines[i] = "{ " + strings.Join(fields, ", ") + " }"
	}
	for _, name := range w.used {
		with := prefix + name
		if one {
			with = "each.value"
		}
		w.job.replaceExpression(columnMark+name, with)
	}
	list := "[\n    " + strings.Join(lines, ",\n    ") + ",\n  ]"
	if each == "" {
		return "locals {\n  rows = " + list + "\n}\n\n"
	}
	delete(w.job.settings, "count")
	w.job.setSource(each, list)
	return ""
}

// replaceExpression replaces an expression in all texts of the block. It begins with a
// character that no text has unescaped.
func (j *jobBlock) replaceExpression(mark, with string) {
	old, replaced := "${"+mark+"}", "${"+with+"}"
	for name, source := range j.settings {
		j.settings[name] = strings.ReplaceAll(source, old, replaced)
	}
	for _, list := range j.maps {
		for i := range list {
			list[i].value = strings.ReplaceAll(list[i].value, old, replaced)
		}
	}
}

// unwritten are the attributes that a schedd sets, or that only say how the job came.
var unwritten = []string{
	roost.AttrMyType, roost.AttrJobID, roost.AttrOwner, roost.AttrOwnerUID, roost.AttrOwnerGID, roost.AttrQDate,
	roost.AttrSubmitKey, roost.AttrSubmitHost, roost.AttrSubmitVersion, roost.AttrAlterations, roost.AttrTaskCount,
	"Array", roost.AttrFileSystemDomain, roost.AttrQueueDefaults, roost.AttrQueueRequires, roost.AttrContainerDigest,
	roost.AttrContainerSize, roost.AttrContainerEnvironment, roost.AttrContainerEntrypoint,
	roost.AttrContainerCommand, roost.AttrContainerUser, roost.AttrContainerVersion, roost.AttrPackageDigests,
	roost.AttrPackageVersions, roost.AttrPackageSizes, roost.AttrStoredInput, roost.AttrSubmitArguments,
	roost.AttrScheduledAt, roost.AttrScheduledBy, roost.AttrDependsOn,
}

// noteRest notes the attributes that the block has not.
func (w *adWriter) noteRest() {
	var rest []string
	for name := range w.ad.All() {
		if !w.isWritten[name] && !slices.Contains(unwritten, name) && !slices.Contains(w.given, name) {
			rest = append(rest, name)
		}
	}
	slices.SortFunc(rest, cmp.Compare[string])
	for _, name := range rest {
		switch name {
		case roost.AttrPBS, roost.AttrSlurm:
			w.note("The job was submitted with the words of another batch system, which its commands would show.")
		default:
			w.note("A job file has nothing for the attribute %s.", name)
		}
	}
}
