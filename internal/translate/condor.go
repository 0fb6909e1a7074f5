package translate

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/roost-batch/roost/internal/suggest"
)

// condorSubmitFile is the part of an HTCondor submit description read so far
// (condor_submit(1)). What is set applies to the queue commands below it.
type condorSubmitFile struct {
	*fileTranslation
	set         map[string]submitSetting // by name in lower case
	names       []string                 // the same names in order
	usedAsMacro map[string]bool          // names that were used as macros
	tasksBefore int                      // tasks of the queue commands above; -1: unknown
	queued      int                      // queue commands so far
}

type submitSetting struct {
	line        int
	source      string // the whole line
	name        string
	value       string
	isAttribute bool   // +Name: an attribute of the job ad
	file        string // an included file; empty: the description itself
}

// note is a note about the line of the setting.
func (s submitSetting) note(kind NoteKind, why string) Note {
	return Note{File: s.file, Line: s.line, Source: s.source, Reason: why, Kind: kind}
}

// translateCondor translates a submit description.
func (t *fileTranslation) translateCondor(text string) error {
	f := &condorSubmitFile{fileTranslation: t, set: map[string]submitSetting{}, usedAsMacro: map[string]bool{}}
	for _, m := range t.options.Macros {
		f.readGiven(m)
	}
	f.readDescription(text, 0)
	if f.queued == 0 && t.options.DefaultQueue != "" {
		line := 1 + strings.Count(strings.TrimSuffix(text, "\n"), "\n")
		f.readAppended()
		f.queueJob(line, "queue "+t.options.DefaultQueue, t.options.DefaultQueue, nil)
	}
	if len(t.jobs) == 0 {
		return nothingError("it has no queue command, so it submits no job")
	}
	f.noteUnused()
	return nil
}

// readGiven reads an assignment that is not in the description.
func (f *condorSubmitFile) readGiven(line string) {
	if strings.TrimSpace(line) == "" {
		return
	}
	m := assignment().FindStringSubmatch(strings.TrimSpace(line))
	if m == nil || m[3] != "=" {
		f.noteMistake(0, line, "This is no NAME = VALUE.")
		return
	}
	f.readAssignment(submitSetting{0, line, m[2], m[4], m[1] != "", ""})
}

// readAppended reads the lines in front of a queue command that the caller gives.
func (f *condorSubmitFile) readAppended() {
	for _, line := range f.options.Append {
		f.readGiven(line)
	}
}

// readAssignment sets a macro. In its value, its own name stands for the value before.
func (f *condorSubmitFile) readAssignment(s submitSetting) {
	key := strings.ToLower(s.name)
	if s.isAttribute {
		key = "+" + key
	}
	before, again := f.set[key]
	if !again {
		f.names = append(f.names, key)
	}
	if !s.isAttribute && strings.Contains(s.value, "$(") {
		s.value = replaceOwnName(s.value, key, before.value)
	}
	f.set[key] = s
}

// replaceOwnName replaces $(name) and $(name:default) in a value.
func replaceOwnName(value, name, before string) string {
	var b strings.Builder
	for {
		i := strings.Index(value, "$(")
		if i < 0 {
			return b.String() + value
		}
		end := closingParen(value, i+1)
		if end < 0 {
			return b.String() + value
		}
		inside, fallback, _ := strings.Cut(value[i+2:end], ":")
		if !strings.EqualFold(strings.TrimSpace(inside), name) || i > 0 && value[i-1] == '$' {
			b.WriteString(value[:i+2])
			value = value[i+2:]
			continue
		}
		b.WriteString(value[:i])
		if before != "" {
			b.WriteString(before)
		} else {
			b.WriteString(fallback)
		}
		value = value[end+1:]
	}
}

// commandValue returns the value of a command under any of its names.
func (f *condorSubmitFile) commandValue(names ...string) (submitSetting, bool) {
	for _, n := range names {
		if s, ok := f.set[n]; ok {
			f.usedAsMacro[n] = true
			if strings.TrimSpace(s.value) != "" {
				return s, true
			}
		}
	}
	return submitSetting{}, false
}

