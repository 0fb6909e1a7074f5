package qsub

import (
	"errors"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/submit/jobspec"
)

// QsubCaller describes who runs qsub, and gives access to the outside world.
type QsubCaller struct {
	Dir     string // absolute working directory
	Home    string
	User    string
	Group   string // name of the user's primary group
	Host    string // host of qsub, and the host part of the ids of its schedd
	Server  string // submit node for jobs unless -q names one; empty: Host
	Environ []string
	Now     time.Time // its location is the user's time zone
	// reads a script of at most MaxScript bytes; the path is absolute. The error is
	// roost.Exhausted for a longer one
	Read      func(path string) ([]byte, error)
	Stdin     func() ([]byte, error)               // reads the script from standard input, with the same bound
	IsDir     func(path string) bool               // reports whether an absolute path is a directory
	LookPath  func(program string) (string, error) // finds a program along PATH
	Inventory *PoolInventory                       // nil: the pool cannot be asked
	// the user's dialect; asked only where it matters. nil: OpenPBS
	Dialect func() roost.PBSDialect
}

// isTorque reports whether the user's dialect is Torque.
func (c *QsubCaller) isTorque() bool { return c.Dialect != nil && c.Dialect() == roost.Torque }

// QsubResult is what qsub must do.
type QsubResult struct {
	Job   jobspec.Job
	Queue string // "", or the queue of -q

	Server string // "", or the node after the @ of -q
	Quiet  bool   // -z: do not print the id
	Block  bool   // -W block=true: wait, and exit with the job's exit status

	Interactive bool     // -I: the job runs on the terminal
	Warnings    []string // for stderr
}

// MaxScript is the largest size of a script in bytes (OpenPBS, jobscript_max_size).
const MaxScript = 100 << 20

// ParseQsub parses the arguments of qsub (without its name) and the script that they
// name. Its errors are of type *RefusalError.
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

// stdinJobName is the name of a job whose script comes from standard input.
const stdinJobName = "STDIN"

// readScript reads the script and applies its directives. The options of the command line
// are applied later and win.
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
		file := s.paths().absolutePath(operands[0])
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

// errorCause returns a file error without its path: the message has the path as the user
// wrote it.
func errorCause(err error) string {
	for next := errors.Unwrap(err); next != nil; next = errors.Unwrap(err) {
		err = next
	}
	return err.Error()
}

// isOverridden reports whether the command line overrides an option of a directive. -l
// and -W are merged by resource and key; -J and -t override each other; -C has no meaning
// in a script.
func isOverridden(o OptionValue, line []OptionValue) bool {
	if o.Letter == 'C' {
		return true
	}
	if o.Letter == 'l' || o.Letter == 'W' {
		return false
	}
	return slices.ContainsFunc(line, func(l OptionValue) bool {
		return l.Letter == o.Letter || hasArrayOption(l.Letter) && hasArrayOption(o.Letter) ||
			namesQueue(l.Letter) && namesQueue(o.Letter)
	})
}

func namesQueue(letter byte) bool { return letter == cellOption || letter == localOption }

func hasArrayOption(letter byte) bool { return letter == 'J' || letter == 't' }
