package translate

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/roost-batch/roost/internal/spell"
)

// submitFile is a submit description of HTCondor as far as it has been read (condor_submit(1)): what is set holds for the queue
// commands below it.
type submitFile struct {
	*translation
	set    map[string]setting // by name in small letters
	names  []string           // the same in order
	used   map[string]bool    // as macros
	before int                // tasks of the queue commands above; -1 where that is not known
}

type setting struct {
	line   int
	source string // the whole line
	name   string
	value  string
	attr   bool // +Name: an attribute of the job's ad
}

var (
	assignment = regexp.MustCompile(`^(\+|(?i:my\.))?[ \t]*([A-Za-z_][A-Za-z0-9_.]*)[ \t]*=[ \t]*(.*)$`)
	queueWord  = regexp.MustCompile(`^(?i:queue)(?:[ \t]+(.*))?$`)
	statement  = regexp.MustCompile(`^(?i:(if|elif|else|endif|include|use))\b`)
)

// condor translates a submit description.
func (t *translation) condor(text string) error {
	f := &submitFile{translation: t, set: map[string]setting{}, used: map[string]bool{}}
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
		if m := statement.FindStringSubmatch(line); m != nil && !assignment.MatchString(line) {
			switch strings.ToLower(m[1]) {
			case "if":
				depth++
				f.lost(number, line, "Conditions are not evaluated: everything up to the endif is left out. Variables of a job file and c ? a : b do such things.")
			case "endif":
				depth = max(depth-1, 0)
			case "include", "use":
				f.lost(number, line, "Other files are not read. What they set belongs into the job; what several jobs share into locals.")
			}
			continue
		}
		if depth > 0 {
			continue
		}
		if m := queueWord.FindStringSubmatch(line); m != nil {
			rest, end := inlineItems(m[1], lines, i)
			f.queue(number, line, rest, lines[i+1:max(end, i+1)])
			i = end
			continue
		}
		m := assignment.FindStringSubmatch(line)
		if m == nil {
			f.lost(number, line, "This line is not understood.")
			continue
		}
		f.assign(setting{number, line, m[2], m[3], m[1] != ""})
	}
	if len(t.jobs) == 0 {
		return nothing("it has no queue command, so it submits no job")
	}
	f.leftOver()
	return nil
}

// inlineItems finds the lines of a queue command that has its items in parentheses over several lines; end is the index of the line
// with the closing one, or i where there are no such lines.
func inlineItems(rest string, lines []string, i int) (string, int) {
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

func (f *submitFile) assign(s setting) {
	key := strings.ToLower(s.name)
	if s.attr {
		key = "+" + key
	}
	if _, again := f.set[key]; !again {
		f.names = append(f.names, key)
	}
	f.set[key] = s
}

// value returns what a command was set to, under any of its names.
func (f *submitFile) value(names ...string) (setting, bool) {
	for _, n := range names {
		if s, ok := f.set[n]; ok {
			f.used[n] = true
			if strings.TrimSpace(s.value) != "" {
				return s, true
			}
		}
	}
	return setting{}, false
}

// leftOver notes what nobody asked for: commands that are not known, and macros that nothing uses.
func (f *submitFile) leftOver() {
	for _, key := range f.names {
		s := f.set[key]
		if f.used[key] {
			continue
		}
		if s.attr {
			continue // became a label
		}
		if why, ok := condorOthers()[key]; ok {
			if why != "" {
				f.lost(s.line, s.source, why)
			}
			continue
		}
		why := "Nothing uses it."
		if near := spell.Nearest(key, condorNames()); near != "" && near != key {
			why += " Did you mean " + near + "?"
		}
		f.lost(s.line, s.source, why)
	}
}

// queue makes a job of what has been set so far.
func (f *submitFile) queue(line int, source, rest string, items []string) {
	q := &queued{submitFile: f, line: line, source: source, j: newJob(), n: 1}
	q.parse(strings.TrimSpace(rest), items)
	f.jobs = append(f.jobs, q.j)
	q.name()
	q.tasks()
	q.program()
	q.files()
	q.amounts()
	q.placement()
	q.policy()
	q.attributes()
	f.carried++
}

// name calls the job by its batch name, or by the name of the file.
func (q *queued) name() {
	name := q.fileName()
	if s, ok := q.value("batch_name", "jobbatchname", "+jobbatchname"); ok {
		if fixed, ok := q.expand(s.value).fixed(); ok {
			name = strings.Trim(fixed, `"`)
		}
	}
	q.j.name = jobName(name)
	for n := 2; slices.ContainsFunc(q.jobs[:len(q.jobs)-1], func(j *job) bool { return j.name == q.j.name }); n++ {
		q.j.name = jobName(name) + "-" + strconv.Itoa(n)
	}
}

// note and remark speak of one command.
func (q *queued) refuse(s setting, why string)   { q.lost(s.line, s.source, why) }
func (q *queued) remarkOn(s setting, why string) { q.differs(s.line, s.source, why) }

func (q *queued) remark(why string) { q.differs(q.at.line, q.at.source, why) }

// yes reads a truth.
func yes(s string) bool {
	switch strings.ToLower(strings.TrimSpace(s)) {
	case "true", "yes", "t", "y", "1":
		return true
	}
	return false
}

func (q *queued) number(s setting) (int, bool) {
	fixed, ok := q.expand(s.value).fixed()
	n, err := strconv.Atoi(strings.TrimSpace(fixed))
	if !ok || err != nil {
		q.refuse(s, fmt.Sprintf("%s wants a number here, not an expression.", s.name))
		return 0, false
	}
	return n, true
}
