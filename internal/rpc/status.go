package rpc

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/roost-batch/roost"
)

// grpcCodes maps each kind of error to its gRPC code; the kind itself is sent as a
// detail.
var grpcCodes = map[roost.ErrorKind]codes.Code{
	roost.Internal: codes.Internal, roost.Invalid: codes.InvalidArgument, roost.NotFound: codes.NotFound,
	roost.Finished: codes.FailedPrecondition, roost.Conflict: codes.FailedPrecondition,
	roost.PermissionDenied: codes.PermissionDenied, roost.Unauthenticated: codes.Unauthenticated,
	roost.Exhausted: codes.ResourceExhausted, roost.Unavailable: codes.Unavailable, roost.NoInput: codes.NotFound,
	roost.NoOutput: codes.Aborted, roost.BadConfig: codes.FailedPrecondition, roost.Usage: codes.InvalidArgument,
	roost.Stale: codes.Aborted,
}

// KindOf returns the kind of an error, Internal if it has none.
func KindOf(err error) roost.ErrorKind {
	var kind roost.ErrorKind
	if errors.As(err, &kind) {
		return kind
	}
	return roost.Internal
}

// Status converts an error into one that gRPC sends with its kind. Nil and errors of gRPC
// are unchanged. An error that was received and is passed on retains its kind, with the
// text that was added to it.
func Status(err error) error {
	if err == nil {
		return nil
	}
	var kind roost.ErrorKind
	if !errors.As(err, &kind) {
		if _, ok := status.FromError(err); ok {
			return err
		}
		if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
			return status.FromContextError(err).Err()
		}
		kind = roost.Internal
	}
	code, ok := grpcCodes[kind]
	if !ok {
		code = codes.Unknown // a kind of a newer daemon; its code would be zero, which is OK
	}
	st := status.New(code, err.Error())
	if with, derr := st.WithDetails(wrapperspb.UInt32(uint32(kind))); derr == nil {
		st = with
	}
	return st.Err()
}

// remoteError is an error that was received: its own text and its kind.
type remoteError struct {
	message string
	kind    roost.ErrorKind
	code    codes.Code
}

func (e *remoteError) Error() string              { return e.message }
func (e *remoteError) Unwrap() error              { return e.kind }
func (e *remoteError) GRPCStatus() *status.Status { return status.New(e.code, e.message) }

// FromStatus converts an error of gRPC back into one whose kind errors.Is finds.
func FromStatus(err error) error {
	st, ok := status.FromError(err)
	if err == nil || !ok {
		return err
	}
	for _, detail := range st.Details() {
		if k, ok := detail.(*wrapperspb.UInt32Value); ok {
			return &remoteError{unquoteCause(st.Message()), roost.ErrorKind(k.GetValue()), st.Code()}
		}
	}
	kind := roost.Internal
	switch st.Code() {
	case codes.Unavailable, codes.DeadlineExceeded:
		kind = roost.Unavailable
	case codes.Unauthenticated:
		kind = roost.Unauthenticated
	case codes.PermissionDenied:
		kind = roost.PermissionDenied
	case codes.ResourceExhausted:
		kind = roost.Exhausted
	case codes.Canceled:
		return context.Canceled
	}
	return &remoteError{rewriteSizeError(unquoteCause(st.Message())), kind, st.Code()}
}

// rewriteSizeError replaces gRPC's text about a message that was too long to read by
// Roost's own text.
func rewriteSizeError(text string) string {
	var size, most int
	if n, _ := fmt.Sscanf(text, "grpc: received message larger than max (%d vs. %d)", &size, &most); n != 2 {
		return text
	}
	return fmt.Sprintf("%v: the message has %d bytes, and %d is the most", roost.Exhausted, size, most)
}

// connErrorPrefix begins gRPC's error for a failed connection; the cause follows as a
// quoted string.
const connErrorPrefix = "connection error: desc = "

// unquoteCause removes the quotes that gRPC puts around the cause of a failed connection.
// In them, quotes of names would be shown as \"n1\". The prefix stays: it distinguishes a
// failed connection from a refusal.
func unquoteCause(text string) string {
	before, after, found := strings.Cut(text, connErrorPrefix)
	if !found {
		return text
	}
	quoted, err := strconv.QuotedPrefix(after)
	if err != nil {
		return text
	}
	cause, err := strconv.Unquote(quoted)
	if err != nil {
		return text
	}
	return before + "connection error: " + cause + after[len(quoted):]
}
