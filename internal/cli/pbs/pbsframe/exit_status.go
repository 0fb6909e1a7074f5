package pbsframe

import (
	"errors"
	"fmt"
	"strings"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/cli/frame"
)

// The exit statuses that clients of PBS test for: PBS's error numbers modulo 256.
const (
	EndedSubjob        = 55  // the task of an array has ended
	UnknownJob         = 153 // no job has this id
	InvalidRequest     = 156 // the request does not fit the job
	FinishedJob        = 35  // the job has ended
	Unauthorized       = 159 // the user may not do this
	SystemError        = 162 // anything else that failed
	BadSignal          = 165 // there is no such signal
	BadValue           = 166 // an attribute has a wrong value
	RunningJob         = 167 // the job runs, so this cannot change
	BadState           = 168 // the state of the job does not allow it
	UnknownQueue       = 170 // there is no such queue
	NoSupport          = 181 // PBS can do this, and Roost cannot
	UnknownResource    = 187 // there is no such resource
	NoRerun            = 190 // the job may not be run again
	TooMany            = 198 // a limit is reached
	UnknownReservation = 236 // there is no such reservation
	Unconnected        = 255 // no server answers
)

// Fail prints an error of a PBS command and returns what it ends with.
func Fail(c *frame.Invocation, err error) error {
	fmt.Fprintf(c.Stderr, "%s: %s\n", c.Command.Name, strings.Join(strings.Fields(frame.ErrorText(err)), " "))
	return frame.ExitError(ExitStatus(err))
}

// ExitStatus is the exit status of PBS for an error.
func ExitStatus(err error) int {
	var kind roost.ErrorKind
	if !errors.As(frame.DecodeError(err), &kind) {
		return SystemError
	}
	switch kind {
	case roost.NotFound:
		return UnknownJob
	case roost.Finished:
		return FinishedJob
	case roost.PermissionDenied, roost.Unauthenticated:
		return Unauthorized
	case roost.Invalid, roost.BadConfig:
		return BadValue
	case roost.Conflict, roost.Stale:
		return BadState
	case roost.Exhausted:
		return TooMany
	case roost.Usage:
		return 2
	}
	return SystemError
}

// FailUnsupported prints that PBS has what was asked for and Roost does not, and returns
// the exit status.
func FailUnsupported(c *frame.Invocation, why string) error {
	fmt.Fprintf(c.Stderr, "%s: No support for requested service: %s\n", c.Command.Name, why)
	return frame.ExitError(NoSupport)
}
