package frame

import (
	"errors"
	"fmt"
	"strings"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/rpc/localrpc"
)

// ExitError ends a command with a status and prints nothing.
type ExitError int

// Error names the exit status, which is not printed.
func (e ExitError) Error() string { return fmt.Sprintf("exit status %d", int(e)) }

// hintedError is an error with a line that says what to do about it.
type hintedError struct {
	cause error
	hint  string
}

func (e *hintedError) Error() string { return e.cause.Error() }
func (e *hintedError) Unwrap() error { return e.cause }

// WithHint adds to an error a line that tells the user what to do about it.
func WithHint(err error, cure string) error { return &hintedError{err, cure} }

// KindError is an error with a kind that its text does not name.
type KindError struct {
	Kind roost.ErrorKind
	Text string
}

// Error is the text of the error.
func (e *KindError) Error() string { return e.Text }

// Unwrap returns the kind.
func (e *KindError) Unwrap() error { return e.Kind }

// KindErrorf formats an error of a kind, which its text does not name.
func KindErrorf(kind roost.ErrorKind, format string, args ...any) error {
	return &KindError{kind, fmt.Sprintf(format, args...)}
}

// UsageErrorf formats an error about a wrong command line, of kind roost.Usage.
func UsageErrorf(format string, args ...any) error { return KindErrorf(roost.Usage, format, args...) }

// UnknownFlagError is a flag that the command does not have.
type UnknownFlagError struct{ name, command string }

// Error names the flag, and the argument that it is in.
func (e *UnknownFlagError) Error() string {
	if e.command != "" && e.command != e.name {
		return fmt.Sprintf("unknown flag %s in %s", e.name, e.command)
	}
	return "unknown flag " + e.name
}

// Unwrap returns roost.Usage.
func (e *UnknownFlagError) Unwrap() error { return roost.Usage }

// DecodeError gives an error from the schedd its kind back. It may be done twice.
func DecodeError(err error) error {
	var kind roost.ErrorKind
	if errors.As(err, &kind) {
		return err
	}
	return localrpc.DecodeError(err)
}

// ErrorText is the text of an error for people.
func ErrorText(err error) string {
	err = DecodeError(err)
	if IsCertificateRefused(err.Error()) {
		return "this node's certificate is refused, which was revoked or has ended: " + NewCertificate
	}
	if errors.Is(err, roost.Unavailable) && strings.Contains(err.Error(), "connection error") {
		return "the schedd does not answer: " + shortCause(err.Error())
	}
	return err.Error()
}

// IsCertificateRefused reports whether a connection failed because the other side refuses
// this node's certificate. It looks at the text, because a TLS alert has nothing else.
func IsCertificateRefused(text string) bool {
	return strings.Contains(text, "remote error: tls: bad certificate") ||
		strings.Contains(text, "remote error: tls: expired certificate")
}

// NewCertificate is the hint for a node whose certificate is refused.
const NewCertificate = "where the authority is, roost token list tells; the node comes back with roost leave and the " +
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
	err = DecodeError(err)
	var kind roost.ErrorKind
	if !errors.As(err, &kind) {
		return roost.Internal.ExitCode()
	}
	return kind.ExitCode()
}
