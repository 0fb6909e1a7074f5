package cli

import (
	"errors"
	"fmt"
	"strings"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/rpc"
)

// exit ends a command with a status and without a word.
type exit int

func (e exit) Error() string { return fmt.Sprintf("exit status %d", int(e)) }

// advised is an error with a line that says what to do about it.
type advised struct {
	err  error
	cure string
}

func (e *advised) Error() string { return e.err.Error() }
func (e *advised) Unwrap() error { return e.err }

func advise(err error, cure string) error { return &advised{err, cure} }

// plain is an error whose kind is not to be seen in its text.
type plain struct {
	kind roost.Kind
	text string
}

func (e *plain) Error() string { return e.text }
func (e *plain) Unwrap() error { return e.kind }

func problem(kind roost.Kind, format string, args ...any) error {
	return &plain{kind, fmt.Sprintf(format, args...)}
}

func usage(format string, args ...any) error { return problem(roost.Usage, format, args...) }

// unknownFlag is a flag that the command does not have.
type unknownFlag struct{ name, whole string }

func (e *unknownFlag) Error() string {
	if e.whole != "" && e.whole != e.name {
		return fmt.Sprintf("unknown flag %s in %s", e.name, e.whole)
	}
	return "unknown flag " + e.name
}

func (e *unknownFlag) Unwrap() error { return roost.Usage }

// fromWire gives an error that came from the schedd its kind back. It may be done twice.
func fromWire(err error) error {
	var kind roost.Kind
	if errors.As(err, &kind) {
		return err
	}
	return rpc.FromStatus(err)
}

// message is the text of an error for people.
func message(err error) string {
	err = fromWire(err)
	if certificateRefused(err.Error()) {
		return "this node's certificate is refused, which was revoked or has ended: " + newCertificate
	}
	if errors.Is(err, roost.Unavailable) && strings.Contains(err.Error(), "connection error") {
		return "the schedd does not answer: " + shortCause(err.Error())
	}
	return err.Error()
}

// certificateRefused reports whether a connection failed because the other side does not take this node's certificate: the words are all that a TLS alert says.
func certificateRefused(text string) bool {
	return strings.Contains(text, "remote error: tls: bad certificate") || strings.Contains(text, "remote error: tls: expired certificate")
}

// newCertificate is what to do then.
const newCertificate = "where the authority is, roost token list tells; the node comes back with roost leave and the line of roost token --for its name"

// shortCause takes the layers of gRPC off the reason that a connection failed.
func shortCause(text string) string {
	if i := strings.LastIndex(text, "connect: "); i >= 0 {
		return strings.Trim(text[i+len("connect: "):], `"`)
	}
	return text
}

// exitCode is the status for an error that was printed.
func exitCode(err error) int {
	err = fromWire(err)
	var kind roost.Kind
	if !errors.As(err, &kind) {
		return roost.Internal.ExitCode()
	}
	return kind.ExitCode()
}

// pbsFail prints an error of a PBS command and returns what it ends with.
func (c *call) pbsFail(err error) error {
	fmt.Fprintf(c.stderr, "%s: %s\n", c.cmd.name, strings.Join(strings.Fields(message(err)), " "))
	return exit(pbsCode(err))
}

// pbsCode is the exit status of PBS for an error.
func pbsCode(err error) int {
	var kind roost.Kind
	if !errors.As(fromWire(err), &kind) {
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
