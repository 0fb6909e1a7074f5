package translate

import (
	"fmt"
	"path"
	"strings"

	"github.com/roost-batch/roost/internal/lazyregexp"
)

// descriptionReader reads the lines of a submit description or of an included file. It
// skips those whose conditions do not hold.
type descriptionReader struct {
	*condorSubmitFile
	lines      []string
	next       int // index of the next line
	depth      int // number of files that include this one
	conditions []conditionBlock
}

// conditionBlock is an if that has not ended yet.
type conditionBlock struct {
	line        int
	source      string
	isReached   bool // the lines around it count
	holds       bool // the lines of its current part count
	wasTaken    bool // one of its parts had a condition that holds
	isElseGiven bool
}

// maxIncludes bounds how deep files include files.
const maxIncludes = 20

var (
	assignment = lazyregexp.New(`^(\+|(?i:my\.))?[ \t]*([A-Za-z_][A-Za-z0-9_.]*)[ \t]*(=|@=)[ \t]*((?s).*)$`)
	queueWord  = lazyregexp.New(`^(?i:queue)(?:[ \t]+(.*))?$`)
	statement  = lazyregexp.New(`^(?i:(if|elif|else|endif|include|use|error|warning))\b[ \t]*(.*)$`)
)

// readDescription reads the lines of one file.
func (f *condorSubmitFile) readDescription(text string, depth int) {
	r := &descriptionReader{condorSubmitFile: f, depth: depth,
		lines: strings.Split(strings.TrimSuffix(text, "\n"), "\n")}
	for r.next < len(r.lines) {
		r.readLine()
	}
	for _, c := range r.conditions {
		f.noteMistake(c.line, c.source, "This if has no endif. Write one behind the last line that depends on it.")
	}
}

// holds reports whether the lines here count.
func (r *descriptionReader) holds() bool {
	return len(r.conditions) == 0 || r.conditions[len(r.conditions)-1].holds
}

