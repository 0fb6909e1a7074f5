package translate

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/roost-batch/roost/internal/lazyregexp"
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
}

type submitSetting struct {
	line        int
	source      string // the whole line
	name        string
	value       string
	isAttribute bool // +Name: an attribute of the job ad
}

var (
	assignment = lazyregexp.New(`^(\+|(?i:my\.))?[ \t]*([A-Za-z_][A-Za-z0-9_.]*)[ \t]*=[ \t]*(.*)$`)
	queueWord  = lazyregexp.New(`^(?i:queue)(?:[ \t]+(.*))?$`)
	statement  = lazyregexp.New(`^(?i:(if|elif|else|endif|include|use))\b`)
)

// translateCondor translates a submit description.
func (t *fileTranslation) translateCondor(text string) error {
	f := &condorSubmitFile{fileTranslation: t, set: map[string]submitSetting{}, usedAsMacro: map[string]bool{}}
	lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	depth := 0
	for i := 0; i < len(lines); i++ {
		number, line := i+1, strings.TrimSpace(lines[i])
		for strings.HasSuffix(line, `\`) && i+1 < len(lines) {
			i++
			line = strings.TrimSuffix(line, `\`) + strings.TrimSpace(lines[i])
		}
		if line == "" || line[0] == '#' {
			continue
		}
		if m := statement().FindStringSubmatch(line); m != nil && !assignment().MatchString(line) {
			switch strings.ToLower(m[1]) {
			case "if":
				depth++
				f.noteLost(number, line, "Conditions are not evaluated: everything up to the endif is left out. "+
					"Variables of a job file and c ? a : b do such things.")
			case "endif":
				depth = max(depth-1, 0)
			case "include", "use":
				f.noteLost(number, line, "Other files are not read. What they set belongs into the job; what several "+
					"jobs share into locals.")
			}
			continue
		}
		if depth > 0 {
			continue
		}
		if m := queueWord().FindStringSubmatch(line); m != nil {
			rest, end := splitInlineItems(m[1], lines, i)
			f.queueJob(number, line, rest, lines[i+1:max(end, i+1)])
			i = end
			continue
		}
		m := assignment().FindStringSubmatch(line)
		if m == nil {
			f.noteLost(number, line, "This line is not understood.")
			continue
		}
		f.readAssignment(submitSetting{number, line, m[2], m[3], m[1] != ""})
	}
	if len(t.jobs) == 0 {
		return nothingError("it has no queue command, so it submits no job")
	}
	f.noteUnused()
	return nil
}

// splitInlineItems finds the items of a queue command that are in parentheses over
// several lines. end is the index of the line with the closing one, or i if there are no
// such lines.
func splitInlineItems(rest string, lines []string, i int) (string, int) {
	open := strings.LastIndexByte(rest, '(')
	if open < 0 || strings.Contains(rest[open:], ")") {
		return rest, i
	}
	for k := i + 1; k < len(lines); k++ {
		if strings.HasPrefix(strings.TrimSpace(lines[k]), ")") {
			return rest, k
		}
	}
	return rest, i
}

func (f *condorSubmitFile) readAssignment(s submitSetting) {
	key := strings.ToLower(s.name)
	if s.isAttribute {
		key = "+" + key
	}
	if _, again := f.set[key]; !again {
		f.names = append(f.names, key)
	}
	f.set[key] = s
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
			continue // became a label
		}
		if why, ok := unsupportedCondorCommands()[key]; ok {
			if why != "" {
				f.noteLost(s.line, s.source, why)
			}
			continue
		}
		why := "Nothing uses it."
		if near := suggest.Nearest(key, knownCondorCommands()); near != "" && near != key {
			why += " Did you mean " + near + "?"
		}
		f.noteLost(s.line, s.source, why)
	}
}

// queueJob makes a job of the settings so far.
func (f *condorSubmitFile) queueJob(line int, source, rest string, items []string) {
	q := &condorJob{condorSubmitFile: f, line: line, source: source, job: newJob(), jobsPerItem: 1}
	q.parseQueueCommand(strings.TrimSpace(rest), items)
	f.jobs = append(f.jobs, q.job)
	q.setName()
	q.setTasks()
	q.setProgram()
	q.setFiles()
	q.setResources()
	q.setPlacement()
	q.setPolicies()
	q.setLabels()
	f.carried++
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
func (q *condorJob) noteCommandLost(s submitSetting, why string) { q.noteLost(s.line, s.source, why) }
func (q *condorJob) noteDifferenceAt(s submitSetting, why string) {
	q.noteDifference(s.line, s.source, why)
}

func (q *condorJob) noteCommandDifference(why string) {
	q.noteDifference(q.current.line, q.current.source, why)
}

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
		q.noteCommandLost(s, fmt.Sprintf("%s wants a number here, not an expression.", s.name))
		return 0, false
	}
	return n, true
}
