// Package pbs understands the command lines and scripts of PBS: so far the everyday qsub.
package pbs

import (
	"time"

	"github.com/roost-batch/roost/internal/submit"
)

// Caller is who runs qsub and how the outside world is reached.
type Caller struct {
	Dir     string // absolute working directory
	Home    string
	User    string
	Host    string // name of this host
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
	Queue string // "", or the queue of -q
	Quiet bool   // -z: do not print the id
	Block bool   // -W block=true: wait, and exit with the job's exit status
}

// Error is a refusal in PBS's own words, with the exit status that clients of PBS test for.
type Error struct {
	Text string // whole lines for stderr, "qsub: illegal -N value"
	Code int
}

func (e *Error) Error() string { return e.Text }

// ParseQsub reads the arguments of qsub (without its name) and the script that they name. Its errors are of type *Error.
func ParseQsub(args []string, caller Caller) (Result, error) { return Result{}, nil }
