package rpc

import (
	"context"
	"errors"

	"google.golang.org/grpc"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/roost-batch/roost/internal/wire/codes"

	"github.com/roost-batch/roost/internal/rpc/localrpc"
	"github.com/roost-batch/roost/internal/wire/scheddapi"
)

// CommandConn is a connection of gRPC for the client of package scheddapi.
type CommandConn struct{ ClientConn }

// Invoke makes a call with one request and one reply.
func (c CommandConn) Invoke(ctx context.Context, method string, args, reply any) error {
	return callError(c.ClientConn.Invoke(ctx, method, args, reply, grpc.StaticMethod()))
}

// NewStream begins a call.
func (c CommandConn) NewStream(ctx context.Context, method string,
	kind scheddapi.StreamKind) (scheddapi.Stream, error) {
	s, err := c.ClientConn.NewStream(ctx, &grpc.StreamDesc{ClientStreams: kind != scheddapi.ManyReplies,
		ServerStreams: kind != scheddapi.ManyRequests}, method, grpc.StaticMethod())
	if err != nil {
		return nil, callError(err)
	}
	return commandStream{s}, nil
}

// commandStream is a stream of gRPC with the errors that package scheddapi promises.
type commandStream struct{ grpc.ClientStream }

func (s commandStream) SendMsg(m any) error { return callError(s.ClientStream.SendMsg(m)) }
func (s commandStream) CloseSend() error    { return callError(s.ClientStream.CloseSend()) }
func (s commandStream) RecvMsg(m any) error { return callError(s.ClientStream.RecvMsg(m)) }

// callError converts an error of gRPC into one of localrpc; others are unchanged.
func callError(err error) error {
	var has interface{ GRPCStatus() *status.Status }
	if !errors.As(err, &has) {
		return err
	}
	st := has.GRPCStatus()
	e := &localrpc.CallError{Code: codes.Code(st.Code()), Message: st.Message()}
	if len(st.Details()) > 0 {
		if text, err := proto.Marshal(st.Proto()); err == nil {
			e.Details = text
		}
	}
	return e
}