// noteUnused records the unknown commands, and the macros that nothing uses.
func (f *condorSubmitFile) noteUnused() {
	for _, key := range f.names {
		s := f.set[key]
		if f.usedAsMacro[key] {
			continue
		}
		if s.isAttribute {
			continue // it became a label
		}
		if why, ok := unsupportedCondorCommands()[key]; ok {
			if why != "" {
				f.addNote(s.note(Lost, why))
			}
			continue
		}
		if s.line == 0 {
			continue // it is given for many descriptions
		}
		why := "Nothing uses it."
		if near := suggest.Nearest(key, knownCondorCommands()); near != "" && near != key {
			why += " Did you mean " + near + "?"
		}
		f.addNote(s.note(Lost, why))
	}
}

// queueJob makes a job of the settings so far.
func (f *condorSubmitFile) queueJob(line int, source, rest string, items []string) {
	f.queued++
	at := submitSetting{line: line, source: source, file: f.included}
	rest = f.expandForReader(at, strings.TrimSpace(rest))
	carried, before := f.carried, f.tasksBefore
	q := f.buildJob(at, rest, items, f.options.SeparateItems || f.options.Nodes != nil)
	if q.rows.needsObject && !q.rows.isObject {
		f.carried, f.tasksBefore = carried, before
		f.jobs = f.jobs[:len(f.jobs)-1]
		q = f.buildJob(at, rest, items, true)
	}
	q.finishItems()
	f.carried++
}

// buildJob makes a job. What differs between its tasks are members of objects with
// isObject.
func (f *condorSubmitFile) buildJob(at submitSetting, rest string, items []string, isObject bool) *condorJob {
	q := &condorJob{condorSubmitFile: f, line: at.line, source: at.source, job: newJob(), jobsPerItem: 1, current: at,
		rows: newItemRows(isObject), expansionBudget: maxExpansion,
		random: f.options.Seed + uint64(f.queued)}
	q.rows.addNodes(f.options.Nodes)
	q.parseQueueCommand(rest, items)
	f.jobs = append(f.jobs, q.job)
	q.setName()
	q.setTasks()
	q.setProgram()
	q.setFiles()
	q.setResources()
	q.setPlacement()
	q.setPolicies()
	q.setLabels()
	return q
}

// setName names the job after its batch name or the file.
func (q *condorJob) setName() {
	name := q.baseName()
	if s, ok := q.commandValue("batch_name", "jobbatchname", "+jobbatchname"); ok {
		if fixed, ok := q.expandMacros(s.value).fixedText(); ok {
			name = strings.Trim(fixed, `"`)
		}
	}
	q.job.name = newJobName(name)
	for n := 2; slices.ContainsFunc(q.jobs[:len(q.jobs)-1], func(j *jobBlock) bool {
		return j.name == q.job.name
	}); n++ {
		q.job.name = newJobName(name) + "-" + strconv.Itoa(n)
	}
}

// noteCommandLost records a command that could not be carried over.
func (q *condorJob) noteCommandLost(s submitSetting, why string)    { q.addNote(s.note(Lost, why)) }
func (q *condorJob) noteCommandMistake(s submitSetting, why string) { q.addNote(s.note(Mistake, why)) }
func (q *condorJob) noteDifferenceAt(s submitSetting, why string)   { q.addNote(s.note(Different, why)) }
func (q *condorJob) noteCommandDifference(why string)               { q.noteDifferenceAt(q.current, why) }

// parseBool parses a boolean.
func parseBool(s string) bool {
	switch strings.ToLower(strings.TrimSpace(s)) {
	case "true", "yes", "t", "y", "1":
		return true
	}
	return false
}

func (q *condorJob) parseNumber(s submitSetting) (int, bool) {
	fixed, ok := q.expandMacros(s.value).fixedText()
	n, err := strconv.Atoi(strings.TrimSpace(fixed))
	if !ok || err != nil {
		if v, err := evaluateText(fixed); ok && err == nil {
			if f, isNumber := v.Number(); isNumber && f > -1e9 && f < 1e9 {
				return int(f), true
			}
		}
		if !q.needNodes(q.expandMacros(s.value)) {
			q.noteCommandLost(s, fmt.Sprintf("%s wants a number here, not an expression.", s.name))
		}
		return 0, false
	}
	return n, true
}
