package condor

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/roost-batch/roost/internal/lazyregexp"
)

// SubmitCommandLine is what the command line of condor_submit adds to a submit
// description.
type SubmitCommandLine struct {
	Macros   []string // NAME=value: before the first line
	Appended []string // commands before the queue command
	Queue    string   // the arguments of -queue
	HasQueue bool     // -queue was given
}

// SubmitText is a submit description with what the command line adds, and how its lines
// came about.
type SubmitText struct {
	Text   string
	before int // lines ahead of the file's
	at     int // line of the file, from 1, ahead of which the appended ones are
	added  int // lines there
}

var (
	queueLine  = lazyregexp.New(`^[ \t]*(?i:queue)(?:[ \t]*$|[ \t(]+[^ \t=])`)
	lineOfNote = lazyregexp.New(`^line ([0-9]+): `)
	macroWord  = lazyregexp.New(`^(?:\+|(?i:my\.))?[A-Za-z_][A-Za-z0-9_.]*[ \t]*=`)
)

// IsMacro reports whether an operand of condor_submit is NAME=value.
func IsMacro(operand string) bool { return macroWord().MatchString(operand) }

// Join puts the command line and the file together, as condor_submit does. Macros come
// first, appended commands ahead of the first queue command, and -queue at the end.
func (l SubmitCommandLine) Join(src string) (SubmitText, error) {
	for _, text := range append(append([]string{l.Queue}, l.Macros...), l.Appended...) {
		if strings.ContainsAny(text, "\n\r\x00") {
			return SubmitText{}, fmt.Errorf("%s: a command has one line", strconv.Quote(text))
		}
	}
	for _, text := range l.Appended {
		if !IsMacro(text) {
			return SubmitText{}, fmt.Errorf("-append %s: it is no command NAME = value", strconv.Quote(text))
		}
	}
	src = strings.TrimSuffix(strings.ReplaceAll(src, "\r\n", "\n"), "\n")
	lines := strings.Split(src, "\n")
	at := firstQueueLine(lines)
	t := SubmitText{before: len(l.Macros), at: at, added: len(l.Appended)}
	out := append([]string{}, l.Macros...)
	switch {
	case l.HasQueue && at > 0:
		return t, fmt.Errorf("-queue: the submit description has a queue command in line %d: leave one of them out", at)
	case l.HasQueue:
		out = append(append(out, lines...), l.Appended...)
		out = append(out, strings.TrimSpace("queue "+l.Queue))
		t.at, t.added = len(lines)+1, len(l.Appended)+1
	case at > 0:
		out = append(append(append(out, lines[:at-1]...), l.Appended...), lines[at-1:]...)
	default:
		return t, fmt.Errorf("no 'queue' commands found in submit description file")
	}
	t.Text = strings.Join(out, "\n") + "\n"
	return t, nil
}

// firstQueueLine returns the line of the first queue command, from 1; 0: there is none.
func firstQueueLine(lines []string) int {
	continued := false
	for i, line := range lines {
		if !continued && queueLine().MatchString(line) {
			return i + 1
		}
		continued = strings.HasSuffix(line, `\`)
	}
	return 0
}

// Place replaces the line of the joined text at the beginning of a message by that of the
// file.
func (t SubmitText) Place(message string) string {
	m := lineOfNote().FindStringSubmatch(message)
	if m == nil {
		return message
	}
	n, err := strconv.Atoi(m[1])
	if err != nil {
		return message
	}
	rest := message[len(m[0]):]
	n -= t.before
	switch {
	case n <= 0 || n >= t.at && n < t.at+t.added:
		return "command line: " + rest
	case n >= t.at:
		n -= t.added
	}
	return fmt.Sprintf("line %d: %s", n, rest)
}

// Notes returns the messages in the comments ahead of a translated job file. They tell
// what was not carried over, and what is different.
func Notes(jobFile string) (notes []string) {
	reason := false // the last note has some of its reason
	for _, line := range strings.Split(jobFile, "\n") {
		if !strings.HasPrefix(line, "#") {
			break
		}
		text, isNote := strings.CutPrefix(line, "#   ")
		if !isNote {
			continue
		}
		if more, continues := strings.CutPrefix(text, "    "); continues && len(notes) > 0 {
			sep := " "
			if !reason {
				sep = ": "
			}
			notes[len(notes)-1] += sep + strings.TrimSpace(more)
			reason = true
			continue
		}
		reason = false
		notes = append(notes, strings.TrimSpace(text))
	}
	return notes
}
