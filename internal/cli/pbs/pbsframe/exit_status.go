package pbsframe

import (
	"errors"
	"fmt"
	"strings"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/cli/frame"
) // The exit statuses that clients of PBS test for: PBS's error number modulo 256.
const (
	EndedSubjob        = 55
	UnknownJob         = 153
	InvalidRequest     = 156
	FinishedJob        = 35
	Unauthorized       = 159
	SystemError        = 162
	BadSignal          = 165
	BadValue           = 166
	RunningJob         = 167
	BadState           = 168
	UnknownQueue       = 170
	NoSupport          = 181
	UnknownResource    = 187
	NoRerun            = 190
	TooMany            = 198
	BadDependency      = 206
	UnknownReservation = 236
	Unconnected        = 255
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

func FailUnsupported(c *frame.Invocation, why string) error {
	fmt.Fprintf(c.Stderr, "%s: No support for requested service: %s\n", c.Command.Name, why)
	return frame.ExitError(NoSupport)
}
