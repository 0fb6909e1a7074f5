package sbatch

import (
	"fmt"
	"path"
	"strings"

	"github.com/roost-batch/roost/internal/pbs/qsub"
	"github.com/roost-batch/roost/internal/slurm/getopt"
)

// Result is what sbatch has to do.
type Result struct {
	qsub.QsubResult
	Parsable bool
	Wait     bool
	Cluster  string // the node whose queue is to have the job; empty: that of the caller
	// it waits for the jobs of that name that the user has submitted before it
	IsSingleton bool
	Partition   string // as asked for; empty: it was not
	Reservation string // so, too
	Warnings    string // whole lines for standard error
	TestOnly    bool   // its start is to be predicted, and nothing submitted
	Nodes, CPUs int    // in all
	Help        bool
	Version     bool
}

// UsageStatus is the exit status where a command line or directive cannot be read.
const UsageStatus = 255

// Failure is why sbatch submits nothing: what it prints, and its exit status.
type Failure struct {
	Text   string // whole lines
	Status int
}

func (f *Failure) Error() string { return f.Text }

// fail says why, as sbatch does.
func fail(format string, a ...any) error {
	return &Failure{"sbatch: error: " + fmt.Sprintf(format, a...) + "\n", 1}
}

// invalid says that the value of an option cannot be read.
func invalid(option string) error {
	return &Failure{"sbatch: error: Invalid --" + option + " specification\n", UsageStatus}
}

// submission is a job under way from its options to its ad.
type submission struct {
	*qsub.JobSubmission
	caller  qsub.QsubCaller
	environ []string
	given   []getopt.Given
	script  string
	args    []string
	file    string
	array   string // indexes, as written
	layout  layout
	cwd     string

	operand   string // the script's file, as written
	fromFile  bool   // it is one
	niceValue int

	isSingleton bool
}

// ParseOptions takes a command line with options of sbatch apart: what is given, and what
// follows. Its error is of type *Failure.
func ParseOptions(args []string) (given []getopt.Given, operands []string, err error) {
	table := &getopt.Table{Options: Options(), StopAtOperand: true}
	given, operands, err = table.Parse(args)
	if err != nil {
		return nil, nil, &Failure{getopt.Message("sbatch", err), UsageStatus}
	}
	return given, operands, nil
}

// Asks says whether an option is given.
func Asks(given []getopt.Given, name string) bool { _, ok := getopt.Last(given, name); return ok }

// Value is that of the last option of a name.
func Value(given []getopt.Given, name string) string { v, _ := getopt.Last(given, name); return v }

// IsAllocationVariable says whether a variable is about the job, and not about its first
// task.
func IsAllocationVariable(name string) bool {
	switch name {
	case "SLURM_PROCID", "SLURM_LOCALID", "SLURM_NODEID", "SLURM_GTIDS", "SLURM_PRIO_PROCESS", "SLURM_OOM_KILL_STEP",
		"SLURM_CPUS_ON_NODE":
		return false
	}
	return strings.HasPrefix(name, "SLURM_")
}

// Parse reads the arguments of sbatch, without its name, and the script that they name.
// Its errors are of type *Failure.
func Parse(args []string, caller qsub.QsubCaller) (Result, error) {
	line, operands, err := ParseOptions(args)
	if err != nil {
		return Result{}, err
	}
	if Asks(line, "help") || Asks(line, "usage") || Asks(line, "version") {
		return Result{Help: !Asks(line, "version"), Version: Asks(line, "version")}, nil
	}
	s := &submission{caller: caller, environ: caller.Environ}
	if err := s.readScript(line, operands); err != nil {
		return Result{}, err
	}
	table := &getopt.Table{Options: Options(), StopAtOperand: true}
	fromScript, warnings, err := directives(s.sourceName(), s.script, table)
	if err != nil {
		return Result{}, err
	}
	if fromVariables := s.fromVariables(); !Asks(append(fromVariables, line...), "ignore-pbs") {
		fromScript = append(pbsDirectives(s.script), fromScript...)
	}
	s.given = dropConflicts(append(append(fromScript, s.fromVariables()...), line...))
	for _, g := range s.given {
		if why, ok := isAllowed(g); !ok {
			return Result{}, fail("--%s is not supported: %s", g.Name, why)
		}
	}
	if s.has("test-only") && !s.fromFile && !Asks(line, "test-only") {
		return Result{}, fail("--test-only in a script on standard input is not supported: give it on the command line")
	}
	r, err := s.build()
	r.Warnings = warnings
	return r, err
}

// fromVariables are the options that variables of sbatch stand for.
func (s *submission) fromVariables() (list []getopt.Given) {
	for option, variable := range variables() {
		value, ok := qsub.LookUpVariable(s.environ, variable)
		if !ok {
			continue
		}
		list = append(list, getopt.Given{Name: option, Value: value, HasValue: value != ""})
	}
	return list
}

// value is that of the last option of a name.
func (s *submission) value(name string) string { return Value(s.given, name) }

func (s *submission) has(name string) bool { return Asks(s.given, name) }

// readScript finds the script: of --wrap, of a file, or of standard input.
func (s *submission) readScript(line []getopt.Given, operands []string) error {
	wrap, isWrapped := getopt.Last(line, "wrap")
	switch {
	case isWrapped && len(operands) > 0:
		return fail("Script arguments not permitted with --wrap option")
	case isWrapped:
		s.script, s.file = "#!/bin/sh\n# This script was created by sbatch --wrap.\n\n"+wrap+"\n", "wrap"
		return nil
	case len(operands) == 0:
		text, err := s.caller.Stdin()
		if err != nil {
			return fail("Unable to read the batch script from standard input: %v", err)
		}
		s.script, s.file = string(text), "sbatch"
	default:
		file := operands[0]
		if !path.IsAbs(file) {
			file = path.Join(s.caller.Dir, file)
		}
		text, err := s.caller.Read(file)
		if err != nil {
			return fail("Unable to open file %s", operands[0])
		}
		s.script, s.file, s.args = string(text), path.Base(file), operands[1:]
		s.operand, s.fromFile = operands[0], true
	}
	if err := checkScript(s.script); err != nil {
		return fail("%v", err)
	}
	return nil
}

// sourceName is what messages call the script.
func (s *submission) sourceName() string {
	if s.fromFile {
		return s.operand
	}
	return "stdin"
}

// jobName makes a name that every part of Roost takes.
func jobName(text string) string {
	name := strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', strings.ContainsRune("_.+-", r):
			return r
		}
		return '_'
	}, text)
	if name = strings.TrimLeft(name, ".-"); name == "" {
		return "sbatch"
	}
	return name[:min(len(name), 200)]
}
