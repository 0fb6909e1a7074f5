// Package pbs understands the command lines and scripts of PBS: so far the everyday qsub, as OpenPBS has it, with the options
// of Torque that collide with none of its. POSIX XCU chapter 3 is the base of both.
//
//	arguments ──▶ options ─┐
//	                       ├─▶ merged, the command line wins ──▶ submit.Job, with PBS's names, paths and environment
//	script ──▶ #PBS lines ─┘
//
// The package is pure: scripts are read through [Caller].
package pbs

import (
	"path"
	"strings"
	"time"

	"github.com/roost-batch/roost/internal/submit"
)

// Caller is who runs qsub and how the outside world is reached.
type Caller struct {
	Dir     string // absolute working directory
	Home    string
	User    string
	Host    string // the host part of the ids that this host's schedd gives
	Environ []string
	Now     time.Time                            // its location is the user's time zone
	Read    func(path string) ([]byte, error)    // reads a script; the path is absolute
	Stdin   func() ([]byte, error)               // reads the script from standard input
	IsDir   func(path string) bool               // whether an absolute path is a directory
	Look    func(program string) (string, error) // finds a program along PATH
}

// Result is what qsub is to do.
type Result struct {
	Job   submit.Job
	Queue string // "", or the destination of -q

	Server string // "", or the node behind the @ of -q
	Quiet  bool   // -z: do not print the id
	Block  bool   // -W block=true: wait, and exit with the job's exit status
}

// Error is a refusal in PBS's own words, with the exit status that clients of PBS test for.
type Error struct {
	Text string // whole lines for stderr, "qsub: illegal -N value"
	Code int
}

func (e *Error) Error() string { return e.Text }

// The exit statuses of qsub: PBS's error code modulo 256 where it has one.
const (
	exitScript       = 1
	exitUsage        = 2
	exitUnreadable   = 8
	exitIllegalValue = 166
	exitUnknown      = 187
	exitDependency   = 206
)

const maxScript = 8 << 20 // it travels inside the ad

const usage = "usage: qsub [-a date_time] [-A account] [-c n|s|c|w|c=min|w=min|u] [-C prefix] [-d dir] [-e path] [-h] [-j oe|eo|n] [-J X-Y[:Z][%N]] [-k keep]\n" +
	"            [-l resources] [-m events] [-M users] [-N name] [-o path] [-p priority] [-P project] [-q destination] [-r y|n]\n" +
	"            [-S shell] [-t list[%N]] [-v variables] [-V] [-W attributes] [-z] [script | - | -- command [arguments]]"

func usageError() *Error { return &Error{usage, exitUsage} }
func illegal(option byte) *Error {
	return &Error{"qsub: illegal -" + string(option) + " value", exitUsage}
}
func refuse(text string, code int) *Error { return &Error{"qsub: " + text, code} }

// ParseQsub reads the arguments of qsub (without its name) and the script that they name. Its errors are of type *Error.
func ParseQsub(args []string, caller Caller) (Result, error) {
	line, operands, command, err := split(args, true)
	if err != nil {
		return Result{}, err
	}
	if len(operands) > 1 || command != nil && (len(operands) > 0 || len(command) == 0) {
		return Result{}, usageError()
	}
	s := &submission{caller: caller, name: "STDIN", command: command}
	if command == nil {
		if err := s.readScript(operands, line); err != nil {
			return Result{}, err
		}
	}
	if err := s.apply(line); err != nil {
		return Result{}, err
	}
	return s.result()
}

// readScript reads the script, and applies its directives; those of the command line come after and win.
func (s *submission) readScript(operands []string, line []option) error {
	var text []byte
	var err error
	if len(operands) == 1 && operands[0] != "-" {
		file := operands[0]
		if !path.IsAbs(file) {
			file = path.Join(s.caller.Dir, file)
		}
		if text, err = s.caller.Read(file); err != nil {
			return refuse("script file "+operands[0]+" cannot be read: "+err.Error(), exitUnreadable)
		}
		s.name, s.fromFile = path.Base(file), true
	} else if text, err = s.caller.Stdin(); err != nil {
		return refuse("standard input cannot be read: "+err.Error(), exitUnreadable)
	}
	if len(text) > maxScript {
		return refuse("Job script exceeds the size of 8mb", exitScript)
	}
	script, directives, err := directivesOf(string(text), prefixOf(line, s.caller.Environ))
	if err != nil {
		return err
	}
	s.script = script
	for _, d := range directives {
		words, ok := splitWords(d)
		if !ok || len(words) > 128 {
			return refuse("directive error: "+d, exitScript)
		}
		options, operands, command, err := split(words, false)
		if err != nil || len(operands) > 0 || command != nil {
			return refuse("directive error: "+d, exitScript)
		}
		s.dropOverridden(options, line)
		if err := s.apply(s.kept); err != nil {
			return err
		}
	}
	return nil
}

// dropOverridden keeps the options that the command line does not give again; -l, -v and -W are merged entry by entry instead.
func (s *submission) dropOverridden(options, line []option) {
	s.kept = s.kept[:0]
	for _, o := range options {
		given := false
		for _, l := range line {
			given = given || l.letter == o.letter
		}
		if !given || strings.IndexByte("lvW", o.letter) >= 0 {
			s.kept = append(s.kept, o)
		}
	}
}
