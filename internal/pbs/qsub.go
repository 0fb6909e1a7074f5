package pbs

import (
	"errors"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/submit"
)

// Caller is who runs qsub and how the outside world is reached.
type Caller struct {
	Dir     string // absolute working directory
	Home    string
	User    string
	Group   string // the name of the user's own group
	Host    string // where qsub runs, and the host part of the ids that the schedd there gives
	Server  string // the node in whose queue jobs go unless -q names one; empty: Host
	Environ []string
	Now     time.Time                            // its location is the user's time zone
	Read    func(path string) ([]byte, error)    // reads a script of at most MaxScript bytes; the path is absolute. Its error is roost.Exhausted if there is more
	Stdin   func() ([]byte, error)               // reads the script from standard input, likewise
	IsDir   func(path string) bool               // whether an absolute path is a directory
	Look    func(program string) (string, error) // finds a program along PATH
	Pool    *Inventory                           // nil: the pool cannot be asked
	Dialect func() roost.Dialect                 // that the user speaks; it is asked only where it matters. Nil: OpenPBS
}

// torque reports whether what the user says is meant as Torque has it, where that differs.
func (c *Caller) torque() bool { return c.Dialect != nil && c.Dialect() == roost.Torque }

// Result is what qsub is to do.
type Result struct {
	Job   submit.Job
	Queue string // "", or the destination of -q

	Server string // "", or the node behind the @ of -q
	Quiet  bool   // -z: do not print the id
	Block  bool   // -W block=true: wait, and exit with the job's exit status

	Interactive bool     // -I: the job runs on the terminal
	Warnings    []string // for stderr
}

// MaxScript is how many bytes a script may have (OpenPBS, jobscript_max_size).
const MaxScript = 100 << 20

// ParseQsub reads the arguments of qsub (without its name) and the script that they name. Its errors are of type *Error.
func ParseQsub(args []string, caller Caller) (Result, error) {
	line, operands, command, err := split(args, true)
	if err != nil {
		return Result{}, err
	}
	if len(operands) > 1 || command != nil && (len(operands) > 0 || len(command) == 0) {
		return Result{}, usageError()
	}
	s := &submission{caller: caller, name: standardName, command: command, wanted: map[string]string{}, attributes: map[string]string{}}
	if command == nil && (!asksInteractive(line) || len(operands) > 0 && operands[0] != "-") {
		if err := s.readScript(operands, line); err != nil {
			return Result{}, err
		}
	}
	if err := s.apply(line); err != nil {
		return Result{}, err
	}
	result, err := s.result()
	if err == nil && len(args) > 0 && !slices.ContainsFunc(args, func(a string) bool { return strings.IndexByte(a, 0) >= 0 }) {
		result.Job.Ad.SetStrings(roost.AttrSubmitArguments, args)
	}
	return result, err
}

// standardName is the name of a job whose script has none.
const standardName = "STDIN"

// readScript reads the script, and applies its directives; those of the command line come after and win.
func (s *submission) readScript(operands []string, line []option) error {
	text, err := s.scriptText(operands)
	if err != nil {
		return err
	}
	script, directives, err := directivesOf(string(text), prefixOf(line, s.caller.Environ))
	if err != nil {
		return err
	}
	s.script = script
	for _, d := range directives {
		words, ok := Words(d)
		if !ok || len(words) > maxWords {
			return refuse("directive error: "+d, exitScript)
		}
		options, operands, command, err := split(words, false)
		if err != nil || len(operands) > 0 || command != nil {
			return refuse("directive error: "+d, exitScript)
		}
		if err := s.apply(slices.DeleteFunc(options, func(o option) bool { return overridden(o, line) })); err != nil {
			return err
		}
	}
	return nil
}

func (s *submission) scriptText(operands []string) (text []byte, err error) {
	what := "standard input"
	if len(operands) == 1 && operands[0] != "-" {
		file := s.absolute(operands[0])
		what, s.name, s.fromFile = "script file "+operands[0], path.Base(file), true
		text, err = s.caller.Read(file)
	} else {
		text, err = s.caller.Stdin()
	}
	switch {
	case errors.Is(err, roost.Exhausted) || len(text) > MaxScript:
		return nil, refuse("Job script exceeds size "+strings.ToLower(roost.Bytes(MaxScript).String())+": let it start a program that lies in a file", exitScriptSize)
	case err != nil:
		return nil, refuse(what+" cannot be read: "+cause(err), exitUnreadable)
	}
	return text, nil
}

// cause leaves the path away that an error of the file system begins with: the message names it as the user did.
func cause(err error) string {
	for next := errors.Unwrap(err); next != nil; next = errors.Unwrap(err) {
		err = next
	}
	return err.Error()
}

// overridden reports whether the command line gives an option that a directive gives, too. -l and -W are merged, resource by resource and key by key;
// -J and -t are two ways to say the same; -C has no meaning in a script.
func overridden(o option, line []option) bool {
	if o.letter == 'C' {
		return true
	}
	if o.letter == 'l' || o.letter == 'W' {
		return false
	}
	return slices.ContainsFunc(line, func(l option) bool { return l.letter == o.letter || isArray(l.letter) && isArray(o.letter) })
}

func isArray(letter byte) bool { return letter == 'J' || letter == 't' }
