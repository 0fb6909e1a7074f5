package cli

import (
	"errors"
	"fmt"
	"strings"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/rpc"
)

// exitError ends a command with a status and without a word.
type exitError int

func (e exitError) Error() string { return fmt.Sprintf("exit status %d", int(e)) }

// hintedError is an error with a line that says what to do about it.
type hintedError struct {
	cause error
	hint  string
}

func (e *hintedError) Error() string { return e.cause.Error() }
func (e *hintedError) Unwrap() error { return e.cause }

func withHint(err error, cure string) error { return &hintedError{err, cure} }

// kindError is an error whose kind is not to be seen in its text.
type kindError struct {
	kind roost.ErrorKind
	text string
}

func (e *kindError) Error() string { return e.text }
func (e *kindError) Unwrap() error { return e.kind }

func kindErrorf(kind roost.ErrorKind, format string, args ...any) error {
	return &kindError{kind, fmt.Sprintf(format, args...)}
}

func usageErrorf(format string, args ...any) error { return kindErrorf(roost.Usage, format, args...) }

// unknownFlagError is a flag that the command does not have.
type unknownFlagError struct{ name, command string }

func (e *unknownFlagError) Error() string {
	if e.command != "" && e.command != e.name {
		return fmt.Sprintf("unknown flag %s in %s", e.name, e.command)
	}
	return "unknown flag " + e.name
}

func (e *unknownFlagError) Unwrap() error { return roost.Usage }

// decodeError gives an error that came from the schedd its kind back. It may be done
// twice.
func decodeError(err error) error {
	var kind roost.ErrorKind
	if errors.As(err, &kind) {
		return err
	}
	return rpc.FromStatus(err)
}

// errorText is the text of an error for people.
func errorText(err error) string {
	err = decodeError(err)
	if isCertificateRefused(err.Error()) {
		return "this node's certificate is refused, which was revoked or has ended: " + newCertificate
	}
	if errors.Is(err, roost.Unavailable) && strings.Contains(err.Error(), "connection error") {
		return "the schedd does not answer: " + shortCause(err.Error())
	}
	return err.Error()
}

// isCertificateRefused reports whether a connection failed because the other side does
// not take this node's certificate: the words are all that a TLS alert says.
func isCertificateRefused(text string) bool {
	return strings.Contains(text, "remote error: tls: bad certificate") ||
		strings.Contains(text, "remote error: tls: expired certificate")
}

// newCertificate is what to do then.
const newCertificate = "where the authority is, roost token list tells; the node comes back with roost leave and the " +
	"line of roost token --for its name"

// shortCause takes the layers of gRPC off the reason that a connection failed.
func shortCause(text string) string {
	if i := strings.LastIndex(text, "connect: "); i >= 0 {
		return strings.Trim(text[i+len("connect: "):], `"`)
	}
	return text
}

// exitCode is the status for an error that was printed.
func exitCode(err error) int {
	err = decodeError(err)
	var kind roost.ErrorKind
	if !errors.As(err, &kind) {
		return roost.Internal.ExitCode()
	}
	return kind.ExitCode()
}
