package qsub

import (
	"errors"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/submit"
)

// QsubCaller is who runs qsub and how the outside world is reached.
type QsubCaller struct {
	Dir     string // absolute working directory
	Home    string
	User    string
	Group   string // the name of the user's own group
	Host    string // where qsub runs, and the host part of the ids that the schedd there gives
	Server  string // the node in whose queue jobs go unless -q names one; empty: Host
	Environ []string
	Now     time.Time // its location is the user's time zone
	// reads a script of at most MaxScript bytes; the path is absolute. Its error is
	// roost.Exhausted if there is more
	Read      func(path string) ([]byte, error)
	Stdin     func() ([]byte, error)               // reads the script from standard input, likewise
	IsDir     func(path string) bool               // whether an absolute path is a directory
	LookPath  func(program string) (string, error) // finds a program along PATH
	Inventory *PoolInventory                       // nil: the pool cannot be asked
	// that the user speaks; it is asked only where it matters. Nil: OpenPBS
	Dialect func() roost.PBSDialect
}

// isTorque reports whether what the user says is meant as Torque has it, where that
// differs.
func (c *QsubCaller) isTorque() bool { return c.Dialect != nil && c.Dialect() == roost.Torque }

// QsubResult is what qsub is to do.
type QsubResult struct {
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

// ParseQsub reads the arguments of qsub (without its name) and the script that they name.
// Its errors are of type *Error.
func ParseQsub(args []string, caller QsubCaller) (QsubResult, error) {
	line, operands, command, err := splitOptions(args, true)
	if err != nil {
		return QsubResult{}, err
	}
	if len(operands) > 1 || command != nil && (len(operands) > 0 || len(command) == 0) {
		return QsubResult{}, usageError()
	}
	s := &JobSubmission{Caller: caller, Name: stdinJobName, Command: command, ResourceValues: map[string]string{},
		Attributes: map[string]string{}}
	if command == nil && (!asksInteractive(line) || len(operands) > 0 && operands[0] != "-") {
		if err := s.readScript(operands, line); err != nil {
			return QsubResult{}, err
		}
	}
	if err := s.ApplyOptions(line); err != nil {
		return QsubResult{}, err
	}
	result, err := s.NewResult()
	if err == nil && len(args) > 0 && !slices.ContainsFunc(args, func(a string) bool {
		return strings.IndexByte(a, 0) >= 0
	}) {
		result.Job.Ad.SetStrings(roost.AttrSubmitArguments, args)
	}
	return result, err
}

// stdinJobName is the name of a job whose script has none.
const stdinJobName = "STDIN"

// readScript reads the script, and applies its directives; those of the command line come
// after and win.
func (s *JobSubmission) readScript(operands []string, line []OptionValue) error {
	text, err := s.scriptText(operands)
	if err != nil {
		return err
	}
	script, directives, err := findDirectives(string(text), directivePrefix(line, s.Caller.Environ))
	if err != nil {
		return err
	}
	s.Script = script
	for _, d := range directives {
		words, ok := SplitWords(d)
		if !ok || len(words) > maxWords {
			return refusalf("directive error: "+d, exitScript)
		}
		options, operands, command, err := splitOptions(words, false)
		if err != nil || len(operands) > 0 || command != nil {
			return refusalf("directive error: "+d, exitScript)
		}
		if err := s.ApplyOptions(slices.DeleteFunc(options, func(o OptionValue) bool {
			return isOverridden(o, line)
		})); err != nil {
			return err
		}
	}
	return nil
}

func (s *JobSubmission) scriptText(operands []string) (text []byte, err error) {
	what := "standard input"
	if len(operands) == 1 && operands[0] != "-" {
		file := s.absolutePath(operands[0])
		what, s.Name, s.fromFile = "script file "+operands[0], path.Base(file), true
		text, err = s.Caller.Read(file)
	} else {
		text, err = s.Caller.Stdin()
	}
	switch {
	case errors.Is(err, roost.Exhausted) || len(text) > MaxScript:
		return nil, refusalf("Job script exceeds size "+strings.ToLower(roost.Bytes(MaxScript).String())+
			": let it start a program that lies in a file", exitScriptSize)
	case err != nil:
		return nil, refusalf(what+" cannot be read: "+errorCause(err), exitUnreadable)
	}
	return text, nil
}

// errorCause leaves the path away that an error of the file system begins with: the
// message names it as the user did.
func errorCause(err error) string {
	for next := errors.Unwrap(err); next != nil; next = errors.Unwrap(err) {
		err = next
	}
	return err.Error()
}

// isOverridden reports whether the command line gives an option that a directive gives,
// too. -l and -W are merged, resource by resource and key by key; -J and -t are two ways
// to say the same; -C has no meaning in a script.
func isOverridden(o OptionValue, line []OptionValue) bool {
	if o.Letter == 'C' {
		return true
	}
	if o.Letter == 'l' || o.Letter == 'W' {
		return false
	}
	return slices.ContainsFunc(line, func(l OptionValue) bool {
		return l.Letter == o.Letter || hasArrayOption(l.Letter) && hasArrayOption(o.Letter)
	})
}

func hasArrayOption(letter byte) bool { return letter == 'J' || letter == 't' }
