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

// grpcCodes maps each kind of error to the code that it travels under; the kind itself
// travels as a detail.
var grpcCodes = map[roost.ErrorKind]codes.Code{
	roost.Internal: codes.Internal, roost.Invalid: codes.InvalidArgument, roost.NotFound: codes.NotFound,
	roost.Finished: codes.FailedPrecondition, roost.Conflict: codes.FailedPrecondition,
	roost.PermissionDenied: codes.PermissionDenied, roost.Unauthenticated: codes.Unauthenticated,
	roost.Exhausted: codes.ResourceExhausted, roost.Unavailable: codes.Unavailable, roost.NoInput: codes.NotFound,
	roost.NoOutput: codes.Aborted, roost.BadConfig: codes.FailedPrecondition, roost.Usage: codes.InvalidArgument,
	roost.Stale: codes.Aborted,
}

// KindOf finds the kind of an error, Internal where it has none.
func KindOf(err error) roost.ErrorKind {
	var kind roost.ErrorKind
	if errors.As(err, &kind) {
		return kind
	}
	return roost.Internal
}

// Status turns an error into one that gRPC carries with its kind. Nil and errors of gRPC
// pass unchanged; an error that came over the wire and is passed on keeps its kind, and
// gets the words that were put before it.
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
		code = codes.Unknown // a kind of a newer daemon: OK, which is zero, would make a success of it
	}
	st := status.New(code, err.Error())
	if with, derr := st.WithDetails(wrapperspb.UInt32(uint32(kind))); derr == nil {
		st = with
	}
	return st.Err()
}

// remoteError is an error that came over the wire: its own text, and the kind it had.
type remoteError struct {
	message string
	kind    roost.ErrorKind
	code    codes.Code
}

func (e *remoteError) Error() string              { return e.message }
func (e *remoteError) Unwrap() error              { return e.kind }
func (e *remoteError) GRPCStatus() *status.Status { return status.New(e.code, e.message) }

// FromStatus turns what gRPC returned back into an error whose kind errors.Is finds.
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

// rewriteSizeError puts gRPC's refusal of a long message, of which it has read nothing
// but the length, into the words of ours.
func rewriteSizeError(text string) string {
	var size, most int
	if n, _ := fmt.Sscanf(text, "grpc: received message larger than max (%d vs. %d)", &size, &most); n != 2 {
		return text
	}
	return fmt.Sprintf("%v: the message has %d bytes, and %d is the most", roost.Exhausted, size, most)
}

// connErrorPrefix is how gRPC begins to say that it has no connection; the cause follows
// as a quoted string.
const connErrorPrefix = "connection error: desc = "

// unquoteCause takes the quotes off that gRPC puts around the cause of a failed
// connection: the names in it have their own, and would be shown as \"n1\". The words
// before it stay, for by them a failed connection is told from a refusal.
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