// readLine reads a line with those that continue it.
func (r *descriptionReader) readLine() {
	number, line := r.next+1, strings.TrimSpace(r.lines[r.next])
	r.next++
	for strings.HasSuffix(line, `\`) && line[0] != '#' && r.next < len(r.lines) {
		line = strings.TrimSuffix(line, `\`) + strings.TrimSpace(r.lines[r.next])
		r.next++
	}
	if line == "" || line[0] == '#' {
		return
	}
	if m := statement().FindStringSubmatch(line); m != nil && !assignment().MatchString(line) {
		r.readStatement(number, line, strings.ToLower(m[1]), strings.TrimSpace(m[2]))
		return
	}
	if m := queueWord().FindStringSubmatch(line); m != nil {
		rest, end := splitInlineItems(m[1], r.lines, r.next-1)
		items := r.lines[r.next:max(end, r.next)]
		r.next = end + 1
		if r.holds() {
			r.readAppended()
			r.queueJob(number, line, rest, items)
		}
		return
	}
	m := assignment().FindStringSubmatch(line)
	switch {
	case m == nil && r.holds():
		r.noteMistake(number, line, "This line is not understood. It is no NAME = VALUE and no queue.")
	case m == nil:
	case m[3] == "@=":
		value := r.readBlock(number, line, m[4])
		if r.holds() {
			r.readAssignment(submitSetting{number, line, m[2], value, m[1] != "", r.included})
		}
	case r.holds():
		r.readAssignment(submitSetting{number, line, m[2], m[4], m[1] != "", r.included})
	}
}

// readBlock reads the lines of a value up to @ and the word that ends it.
func (r *descriptionReader) readBlock(number int, source, end string) string {
	first := r.next
	for ; r.next < len(r.lines); r.next++ {
		if strings.TrimSpace(r.lines[r.next]) == "@"+end {
			r.next++
			return strings.Join(r.lines[first:r.next-1], "\n")
		}
	}
	r.noteMistake(number, source, "The value has no end: no line is @"+shownLine(end)+".")
	return ""
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

// readStatement reads a line that is no assignment.
func (r *descriptionReader) readStatement(number int, line, word, rest string) {
	at := submitSetting{line: number, source: line, file: r.included}
	switch word {
	case "if":
		c := conditionBlock{line: number, source: line, isReached: r.holds()}
		if c.isReached {
			c.holds = r.evaluateCondition(at, rest)
			c.wasTaken = c.holds
		}
		r.conditions = append(r.conditions, c)
	case "elif", "else", "endif":
		if len(r.conditions) == 0 {
			r.noteMistake(number, line, "There is no if above it.")
			return
		}
		c := &r.conditions[len(r.conditions)-1]
		switch {
		case word == "endif":
			r.conditions = r.conditions[:len(r.conditions)-1]
		case c.isElseGiven:
			r.noteMistake(number, line, "The if on line "+fmt.Sprint(c.line)+" has an else already.")
		case word == "else":
			c.isElseGiven = true
			c.holds = c.isReached && !c.wasTaken
		default:
			c.holds = c.isReached && !c.wasTaken && r.evaluateCondition(at, rest)
			c.wasTaken = c.wasTaken || c.holds
		}
	default:
		if r.holds() {
			r.readCommandLine(at, word, rest)
		}
	}
}

// readCommandLine reads include, use, error and warning.
func (r *descriptionReader) readCommandLine(at submitSetting, word, rest string) {
	before, value, ok := strings.Cut(rest, ":")
	if !ok {
		r.noteMistake(at.line, at.source, "There has to be a colon behind "+word+".")
		return
	}
	value = r.expandForReader(at, strings.TrimSpace(value))
	switch word {
	case "use":
		r.noteLost(at.line, at.source, "Templates of an administrator's configuration are not known. Write what it "+
			"sets into the description.")
	case "error":
		r.noteMistake(at.line, at.source, "The description refuses to be submitted: "+shownLine(value))
	case "warning":
		r.noteDifference(at.line, at.source, "The description warns: "+shownLine(value))
	default:
		r.include(at, strings.ToLower(strings.TrimSpace(before)), value)
	}
}

// include reads another file.
func (r *descriptionReader) include(at submitSetting, kind, name string) {
	lost := func(why string) { r.noteLost(at.line, at.source, why) }
	switch {
	case strings.HasPrefix(kind, "command") || strings.HasSuffix(name, "|"):
		lost("Commands are not run. Write what it prints into a file, and include that.")
		return
	case r.options.Files == nil:
		lost("Other files are not read here. What it sets belongs into the job; what several jobs share into locals.")
		return
	case r.depth >= maxIncludes:
		r.noteMistake(at.line, at.source, fmt.Sprintf("More than %d files include each other. Is there a circle?",
			maxIncludes))
		return
	case name == "":
		r.noteMistake(at.line, at.source, "It names no file.")
		return
	}
	full := r.absolutePath(name)
	if kind == "ifexist" {
		if _, err := r.options.Files.Stat(full); err != nil {
			return
		}
	}
	src, err := r.options.Files.Read(full, MaxSize)
	text := ""
	if err == nil {
		text, err = checkReadable(src)
	}
	if err != nil {
		r.noteMistake(at.line, at.source, fmt.Sprintf("%s cannot be read: %s.", shownLine(name), err))
		return
	}
	outer := r.included
	r.included = name
	r.readDescription(text, r.depth+1)
	r.included = outer
}

// absolutePath is a name as an absolute path.
func (t *fileTranslation) absolutePath(name string) string {
	switch {
	case strings.HasPrefix(name, "~/") && t.options.Home != "":
		return path.Join(t.options.Home, name[2:])
	case path.IsAbs(name):
		return path.Clean(name)
	}
	return path.Join("/", t.options.Dir, name)
}
