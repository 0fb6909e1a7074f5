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

var (
	queueLine = lazyregexp.New(`^[ \t]*(?i:queue)(?:[ \t]*$|[ \t(]+[^ \t=])`)
	macroWord = lazyregexp.New(`^(?:\+|(?i:my\.))?[A-Za-z_][A-Za-z0-9_.]*[ \t]*=`)
)

// IsMacro reports whether an operand of condor_submit is NAME=value.
func IsMacro(operand string) bool { return macroWord().MatchString(operand) }

// Check reports why the command line and the file do not go together.
func (l SubmitCommandLine) Check(src string) error {
	for _, text := range append(append([]string{l.Queue}, l.Macros...), l.Appended...) {
		if strings.ContainsAny(text, "\n\r\x00") {
			return fmt.Errorf("%s: a command has one line", strconv.Quote(text))
		}
	}
	for _, text := range l.Appended {
		if !IsMacro(text) {
			return fmt.Errorf("-append %s: it is no command NAME = value", strconv.Quote(text))
		}
	}
	at := firstQueueLine(strings.Split(strings.ReplaceAll(src, "\r\n", "\n"), "\n"))
	switch {
	case l.HasQueue && at > 0:
		return fmt.Errorf("-queue: the submit description has a queue command in line %d: leave one of them out", at)
	case !l.HasQueue && at == 0:
		return fmt.Errorf("no 'queue' commands found in submit description file")
	}
	return nil
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
