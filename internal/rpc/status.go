package rpc

import (
	"context"
	"errors"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/rpc/localrpc"
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

// remoteError is an error that was received. Passed on, it retains its code.
type remoteError struct{ *localrpc.ReceivedError }

func (e remoteError) Unwrap() error              { return e.ReceivedError }
func (e remoteError) GRPCStatus() *status.Status { return status.New(codes.Code(e.Code), e.Message) }

// FromStatus converts an error of gRPC back into one whose kind errors.Is finds.
func FromStatus(err error) error {
	st, ok := status.FromError(err)
	if err == nil || !ok {
		return err
	}
	err = localrpc.DecodeError(callError(st.Err()))
	var received *localrpc.ReceivedError
	if errors.As(err, &received) {
		return remoteError{received}
	}
	return err
}
