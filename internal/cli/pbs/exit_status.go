package pbs

import (
	"errors"
	"fmt"
	"strings"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/cli/frame"
)

// The exit statuses that clients of PBS test for: PBS's error number modulo 256.
const (
	pbsEndedSubjob        = 55
	pbsUnknownJob         = 153
	pbsInvalid            = 156
	pbsFinished           = 35
	pbsUnauthorized       = 159
	pbsSystem             = 162
	pbsBadSignal          = 165
	pbsBadValue           = 166
	pbsRuns               = 167
	pbsBadState           = 168
	pbsUnknownQueue       = 170
	pbsNoSupport          = 181
	pbsUnknownResource    = 187
	pbsNoRerun            = 190
	pbsTooMany            = 198
	pbsDependency         = 206
	pbsUnknownReservation = 236
	pbsUnconnected        = 255
)

// pbsFail prints an error of a PBS command and returns what it ends with.
func pbsFail(c *frame.Invocation, err error) error {
	fmt.Fprintf(c.Stderr, "%s: %s\n", c.Command.Name, strings.Join(strings.Fields(frame.ErrorText(err)), " "))
	return frame.ExitError(pbsExitStatus(err))
}

// pbsExitStatus is the exit status of PBS for an error.
func pbsExitStatus(err error) int {
	var kind roost.ErrorKind
	if !errors.As(frame.DecodeError(err), &kind) {
		return pbsSystem
	}
	switch kind {
	case roost.NotFound:
		return pbsUnknownJob
	case roost.Finished:
		return pbsFinished
	case roost.PermissionDenied, roost.Unauthenticated:
		return pbsUnauthorized
	case roost.Invalid, roost.BadConfig:
		return pbsBadValue
	case roost.Conflict, roost.Stale:
		return pbsBadState
	case roost.Exhausted:
		return pbsTooMany
	case roost.Usage:
		return 2
	}
	return pbsSystem
}
