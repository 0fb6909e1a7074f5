package cli

import (
	"errors"
	"fmt"
	"strings"

	"github.com/roost-batch/roost"
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
func (c *invocation) pbsFail(err error) error {
	fmt.Fprintf(c.stderr, "%s: %s\n", c.cmd.name, strings.Join(strings.Fields(errorText(err)), " "))
	return exitError(pbsExitStatus(err))
}

// pbsExitStatus is the exit status of PBS for an error.
func pbsExitStatus(err error) int {
	var kind roost.ErrorKind
	if !errors.As(decodeError(err), &kind) {
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
